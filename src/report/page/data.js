// The profile: names for the columns that page_data.cpp writes, and what is asked of them often.

const Data = (() => {
  const raw = JSON.parse(document.getElementById("data").textContent);
  const string = (i) => raw.strings[i];

  const places = new Array(raw.locations.length);
  function place(i) {
    if (!places[i]) {
      const [fn, where, text, module, offset, entry] = raw.locations[i];
      places[i] = {
        function: string(fn), where: string(where), text: string(text), module, offset, entry,
        // Which function of which module: the key of its code.
        key: `${module}:${entry}`,
      };
    }
    return places[i];
  }
  // Without lines of source a place is where it is in its function: "f+0x12". A file's name may begin
  // with that of the function as well.
  const isOffset = (p) => p.where === p.function || p.where.startsWith(`${p.function}+0x`) || p.where.startsWith(`${p.function}-0x`);
  function fullLabel(p) {
    return isOffset(p) ? p.where : `${p.function} ${p.where}`;
  }

  const estimate = ([count, share, low, high]) => ({count, share, low, high});
  const decode = {
    functions: (r) => ({...estimate(r), at: place(r[4]), calls: r[5], tailCalls: r[6], loops: r[7]}),
    paths: (r) => {
      const blocks = [];
      for (let i = 0; i < r[6].length; i += 3) {
        blocks.push({start: place(r[6][i]), end: place(r[6][i + 1]), instructions: r[6][i + 2]});
      }
      return {...estimate(r), length: r[4], work: r[5], blocks};
    },
    edges: (r) => ({...estimate(r), from: place(r[4]), to: place(r[5]), kind: string(r[6])}),
    calls: (r) => ({...estimate(r), from: place(r[4]), to: place(r[5])}),
    values: (r) => ({
      executions: r[0], at: place(r[1]), operand: string(r[2]), context: r[3] === null ? null : place(r[3]),
      step: r[4], stepShare: r[5],
      top: r[6].map(([text, share, low, high]) => ({text, share, low, high})),
    }),
    latencies: (r) => {
      const histogram = [];
      for (let i = 0; i < r[17].length; i += 2) histogram.push([r[17][i], r[17][i + 1]]);
      return {
        ...estimate(r), at: place(r[4]), operand: string(r[5]), loads: r[6], timed: r[7], disturbed: r[8],
        mean: r[9], p50: r[10], p99: r[11], pattern: string(r[12]), modelled: r[13], pageWalks: r[14],
        byTime: r[15], byModel: r[16], histogram,
      };
    },
    stacks: (r) => ({...estimate(r), frames: r[4].map(place)}),
  };
  // Everything of an entry that a search may hit, in lower case.
  const searched = {
    functions: (e) => [e.at.function, e.at.where, raw.modules[e.at.module]],
    paths: (e) => e.blocks.flatMap((b) => [b.start.function, b.start.where]),
    edges: (e) => [e.from.function, e.from.where, e.from.text, e.to.function, e.to.where, e.kind],
    calls: (e) => [e.from.function, e.from.where, e.to.function, e.to.where],
    values: (e) => [e.at.function, e.at.where, e.at.text, e.operand, ...e.top.map((v) => v.text)],
    latencies: (e) => [e.at.function, e.at.where, e.at.text, e.operand, e.pattern],
    stacks: (e) => e.frames.flatMap((f) => [f.function, f.where]),
  };

  // Entries are decoded when they are first looked at.
  class List {
    constructor(name, list) {
      Object.assign(this, list);
      this.name = name;
      this.length = list.rows.length;
      this.decoded = new Array(this.length);
      this.texts = new Array(this.length);
    }
    entry(i) {
      if (!this.decoded[i]) this.decoded[i] = decode[this.name](this.rows[i]);
      return this.decoded[i];
    }
    matches(words) {
      const found = [];
      for (let i = 0; i < this.length; ++i) {
        if (!this.texts[i]) this.texts[i] = [...new Set(searched[this.name](this.entry(i)))].join("\n").toLowerCase();
        if (words.every((w) => this.texts[i].includes(w))) found.push(i);
      }
      return found;
    }
    // Of the events, those that are in no row of the page.
    get elsewhere() {
      return this.total > 0 ? (this.unknown + this.rest) / this.total : 0;
    }
  }
  const lists = {};
  for (const [name, list] of Object.entries(raw.lists)) lists[name] = new List(name, list);

  const code = new Map(raw.code.map((c) => [`${c.module}:${c.at}`, c]));
  for (const c of raw.code) {
    c.label = string(c.label);
    c.lines = c.lines.map((l) => Array.isArray(l) ? {
      offset: l[0], text: string(l[1]), executions: l[2], file: string(l[3]), line: l[4], notes: l[5] || [],
    } : {gap: l});
  }

  const findings = raw.findings.map((f) => ({...f, ...raw.kinds[f.kind], at: place(f.at)}));
  const command = raw.targets.map((t) => t.command.join(" ")).join(" · ");
  return {raw, string, place, isOffset, fullLabel, lists, code, findings, command};
})();
