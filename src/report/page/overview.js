// What ran, what was seen, how sure that is and what it cost; then the most important of each part. Time comes first,
// where it is known and nothing else was asked for.

function overviewPart(show) {
  const {raw, lists, findings} = Data;

  function fact(label, ...value) {
    return element("div.fact", {}, element("dt", {}, label), element("dd", {}, value));
  }

  function targetText(t) {
    const start = t.pid ? `${t.attached ? "attached to " : ""}pid ${t.pid}` : t.attached ? "attached to" : "started by shadowprof";
    // Merged runs had process ids of their own, and may have ended differently.
    if (t.exit === null) return `${start}, ${t.pid ? "still running when profiling ended" : "with different ends"}`;
    return `${start}, ${t.exit > 128 && t.exit <= 192 ? `killed by signal ${t.exit - 128}` : `exit status ${t.exit}`}`;
  }

  const exhaustive = raw.everything;

  function tiles() {
    const {coverage, cost, run} = raw;
    const tile = (number, unit, note) => element("div.tile", {},
      element("div.tile-number", {}, number, unit && element("small", {}, unit)), element("div.tile-note", {}, note));
    const time = raw.weight === "time" ? raw.time : null;
    const list = time ? lists.time : lists.functions;
    const hottest = list?.length ? list.entry(0) : null;
    return element("div.tiles", {},
      time && tile(Text.seconds(time.nanoseconds * 1e-9), null, `on processors, by ${Text.counted("look", time.looks)}`),
      tile(Text.count(coverage.instructions), "instructions", exhaustive
        ? "all there were"
        : `in ${Text.counted("sample", coverage.samples)}, ${Text.counted("block", coverage.blocks)}`),
      cost.slowdown !== null && tile(Text.percent(cost.slowdown), "% slower", `what profiling cost: ${Text.counted("stop", cost.stops)}`),
      tile(exhaustive ? "exact" : hottest ? `± ${Text.percent((hottest.share.high - hottest.share.low) / 2)}` : "–",
        !exhaustive && hottest ? "points" : null,
        exhaustive ? "every path, edge and call was counted"
          : hottest ? `95 % interval of the hottest function’s ${Text.share(hottest.share.share)}` : "no functions were counted"),
      tile(Text.seconds(run.duration), null, `mode ${run.mode}, ${run.started.replace("T", " ").replace("Z", " UTC")}`));
  }

  function facts() {
    const {run, host, cost, coverage} = raw;
    const ended = Object.entries(coverage.ended).sort((a, b) => b[1] - a[1]);
    return element("dl.facts", {},
      raw.targets.map((t) => fact("Program", element("code", {}, t.command.join(" ")),
        element("div.muted", {}, targetText(t)))),
      raw.known && fact("Known", raw.known),
      run.runs > 1 && fact("Merged", `${Text.counted("run", run.runs)} on ${Text.counted("machine", run.machines)}`),
      fact("Machine", `${host.cpu}, ${Text.counted("core", host.cores)}, Linux ${host.kernel}`),
      fact("Profiles", run.profiles.join(", ")),
      coverage.weights && fact("Weighted", coverage.weights),
      fact("Samples ended", ended.length
        ? element("ul.ended", {}, ended.slice(0, 6).map(([reason, n]) => element("li", {}, `${Text.count(n)} × ${reason}`)))
        : "none"),
      fact("Cost", cost.follows ? `followed for ${Text.seconds(cost.stop_time)}`
        : `${Text.counted("stop", cost.stops)}, ${Text.seconds(cost.stop_time)} stopped`,
        cost.forks ? `, ${Text.counted("fork", cost.forks)}` : "",
        cost.extra_faults ? `, ${Text.counted("extra fault", cost.extra_faults)}` : ""),
      fact("Written by", raw.tool));
  }

  // How the time is spread over several.
  function processes() {
    const {summary, rows} = raw.processes;
    if (!rows.length) return null;
    return section("Processes", null, element("p.muted", {}, summary),
      element("ol.top", {}, rows.map((row) => element("li", {},
        element("span", {}, row.name),
        element("span.muted.where", {}, `${Text.seconds(row.cpu)}, ${row.note}`),
        shareCell({share: row.share, low: row.share, high: row.share}, rows[0].share || 1)))));
  }

  function remarks() {
    const {run} = raw;
    return [
      ...(run.interrupted ? [["Cut short", `by ${run.interrupted}: what was seen until then`]] : []),
      ...run.warnings.map((w) => ["Warning", w]),
      ...run.failures.map((f) => ["Failed", f]),
    ].map(([label, text]) => element("p.remark", {}, element("strong", {}, label), " ", text));
  }

  function section(title, tab, ...content) {
    return element("section.card", {}, element("header", {}, element("h2", {}, title),
      tab && element("button.link", {type: "button", onclick: () => show(tab)}, "all")), content);
  }

  // The functions with the most of one weight.
  function top(title, part) {
    const list = lists[part];
    if (!list?.length) return null;
    const rows = Array.from({length: Math.min(8, list.length)}, (_, i) => list.entry(i)).filter((e) => e.share.share >= 0.001);
    if (!rows.length) return null;
    return section(title, part, element("ol.top", {}, rows.map((e) => element("li", {},
      element("button.link", {type: "button", onclick: () => Data.code.has(e.at.key) ? show("code", e.at.key) : show(part)},
        e.at.function),
      element("span.muted.where", {}, sourceOf(e.at)),
      shareCell(e.share, rows[0].share.high || 1)))));
  }

  const topOfTime = () => top("Where time goes", "time");
  const topFunctions = () => top("Hot functions, by instructions", "functions");

  function topLoads() {
    const list = lists.latencies;
    if (!list?.total) return null;
    const top = Array.from({length: Math.min(5, list.length)}, (_, i) => list.entry(i)).filter((e) => e.share.share >= 0.01);
    if (!top.length) return null;
    return section("Loads that wait", "latencies", element("ol.top", {}, top.map((e, i) => element("li", {},
      element("button.link", {type: "button", onclick: () => show("latencies", i)}, Data.fullLabel(e.at)),
      element("span.muted.where", {}, `${Text.seconds(e.mean * 1e-9)} each${e.pattern ? `, ${e.pattern}` : ""}`),
      shareCell(e.share, top[0].share.high || 1)))));
  }

  // In place of shares, all of which would be noise.
  function certain() {
    const {certain} = raw.shortage;
    return section("What is certain all the same", null, certain.length
      ? element("ul", {}, certain.map((text) => element("li", {}, text)))
      : element("p.muted", {}, "Nothing that could be told in shares."),
    element("p.muted", {}, "The other parts show what was seen; their shares are noise."));
  }

  function topFindings() {
    const body = findings.length
      ? element("ol.top.findings-short", {}, findings.slice(0, 5).map((f, i) => element("li", {},
        element("span.number", {}, Text.share(f.touches)),
        element("div", {}, element("button.link", {type: "button", onclick: () => show("opportunities", i)}, f.title),
          element("div.muted", {}, `${Data.fullLabel(f.at)}: ${f.what}`)))))
      : element("p.muted", {}, raw.why_no_findings || `None that touches ${Text.share(raw.least_touched)} of the work or more.`);
    return section("Opportunities", findings.length ? "opportunities" : null, body);
  }

  function confidence() {
    const rows = raw.chapters.filter((chapter) => chapter.lists.length).map((chapter) => {
      const list = lists[chapter.lists[0]];
      const best = list.length && chapter.key !== "values" ? list.entry(0).share : null;
      return element("tr", {},
        element("th", {scope: "row"}, element("button.link", {type: "button", onclick: () => show(chapter.key)}, chapter.name)),
        element("td", {}, list.is_of_time ? Text.seconds(list.total * 1e-9) : Text.count(list.total)),
        element("td", {}, list.length < list.entries ? `${list.length} of ${list.entries + list.dropped}`
          : list.dropped ? `${list.entries} of ${list.entries + list.dropped}` : String(list.entries)),
        element("td", {}, Text.share(list.elsewhere)),
        element("td", {}, best ? `${Text.share(best.share)}` : "–"),
        element("td.muted", {}, best ? Text.interval(best.low, best.high) || "exact" : ""));
    });
    return section("What is in this report", null, element("div.scroll-x", {}, element("table.plain", {},
      element("thead", {}, element("tr", {}, ["", "events", "entries", "in none", "hottest", "95 % interval"]
        .map((t) => element("th", {scope: "col"}, t)))),
      element("tbody", {}, rows))));
  }

  // Looks of the clock tell where time goes even where there are too few samples for anything else.
  function most() {
    const bySamples = raw.shortage.is_noise ? [certain()] : [topFindings(), topFunctions(), topLoads()];
    return raw.weight === "time" ? [topOfTime(), ...bySamples] : [...bySamples, topOfTime()];
  }

  return {
    id: "overview",
    title: "Overview",
    build: () => element("div.page.overview", {}, remarks(), tiles(),
      processes(),
      element("div.columns", {}, element("div", {}, most()),
        element("div", {}, section("The run", null, facts()), confidence()))),
  };
}
