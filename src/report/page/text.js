// Numbers as people read them, in the same words as the report in a terminal.

const Text = {
  threeDigits(n) {
    const size = Math.abs(n);
    return n.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
  },

  count(n) {
    if (n < 10000) return String(n);
    for (const [size, unit] of [[1e3, "k"], [1e6, "M"], [1e9, "G"], [1e12, "T"], [1e15, "P"]]) {
      if (n < size * 999.5) return Text.threeDigits(n / size) + unit;
    }
    return Text.threeDigits(n / 1e18) + "E";
  },

  counted(thing, n) {
    return `${Text.count(n)} ${thing}${n === 1 ? "" : "s"}`;
  },

  percent(share) {
    const percent = share * 100;
    if (percent === 0) return "0";
    if (percent < 0.01) return "<0.01";
    if (percent < 1) return percent.toFixed(2);
    if (percent >= 99.95) return share < 1 ? ">99.9" : percent.toFixed(0);
    return percent.toFixed(1);
  },

  share(share) {
    return Text.percent(share) + " %";
  },

  // Empty where nothing is estimated.
  interval(low, high) {
    return low === high ? "" : `${Text.percent(low)}–${Text.percent(high)} %`;
  },

  seconds(s) {
    if (s === 0) return "0 s";
    for (const [size, unit] of [[1e-9, "ns"], [1e-6, "µs"], [1e-3, "ms"]]) {
      if (Math.abs(s) < size * 999.5) return `${Text.threeDigits(s / size)} ${unit}`;
    }
    return s < 1000 ? `${Text.threeDigits(s)} s` : `${s.toFixed(0)} s`;
  },

  // Of "ns::Class::function" the end tells more than the beginning; as shorten_name() in model/utf8.h.
  shortName(name, length) {
    if (name.length <= length) return name;
    for (let at = name.indexOf("::"); at >= 0; at = name.indexOf("::", at + 2)) {
      if (name.length - at - 1 <= length) return "…" + name.slice(at + 2);
    }
    return name.slice(0, Math.max(0, length - 1)) + "…";
  },

  hex(n) {
    return n.toString(16);
  },
};
