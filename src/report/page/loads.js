// How long a load waits: the times it took, as a histogram, and where its data came from.

function loadPicture(show) {
  const levels = ["L1", "L2", "L3", "memory"];
  const limits = Data.raw.level_limits || [];

  // Bins grow by a quarter of their logarithm to base 2; the first is for what took no time that could be seen.
  const binBegin = (bin) => (bin === 0 ? 0 : 2 ** ((bin - 1) / 4));
  const binOf = (ns) => (ns < 1 ? 0 : 1 + 4 * Math.log2(ns));

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
    const columns = [["by time", e.by_time], ["by the model", e.by_model]].filter(([, parts]) => parts.length);
    if (!columns.length) return null;
    const shareOf = (parts, name) => parts.find((part) => part.name === name)?.share ?? 0;
    return element("table.histogram.by-level", {},
      element("thead", {}, element("tr", {}, element("th"), columns.map(([title]) => element("th", {scope: "col", colspan: "2"}, title)))),
      element("tbody", {}, levels.map((name) => element("tr", {}, element("th", {scope: "row"}, name),
        columns.map(([, parts]) => [
          element("td.number", {}, Text.share(shareOf(parts, name))),
          element("td.chart", {}, shareBar({share: shareOf(parts, name), low: 0, high: 0}, 1)),
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
        e.page_walks ? `; a walk of the page tables in ${Text.share(e.page_walks)}` : "", "."),
      Data.code.has(e.at.key) && element("button.link", {type: "button", onclick: () => show("code", e.at.key, e.at.offset)}, "Show the code"),
    ].filter(Boolean);
  }

  return {hint: "Choose a load to see the times it took.", describe};
}
