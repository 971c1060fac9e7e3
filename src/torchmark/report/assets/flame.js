/* Flame graphs that can be looked into. Python draws a graph (picture.py); this script zooms, searches and tells details
   by changing what was drawn. A frame that was too narrow to be drawn is a copy of the outermost one. The data are plain
   columns of numbers, callers first (page.py). Names come from anywhere: they only ever become text, never markup. */
(function () {
  "use strict";

  const SVG = "http://www.w3.org/2000/svg";
  const XHTML = "http://www.w3.org/1999/xhtml";
  // The same as in picture.py: what share of all a frame has to be, and pixels of rows, letters, paddings and gaps.
  const LEAST_WIDTH = 0.001;
  const ROW = 17;
  const LETTER = 6.62;
  const PADDING = 3;
  const GAP = 1;
  // With less room than this for letters, a label says nothing.
  const LEAST_ROOM = 3;
  // Rows that a finger can hit.
  const FINGER_ROW = 26;

  // ---- Reading a graph.

  function readFrames(names, graph) {
    const both = Boolean(graph.styles);
    const path = [];
    const frames = graph.depth.map((depth, number) => {
      const [label, colour, origin, shorter, full] = names[graph.name[number]];
      const style = both ? graph.styles[graph.style[number]] : `tmf-c${colour}`;
      const [own, rest] = [graph.own[number], graph.rest[number]];
      const [baseOwn, baseRest] = both ? [own - graph.ownChange[number], rest - graph.restChange[number]] : [0, 0];
      const span = Math.max(own, baseOwn) + Math.max(rest, baseRest);
      const parent = path[depth - 1] || null;
      path[depth] = {
        number, depth, parent, style, origin, texts: [label, ...shorter], name: full || label,
        own, baseOwn, value: own + rest, base: baseOwn + baseRest, span, start: 0,
      };
      return path[depth];
    });
    for (let i = frames.length - 1; i > 0; i--) {
      for (const sum of ["value", "base", "span"]) frames[i].parent[sum] += frames[i][sum];
    }
    for (const frame of frames) {
      // Where the next frame below this one begins.
      frame.filled = frame.start = frame.parent ? frame.parent.filled : 0;
      if (frame.parent) frame.parent.filled += frame.span;
    }
    return frames;
  }

  // ---- Numbers.

  const sign = (change) => (change < 0 ? "−" : "+");

  function formatPercent(part, whole) {
    const percent = whole ? (100 * part) / whole : 0;
    if (percent === 0) return "0%";
    if (percent < 0.005) return "<0.01%";
    return `${percent.toFixed(percent >= 9.95 ? 0 : percent >= 0.095 ? 1 : 2)}%`;
  }

  class Numbers {
    constructor(graph, root) {
      this.graph = graph;
      this.both = Boolean(graph.styles);
      this.root = root;
    }

    format(value) {
      return (value / this.graph.runs).toLocaleString("en-US", { maximumFractionDigits: 1 });
    }

    formatChange(change) {
      return sign(change) + this.format(Math.abs(change));
    }

    formatSides(base, head) {
      if (!this.both) return this.format(head);
      if (base === head) return `${this.format(head)} (no change)`;
      const share = sign(head - base) + formatPercent(Math.abs(head - base), base);
      const relation = !base ? "new" : !head ? "gone" : share;
      return `${this.format(base)} → ${this.format(head)} (${this.formatChange(head - base)}, ${relation})`;
    }

    formatShares(base, head) {
      const share = formatPercent(head, this.root.value);
      return this.both ? `${formatPercent(base, this.root.base)} → ${share}` : share;
    }

    /* What is told of a frame: the lines of the graph, without those that have an empty text. */
    tell(frame) {
      const texts = {
        name: frame.name, origin: frame.origin, value: this.formatSides(frame.base, frame.value),
        own: this.formatSides(frame.baseOwn, frame.own), share: this.formatShares(frame.base, frame.value),
        own_share: this.formatShares(frame.baseOwn, frame.own),
        part: frame.depth > 1 ? formatPercent(frame.value, frame.parent.value) : "",
      };
      const lines = this.graph.lines.map((line) => line.replace(/\{(\w+)\}/g, (_, key) => texts[key] || "\0"));
      return lines.filter((line) => !line.includes("\0")).join("\n");
    }
  }

  // ---- Labels.

  // Letters of the East and pictures are twice as wide.
  const measure = (text) => text.length + (text.match(/[\u2e80-\uffff]/g) || []).length;

  function cut(text, room) {
    const letters = Array.from(text);
    while (measure(letters.join("")) >= room) letters.pop();
    return `${letters.join("")}…`;
  }

  /* As much of a label as so many letters tell, after a mark that is as much of it: the same as `fit_label`. */
  function fitLabel(mark, texts, room) {
    const left = room - measure(mark);
    if (measure(texts[0]) <= left) return mark + texts[0];
    if (left >= LEAST_ROOM) return mark + (texts.find((text) => measure(text) <= left) || cut(texts[texts.length - 1], left));
    if (measure(mark.trim()) <= room) return mark.trim();
    return room < LEAST_ROOM ? "" : cut(mark.trim(), room);
  }

  // ---- Changing what was drawn.

  class View {
    constructor(box, names, graph) {
      this.box = box;
      this.find = (selector) => box.querySelector(selector);
      [this.tree, this.tip, this.input] = [".tmf-tree", ".tmf-tip", "input"].map(this.find);
      [this.reset, this.found] = ["button", ".tmf-found"].map(this.find);
      this.frames = readFrames(names, graph);
      this.root = this.zoomed = this.current = this.frames[0];
      this.numbers = new Numbers(graph, this.root);
      this.hits = null;
      this.shown = [];
      this.ofElement = new Map();
      for (const element of this.tree.querySelectorAll(".tmf-frame")) this.adopt(element, this.frames[element.dataset.frame]);
      this.tree.setAttribute("preserveAspectRatio", "xMinYMin");
      this.find(".tmf-bar").hidden = false;
    }

    adopt(element, frame) {
      const title = element.querySelector("title");
      frame.element = element;
      frame.told = title ? title.textContent : this.numbers.tell(frame);
      // The browser would show it beside the tip.
      if (title) title.remove();
      this.ofElement.set(element, frame);
      element.setAttribute("role", "treeitem");
      element.setAttribute("aria-level", frame.depth + 1);
      element.setAttribute("aria-label", frame.told.replace(/\n/g, "; "));
      element.setAttribute("tabindex", "-1");
    }

    /* The frames in sight: those above the zoomed one, and of those below what is wide enough. */
    listShown() {
      const { zoomed } = this;
      const shown = [];
      for (let frame = zoomed; frame; frame = frame.parent) shown.push(frame);
      shown.reverse();
      const least = LEAST_WIDTH * (zoomed.span || 1);
      for (let i = zoomed.number + 1; i < this.frames.length && this.frames[i].depth > zoomed.depth; i++) {
        if (this.frames[i].span >= least) shown.push(this.frames[i]);
      }
      return shown;
    }

    draw() {
      const hadFocus = this.tree.contains(document.activeElement);
      this.width = this.tree.getBoundingClientRect().width || 1000;
      this.row = window.matchMedia("(pointer: coarse)").matches ? FINGER_ROW : ROW;
      this.shown = this.listShown();
      const fragment = document.createDocumentFragment();
      for (const frame of this.shown) {
        if (!frame.element) this.adopt(this.root.element.cloneNode(true), frame);
        this.place(frame);
        this.colour(frame);
        fragment.appendChild(frame.element);
      }
      this.tree.replaceChildren(fragment);
      const deepest = this.shown.reduce((most, frame) => Math.max(most, frame.depth), 0);
      const height = this.row * (deepest + 1);
      this.tree.style.height = `${height}px`;
      // Of its own size on a screen; on paper, which may be narrower, it is scaled.
      this.tree.setAttribute("viewBox", `0 0 ${this.width} ${height}`);
      this.reset.disabled = this.zoomed === this.root;
      this.point(this.current, hadFocus);
    }

    place(frame) {
      const { element } = frame;
      const isAbove = frame.depth <= this.zoomed.depth;
      const scale = this.width / (this.zoomed.span || 1);
      const left = isAbove ? 0 : (frame.start - this.zoomed.start) * scale;
      const width = isAbove ? this.width : frame.span * scale;
      const [rect, text] = element.children;
      element.setAttribute("transform", `translate(${left.toFixed(2)} ${this.row * frame.depth})`);
      rect.setAttribute("width", Math.max(width - GAP, Math.min(width, GAP)).toFixed(2));
      rect.setAttribute("height", this.row - GAP);
      text.setAttribute("y", Math.floor(this.row / 2) + 4);
      const change = frame.own - frame.baseOwn;
      const mark = /-(?:more|less)/.test(frame.style) ? `${this.numbers.formatChange(change)} ` : "";
      text.textContent = fitLabel(mark, frame.texts, Math.floor((width - 2 * PADDING) / LETTER));
    }

    /* Gives frames their colours: of a search, those that match and the others; of zooming, those above. */
    colour(frame) {
      const states = [`tmf-frame ${frame.style}`];
      if (frame.depth < this.zoomed.depth) states.push("tmf-up");
      if (this.hits) states.push(this.hits.has(frame) ? "tmf-hit" : "tmf-miss");
      frame.element.setAttribute("class", states.join(" "));
      if (frame === this.zoomed) frame.element.setAttribute("aria-current", "true");
      else frame.element.removeAttribute("aria-current");
    }

    /* Makes a frame the one that the tab key leads to, the zoomed one if it is not in sight. */
    point(frame, focus) {
      this.current.element.setAttribute("tabindex", "-1");
      this.current = this.shown.includes(frame) ? frame : this.zoomed;
      this.current.element.setAttribute("tabindex", "0");
      if (focus) this.current.element.focus();
    }

    zoom(frame) {
      this.zoomed = this.current = frame;
      this.hideTip();
      this.draw();
    }

    // ---- Tips.

    showTip(frame, left, top) {
      this.tip.textContent = frame.told;
      this.tip.hidden = false;
      const around = this.box.getBoundingClientRect();
      const size = this.tip.getBoundingClientRect();
      const x = Math.max(0, Math.min(left - around.left, around.width - size.width));
      const below = top + 18 + size.height <= window.innerHeight;
      const y = (below ? top + 18 : Math.max(top - size.height - 8, 0)) - around.top;
      this.tip.style.left = `${x + this.box.scrollLeft}px`;
      this.tip.style.top = `${y + this.box.scrollTop}px`;
    }

    hideTip() {
      this.tip.hidden = true;
    }

    // ---- Searching.

    search(text) {
      const wanted = text.trim().toLowerCase();
      const matches = (frame) => `${frame.texts[0]}\n${frame.name}\n${frame.origin}`.toLowerCase().includes(wanted);
      this.hits = wanted ? new Set(this.frames.filter(matches)) : null;
      this.found.textContent = wanted ? this.tellFound() : "";
      for (const frame of this.shown) this.colour(frame);
    }

    /* How many frames match, and what share they are with all below them; what lies within another counts once. */
    tellFound() {
      let [value, base, end] = [0, 0, -1];
      for (const frame of this.hits) {
        if (frame.number <= end) continue;
        value += frame.value;
        base += frame.base;
        end = frame.number;
        while (end + 1 < this.frames.length && this.frames[end + 1].depth > frame.depth) end++;
      }
      const frames = this.hits.size === 1 ? "1 frame" : `${this.hits.size.toLocaleString("en-US")} frames`;
      return `${frames}, ${this.numbers.formatShares(base, value)} of all`;
    }

    // ---- Keys and pointers.

    /* The frame that an arrow leads to: the widest below, the caller above, the next on the same level beside. */
    findNeighbour(key) {
      const { current, shown } = this;
      if (key === "Home") return this.root;
      if (key === "ArrowUp") return current.parent;
      if (key === "ArrowDown") {
        const below = shown.filter((one) => one.parent === current);
        return below.reduce((best, one) => (best && best.span >= one.span ? best : one), null);
      }
      const level = shown.filter((one) => one.depth === current.depth);
      return level[level.indexOf(current) + (key === "ArrowRight" ? 1 : -1)];
    }

    onTreeKey(event) {
      if (event.altKey || event.ctrlKey || event.metaKey) return;
      if (event.key === "Enter" || event.key === " ") {
        this.zoom(this.current);
      } else if (/^(?:Arrow(?:Up|Down|Left|Right)|Home)$/.test(event.key)) {
        const found = this.findNeighbour(event.key);
        if (found) this.point(found, true);
      } else {
        return;
      }
      event.preventDefault();
    }

    onKey(event) {
      const typing = event.target === this.input;
      const finds = (event.key === "f" && (event.ctrlKey || event.metaKey)) || (event.key === "/" && !event.ctrlKey);
      if (finds && !typing) {
        this.input.focus();
        this.input.select();
      } else if (event.key === "Escape") {
        this.goBack(typing);
      } else {
        return;
      }
      event.preventDefault();
    }

    goBack(typing) {
      this.hideTip();
      if (typing && this.input.value) {
        this.input.value = "";
        this.search("");
      } else if (this.zoomed !== this.root) {
        this.zoom(this.root);
      }
    }

    listen(keyboard) {
      const frameAt = (event) => this.ofElement.get(event.target.closest(".tmf-frame"));
      const onTree = (kind, act) => this.tree.addEventListener(kind, (event) => act(event, frameAt(event)));
      onTree("click", (_, frame) => frame && this.zoom(frame));
      onTree("mousemove", (event, frame) => {
        if (frame) this.showTip(frame, event.clientX + 12, event.clientY);
        else this.hideTip();
      });
      onTree("mouseleave", () => this.hideTip());
      // Not of the tree: browsers lead the tab key to drawings that listen to it.
      this.box.addEventListener("focusin", (event) => {
        const frame = frameAt(event);
        if (!frame || !frame.element.matches(":focus-visible")) return;
        const place = frame.element.getBoundingClientRect();
        this.showTip(frame, place.left, place.bottom - 12);
      });
      this.box.addEventListener("focusout", () => this.hideTip());
      onTree("keydown", (event) => this.onTreeKey(event));
      keyboard.addEventListener("keydown", (event) => this.onKey(event));
      this.input.addEventListener("input", () => this.search(this.input.value));
      this.reset.addEventListener("click", () => this.zoom(this.root));
      new ResizeObserver(() => {
        const { width } = this.tree.getBoundingClientRect();
        if (width && width !== this.width) this.draw();
      }).observe(this.box);
    }
  }

  /* Brings a drawn graph to life. In a page of many, the graph is not drawn yet but for its outermost frame. */
  window.torchmarkFlame = (box, names, graph, keyboard) => {
    // It is drawn by Python, which escapes all names.
    if (graph.markup) box.replaceChildren(...new DOMParser().parseFromString(graph.markup, "text/html").body.childNodes);
    box.classList.add("tmf");
    const view = new View(box, names, graph);
    view.draw();
    view.listen(keyboard || box);
  };

  /* An SVG on its own: the graph moves from the picture into the controls, which follow the width of the window. */
  window.torchmarkFlameAlone = (names, graph) => {
    const svg = document.documentElement;
    // Somebody may have put the picture into a page of theirs: there it stays a picture.
    if (svg.namespaceURI !== SVG) return;
    const [still, controls] = ["tmf-still", "tmf-controls"].map((id) => document.getElementById(id));
    for (const name of ["viewBox", "role"]) svg.removeAttribute(name);
    for (const name of ["width", "height"]) svg.setAttribute(name, "100%");
    // Telephones would lay it out as wide as a desk and shrink it.
    const meta = document.createElementNS(XHTML, "meta");
    meta.setAttribute("name", "viewport");
    meta.setAttribute("content", "width=device-width, initial-scale=1");
    svg.appendChild(meta);
    const box = controls.querySelector(".tmf");
    box.querySelector(".tmf-legend").before(still.querySelector(".tmf-tree"));
    still.remove();
    controls.removeAttribute("display");
    window.torchmarkFlame(box, names, graph, document);
  };

  /* The graphs of a page of many cases, from deflated JSON in base 64. */
  window.torchmarkFlames = async (text) => {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const inflated = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Response(inflated).json();
  };
})();
