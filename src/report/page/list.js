// A table of any length: only the rows in sight exist. Rows have one height, columns are a grid.
//
// columns: [{title, width (of a CSS grid), cell(entry) -> node or text, align, narrow, brief, by}]. A click on a
// column's title sorts by it: by what by(entry) yields, or by the text of its cells. On narrow
// screens a row is two lines: the columns with narrow "head" above, those with "tail" below; there
// brief(entry) stands for what would need its column's title to be understood.

class VirtualList {
  constructor({label, columns, entry, open, empty}) {
    this.columns = columns;
    this.entry = entry;
    this.openEntry = open;
    this.empty = empty || "Nothing seen";
    this.indices = [];
    this.current = -1;
    this.heading = element("div.row.heading", {role: "row"},
      columns.map((c) => element("button.cell", {
        type: "button", role: "columnheader", class: `cell ${c.align || ""}`, "aria-sort": "none", tabindex: "-1",
        onclick: () => this.sortBy(c),
      }, c.title)));
    this.space = element("div.rows", {role: "rowgroup"});
    this.box = element("div.list", {role: "grid", "aria-label": label, tabindex: "0"}, this.heading, this.space);
    this.box.style.setProperty("--columns", columns.map((c) => c.width).join(" "));
    this.box.addEventListener("scroll", () => this.draw(), {passive: true});
    this.box.addEventListener("keydown", (event) => this.key(event));
    this.space.addEventListener("click", (event) => {
      const row = event.target.closest("[data-row]");
      if (row && !event.target.closest("a")) this.choose(Number(row.dataset.row), true);
    });
    new ResizeObserver(() => this.draw(true)).observe(this.box);
  }

  show(indices) {
    this.given = indices;
    this.indices = this.sorted();
    this.current = -1;
    this.box.scrollTop = 0;
    this.draw(true);
  }

  // Numbers begin with the greatest, names with the first of the alphabet; a second click turns that round, a third
  // restores the order that the table came in.
  sortBy(column) {
    const clicks = this.sorting?.column === column ? this.sorting.clicks + 1 : 1;
    this.sorting = clicks > 2 ? null : {column, clicks};
    for (const [i, c] of this.columns.entries()) {
      const ascending = Boolean(c.by) === (clicks === 2);
      this.heading.children[i].setAttribute("aria-sort",
        this.sorting?.column !== c ? "none" : ascending ? "ascending" : "descending");
    }
    this.show(this.given);
  }

  sorted() {
    if (!this.sorting) return this.given;
    const {column, clicks} = this.sorting;
    const text = (cell) => (cell instanceof Node ? cell.textContent : String(cell)).toLowerCase();
    const key = new Map(this.given.map((i) => [i, column.by ? -column.by(this.entry(i)) : text(column.cell(this.entry(i)))]));
    const sign = clicks === 2 ? -1 : 1;
    return [...this.given].sort((a, b) => (key.get(a) < key.get(b) ? -sign : key.get(a) > key.get(b) ? sign : a - b));
  }

  chooseEntry(index) {
    this.choose(Math.max(0, this.indices.indexOf(index)), true);
  }

  get rowHeight() {
    return isNarrow() ? 62 : 34;
  }

  draw(fresh = false) {
    const height = this.rowHeight;
    const narrow = isNarrow();
    this.heading.hidden = narrow;
    this.space.style.height = `${Math.max(1, this.indices.length) * height}px`;
    const above = narrow ? 0 : this.heading.offsetHeight;
    const first = Math.max(0, Math.floor(this.box.scrollTop / height) - 8);
    const last = Math.min(this.indices.length, Math.ceil((this.box.scrollTop + this.box.clientHeight - above) / height) + 8);
    if (!fresh && first === this.first && last === this.last) return;
    this.first = first;
    this.last = last;
    const rows = [];
    for (let i = first; i < last; ++i) rows.push(this.row(i, height, narrow));
    if (this.indices.length === 0) rows.push(element("p.note", {}, this.empty));
    this.space.replaceChildren(...rows);
  }

  row(i, height, narrow) {
    const entry = this.entry(this.indices[i]);
    const cell = (c) => element("span", {role: "gridcell", class: `cell ${c.align || ""}`},
      narrow && c.brief ? c.brief(entry) : c.cell(entry));
    const cells = narrow
      ? ["head", "tail"].map((line) => element(`div.${line}`, {}, this.columns.filter((c) => c.narrow === line).map(cell)))
      : this.columns.map(cell);
    return element(narrow ? "div.card-row" : "div.row", {
      role: "row", "data-row": i, "aria-selected": i === this.current ? "true" : false,
      style: {top: `${i * height}px`, height: `${height}px`},
    }, cells);
  }

  choose(i, open) {
    if (this.indices.length === 0) return;
    this.current = Math.max(0, Math.min(i, this.indices.length - 1));
    const top = this.current * this.rowHeight;
    const above = isNarrow() ? 0 : this.heading.offsetHeight;
    const room = this.box.clientHeight - above - this.rowHeight;
    if (top < this.box.scrollTop) this.box.scrollTop = top;
    else if (top > this.box.scrollTop + room) this.box.scrollTop = top - room;
    this.draw(true);
    if (open && this.openEntry) this.openEntry(this.indices[this.current]);
  }

  key(event) {
    const page = Math.max(1, Math.floor(this.box.clientHeight / this.rowHeight) - 2);
    const steps = {ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: page, PageUp: -page, Home: -1e9, End: 1e9};
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in steps) this.choose(this.current + steps[event.key], false);
    else if (event.key === "Enter" && this.current >= 0) this.choose(this.current, true);
    else return;
    event.preventDefault();
  }
}
