// Values that repeat or step: one operand's in full.

function valuePicture(show) {
  function describe(e) {
    const known = e.top.reduce((sum, v) => sum + v.share, 0);
    const most = Math.max(...e.top.map((v) => v.high), 0.01);
    const rows = e.top.map((v) => element("tr", {},
      element("th", {scope: "row"}, element("code", {}, v.name)),
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
      element("p.muted", {}, Data.fullLabel(e.at), e.at.caller ? `, called from ${Data.fullLabel(e.at.caller)}` : ""),
      element("p", {}, element("code", {}, e.at.text), ` ran ${Text.count(e.count)} times.`),
      e.step && element("p", {}, `From one execution to the next: ${e.step} in ${Text.share(e.step_share)}.`),
      e.top.length ? element("table.histogram", {}, element("tbody", {}, rows)) : element("p.muted", {}, "No value came often enough to stand out."),
      Data.code.has(e.at.key) && element("button.link", {type: "button", onclick: () => show("code", e.at.key, e.at.offset)}, "Show the code"),
    ].filter(Boolean);
  }

  return {hint: "Choose a row to see all its values.", describe};
}
