/* Flame graphs that can be looked into. `torchmarkFlame(element, names, graph)` draws one into an element; in an SVG on
   its own, `torchmarkFlameAlone(names, graph)` takes the place of the still picture. What both are given is made by
   flame_packing.py. Names come from anywhere: they only ever become text, never markup. */
(function () {
  "use strict";

  const XHTML = "http://www.w3.org/1999/xhtml";
  const SVG = "http://www.w3.org/2000/svg";
  const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  const MANY = 3;
  const SHADES = 2;
  // Narrower frames are not drawn: they are about a pixel, and there can be many.
  const LEAST_WIDTH = 0.001;
  const LEAST_CHANGE = 0.01;
  const STEPS = 5;
  // In pixels: between a label and the sides of its frame, and with how much room it starts to tell something.
  const PADDING = 7;
  const LEAST_ROOM = 18;
  // A frame that is not wider has neither padding nor border.
  const SLIM = 6;
  // Names of operators have brackets that are none.
  const TOKEN = /\boperator(?:\(\)|<=>|<<=?|>>=?|->\*?|[<>]=?)(?: (?=<))?|\(anonymous namespace\)|->|::|\w+|[^]/g;

  // ---- Reading a graph.

  function readNumbers(text) {
    const numbers = [];
    let number = 0;
    let weight = 1;
    for (const letter of text) {
      const digit = DIGITS.indexOf(letter);
      number += (digit % 32) * weight;
      weight *= 32;
      if (digit < 32) {
        numbers.push(number);
        number = 0;
        weight = 1;
      }
    }
    return numbers;
  }

  function readNode(next, graph, node) {
    const amount = (number) => {
      if (graph.runs === 1) return number;
      return number % 2 ? (number - 1) / 2 : (number / 2) * graph.runs;
    };
    const pair = () => {
      const head = amount(next());
      if (!graph.both) return [head, 0];
      const change = next();
      const size = amount(Math.floor(change / 2));
      return [head, head - (change % 2 ? -size : size)];
    };
    const first = next();
    const calls = Math.floor(first / 2) % (MANY + 1);
    node.place = Math.floor(first / 2 / (MANY + 1));
    node.awaited = calls < MANY ? calls : MANY + next();
    [node.own, node.baseOwn] = pair();
    const rest = first % 2 ? pair() : [0, 0];
    node.value = node.own + rest[0];
    node.base = node.baseOwn + rest[1];
    node.span = Math.max(node.own, node.baseOwn) + Math.max(rest[0], rest[1]);
    return node;
  }

  /* All frames, callers first. A frame's `span` is its width: where two sides are drawn, what is spent in each frame
     itself is as wide as on the larger side, so that nothing of either is hidden and widths still add up. */
  function readTree(names, graph) {
    const numbers = readNumbers(graph.tree);
    const nodes = [];
    const below = new Map();
    const listBelow = (number) => {
      if (!below.has(number)) below.set(number, readNumbers(names[number][3]));
      return below.get(number);
    };
    let at = 0;
    let parent = null;
    while (at < numbers.length) {
      const node = readNode(() => numbers[at++], graph, { parent, kids: [], depth: parent ? parent.depth + 1 : 0 });
      node.number = parent ? listBelow(parent.number)[node.place] : node.place;
      node.entry = names[node.number];
      nodes.push(node);
      if (parent) parent.kids.push(node);
      parent = node;
      while (parent && parent.kids.length === parent.awaited) parent = parent.parent;
    }
    for (let i = nodes.length - 1; i > 0; i--) {
      const node = nodes[i];
      node.parent.value += node.value;
      node.parent.base += node.base;
      node.parent.span += node.span;
    }
    for (const node of nodes) {
      let x = node.start = node.start || 0;
      for (const kid of node.kids) {
        kid.start = x;
        x += kid.span;
      }
    }
    return nodes;
  }

  // ---- Texts. The same as in flame_numbers.py, to the letter.

  const group = (whole) => String(whole).replace(/\B(?=(\d{3})+$)/g, ",");

  function showValue(value, runs) {
    const tenths = Math.floor((20 * value + runs) / (2 * runs));
    const whole = group(Math.floor(tenths / 10));
    return tenths % 10 ? `${whole}.${tenths % 10}` : whole;
  }

  const sign = (change) => (change < 0 ? "−" : "+");

  function showPercent(part, whole) {
    const percent = whole ? (100 * part) / whole : 0;
    if (percent === 0) return "0%";
    if (percent < 0.005) return "<0.01%";
    const decimals = percent >= 9.95 ? 0 : percent >= 0.095 ? 1 : 2;
    const scale = 10 ** decimals;
    return `${(Math.floor(percent * scale + 0.5) / scale).toFixed(decimals)}%`;
  }

  function showRelation(base, head) {
    if (!base) return "new";
    if (!head) return "gone";
    return sign(head - base) + showPercent(Math.abs(head - base), base);
  }

  function tellChange(base, head, runs) {
    if (base === head) return `${showValue(head, runs)} (no change)`;
    const change = `${sign(head - base)}${showValue(Math.abs(head - base), runs)}, ${showRelation(base, head)}`;
    return `${showValue(base, runs)} → ${showValue(head, runs)} (${change})`;
  }

  const fullName = (entry) => entry[4] || entry[0];

  function tellFrame(node, view) {
    const { graph, names, root } = view;
    const lines = [fullName(node.entry), names[1][node.entry[2]]];
    if (graph.both) {
      lines.push(`${tellChange(node.base, node.value, graph.runs)} ${graph.unit}`);
      lines.push(`in itself ${tellChange(node.baseOwn, node.own, graph.runs)}`);
      lines.push(`${showPercent(node.base, root.base)} → ${showPercent(node.value, root.value)} of all`);
    } else {
      let shares = `${showPercent(node.value, root.value)} of all`;
      if (node.parent && node.parent !== root) {
        shares += `, ${showPercent(node.value, node.parent.value)} of its caller`;
      }
      lines.push(`${showValue(node.value, graph.runs)} ${graph.unit}, ${shares}`);
      lines.push(`in itself ${showValue(node.own, graph.runs)}, ${showPercent(node.own, root.value)} of all`);
    }
    return lines.filter(Boolean);
  }

  // What says nothing without what it belongs to.
  const DEPENDENT = /^(?:\{|~|operator|(?:call|redispatch|apply|run|reset|reset_|release)(?!\w))/;

  /* A name with dots for template arguments, then without its first namespace, its first two, and so on. */
  function listTails(label) {
    const starts = [0];
    let short = "";
    let depth = 0;
    let previous = "";
    for (const token of label.match(TOKEN) || []) {
      if (token === ">" && depth) depth--;
      if (depth) {
        if (token === "<") depth++;
        continue;
      }
      if (previous === "::") starts.push(short.length);
      short += token;
      if (token === "<" && /\w$|^operator/.test(previous)) {
        depth = 1;
        short += "…";
      }
      previous = token;
    }
    return starts.map((start) => short.slice(start)).filter((tail, i) => !i || !DEPENDENT.test(tail));
  }

  /* As much of a label as there is room for; of what is still too long, the end is cut off by the style. */
  function fitLabel(label, room, measure) {
    if (room < LEAST_ROOM) return "";
    if (measure(label) <= room) return label;
    const tails = listTails(label);
    return tails.find((tail) => measure(tail) <= room) || tails[tails.length - 1];
  }

  // ---- Colours.

  function findStep(node, view) {
    const change = view.graph.both ? node.own - node.baseOwn : 0;
    if (!change || Math.abs(change) < LEAST_CHANGE * view.largest) return 0;
    const step = Math.ceil((STEPS * Math.abs(change)) / view.largest);
    return change < 0 ? -step : step;
  }

  function colourOf(node, view) {
    if (!view.graph.both) return `tmf-c${node.entry[1]}`;
    const step = findStep(node, view);
    const gone = node.base && !node.value ? " tmf-gone" : "";
    return (step > 0 ? `tmf-more${step}` : step < 0 ? `tmf-less${-step}` : "tmf-none") + gone;
  }

  function labelOf(node, view, room) {
    if (!findStep(node, view)) return fitLabel(node.entry[0], room, view.measure);
    const change = node.own - node.baseOwn;
    const number = `${sign(change)}${showValue(Math.abs(change), view.graph.runs)}`;
    const left = room - view.measure(`${number} `);
    if (left < LEAST_ROOM) return fitLabel(number, room, view.measure);
    return `${number} ${fitLabel(node.entry[0], left, view.measure)}`;
  }

  // ---- Drawing.

  function make(tag, attributes, text) {
    const element = document.createElementNS(XHTML, tag);
    for (const [name, value] of Object.entries(attributes || {})) element.setAttribute(name, value);
    if (text !== undefined) element.textContent = text;
    return element;
  }

  /* How wide a text is in the font of an element, in pixels. */
  function makeMeasure(element) {
    const context = make("canvas").getContext("2d");
    const style = getComputedStyle(element);
    context.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
    const known = new Map();
    return (text) => {
      if (!known.has(text)) known.set(text, context.measureText(text).width);
      return known.get(text);
    };
  }

  function listDrawn(view) {
    const drawn = [];
    for (let node = view.zoomed.parent; node; node = node.parent) drawn.unshift({ node, left: 0, width: 1, up: true });
    const waiting = [view.zoomed];
    const whole = view.zoomed.span || 1;
    while (waiting.length) {
      const node = waiting.pop();
      const width = node === view.zoomed ? 1 : node.span / whole;
      if (width < LEAST_WIDTH) continue;
      drawn.push({ node, left: node === view.zoomed ? 0 : (node.start - view.zoomed.start) / whole, width });
      for (let i = node.kids.length - 1; i >= 0; i--) waiting.push(node.kids[i]);
    }
    return drawn;
  }

  function drawFrame(box, view, pixels) {
    const { node } = box;
    const frame = make("div", { role: "treeitem", tabindex: "-1", "aria-level": node.depth + 1 });
    frame.className = `tmf-frame ${colourOf(node, view)}`;
    if (box.width * pixels <= SLIM) frame.classList.add("tmf-slim");
    if (box.up) frame.classList.add("tmf-up");
    if (node === view.zoomed) frame.setAttribute("aria-current", "true");
    if (view.hits) frame.classList.add(view.hits.has(node) ? "tmf-hit" : "tmf-miss");
    frame.setAttribute("aria-label", tellFrame(node, view).join("; "));
    frame.style.left = `${box.left * 100}%`;
    frame.style.width = `${box.width * 100}%`;
    frame.style.top = `calc(var(--tmf-row) * ${node.depth})`;
    frame.textContent = labelOf(node, view, box.width * pixels - PADDING);
    return frame;
  }

  function draw(view) {
    const hadFocus = view.tree.contains(document.activeElement);
    const pixels = view.tree.clientWidth || 1000;
    view.boxes = listDrawn(view);
    view.frames = new Map();
    const fragment = document.createDocumentFragment();
    let deepest = 0;
    for (const box of view.boxes) {
      const frame = drawFrame(box, view, pixels);
      box.frame = frame;
      view.frames.set(frame, box);
      fragment.appendChild(frame);
      deepest = Math.max(deepest, box.node.depth);
    }
    view.tree.replaceChildren(fragment);
    view.tree.style.height = `calc(var(--tmf-row) * ${deepest + 1})`;
    view.reset.disabled = view.zoomed === view.root;
    view.width = pixels;
    point(view, view.current, hadFocus);
  }

  const boxOf = (view, node) => view.boxes.find((box) => box.node === node);

  /* Makes a frame the one that the tab key leads to, the zoomed one if it is not drawn. */
  function point(view, node, focus) {
    const old = boxOf(view, view.current);
    if (old) old.frame.tabIndex = -1;
    const box = boxOf(view, node) || boxOf(view, view.zoomed);
    view.current = box.node;
    box.frame.tabIndex = 0;
    if (focus) box.frame.focus({ preventScroll: false });
  }

  function zoom(view, node) {
    view.zoomed = node;
    view.current = node;
    hideTip(view);
    draw(view);
  }

  // ---- Tooltips.

  function showTip(view, node, left, top) {
    view.tip.replaceChildren(...tellFrame(node, view).map((line) => make("div", {}, line)));
    view.tip.hidden = false;
    const around = view.box.getBoundingClientRect();
    const size = view.tip.getBoundingClientRect();
    const x = Math.max(0, Math.min(left - around.left, around.width - size.width));
    const below = top + 18 + size.height <= window.innerHeight;
    const y = (below ? top + 18 : Math.max(top - size.height - 8, 0)) - around.top;
    view.tip.style.left = `${x + view.box.scrollLeft}px`;
    view.tip.style.top = `${y + view.box.scrollTop}px`;
  }

  function hideTip(view) {
    view.tip.hidden = true;
  }

  // ---- Searching.

  function search(view, text) {
    const wanted = text.trim().toLowerCase();
    view.hits = null;
    view.found.textContent = "";
    if (wanted) {
      const matches = (entry) =>
        `${entry[0]}\n${fullName(entry)}\n${view.names[1][entry[2]]}`.toLowerCase().includes(wanted);
      const known = new Map();
      view.hits = new Set();
      let sum = 0;
      let baseSum = 0;
      for (const node of view.nodes) {
        if (!known.has(node.entry)) known.set(node.entry, matches(node.entry));
        const inside = node.parent && node.parent.inside;
        const hit = known.get(node.entry);
        node.inside = inside || hit;
        if (hit) view.hits.add(node);
        if (hit && !inside) {
          sum += node.value;
          baseSum += node.base;
        }
      }
      tellFound(view, sum, baseSum);
    }
    draw(view);
  }

  function tellFound(view, sum, baseSum) {
    const frames = view.hits.size === 1 ? "1 frame" : `${group(view.hits.size)} frames`;
    const share = showPercent(sum, view.root.value);
    const shares = view.graph.both ? `${showPercent(baseSum, view.root.base)} → ${share}` : share;
    view.found.textContent = `${frames}, ${shares} of all`;
  }

  // ---- Keys and pointers.

  /* The frame that an arrow leads to: the widest below, the caller above, the next on the same level beside. */
  function findNeighbour(view, key) {
    const box = boxOf(view, view.current);
    if (key === "Home") return view.root;
    if (key === "ArrowUp") return box.node.parent;
    if (key === "ArrowDown") {
      const below = view.boxes.filter((one) => one.node.parent === box.node);
      return below.reduce((best, one) => (best && best.width >= one.width ? best : one), null);
    }
    const level = view.boxes.filter((one) => one.node.depth === box.node.depth);
    return level[level.indexOf(box) + (key === "ArrowRight" ? 1 : -1)];
  }

  function onTreeKey(view, event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const { key } = event;
    if (key === "Enter" || key === " ") {
      zoom(view, view.current);
    } else if (/^(?:Arrow(?:Up|Down|Left|Right)|Home)$/.test(key)) {
      const found = findNeighbour(view, key);
      if (found) point(view, found.node || found, true);
    } else {
      return;
    }
    event.preventDefault();
  }

  function onKey(view, event) {
    const typing = event.target === view.input;
    const finds = (event.key === "f" && (event.ctrlKey || event.metaKey)) || (event.key === "/" && !event.ctrlKey);
    if (finds && !typing) {
      view.input.focus();
      view.input.select();
    } else if (event.key === "Escape") {
      goBack(view, typing);
    } else {
      return;
    }
    event.preventDefault();
  }

  function goBack(view, typing) {
    if (!view.tip.hidden) hideTip(view);
    if (typing && view.input.value) {
      view.input.value = "";
      search(view, "");
    } else if (view.zoomed !== view.root) {
      zoom(view, view.root);
    }
  }

  function listen(view, alone) {
    const frameAt = (event) => view.frames.get(event.target);
    view.tree.addEventListener("click", (event) => {
      const box = frameAt(event);
      if (box) zoom(view, box.node);
    });
    view.tree.addEventListener("mousemove", (event) => {
      const box = frameAt(event);
      if (box) showTip(view, box.node, event.clientX + 12, event.clientY);
      else hideTip(view);
    });
    view.tree.addEventListener("mouseleave", () => hideTip(view));
    view.tree.addEventListener("focusin", (event) => {
      const box = frameAt(event);
      if (!box || !box.frame.matches(":focus-visible")) return;
      const place = box.frame.getBoundingClientRect();
      showTip(view, box.node, place.left, place.bottom - 12);
    });
    view.tree.addEventListener("focusout", () => hideTip(view));
    view.tree.addEventListener("keydown", (event) => onTreeKey(view, event));
    (alone ? document : view.box).addEventListener("keydown", (event) => onKey(view, event));
    view.input.addEventListener("input", () => search(view, view.input.value));
    view.reset.addEventListener("click", () => zoom(view, view.root));
    // Labels depend on the width in pixels; frames follow by themselves.
    new ResizeObserver(() => {
      if (view.tree.clientWidth && view.tree.clientWidth !== view.width) draw(view);
    }).observe(view.tree);
  }

  // ---- The parts around it.

  function makeLegend(view) {
    const legend = make("ul", { class: "tmf-legend", "aria-label": "Colours" });
    const add = (colour, text) => {
      const item = make("li");
      item.append(make("span", { class: `tmf-swatch ${colour}`, "aria-hidden": "true" }), make("span", {}, text));
      legend.appendChild(item);
    };
    if (view.graph.both) {
      add("tmf-more5", "more in itself than in base");
      add("tmf-none", "the same");
      add("tmf-less5", "less in itself");
      add("tmf-none tmf-gone", "only in base");
      return legend;
    }
    const sums = view.names[0].map(() => 0);
    for (const node of view.nodes) sums[Math.floor(node.entry[1] / SHADES)] += node.own;
    sums.forEach((sum, family) => {
      if (sum) add(`tmf-c${family * SHADES}`, `${view.names[0][family]} ${showPercent(sum, view.root.value)}`);
    });
    return legend;
  }

  function makeBar(view) {
    const bar = make("div", { class: "tmf-bar", role: "search" });
    view.input = make("input", { type: "search", placeholder: "Search frames", "aria-label": "Search frames" });
    view.input.setAttribute("spellcheck", "false");
    view.reset = make("button", { type: "button" }, "Reset zoom");
    view.found = make("span", { class: "tmf-found", role: "status" });
    const keys = make("span", { class: "tmf-keys" }, "Click or Enter zooms, arrows move, / searches, Esc goes back");
    bar.append(view.input, view.reset, view.found, keys);
    return bar;
  }

  function torchmarkFlame(container, names, graph, alone) {
    const nodes = readTree(names, graph);
    const box = make("div", { class: alone ? "tmf tmf-alone" : "tmf" });
    const view = { names, graph, nodes, box, root: nodes[0], zoomed: nodes[0], current: nodes[0], hits: null };
    view.largest = nodes.reduce((most, node) => Math.max(most, Math.abs(node.own - node.baseOwn)), 0);
    const purpose = `Flame graph of ${graph.title || "a profile"}, callers above callees`;
    view.tree = make("div", { class: "tmf-tree", role: "tree", "aria-label": purpose });
    view.tip = make("div", { class: "tmf-tip", "aria-hidden": "true" });
    hideTip(view);
    (graph.heading || []).forEach((line, i) => {
      box.appendChild(make(i ? "p" : "h1", { class: i ? "tmf-note" : "tmf-title" }, line));
    });
    box.append(makeBar(view), view.tree, makeLegend(view), view.tip);
    container.replaceChildren(box);
    view.measure = makeMeasure(view.tree);
    listen(view, alone);
    draw(view);
  }

  function torchmarkFlameAlone(names, graph) {
    const svg = document.documentElement;
    // Somebody may have put the picture into a page of theirs: there it stays a picture.
    if (svg.namespaceURI !== SVG) return;
    const screen = document.createElementNS(SVG, "foreignObject");
    for (const element of [svg, screen]) {
      element.setAttribute("width", "100%");
      element.setAttribute("height", "100%");
    }
    svg.removeAttribute("viewBox");
    // Telephones would lay it out as wide as a desk and shrink it.
    svg.appendChild(make("meta", { name: "viewport", content: "width=device-width, initial-scale=1" }));
    const holder = make("div");
    screen.appendChild(holder);
    const still = document.getElementById("tmf-still");
    if (still) still.remove();
    svg.removeAttribute("role");
    svg.appendChild(screen);
    torchmarkFlame(holder, names, graph, true);
  }

  window.torchmarkFlame = (container, names, graph) => torchmarkFlame(container, names, graph, false);
  window.torchmarkFlameAlone = torchmarkFlameAlone;
})();
