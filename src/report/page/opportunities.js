// The ranked findings, each with its evidence and a way to its code.

function opportunitiesPart(show) {
  const {findings, raw} = Data;
  let box;

  function card(f, i) {
    const hasCode = Data.code.has(f.at.key);
    return element("article.finding", {id: `finding-${i}`, tabindex: "-1"},
      element("div.rank", {}, element("span.rank-share", {}, Text.share(f.touches)),
        element("span.muted", {}, f.interval || `of ${f.measure}`)),
      element("div", {},
        element("h2", {}, f.title),
        element("p.what", {}, element("code.place", {}, f.where || Data.fullLabel(f.at)), " ", f.what),
        element("ul.evidence", {}, f.evidence.map((e) => element("li", {}, e))),
        element("p.advice", {}, f.advice),
        hasCode && element("button.link", {type: "button", onclick: () => show("code", f.at.key, f.at.offset)}, "Show the code")));
  }

  function draw(indices) {
    box.replaceChildren(...(indices.length ? indices.map((i) => card(findings[i], i)) : [element("p.note", {},
      findings.length ? "Nothing found here." : raw.why_no_findings || `None that touches ${Text.share(raw.least_touched)} of the work or more.`)]));
  }

  return {
    id: "opportunities",
    title: "Opportunities",
    count: findings.length,
    build() {
      box = element("div.findings");
      draw(findings.map((_, i) => i));
      return element("div.page", {}, element("p.intro", {},
        "Ranked by the share of all instructions that a change would touch, or, where loads wait, of instructions and waiting; what it saves is for a trial to tell.",
        raw.all_code ? "" : " Libraries of the system without debug information are left out (--all-code)."), box);
    },
    search(words) {
      const found = findings.map((_, i) => i).filter((i) => {
        const f = findings[i];
        const text = [f.title, f.what, f.advice, f.where || Data.fullLabel(f.at), ...f.evidence].join("\n").toLowerCase();
        return words.every((w) => text.includes(w));
      });
      if (box) draw(found);
      return found.length;
    },
    open(i) {
      const target = document.getElementById(`finding-${i}`);
      target?.scrollIntoView({block: "start"});
      target?.focus({preventScroll: true});
    },
  };
}
