// The parts that are one long table: functions, edges, calls, stacks.

// What a table needs besides its columns: the search, and a line about what it leaves out.
function tablePart({id, title, explain, columns, open, detail}) {
  const list = Data.lists[id];
  if (!list) return null;
  let table;
  const all = () => Array.from({length: list.length}, (_, i) => i);
  let shown = all();

  function elsewhere() {
    if (!list.total) return "";
    const notes = [];
    if (list.length < list.entries && list.rest) notes.push(`${Text.share(list.rest / list.total)} in ${Text.count(list.entries - list.length)} cooler entries of the profile`);
    if (list.unknown) notes.push(`${Text.share(list.unknown / list.total)} in none of the profile’s entries`);
    return notes.length ? ` Not shown: ${notes.join(", ")}.` : "";
  }

  return {
    id,
    title,
    count: list.length,
    build() {
      table = new VirtualList({label: title, columns: columns(list), entry: (i) => list.entry(i), open});
      table.show(shown);
      const intro = element("p.intro", {}, explain(list), elsewhere());
      return element("div.table-part", {}, intro, detail ? element("div.split", {}, table.box, detail()) : table.box);
    },
    search(words) {
      shown = words.length ? list.matches(words) : all();
      table?.show(shown);
      return shown.length;
    },
    focus: () => table?.box.focus({preventScroll: true}),
    list: () => table,
  };
}

const mostOf = (list) => (list.length ? Math.max(list.entry(0).high, list.entry(0).share) : 1) || 1;
const shareColumn = (list, narrow = "head") => ({title: "Share", width: "150px", narrow, by: (e) => e.share, cell: (e) => shareCell(e, mostOf(list))});
const countColumn = (title, unit) => ({title, width: "84px", align: "right", narrow: "tail", by: (e) => e.count, cell: (e) => Text.count(e.count), brief: (e) => `${Text.count(e.count)} ${unit}`});
const module = (p) => Data.raw.modules[p.module].split("/").pop();
const where = (p) => (Data.isOffset(p) ? module(p) : p.where);

function functionsPart(show) {
  return tablePart({
    id: "functions",
    title: "Functions",
    explain: (list) => `Functions by the instructions executed in them, ${Text.count(list.total)} in all.`,
    columns: (list) => [
      shareColumn(list),
      {title: "Function", width: "minmax(0, 3fr)", narrow: "head", cell: (e) => element("strong", {}, e.at.function)},
      countColumn("Instructions", "instructions"),
      {title: "Calls", width: "76px", align: "right", by: (e) => e.calls + e.tailCalls, cell: (e) => Text.count(e.calls + e.tailCalls)},
      {title: "Loops", width: "76px", align: "right", by: (e) => e.loops, cell: (e) => Text.count(e.loops)},
      {title: "Where", width: "minmax(0, 2fr)", narrow: "tail", cell: (e) => element("span.muted", {}, where(e.at))},
    ],
    open(i) {
      const e = Data.lists.functions.entry(i);
      if (Data.code.has(e.at.key)) show("code", e.at.key);
    },
  });
}

function edgesPart() {
  return tablePart({
    id: "edges",
    title: "Edges",
    explain: (list) => `Branches and where they went, ${Text.count(list.total)} executions.`,
    columns: (list) => [
      shareColumn(list),
      countColumn("Count", "×"),
      {title: "Kind", width: "92px", narrow: "tail", cell: (e) => element("span.kind", {class: `kind ${e.kind}`}, e.kind)},
      {title: "From", width: "minmax(0, 1fr)", narrow: "head", cell: (e) => Data.fullLabel(e.from)},
      {title: "Instruction", width: "minmax(0, 0.8fr)", cell: (e) => element("code", {}, e.from.text)},
      {title: "To", width: "minmax(0, 1fr)", narrow: "tail", cell: (e) => Data.fullLabel(e.to)},
    ],
  });
}

function callsPart() {
  return tablePart({
    id: "calls",
    title: "Calls",
    explain: (list) => `Who calls whom, ${Text.count(list.total)} calls.`,
    columns: (list) => [
      shareColumn(list),
      countColumn("Count", "×"),
      {title: "From", width: "minmax(0, 1fr)", narrow: "tail", cell: (e) => Data.fullLabel(e.from)},
      {title: "To", width: "minmax(0, 1fr)", narrow: "head", cell: (e) => element("strong", {}, e.to.function)},
    ],
  });
}

function stacksPart() {
  return tablePart({
    id: "stacks",
    title: "Stacks",
    explain: (list) => `Where samples began, outermost call first, ${Text.counted("sample", list.total)}.`,
    columns: (list) => [
      shareColumn(list),
      countColumn("Samples", "×"),
      {title: "Innermost", width: "minmax(0, 1fr)", narrow: "head",
        cell: (e) => element("strong", {}, Data.fullLabel(e.frames[e.frames.length - 1]))},
      {title: "Called by", width: "minmax(0, 2fr)", narrow: "tail",
        cell: (e) => element("span.muted", {}, e.frames.slice(0, -1).reverse().map((f) => f.function).join(" ← "))},
    ],
  });
}
