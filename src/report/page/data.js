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
  // What follows the function's name in the label of a place.
  const placeIn = (p) => (isOffset(p) ? p.where.slice(p.function.length) : ` ${p.where}`);
  const fullLabel = (p) => p.function + placeIn(p);

  const estimate = ([share, low, high]) => ({share, low, high});
  const chunks = (list, size) => Array.from({length: list.length / size}, (_, i) => list.slice(size * i, size * (i + 1)));
  const placeOrWords = (v) => (typeof v === "string" ? {function: v, where: v, text: ""}
    : Array.isArray(v) ? {...place(v[0]), caller: place(v[1])} : place(v));
  // A cell as page_data.cpp writes it, by the kind of its column. An empty one is null.
  const decode = {
    text: string, word: string, code: string,
    share: estimate,
    function: placeOrWords, place: placeOrWords, source: placeOrWords, instruction: placeOrWords,
    parts: (v) => chunks(v, 4).map(([name, ...share]) => ({name, ...estimate(share)})),
    path: (v) => chunks(v, 3).map(([start, end, instructions]) => ({start: place(start), end: place(end), instructions})),
    stack: (v) => v.map(place),
    pairs: (v) => chunks(v, 2),
  };
  // What of a cell a search may hit.
  const named = (p) => [p.function, p.where, p.text];
  const searched = {
    text: (v) => [v], word: (v) => [v], code: (v) => [v],
    function: named, place: named, instruction: named,
    source: (p) => [...named(p), raw.modules[p.module]],
    parts: (v) => v.map((part) => part.name),
    path: (v) => v.flatMap((b) => [b.start.function, b.start.where]),
    stack: (v) => v.flatMap((f) => [f.function, f.where]),
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
    // An object: the entry's part of the total as `count`, and its cells by the keys of the columns.
    entry(i) {
      if (!this.decoded[i]) {
        const [count, ...cells] = this.rows[i];
        this.decoded[i] = {count};
        for (const [c, {key, kind}] of this.columns.entries()) {
          this.decoded[i][key] = cells[c] === null ? null : (decode[kind] || ((v) => v))(cells[c]);
        }
      }
      return this.decoded[i];
    }
    textsOf(entry) {
      return this.columns.flatMap(({key, kind}) => (entry[key] === null || !searched[kind] ? [] : searched[kind](entry[key])));
    }
    matches(words) {
      const found = [];
      for (let i = 0; i < this.length; ++i) {
        if (!this.texts[i]) this.texts[i] = [...new Set(this.textsOf(this.entry(i)))].join("\n").toLowerCase();
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
  return {raw, string, place, isOffset, placeIn, fullLabel, lists, code, findings, command};
})();
