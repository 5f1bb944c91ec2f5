// Values that repeat or step: a table with small distributions, and one of them in full.

function valuesPart(show) {
  let side;

  // The strongest regularity: one value, or one step.
  function regularity(e) {
    const top = e.top[0];
    if (e.step !== 0 && e.stepShare > (top ? top.share : 0)) {
      return {text: `step ${e.step > 0 ? "+" : ""}${e.step}`, share: e.stepShare, low: e.stepShare, high: e.stepShare};
    }
    return top || {text: "–", share: 0, low: 0, high: 0};
  }

  // Shares of the most frequent values side by side; the rest is the bar's ground.
  function strip(e) {
    return element("span.strip", {"aria-hidden": "true"}, e.top.slice(0, 6).map((v, i) =>
      element("span", {style: {width: `${(100 * v.share).toFixed(1)}%`, "--nth": String(i)}})));
  }

  function describe(e) {
    const known = e.top.reduce((sum, v) => sum + v.share, 0);
    const most = Math.max(...e.top.map((v) => v.high), 0.01);
    const rows = e.top.map((v) => element("tr", {},
      element("th", {scope: "row"}, element("code", {}, v.text)),
      element("td.chart", {}, shareBar(v, most)),
      element("td.number", {}, Text.share(v.share)),
      element("td.muted", {}, Text.interval(v.low, v.high) || "exact")));
    if (known < 0.9995) {
      rows.push(element("tr.rest", {}, element("th", {scope: "row"}, "others"),
        element("td.chart", {}, shareBar({share: 1 - known, low: 0, high: 0}, Math.max(most, 1 - known))),
        element("td.number", {}, Text.share(Math.max(0, 1 - known))), element("td")));
    }
    return [
      element("h2", {}, e.operand),
      element("p.muted", {}, Data.fullLabel(e.at), e.context ? `, called from ${Data.fullLabel(e.context)}` : ""),
      element("p", {}, element("code", {}, e.at.text), ` ran ${Text.count(e.executions)} times.`),
      e.step !== 0 && element("p", {}, `From one execution to the next it changes by ${e.step > 0 ? "+" : ""}${e.step} in ${Text.share(e.stepShare)}.`),
      e.top.length ? element("table.histogram", {}, element("tbody", {}, rows)) : element("p.muted", {}, "No value came often enough to stand out."),
      Data.code.has(e.at.key) && element("button.link", {type: "button", onclick: () => show("code", e.at.key, e.at.offset)}, "Show the code"),
    ].filter(Boolean);
  }

  const part = tablePart({
    id: "values",
    title: "Values",
    explain: (list) => `What instructions yield, the most predictable work first; operands that cannot vary are left out. ${Text.count(list.total)} executions.`,
    columns: () => [
      {title: "Share", width: "150px", narrow: "head", by: (e) => regularity(e).share, cell: (e) => shareCell(regularity(e), 1)},
      {title: "See", width: "minmax(0, 1.2fr)", narrow: "head", cell: (e) => element("strong", {}, regularity(e).text)},
      {title: "In", width: "minmax(0, 0.8fr)", narrow: "tail", cell: (e) => element("code", {}, e.operand)},
      {title: "Distribution", width: "110px", cell: strip},
      {title: "Executions", width: "84px", align: "right", by: (e) => e.executions, cell: (e) => Text.count(e.executions)},
      {title: "Where", width: "minmax(0, 1.6fr)", narrow: "tail", cell: (e) => element("span.muted", {}, Data.fullLabel(e.at))},
    ],
    open: (i) => openSide(side, describe(Data.lists.values.entry(i))),
    detail: () => (side = sidePanel("Choose a row to see all its values.")),
  });
  return part && {
    ...part,
    build() {
      const built = part.build();
      if (!isNarrow() && Data.lists.values.length) part.list().choose(0, true);
      return built;
    },
    open: (i) => part.list().chooseEntry(Number(i)),
  };
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
