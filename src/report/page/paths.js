// A hot path, drawn through its blocks, a column a call deeper.

function pathPicture(show) {
  const mnemonic = (text) => text.replace(/^(bnd|notrack) /, "").split(" ")[0];

  // How control goes on from a block to the next.
  function exitOf(block, next) {
    const text = block.end.text;
    const name = mnemonic(text);
    if (name === "call") return "calls";
    if (name === "ret") return "returns to";
    if (name === "jmp") return next && next.start.key !== block.end.key ? "tail-calls" : "jumps";
    if (/^(j|loop)/.test(name)) {
      const near = next && next.start.module === block.end.module ? next.start.offset - block.end.offset : 0;
      return near > 0 && near <= 15 && !text.endsWith(Text.hex(next.start.offset)) ? "falls through" : "branch taken";
    }
    return "goes on";
  }

  // Calls go a column to the right, returns to the left; the leftmost column is 0.
  function depths(blocks) {
    const all = [];
    let depth = 0;
    for (const b of blocks) {
      all.push(depth);
      const name = mnemonic(b.end.text);
      if (name === "call") ++depth;
      if (name === "ret") --depth;
    }
    const least = Math.min(...all);
    return all.map((d) => d - least);
  }

  function instructions(block) {
    const code = Data.code.get(block.start.key);
    if (!code) return null;
    const lines = code.lines.filter((l) => l.offset >= block.start.offset && l.offset <= block.end.offset);
    if (!lines.length) return null;
    return element("details", {}, element("summary", {}, Text.counted("instruction", block.instructions)),
      element("pre", {}, lines.map((l) => element("div", {}, element("span.offset", {}, Text.hex(l.offset)), " ", l.text))));
  }

  // The source line that a block begins with, if the page has it.
  function sourceLine(b) {
    const line = Number(/:(\d+)$/.exec(b.start.where)?.[1]);
    const code = Data.code.get(b.start.key);
    const file = code?.file?.split("/").pop();
    if (!line || !file || !b.start.where.startsWith(`${file}:`)) return null;
    const text = code.source?.find((l) => l[0] === line)?.[1].trim();
    return text ? element("code.source-line", {}, text) : null;
  }

  const lines = (b) => {
    const from = /:(\d+)$/.exec(b.start.where);
    const to = /:(\d+)$/.exec(b.end.where);
    return from && to && b.start.where.split(":")[0] === b.end.where.split(":")[0] && Number(to[1]) > Number(from[1])
      ? `${b.start.where}–${to[1]}` : b.start.where;
  };

  function drawing(e) {
    const depth = depths(e.blocks);
    const hues = new Map();
    const hue = (key) => {
      if (!hues.has(key)) hues.set(key, hues.size % 6);
      return hues.get(key);
    };
    const last = e.blocks[e.blocks.length - 1];
    const loops = /^(j|loop)/.test(mnemonic(last.end.text)) && last.end.text.endsWith("0x" + Text.hex(e.blocks[0].start.offset));
    const nodes = e.blocks.flatMap((b, i) => {
      const next = e.blocks[i + 1];
      const exit = exitOf(b, next);
      const isNew = i === 0 || e.blocks[i - 1].start.key !== b.start.key;
      const hasCode = Data.code.has(b.start.key);
      const block = element("div.block", {style: {"--depth": String(depth[i])}, "data-hue": hue(b.start.key)},
        element("div.block-head", {},
          hasCode
            ? element("button.link", {type: "button", onclick: () => show("code", b.start.key, b.start.offset)}, isNew ? b.start.function : lines(b))
            : element(isNew ? "strong" : "span", {}, isNew ? b.start.function : lines(b)),
          isNew && element("span.muted", {}, Data.isOffset(b.start) ? b.start.where.slice(b.start.function.length) : lines(b))),
        sourceLine(b),
        instructions(b) || element("div.muted", {}, Text.counted("instruction", b.instructions)),
        element("code.exit", {}, b.end.text));
      const arrow = next
        ? element("div.arrow", {style: {"--depth": String(depth[i])}, class: `arrow ${exit.replace(/[^a-z]/g, "-")}`}, exit)
        : element("div.arrow.end", {style: {"--depth": String(depth[i])}}, loops ? "↑ back to the start" : "the path ends");
      return [block, arrow];
    });
    return element("div.path-drawing", {class: `path-drawing${loops ? " loops" : ""}`}, nodes);
  }

  function describe(e) {
    return [
      element("h2", {}, Text.share(e.share.share), element("small", {}, " of path executions")),
      element("p.muted", {}, [Text.interval(e.share.low, e.share.high), `${Text.count(e.count)} × ${Text.counted("instruction", e.length)}`,
        e.work !== null && `${Text.share(e.work)} of all instructions`].filter(Boolean).join(" · ")),
      drawing(e),
    ];
  }

  return {hint: "Choose a path to see it drawn through its blocks.", describe};
}
