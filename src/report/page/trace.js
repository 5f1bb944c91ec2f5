// The calls of a sample that was kept, from left to right as they came: a bar is a function from its call to its return. A
// click on a bar shows what happened in it alone.

function tracePart() {
  const raw = Data.raw.samples;
  if (!raw) return null;
  const threads = raw.threads.map(({name, instructions, nanoseconds, calls}, n) => {
    const bars = [];
    for (let i = 0; i < calls.length; i += 5) {
      const [name, depth, begin, length, passed] = calls.slice(i, i + 5);
      const known = raw.arguments[passed];
      bars.push({name: raw.functions[name], label: raw.functions[name] + (known && `: ${known}`), depth, begin, length});
    }
    // The time is an estimate: all instructions of a sample are taken to be equally fast.
    const amount = (length) => `${Text.count(length)} instructions` + (nanoseconds ? `, ≈ ${Text.seconds(length * nanoseconds * 1e-9)}` : "");
    return {title: `sample ${n + 1}: ${name || "a thread"}, ${amount(instructions)}`, instructions, amount, bars};
  });
  const height = 18, mostBars = 3000, leastPart = 0.0005;
  let chosen = 0, within = null, words = [], chart, where;

  const colourOf = (name) => {
    let hash = 0;
    for (const letter of name) hash = (hash * 31 + letter.charCodeAt(0)) % 360;
    return `hsl(${hash} 60% 72%)`;
  };
  const matches = (bar) => words.length > 0 && words.every((word) => bar.label.toLowerCase().includes(word));

  function draw() {
    const {instructions, amount, bars} = threads[chosen];
    const begin = within ? within.begin : 0, length = within ? within.length : instructions;
    const shown = bars.filter((bar) => bar.begin < begin + length && bar.begin + bar.length > begin && bar.length >= leastPart * length)
      .slice(0, mostBars);
    const deepest = Math.max(0, ...shown.map((bar) => bar.depth));
    const percent = (part) => `${(100 * part / Math.max(1, length)).toFixed(3)}%`;
    chart.style.height = `${(deepest + 1) * height}px`;
    chart.replaceChildren(...shown.map((bar) => {
      const from = Math.max(bar.begin, begin), to = Math.min(bar.begin + bar.length, begin + length);
      return element(matches(bar) ? "button.match" : "button", {type: "button", tabindex: "-1", title: `${bar.label}\n${amount(bar.length)}`,
        style: {left: percent(from - begin), width: percent(to - from), top: `${bar.depth * height}px`, background: colourOf(bar.name)},
        onclick: () => {
          within = within === bar ? null : bar;
          draw();
        }}, bar.label);
    }));
    where.textContent = within ? `within ${within.label}: ${amount(length)}; again to leave it`
      : `all ${amount(length)}`;
  }

  return {
    id: "trace",
    title: "Trace",
    count: threads.length,
    build() {
      chart = element("div.calls");
      where = element("span.where");
      const choice = element("select", {"aria-label": "Sample", onchange: () => {
        chosen = Number(choice.value);
        within = null;
        draw();
      }}, threads.map((thread, n) => element("option", {value: n}, thread.title)));
      draw();
      return element("div.trace-part", {}, element("p.intro", {},
        "Samples that were kept, call by call. From left to right: instructions. Calls too short to be seen are left out."),
        element("div.trace-tools", {}, choice, where), chart);
    },
    search(found) {
      words = found;
      if (chart) draw();
      return words.length ? threads[chosen].bars.filter(matches).length : threads[chosen].bars.length;
    },
    focus() {},
    open(n) {
      chosen = Math.min(threads.length - 1, Math.max(0, Number(n) || 0));
      within = null;
      if (chart) draw();
    },
  };
}
