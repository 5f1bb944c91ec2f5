// Elements without markup in strings: text from a profile never becomes HTML.

function element(name, attributes = {}, ...children) {
  const [tag, ...classes] = name.split(".");
  const made = document.createElement(tag);
  if (classes.length) made.className = classes.join(" ");
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key === "style") for (const [k, v] of Object.entries(value)) made.style.setProperty(k, v);
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat(3).filter((c) => c !== null && c !== undefined && c !== false));
  return made;
}

// How hot: the square root spreads small shares, which are most of them.
function heat(share) {
  return {"--heat": Math.min(1, Math.sqrt(share)).toFixed(3)};
}

// A share as a bar with the whisker of its interval; `most` is what fills the bar.
function shareBar({share, low, high}, most) {
  const at = (x) => `${Math.min(100, 100 * x / most).toFixed(1)}%`;
  const bar = element("span.bar", {style: {"--share": at(share)}, "aria-hidden": "true"});
  if (low !== high) bar.append(element("span.whisker", {style: {"--low": at(low), "--high": at(high)}}));
  return bar;
}

// A function's name, of which the scopes make way first, and what follows it.
function nameCell(name, ...rest) {
  const at = name.lastIndexOf("::");
  const scopes = at < 0 ? 0 : at + 2;
  return element("span.name", {}, element("span.scopes", {}, name.slice(0, scopes)), element("span", {}, name.slice(scopes), rest));
}

function shareCell(estimate, most) {
  const interval = Text.interval(estimate.low, estimate.high);
  return element("span.share", {title: interval ? `95 % interval: ${interval}` : "exact"},
    element("span.number", {}, Text.share(estimate.share)), shareBar(estimate, most));
}

// One of several, as buttons side by side. `choices`: [value, label].
function segments(label, choices, chosen, choose) {
  const box = element("div.segments", {role: "radiogroup", "aria-label": label});
  for (const [value, text] of choices) {
    box.append(element("button", {
      type: "button", role: "radio", "aria-checked": String(value === chosen),
      onclick: () => {
        for (const b of box.children) b.setAttribute("aria-checked", "false");
        box.children[choices.findIndex((c) => c[0] === value)].setAttribute("aria-checked", "true");
        choose(value);
      },
    }, text));
  }
  return box;
}

const isNarrow = () => matchMedia("(max-width: 760px)").matches;
