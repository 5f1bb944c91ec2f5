// Annotated code: source and assembly of one function side by side, each line with its heat.

function codePart() {
  const functions = [...Data.code.values()];
  if (!functions.length) return null;
  let box, picker, current = functions[0], shown = functions;
  let pane = "assembly";

  const total = functions.reduce((sum, c) => sum + c.executions, 0) || 1;
  // Of all instructions; if the profile does not say, of those of the functions on the page.
  const shareOf = (c) => c.share ?? c.executions / total;
  const keyOf = (c) => `${c.module}:${c.at}`;

  // Text; or, of a load, its share of all waiting as a bar before the text.
  function note(n) {
    if (!Array.isArray(n)) return element("span", {}, n);
    const [share, text] = n;
    return element("span.load-note", {}, shareBar({share, low: share, high: share}, 1), text);
  }

  function assembly(code) {
    let last = "";
    const rows = [];
    for (const l of code.lines) {
      if (l.gap) {
        rows.push(element("div.gap", {}, `⋮ ${l.gap} instructions that were not seen to run`));
        continue;
      }
      const place = l.file ? `${l.file}:${l.line}` : "";
      if (place && place !== last) rows.push(element("div.source-mark", {"data-line": l.line}, place));
      last = place;
      const share = code.executions > 0 ? l.executions / code.executions : 0;
      rows.push(element("div.line", {"data-offset": l.offset, "data-line": l.line, style: heat(share)},
        element("span.count", {}, l.executions ? Text.count(l.executions) : ""),
        element("span.percent", {}, l.executions ? Text.percent(share) : ""),
        element("span.offset", {}, Text.hex(l.offset)),
        element("code", {}, l.text),
        l.notes.length > 0 && element("span.notes", {}, l.notes.map(note))));
    }
    return element("div.lines.assembly", {"aria-label": "Assembly"}, rows);
  }

  function source(code) {
    if (!code.source?.length || code.source.every((l) => l[1] === "")) {
      return element("div.lines.source", {}, element("p.note", {}, code.source?.length
        ? "The source file is not on the machine where this page was made."
        : "No source lines: the program has no debug information for this function."));
    }
    let next = 0;
    const rows = [];
    for (const [number, text, executions, instructions] of code.source) {
      if (next && number !== next) rows.push(element("div.gap", {}, "⋮"));
      next = number + 1;
      const share = code.executions > 0 ? instructions / code.executions : 0;
      rows.push(element("div.line", {"data-line": number, style: heat(share), onclick: () => mark(number)},
        element("span.count", {}, executions ? Text.count(executions) : ""),
        element("span.percent", {}, executions ? Text.percent(share) : ""),
        element("span.offset", {}, String(number)),
        element("code", {}, text || " ")));
    }
    return element("div.lines.source", {"aria-label": "Source"}, rows);
  }

  // Shows which instructions a source line became.
  function mark(number) {
    let first = null;
    for (const line of box.querySelectorAll(".lines .line")) {
      const same = Number(line.dataset.line) === number;
      line.classList.toggle("marked", same);
      if (same && !first && line.closest(".assembly")) first = line;
    }
    first?.scrollIntoView({block: "nearest"});
  }

  function draw(offset) {
    const code = current;
    const notes = [
      Data.raw.modules[code.module],
      code.file,
      code.quoted_only ? "The file is not there or is another build: only instructions that the profile quotes." : null,
    ].filter(Boolean);
    box.replaceChildren(
      element("div.code-head", {}, element("h2", {}, code.name), element("p.muted", {}, notes.join(" · "))),
      element("div.panes", {"data-pane": pane},
        element("div.pane-choice", {}, segments("What to show", [["source", "Source"], ["assembly", "Assembly"]], pane, (value) => {
          pane = value;
          box.querySelector(".panes").dataset.pane = value;
        })),
        source(code), assembly(code)));
    for (const option of picker.querySelectorAll("[data-key]")) {
      option.setAttribute("aria-current", String(option.dataset.key === keyOf(code)));
    }
    const target = offset === undefined ? null : box.querySelector(`.assembly [data-offset="${offset}"]`);
    if (target) {
      target.classList.add("marked");
      target.scrollIntoView({block: "center"});
    } else {
      hottestIntoView();
    }
  }

  function hottestIntoView() {
    for (const lines of box.querySelectorAll(".lines")) {
      let hottest = null, most = 0;
      for (const line of lines.querySelectorAll(".line")) {
        const h = Number(line.style.getPropertyValue("--heat"));
        if (h > most) [hottest, most] = [line, h];
      }
      if (hottest) lines.scrollTop = hottest.offsetTop - lines.clientHeight / 3;
    }
  }

  function drawPicker() {
    picker.replaceChildren(...(shown.length ? shown : []).map((c) => element("button", {
      type: "button", "data-key": keyOf(c), "aria-current": String(c === current), style: heat(shareOf(c)),
      onclick: () => {
        current = c;
        draw();
      },
    }, element("span.number", {}, Text.share(shareOf(c))), element("span.name", {}, c.label))));
    if (!shown.length) picker.append(element("p.note", {}, "Nothing found here."));
  }

  return {
    id: "code",
    title: "Code",
    count: functions.length,
    build() {
      picker = element("nav.picker", {"aria-label": "Functions"});
      box = element("div.code");
      drawPicker();
      queueMicrotask(() => draw());
      return element("div.code-part", {}, picker, box);
    },
    search(words) {
      shown = functions.filter((c) => {
        const text = [c.name, c.label, c.file || "", Data.raw.modules[c.module]].join("\n").toLowerCase();
        return words.every((w) => text.includes(w)) ||
          c.lines.some((l) => l.text && words.every((w) => l.text.toLowerCase().includes(w)));
      });
      if (picker) drawPicker();
      return shown.length;
    },
    open(key, offset) {
      if (!Data.code.has(key)) return;
      current = Data.code.get(key);
      if (isNarrow() && (!current.source || offset !== undefined)) pane = "assembly";
      draw(offset === undefined ? undefined : Number(offset));
    },
  };
}
