// The tables of profile types that have no part of their own.

function shownTableParts() {
  return (Data.raw.tables || []).map((table) => {
    const isText = (i) => table.rows.length > 0 && typeof table.rows[0][i] === "string";
    const cell = (value) => (Array.isArray(value) ? Text.share(value[0]) : typeof value === "number" ? Text.count(value) : value);
    const columns = table.columns.map((title, i) => ({
      title,
      width: isText(i) ? "minmax(0, 1fr)" : "110px",
      align: isText(i) ? "" : "right",
      narrow: isText(i) ? "head" : "tail",
      cell: (row) => cell(row[i]),
    }));
    let list;
    const all = table.rows.map((_, i) => i);
    let shown = all;
    return {
      id: table.id,
      title: table.title,
      count: table.rows.length,
      build() {
        list = new VirtualList({label: table.title, columns, entry: (i) => table.rows[i]});
        list.show(shown);
        const intro = element("p.intro", {}, `${table.explanation}, ${Text.count(table.total)} in all.`);
        return element("div.table-part", {}, intro, list.box);
      },
      search(words) {
        const text = (row) => row.filter((value) => typeof value === "string").join(" ").toLowerCase();
        shown = all.filter((i) => words.every((word) => text(table.rows[i]).includes(word)));
        list?.show(shown);
        return shown.length;
      },
      focus: () => list?.box.focus({preventScroll: true}),
    };
  });
}
