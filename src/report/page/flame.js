// Flame graphs, drawn on a canvas: callers above, callees below, width is time or instructions. Up to three trees: of
// the stacks that the clock saw, of calling contexts, and of paths. The profile says in which order. Below the graph stand the callers and callees of the function that was chosen.

function flamePart() {
  const rowHeight = 24;
  const instructions = (n) => Text.counted("instruction", n);
  const kinds = {
    time: {title: "Time", amount: (nanoseconds) => Text.seconds(nanoseconds * 1e-9), about: "Time on processors, by the stacks that the clock saw."},
    contexts: {title: "Instructions by callers", amount: instructions, about: "Who called whom, by the calls and returns that were seen, from the stack at which each sample began."},
    paths: {title: "Instructions by paths", amount: instructions,
      about: "Callers are those that a path itself has seen, and above them functions from which nearly all calls come; a path ends with a backward branch, so its outermost function may have others as well."},
  };
  const available = Object.keys(Data.raw.flames).filter((k) => Data.raw.flames[k].nodes.length);
  if (!available.length) return null;

  // [depth, frame, weight] in preorder -> nodes with their place and their relatives.
  function tree(name) {
    const {frames, nodes, total, whole, left_out} = Data.raw.flames[name];
    const all = [];
    const open = [];
    let deepest = 0;
    const next = [0];  // where the next node of each depth begins
    for (let i = 0; i < nodes.length; i += 3) {
      const [depth, frame, weight] = nodes.slice(i, i + 3);
      open.length = depth;
      const parent = depth ? open[depth - 1] : null;
      const begin = Math.max(next[depth] ?? 0, parent ? parent.begin : 0);
      const node = {
        index: all.length, depth, weight, parent, begin,
        name: Data.string(frames[2 * frame]), module: frames[2 * frame + 1], children: [], matches: false,
      };
      next[depth] = begin + weight;
      parent?.children.push(node);
      open[depth] = node;
      all.push(node);
      deepest = Math.max(deepest, depth);
    }
    return {name, all, total, whole, leftOut: left_out, deepest, roots: all.filter((n) => !n.parent)};
  }

  const trees = {};
  let chosen = available[0];
  let zoomed = null, hovered = null, words = [];
  let canvas, scroller, crumbs, info, around, legend, colors;

  const graph = () => (trees[chosen] ??= tree(chosen));
  const amount = (n) => kinds[chosen].amount(n);
  const base = (module) => (Data.raw.modules[module] ?? "").split("/").pop();

  // The program itself, the C library, other libraries: a hue each; a function's name shades it. What an interpreter
  // executes is the program, and the interpreter is not.
  const isInterpreted = (module) => /^\[(python|ruby)\]$/.test(Data.raw.modules[module]);
  const hasInterpreted = [...Data.raw.modules.keys()].some(isInterpreted);
  const programs = new Set(Data.raw.targets.map((t) => t.command[0]?.split("/").pop()));
  const hottest = [Data.lists.functions, Data.lists.time].find((list) => list?.length);
  const heaviest = hottest?.entry(0).at.module ?? -1;
  function family(module) {
    const name = base(module);
    if (hasInterpreted ? isInterpreted(module) : programs.has(name)) return 0;
    if (/^(lib(c|m|pthread)[.-]|ld-|\[vdso\])/.test(name)) return 1;
    return module === heaviest && !hasInterpreted && ![...Data.raw.modules.keys()].some((m) => programs.has(base(m))) ? 0 : 2;
  }
  const shadeOf = (name) => {
    let h = 0;
    for (let i = 0; i < name.length; ++i) h = (h * 31 + name.charCodeAt(i)) >>> 0;
    return h % 4;
  };

  const range = () => (zoomed ? [zoomed.begin, zoomed.weight] : [0, graph().total]);

  function draw() {
    if (!canvas?.isConnected) return;
    const style = getComputedStyle(canvas);
    colors ??= {
      frames: [0, 1, 2].map((f) => [0, 1, 2, 3].map((s) => style.getPropertyValue(`--flame-${f}-${s}`))),
      text: style.getPropertyValue("--flame-text"), match: style.getPropertyValue("--flame-match"),
      line: style.getPropertyValue("--ground"), focus: style.getPropertyValue("--text"),
    };
    const width = scroller.clientWidth;
    const height = (graph().deepest + 1) * rowHeight;
    const ratio = devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.height = `${height}px`;
    }
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.font = "12px system-ui, sans-serif";
    pen.textBaseline = "middle";
    const [begin, weight] = range();
    const scale = width / weight;
    const visit = (node) => {
      const left = Math.max(0, (node.begin - begin) * scale);
      const right = Math.min(width, (node.begin + node.weight - begin) * scale);
      if (right <= 0 || left >= width || right - left < 0.4) return;
      const top = node.depth * rowHeight;
      const room = right - left;
      pen.globalAlpha = words.length && !node.matches ? 0.35 : 1;
      pen.fillStyle = words.length && node.matches ? colors.match : colors.frames[family(node.module)][shadeOf(node.name)];
      pen.fillRect(left, top, Math.max(0.6, room - 1), rowHeight - 1);
      if (node === hovered) {
        pen.strokeStyle = colors.focus;
        pen.lineWidth = 2;
        pen.strokeRect(left + 1, top + 1, Math.max(1, room - 3), rowHeight - 3);
      }
      if (room > 28) {
        pen.fillStyle = colors.text;
        const fits = Math.floor((room - 8) / 6.4);
        pen.fillText(fits <= 3 && node.name.length > fits ? "" : Text.shortName(node.name, fits), left + 5, top + rowHeight / 2, room - 8);
      }
      node.children.forEach(visit);
    };
    graph().roots.forEach(visit);
    pen.globalAlpha = 1;
  }

  function at(event) {
    const box = canvas.getBoundingClientRect();
    const depth = Math.floor((event.clientY - box.top) / rowHeight);
    const [begin, weight] = range();
    const x = begin + (event.clientX - box.left) / box.width * weight;
    let level = graph().roots, node = null;
    for (let d = 0; d <= depth; ++d) {
      node = level.find((n) => x >= n.begin && x < n.begin + n.weight) || null;
      if (!node) return null;
      level = node.children;
    }
    return node;
  }

  function tell(node) {
    hovered = node;
    if (node) {
      const self = node.weight - node.children.reduce((sum, c) => sum + c.weight, 0);
      info.replaceChildren(element("strong", {}, node.name), element("span.muted", {}, base(node.module)),
        element("span", {}, `${Text.share(node.weight / graph().whole)} · ${amount(node.weight)}, ${Text.share(self / graph().whole)} in itself`));
    } else {
      const matching = words.length ? matchedWeight() : null;
      info.replaceChildren(element("span.muted", {}, matching !== null
        ? `What was searched for covers ${Text.share(matching / graph().whole)} of ${amount(graph().whole)}.`
        : `${amount(graph().total)} in all. Choose a frame to look into it.`));
    }
    draw();
  }

  // A match within a match counts once.
  function matchedWeight() {
    let sum = 0;
    const visit = (n) => {
      if (n.matches) sum += n.weight;
      else n.children.forEach(visit);
    };
    graph().roots.forEach(visit);
    return sum;
  }

  function zoom(node) {
    zoomed = node;
    const chain = [];
    for (let n = node; n; n = n.parent) chain.unshift(n);
    crumbs.replaceChildren(element("button.link", {type: "button", onclick: () => zoom(null)}, "all"),
      ...chain.flatMap((n) => ["›", element("button.link", {type: "button", onclick: () => zoom(n)}, n.name)]));
    crumbs.hidden = chain.length === 0;
    showAround(node);
    tell(node);
  }

  // Of a function in all of its contexts: by whom it was called, and what it called. What it does while it calls
  // itself counts once.
  function neighbours(name, module) {
    const is = (n) => n.name === name && n.module === module;
    const callers = new Map(), callees = new Map();
    const add = (all, n, weight) => {
      const known = all.get(`${n.module} ${n.name}`) ?? {node: n, weight: 0};
      if (n.weight > known.node.weight) known.node = n;
      known.weight += weight;
      all.set(`${n.module} ${n.name}`, known);
    };
    const within = (n, found) => {
      for (let p = n.parent; p; p = p.parent) if (found(p)) return true;
      return false;
    };
    for (const n of graph().all) {
      if (is(n) && n.parent && !within(n, is)) add(callers, n.parent, n.weight);
      if (n.parent && is(n.parent) && !is(n) && !within(n.parent, (p) => p.name === n.name && p.module === n.module && p.parent && is(p.parent)))
        add(callees, n, n.weight);
    }
    return [callers, callees].map((all) => [...all.values()].sort((a, b) => b.weight - a.weight));
  }

  function showAround(node) {
    around.hidden = !node;
    if (!node) return;
    const [callers, callees] = neighbours(node.name, node.module);
    const list = (title, functions) => element("div", {}, element("h3", {}, title),
      functions.length === 0 ? element("p.muted", {}, "none") : element("ul", {}, ...functions.slice(0, 12).map(({node: n, weight}) =>
        element("li", {}, element("span.share", {}, Text.share(weight / graph().whole)),
          element("button.link", {type: "button", title: n.name, onclick: () => zoom(n)}, n.name)))));
    around.replaceChildren(list("Callers", callers), list("Callees", callees));
  }

  function key(event) {
    const n = hovered || zoomed;
    const siblings = n ? (n.parent ? n.parent.children : graph().roots) : graph().roots;
    const i = n ? siblings.indexOf(n) : -1;
    const go = {
      ArrowDown: () => (n ? n.children[0] : siblings[0]),
      ArrowUp: () => n?.parent,
      ArrowRight: () => siblings[i + 1],
      ArrowLeft: () => siblings[i - 1],
    }[event.key];
    if (go) {
      const next = go();
      if (next) tell(next);
    } else if (event.key === "Enter" && hovered) {
      zoom(hovered);
    } else if (zoomed && (event.key === "Backspace" || event.key === "0")) {
      zoom(event.key === "0" ? null : zoomed.parent);
    } else {
      return;
    }
    event.preventDefault();
  }

  function choose(kind) {
    chosen = kind;
    match();
    zoom(null);
    info.nextElementSibling.textContent = about();
    drawLegend();
  }

  // Shares are of all there was, as in the other tables, also of what has no place in the graph.
  function about() {
    const {total, whole, leftOut} = graph();
    const notes = [kinds[chosen].about];
    if (leftOut) notes.push(`Calls too light to see were left out: ${Text.share(leftOut / whole)}.`);
    if (total < whole) notes.push(`${Text.share((whole - total) / whole)} ran elsewhere: in ${chosen} that the profile does not list.`);
    return notes.join(" ");
  }

  function drawLegend() {
    const used = new Set(graph().all.map((n) => family(n.module)));
    const names = ["the program", "the C library and its loader", hasInterpreted ? "the interpreter and libraries" : "other libraries"];
    legend.replaceChildren(...[0, 1, 2].filter((f) => used.has(f)).map((f) => element("span", {},
      element("i", {style: {background: `var(--flame-${f}-1)`}}), names[f])));
  }

  function match() {
    for (const n of graph().all) n.matches = words.length > 0 && words.every((w) => n.name.toLowerCase().includes(w) || base(n.module).toLowerCase().includes(w));
    return graph().all.filter((n) => n.matches).length;
  }

  return {
    id: "flame",
    title: "Flame graph",
    build() {
      canvas = element("canvas", {tabindex: "0", role: "img", "aria-label": "Flame graph; the arrow keys go from frame to frame"});
      scroller = element("div.flame-scroll", {}, canvas);
      crumbs = element("div.crumbs", {hidden: true});
      info = element("div.flame-info", {"aria-live": "polite"});
      around = element("div.flame-around", {hidden: true});
      legend = element("div.legend");
      canvas.addEventListener("mousemove", (e) => {
        const node = at(e);
        canvas.style.cursor = node ? "pointer" : "default";
        if (node !== hovered) tell(node);
      });
      canvas.addEventListener("mouseleave", () => tell(null));
      canvas.addEventListener("click", (e) => {
        const node = at(e);
        if (node) zoom(node === zoomed ? node.parent : node);
      });
      canvas.addEventListener("keydown", key);
      new ResizeObserver(draw).observe(scroller);
      const choice = available.length > 1
        ? segments("What to show", available.map((k) => [k, kinds[k].title]), chosen, choose)
        : element("h2", {}, kinds[chosen].title);
      const built = element("div.flame-part", {},
        element("div.flame-head", {}, choice, legend), crumbs, scroller, info, element("p.intro", {}, about()), around);
      queueMicrotask(() => {
        match();
        zoom(null);
        drawLegend();
      });
      return built;
    },
    search(newWords) {
      words = newWords;
      const found = match();
      // What is found may lie outside of what is looked into.
      const isInSight = (n) => n.begin >= zoomed.begin && n.begin + n.weight <= zoomed.begin + zoomed.weight;
      if (canvas && zoomed && found && !graph().all.some((n) => n.matches && isInSight(n))) zoom(null);
      else if (canvas) tell(hovered);
      return found;
    },
    focus: () => canvas?.focus({preventScroll: true}),
    themeChanged() {
      colors = null;
      draw();
    },
  };
}
