// Loads and how long they wait: a table, and of one load the times it took, as a histogram.

function loadsPart(show) {
  const levels = ["L1", "L2", "L3", "memory"];
  const limits = Data.raw.scale?.limits || [];
  let side;

  // Bins grow by a quarter of their logarithm to base 2; the first is for what took no time that could be seen.
  const binBegin = (bin) => (bin === 0 ? 0 : 2 ** ((bin - 1) / 4));
  const binOf = (ns) => (ns < 1 ? 0 : 1 + 4 * Math.log2(ns));

  // Where data came from, the farthest first: shares side by side.
  function levelStrip(counts, all) {
    return element("span.strip.levels", {"aria-hidden": "true"}, levels.map((name, i) => [name, counts[i] / all])
      .reverse().filter(([, share]) => share > 0.004)
      .map(([name, share]) => element("span", {class: `level-${name}`, style: {width: `${(100 * share).toFixed(1)}%`}})));
  }

  function histogram(e) {
    const bins = e.histogram.map(([bin]) => bin);
    // At least from no time at all to what any memory takes, so that loads compare at a glance.
    const last = Math.max(...bins, Math.ceil(binOf(256))) + 1;
    const most = Math.max(...e.histogram.map(([, n]) => n));
    const at = (bin) => `${(100 * bin / last).toFixed(2)}%`;
    const describe = (bin, n) => `${bin === 0 ? "under 1 ns" : `${Text.seconds(binBegin(bin) * 1e-9)} to ${Text.seconds(binBegin(bin + 1) * 1e-9)}`}: ${Text.counted("load", n)}, ${Text.share(n / e.timed)}`;
    const bars = e.histogram.map(([bin, n]) => element("span.times-bar", {
      title: describe(bin, n), style: {left: at(bin), width: at(1), height: `${Math.max(1, 100 * n / most).toFixed(1)}%`},
    }));
    const marks = limits.map((ns) => element("span.times-limit", {style: {left: at(binOf(ns))}}));
    const edges = [0, ...limits.map(binOf), last];
    const names = limits.length === 3
      ? levels.map((name, i) => [name, (edges[i + 1] - edges[i]) / last, (edges[i] + edges[i + 1]) / 2])
        .filter(([, width]) => width > 0.09).map(([name, , middle]) => element("span.times-level", {style: {left: at(middle)}}, name))
      : [];
    const ticks = [1, 4, 16, 64, 256, 1024, 4096, 16384, 65536].filter((ns) => binOf(ns) <= last)
      .map((ns) => element("span", {style: {left: at(binOf(ns))}}, Text.seconds(ns * 1e-9)));
    const said = `Times of ${Text.counted("load", e.timed)}: half of them up to ${Text.seconds(e.p50 * 1e-9)}, 99 % up to ${Text.seconds(e.p99 * 1e-9)}`;
    return element("figure.times", {role: "img", "aria-label": said},
      element("div.times-plot", {}, marks, names, bars), element("div.times-axis", {}, ticks));
  }

  function levelTable(e) {
    const columns = [e.timed ? ["by time", e.byTime, e.timed] : null, e.modelled ? ["by the model", e.byModel, e.modelled] : null].filter(Boolean);
    if (!columns.length) return null;
    return element("table.histogram.by-level", {},
      element("thead", {}, element("tr", {}, element("th"), columns.map(([title]) => element("th", {scope: "col", colspan: "2"}, title)))),
      element("tbody", {}, levels.map((name, i) => element("tr", {}, element("th", {scope: "row"}, name),
        columns.map(([, counts, all]) => [
          element("td.number", {}, Text.share(counts[i] / all)),
          element("td.chart", {}, shareBar({share: counts[i] / all, low: 0, high: 0}, 1)),
        ])))));
  }

  function describe(e) {
    const timed = e.timed
      ? `${Text.count(e.timed)} of them were timed${e.disturbed ? `, ${Text.count(e.disturbed)} more were disturbed and left out` : ""}.`
      : "None of them was timed.";
    return [
      element("h2", {}, Data.fullLabel(e.at)),
      element("p", {}, element("code", {}, e.at.text)),
      element("p.muted", {}, `${Text.counted("load", e.loads)} from `, element("code", {}, e.operand), `. ${timed}`),
      e.timed > 0 && element("dl.figures", {},
        [["mean", e.mean], ["half up to", e.p50], ["99 % up to", e.p99]].map(([name, ns]) => element("div", {},
          element("dt", {}, name), element("dd", {}, Text.seconds(ns * 1e-9))))),
      e.timed > 0 && histogram(e),
      levelTable(e),
      e.pattern && element("p", {}, "Addresses: ", element("strong", {}, e.pattern),
        e.modelled && e.pageWalks ? `; a walk of the page tables in ${Text.share(e.pageWalks / e.modelled)}` : "", "."),
      Data.code.has(e.at.key) && element("button.link", {type: "button", onclick: () => show("code", e.at.key, e.at.offset)}, "Show the code"),
    ].filter(Boolean);
  }

  const time = (e, ns) => (e.timed ? Text.seconds(ns * 1e-9) : "–");
  const part = tablePart({
    id: "latencies",
    title: "Loads",
    explain: () => `Loads by their part of all waiting; ${Data.raw.scale.text}.`,
    columns: (list) => [
      {title: "Waiting", width: "150px", narrow: "head", cell: (e) => shareCell(e, mostOf(list))},
      {title: "Where", width: "minmax(0, 1.3fr)", narrow: "head", cell: (e) => element("strong", {}, Data.fullLabel(e.at))},
      {title: "Mean", width: "72px", align: "right", narrow: "tail", cell: (e) => element("strong", {}, time(e, e.mean)), brief: (e) => `${time(e, e.mean)} each`},
      {title: "99 %", width: "72px", align: "right", cell: (e) => time(e, e.p99)},
      {title: "From (model)", width: "100px", cell: (e) => (e.modelled ? levelStrip(e.byModel, e.modelled) : "")},
      {title: "Addresses", width: "minmax(0, 0.9fr)", narrow: "tail", cell: (e) => element("span.muted", {}, e.pattern)},
      {title: "Loads", width: "76px", align: "right", cell: (e) => Text.count(e.loads)},
    ],
    open: (i) => openSide(side, describe(Data.lists.latencies.entry(i))),
    detail: () => (side = sidePanel("Choose a load to see the times it took.")),
  });
  return part && {
    ...part,
    build() {
      const built = part.build();
      if (!isNarrow() && Data.lists.latencies.length) part.list().choose(0, true);
      return built;
    },
    open: (i) => part.list().chooseEntry(Number(i)),
  };
}
