// The whole run over time: a lane for each thread, a bar for each column of time, as high as the part of it that the
// thread had a processor. Where nobody looked at a thread its lane is hatched: it may have done anything. A click on a
// column says what the program did then.

function timelinePart() {
  const raw = Data.raw.timeline;
  if (!raw) return null;
  const {width, whole, threads, states, functions} = raw;
  const entries = [];
  for (let i = 0; i < raw.entries.length; i += 6) {
    const [column, thread, state, waits, name, time] = raw.entries.slice(i, i + 6);
    entries.push({column, thread, state: states[state], waits, name: functions[name], time});
  }
  const columns = 1 + Math.max(...entries.map((e) => e.column));
  const nanoseconds = width * 1e6;
  const sum = (list) => list.reduce((all, e) => all + e.time, 0);
  const whereOf = (e) => e.name || (e.state === "user" ? "others" : e.state);
  const label = (e) => (e.waits ? `waiting: ${e.state}` : e.name && e.state !== "user" ? `${e.name}: ${e.state}` : whereOf(e));

  // What takes most time has a colour of its own; the rest shares one.
  const mostColours = 8;
  const byLabel = new Map();
  for (const e of entries) if (!e.waits) byLabel.set(whereOf(e), (byLabel.get(whereOf(e)) || 0) + e.time);
  const coloured = [...byLabel].sort((a, b) => b[1] - a[1]).slice(0, mostColours).map(([name]) => name);
  const colourOf = (e) => {
    const nth = coloured.indexOf(whereOf(e));
    return nth < 0 ? "var(--muted)" : `hsl(${(nth * 360 / mostColours + 25) % 360} 62% 58%)`;
  };

  // Threads that compute come first.
  const order = threads.map((name, thread) => ({name, of: entries.filter((e) => e.thread === thread)}))
    .map((lane) => ({...lane, busy: sum(lane.of.filter((e) => !e.waits))})).sort((a, b) => b.busy - a.busy);
  const mostLanes = 24;
  let panel, words = [], chosen = null;
  const cells = [];

  const seconds = (column) => Text.seconds(column * width * 1e-3);

  const isUnseen = (lane, column) => whole && !lane.of.some((e) => e.column === column);

  function bar(lane, column) {
    const here = lane.of.filter((e) => e.column === column && !e.waits).sort((a, b) => b.time - a.time);
    const whole = Math.max(nanoseconds, sum(here));  // several threads may have the same name
    return here.map((e) => element("i", {style: {height: `${(100 * e.time / whole).toFixed(1)}%`, background: colourOf(e)}}));
  }

  function describe(column) {
    chosen = column;
    for (const cell of cells) cell.box.classList.toggle("chosen", cell.column === column);
    const here = entries.filter((e) => e.column === column).sort((a, b) => b.time - a.time);
    const rows = [["on processors", here.filter((e) => !e.waits)], ["waiting", here.filter((e) => e.waits)]].filter(([, of]) => of.length)
      .map(([what, of]) => [element("h3", {}, `${what}: ${Text.seconds(sum(of) * 1e-9)}`), element("ol.top", {}, of.map((e) => element("li", {},
        element("span", {}, element("i.swatch", {style: {background: e.waits ? "var(--line)" : colourOf(e)}}), label(e)),
        element("span.muted.where", {}, threads.length > 1 ? threads[e.thread] : ""),
        element("span.number", {}, Text.seconds(e.time * 1e-9)))))]);
    panel.replaceChildren(element("h2", {}, `${seconds(column)} to ${seconds(column + 1)}`),
      ...(here.length ? rows.flat() : [element("p.muted", {}, "Nobody looked then.")]));
  }

  const matches = (e) => words.every((word) => label(e).toLowerCase().includes(word));

  return {
    id: "timeline",
    title: "Timeline",
    build() {
      panel = element("aside.timeline-panel", {"aria-live": "polite"});
      const lanes = order.slice(0, mostLanes).map((lane) => element("div.lane", {},
        element("div.lane-name", {title: lane.name}, lane.name),
        element("div.lane-bars", {}, Array.from({length: columns}, (_, column) => {
          const unseen = isUnseen(lane, column);
          const box = element(unseen ? "button.lane-bar.unseen" : "button.lane-bar", {type: "button", tabindex: "-1",
            "aria-label": `${lane.name}, ${seconds(column)}${unseen ? ": not looked at" : ""}`,
            onclick: () => describe(column)}, bar(lane, column));
          cells.push({box, column, lane});
          return box;
        }))));
      const legend = element("div.legend", {}, coloured.map((name) => element("span", {},
        element("i", {style: {background: colourOf({name, state: name, waits: false})}}), name)));
      const move = (by) => describe(Math.max(0, Math.min(columns - 1, (chosen ?? 0) + by)));
      const graph = element("div.lanes", {tabindex: "0", onkeydown: (event) => {
        if (event.key === "ArrowRight") move(1);
        else if (event.key === "ArrowLeft") move(-1);
        else return;
        event.preventDefault();
      }}, lanes, element("div.lane.axis", {}, element("div.lane-name", {}),
        element("div.lane-bars", {}, element("span", {}, "0 s"), element("span", {}, seconds(columns)))));
      const busiest = Array.from({length: columns}, (_, c) => sum(entries.filter((e) => e.column === c && !e.waits)));
      describe(busiest.indexOf(Math.max(...busiest)));
      const left = order.length - mostLanes;
      return element("div.timeline-part", {}, element("p.intro", {},
        `What the clock saw, in columns of ${seconds(1)}: a full bar is a thread that had a processor all the time. Hatched: not there, or not looked at.`,
        left > 0 && ` ${left} more threads are not shown.`), legend, graph, panel);
    },
    search(found) {
      words = found;
      let count = 0;
      for (const {box, column, lane} of cells) {
        const is = words.length > 0 && lane.of.some((e) => e.column === column && matches(e));
        box.classList.toggle("match", is);
        count += is;
      }
      return words.length ? (cells.length ? count : entries.filter(matches).length) : entries.length;
    },
    focus() {},
    open: (column) => describe(Number(column)),
  };
}
