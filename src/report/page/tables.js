// The chapters of profile types: a part each, with a table of every list. Which columns there are, the profile says
// (page_data.cpp); how each kind of cell is drawn, and which chapters have a picture of the chosen row, is here.

const sourceOf = (p) => (p.module !== undefined && Data.isOffset(p) ? Data.raw.modules[p.module].split("/").pop() : p.where);
const stepsOf = (blocks) => blocks.map((b) => b.start.function).filter((name, i, all) => name !== all[i - 1]).join(" → ");

// Of each kind of column: its width, what sorts it if not its text, what is drawn. `most` fills a bar.
const kindsOfCells = {
  share: {width: "150px", by: (v) => v.share, cell: (v, most) => shareCell(v, most)},
  count: {width: "90px", align: "right", by: (v) => v, cell: Text.count},
  ratio: {width: "100px", align: "right", by: (v) => v, cell: Text.share},
  nanoseconds: {width: "72px", align: "right", by: (v) => v, cell: (v) => Text.seconds(v * 1e-9)},
  text: {cell: (v) => v},
  word: {width: "96px", cell: (v) => element("span.kind", {class: `kind ${v}`}, v)},
  code: {cell: (v) => element("code", {}, v)},
  function: {cell: (p) => nameCell(p.function)},
  place: {cell: (p) => nameCell(p.function, Data.placeIn(p), p.caller && ` called from ${Data.fullLabel(p.caller)}`)},
  source: {cell: sourceOf},
  instruction: {cell: (p) => element("code", {}, p.text)},
  parts: {width: "110px", cell: (parts) => element("span.strip", {"aria-hidden": "true"}, parts.slice(0, 6).map((part, i) =>
    element("span", {"data-name": part.name, style: {width: `${(100 * part.share).toFixed(1)}%`, "--nth": String(i)}})))},
  path: {cell: stepsOf},
  stack: {cell: (frames) => element("span", {}, element("strong", {}, Data.fullLabel(frames[frames.length - 1])),
    element("span.muted", {}, frames.slice(0, -1).reverse().map((f) => ` ← ${f.function}`).join("")))},
};

function columnOf(list, {key, kind, title, stress, importance, stretch}, c) {
  const {width, align, by, cell} = kindsOfCells[kind];
  const shares = kind === "share" ? list.rows.map((row) => row[c + 1]) : [];
  const most = Math.max(1e-9, ...shares.slice(0, 1).map((s) => s[2]), shares.reduce((sum, s) => Math.max(sum, s[0]), 0));
  const drawn = (e) => (e[key] === null ? "" : cell(e[key], most));
  return {
    title: title[0].toUpperCase() + title.slice(1),
    width: width || `minmax(0, ${stretch || 1}fr)`,
    align: align || "",
    narrow: kind === "share" || key === list.mainKey ? "head" : importance >= 5 && kind !== "parts" ? "tail" : "",
    by: by && ((e) => (e[key] === null ? 0 : by(e[key]))),
    cell: (e) => (stress === "bold" ? element("strong", {}, drawn(e)) : stress === "dim" ? element("span.muted", {}, drawn(e)) : drawn(e)),
    brief: kind === "count" && ((e) => `${drawn(e)} ${title === "count" ? "×" : title}`),
  };
}

// One table of a chapter. Beside a picture there is less room for it.
function tableOf(list, label, open, isNarrower) {
  const least = isNarrower ? 5 : 0;
  const named = list.columns.filter(({kind}) => ["text", "function", "place", "path", "stack"].includes(kind));
  // What a row is about: on a narrow screen it stands beside the share.
  list.mainKey = (named.find(({stress}) => stress === "bold") || named.find(({kind}) => kind !== "text") || named[0])?.key;
  const isFilled = (c) => list.length === 0 || list.rows.some((row) => row[c + 1] !== null && row[c + 1].length !== 0);
  const columns = list.columns.map((column, c) => (column.title && column.importance >= least && isFilled(c) ? columnOf(list, column, c) : null)).filter(Boolean);
  return new VirtualList({label, columns, entry: (i) => list.entry(i), open});
}

function elsewhere(list) {
  if (!list?.total) return "";
  const notes = [];
  if (list.length < list.entries && list.rest) notes.push(`${Text.share(list.rest / list.total)} in ${Text.count(list.entries - list.length)} cooler entries of the profile`);
  if (list.unknown) notes.push(`${Text.share(list.unknown / list.total)} in none of the profile’s entries`);
  return notes.length ? ` Not shown: ${notes.join(", ")}.` : "";
}

// Without a picture, a click on a row opens the code of the first place in it that has some.
function openCode(list, entry, show) {
  for (const {key, kind} of list.columns) {
    if (!["function", "place"].includes(kind) || !Data.code.has(entry[key]?.key)) continue;
    return kind === "function" ? show("code", entry[key].key) : show("code", entry[key].key, entry[key].offset);
  }
}

function chapterParts(show) {
  const pictures = {paths: pathPicture(show), values: valuePicture(show), latencies: loadPicture(show)};
  return Data.raw.chapters.map((chapter) => {
    const lists = chapter.lists.map((key) => Data.lists[key]);
    const picture = pictures[chapter.key];
    const everything = (list) => Array.from({length: list.length}, (_, i) => i);
    let tables = [], side;
    let shown = lists.map(everything);
    const open = (list) => (i) => (picture ? openSide(side, picture.describe(list.entry(i))) : openCode(list, list.entry(i), show));
    return {
      id: chapter.key,
      title: chapter.name,
      count: lists[0]?.length ?? 0,
      build() {
        tables = lists.map((list) => tableOf(list, chapter.name, open(list), Boolean(picture)));
        tables.forEach((table, i) => table.show(shown[i]));
        side = picture && sidePanel(picture.hint);
        const {about, explanation, notes} = chapter;
        const intro = element("p.intro", {}, about && explanation ? `${about} (${explanation}).` : `${about || explanation}.`,
          notes.map((note) => ` ${note[0].toUpperCase()}${note.slice(1)}.`), elsewhere(lists[0]));
        const boxes = tables.map((table) => table.box);
        if (picture && !isNarrow() && lists[0].length) tables[0].choose(0, true);
        return element("div.table-part", {}, intro, picture ? element("div.split", {}, boxes, side) : boxes);
      },
      search(words) {
        shown = lists.map((list) => (words.length ? list.matches(words) : everything(list)));
        tables.forEach((table, i) => table.show(shown[i]));
        return shown.reduce((sum, found) => sum + found.length, 0);
      },
      focus: () => tables[0]?.box.focus({preventScroll: true}),
      open: (i) => tables[0]?.chooseEntry(Number(i)),
    };
  });
}

// The panel beside a table; on narrow screens it covers the table until it is closed.
function sidePanel(hint) {
  return element("aside.side", {tabindex: "-1"}, element("p.note", {}, hint));
}

function openSide(side, content) {
  const close = element("button.close", {type: "button", "aria-label": "Close", onclick: () => closeSide(side)}, "×");
  side.replaceChildren(close, ...content);
  side.classList.add("open");
  side.scrollTop = 0;
}

function closeSide(side) {
  side.classList.remove("open");
}
