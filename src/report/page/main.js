// The frame around the parts: tabs, search, theme, keys, and the address (#paths, #code/0:4096).

(() => {
  const panel = document.getElementById("panel");
  const tabs = document.getElementById("tabs");
  const search = document.getElementById("search");
  const help = document.getElementById("help");
  const parts = [
    overviewPart(show), opportunitiesPart(show), flamePart(), timelinePart(), tracePart(), ...chapterParts(show), codePart(),
  ].filter(Boolean);
  const keysOfParts = "1234567890-=";
  const built = new Map();
  let active = null;
  let words = [];

  const {text, remedies} = Data.raw.shortage;
  if (text) {
    const shortage = document.getElementById("shortage");
    shortage.hidden = false;
    shortage.append(element("strong", {}, text[0].toUpperCase() + text.slice(1)),
      element("ul", {}, remedies.map((remedy) => element("li", {}, remedy))));
  }

  for (const [i, part] of parts.entries()) {
    part.badge = element("span.badge", {}, part.count === undefined ? "" : Text.count(part.count));
    part.tab = element("button", {
      type: "button", role: "tab", id: `tab-${part.id}`, "aria-selected": "false", "aria-controls": "panel",
      title: `${part.title} (${keysOfParts[i]})`, onclick: () => show(part.id),
    }, part.title, part.badge);
    tabs.append(part.tab);
  }

  // Opens a part, and in it what the other arguments name.
  function show(id, ...what) {
    const address = "#" + [id, ...what].join("/");
    if (location.hash !== address) history.pushState(null, "", address);
    follow();
  }

  function follow() {
    const [id, ...what] = decodeURIComponent(location.hash.slice(1)).split("/");
    const part = parts.find((p) => p.id === id) || parts[0];
    if (part !== active) {
      if (!built.has(part)) built.set(part, part.build());
      panel.replaceChildren(built.get(part));
      panel.setAttribute("aria-labelledby", part.tab.id);
      for (const p of parts) {
        p.tab.setAttribute("aria-selected", String(p === part));
        p.tab.tabIndex = p === part ? 0 : -1;
      }
      part.tab.scrollIntoView({block: "nearest", inline: "nearest"});
      active = part;
      if (words.length) part.search?.(words);
      part.focus?.();
    }
    if (what.length) queueMicrotask(() => part.open?.(...what));
  }

  function searchFor(text) {
    words = text.toLowerCase().split(/\s+/).filter(Boolean);
    document.body.classList.toggle("searching", words.length > 0);
    for (const part of parts) {
      if (!part.search) continue;
      const found = part.search(words);
      part.badge.textContent = words.length || part.count !== undefined ? Text.count(words.length ? found : part.count) : "";
      part.tab.classList.toggle("no-match", words.length > 0 && found === 0);
    }
  }

  let pending = 0;
  search.addEventListener("input", () => {
    clearTimeout(pending);
    pending = setTimeout(() => searchFor(search.value), 120);
  });
  search.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      search.value = "";
      searchFor("");
      active.focus?.();
      search.blur();
    } else if (event.key === "Enter" || event.key === "ArrowDown") {
      active.focus?.();
      event.preventDefault();
    }
  });

  // Light, dark, or what the system says.
  const root = document.documentElement;
  const themeButton = document.getElementById("theme");
  const systemIsDark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : systemIsDark.matches);
  function applyTheme() {
    themeButton.textContent = isDark() ? "☀" : "☾";
    for (const part of parts) part.themeChanged?.();
  }
  function toggleTheme() {
    root.dataset.theme = isDark() ? "light" : "dark";
    try {
      localStorage.setItem("shadowprof-theme", root.dataset.theme);
    } catch {
      // A file may have no storage: then the choice lasts as long as the page.
    }
    applyTheme();
  }
  try {
    const stored = localStorage.getItem("shadowprof-theme");
    if (stored === "light" || stored === "dark") root.dataset.theme = stored;
  } catch {
    // As above.
  }
  themeButton.addEventListener("click", toggleTheme);
  systemIsDark.addEventListener("change", applyTheme);

  const keys = [
    ["1 … 9, 0, -, =", "the parts, in their order"], ["← →", "the next part, when a tab has the focus"],
    ["/", "search"], ["Esc", "clear the search, close what is open"], ["↓ ↑, j k", "rows of a table"],
    ["Enter", "open the row"], ["arrows, Enter, 0", "in a flame graph: go to a frame, look into it, see all"],
    ["t", "light or dark"], ["?", "this help"],
  ];
  help.append(element("h2", {}, "Keys"), element("dl", {}, keys.map(([k, what]) => element("div", {},
    element("dt", {}, element("kbd", {}, k)), element("dd", {}, what)))),
    element("button", {type: "button", onclick: () => help.close()}, "Close"));
  help.addEventListener("click", (event) => event.target === help && help.close());
  document.getElementById("help-button").addEventListener("click", () => help.showModal());

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.target instanceof HTMLInputElement || help.open) return;
    const digit = keysOfParts.indexOf(event.key);
    if (event.key === "/") search.focus();
    else if (event.key === "t") toggleTheme();
    else if (event.key === "?") help.showModal();
    else if (event.key === "Escape") {
      const side = document.querySelector(".side.open");
      if (side) closeSide(side);
      else if (words.length) {
        search.value = "";
        searchFor("");
      }
    } else if (event.target.closest?.("[role=tablist]") && (event.key === "ArrowRight" || event.key === "ArrowLeft")) {
      const i = parts.indexOf(active) + (event.key === "ArrowRight" ? 1 : -1);
      const next = parts[(i + parts.length) % parts.length];
      show(next.id);
      next.tab.focus();
    } else if (digit >= 0 && parts[digit]) {
      show(parts[digit].id);
    } else return;
    event.preventDefault();
  });

  const name = Data.raw.targets[0]?.command[0]?.split("/").pop() || "profile";
  document.title = `${name} – shadowprof`;
  document.getElementById("program").textContent = name;
  document.getElementById("program-note").textContent = Data.command;
  window.addEventListener("popstate", follow);
  window.addEventListener("hashchange", follow);
  applyTheme();
  follow();
})();
