/* What a row of the table opens to. The values are made by pages/details.py; texts are numbers in a table of texts.
   Names, statements and errors come from anywhere: they only ever become text, never markup. */
(function () {
  "use strict";

  function make(name, attributes, ...children) {
    const element = document.createElement(name);
    for (const key of Object.keys(attributes || {})) element.setAttribute(key, attributes[key]);
    element.append(...children);
    return element;
  }

  const grouped = new Intl.NumberFormat("en-US", { maximumFractionDigits: 1 });
  // A side that was not counted has null for a number.
  const show = (number) => (number === null ? "–" : grouped.format(number));
  const addUp = (numbers) => (numbers.includes(null) ? null : numbers.reduce((sum, one) => sum + one, 0));
  const signed = (number) => (Math.abs(number) < 0.05 ? "0" : (number > 0 ? "+" : "-") + show(Math.abs(number)));

  function makeSection(title, className, ...children) {
    return make("section", { class: className }, make("h3", {}, title), ...children);
  }

  function makeTable(heads, rows, className) {
    const head = make("tr", {}, ...heads.map((text) => make("th", { scope: "col" }, text)));
    const body = rows.map(([first, ...cells]) => {
      const tr = make("tr", {}, make("th", { scope: "row" }, first));
      for (const cell of cells) {
        tr.append(cell instanceof Node ? cell : make("td", {}, cell));
      }
      return tr;
    });
    const table = make("table", { class: `grid ${className || ""}` }, make("thead", {}, head), make("tbody", {}, ...body));
    return make("div", { class: "scroll" }, table);
  }

  const isolated = (text) => make("bdi", {}, text);

  // A sentence, with code for what stands in backticks; the same as `mark_code` of page.py.
  const prose = (text) => make("bdi", {}, ...text.split(/`([^`\n]+)`/).map((part, i) => (i % 2 ? make("code", {}, part) : part)));

  // So many caveats are shown whole. More are folded to a line each, which is the first sentence.
  const MOST_WHOLE = 2;

  function makeFold(text, open) {
    const [first] = text.split(/(?<=[.!?])\s+(?=[A-Z`])/, 1);
    const rest = text.slice(first.length).trim();
    const fold = make("details", { class: "fold" }, make("summary", {}, prose(first)), ...(rest ? [make("p", {}, prose(rest))] : []));
    fold.open = open;
    return fold;
  }

  class Details {
    constructor(page, readFlames) {
      this.page = page;
      this.readFlames = readFlames;
      this.compared = page.parties.length === 2;
    }

    text(number) {
      return this.page.texts[number];
    }

    pairs(list) {
      return (list || []).map(([name, value]) => [this.text(name), this.text(value)]);
    }

    build(index, id) {
      const about = this.page.details[index];
      const box = make("div", { class: "detail" });
      const beside = (...parts) => make("div", { class: "beside" }, ...parts.filter((part) => part));
      const parts = [
        this.makeFailures(about), this.makeDoubts(about),
        beside(this.makeVerdict(about), this.makeNumbers(about), this.makeSamples(about), this.makeStages(about)),
        this.makeFunctions(about), this.makeDrawings(about), this.makeFlames(index),
        beside(this.makeDefinition(about), this.makeCommands(about, id)),
      ];
      box.append(...parts.filter((part) => part && part.childElementCount));
      return box;
    }

    makeFailures(about) {
      const failures = this.pairs(about.failures);
      if (!failures.length) return null;
      const blocks = failures.map(([title, text]) => make("div", {}, make("p", {}, isolated(title)), make("pre", {}, text)));
      return makeSection("What failed", "failures", ...blocks);
    }

    makeVerdict(about) {
      if (about.verdict === undefined) return null;
      const list = make("dl", { class: "facts" });
      for (const [name, text] of this.pairs(about.facts)) {
        list.append(make("dt", {}, name), make("dd", {}, prose(text)));
      }
      return makeSection(`Verdict: ${this.text(about.verdict)}`, "", list);
    }

    makeSamples(about) {
      if (!about.samples) return null;
      const { drawSamples, unpack } = window.torchmarkDrawings;
      const groups = [];
      about.samples.forEach((packed, i) => {
        if (!packed) return;
        const [median, most, mostSeconds] = about.extremes[i];
        groups.push({ name: this.page.parties[i], head: i === this.page.parties.length - 1, median, most, mostSeconds, ...unpack(packed) });
      });
      const figure = make("figure", { class: "plot" });
      const thinned = groups.some((group) => group.number > group.values.length);
      const told = thinned ? "A dot is an equal share of the samples; the line is the median." : "A dot is a sample; the line is the median.";
      figure.append(make("figcaption", {}, `Time of a run. ${told}`));
      let drawn = 0;
      const draw = () => {
        const width = Math.floor(figure.clientWidth);
        if (!width || width === drawn) return;
        drawn = width;
        const old = figure.querySelector("svg");
        if (old) old.remove();
        figure.prepend(drawSamples(groups, width));
      };
      if (window.ResizeObserver) new ResizeObserver(draw).observe(figure);
      requestAnimationFrame(draw);
      return makeSection("Samples", "", figure);
    }

    makeDoubts(about) {
      const texts = [...(about.doubts || []), ...(about.notes || [])].map((number) => this.text(number));
      if (!texts.length) return null;
      const folds = texts.map((text) => makeFold(text, texts.length <= MOST_WHOLE));
      return makeSection(about.doubts ? "Caveats" : "Notes", "hedged", ...folds);
    }

    makeNumbers(about) {
      if (!about.numbers) return null;
      const rows = about.numbers.map((row) => row.map((number) => this.text(number)));
      const heads = this.compared ? this.page.parties.map(isolated) : ["Value"];
      return makeSection("Numbers", "", makeTable(["For one run", ...heads], rows, "measures"));
    }

    makeStages(about) {
      if (!about.stages || !about.stages.length) return null;
      const bars = make("div", { class: "stacks", "aria-hidden": "true" });
      const totals = [1, 2].map((side) => addUp(about.stages.map((stage) => stage[side])));
      const widest = Math.max(...totals) || 1;
      for (const side of [1, 2].filter((one) => totals[one - 1] !== null)) {
        const bar = make("div", { class: "stack" });
        for (const stage of about.stages) {
          const piece = make("span", { title: `${this.text(stage[0])}: ${show(stage[side])}` });
          piece.style.width = `${(stage[side] / widest) * 100}%`;
          piece.style.background = this.page.colours[this.text(stage[0])];
          bar.append(piece);
        }
        if (this.compared) bars.append(make("span", { class: "who" }, isolated(this.page.parties[side - 1])));
        bars.append(bar);
      }
      const rows = about.stages.map(([stage, base, head]) => [this.nameStage(this.text(stage)), ...this.showBoth(base, head, totals[1], about.apart)]);
      rows.push(["In all", ...this.showTotals(about)]);
      return makeSection("Instructions by stage", "", bars, makeTable(["Stage", ...this.headBoth(about.apart)], rows, "numbers sums"));
    }

    nameStage(stage) {
      const swatch = make("span", { class: "swatch" });
      swatch.style.background = this.page.colours[stage] || "transparent";
      return make("span", { class: "stage" }, swatch, stage);
    }

    headBoth(apart) {
      return this.compared ? [...this.page.parties.map(isolated), ...(apart ? [] : ["Change"])] : ["Instructions", "Share"];
    }

    // Sides that are not compared stand apart: there is no change to show.
    showBoth(base, head, total, apart) {
      if (apart) return [show(base), show(head)];
      if (!this.compared) return [show(head), total ? `${show((head / total) * 100)}%` : ""];
      if (base === null || head === null) return [show(base), show(head), "–"];
      const change = head - base;
      const tone = Math.abs(change) < 0.05 ? "" : change > 0 ? "slower" : "faster";
      return [show(base), show(head), make("td", { class: tone }, signed(change))];
    }

    // Whole numbers, as everywhere but in these tables.
    showTotals(about) {
      const [base, head, change] = about.totals.map((number) => this.text(number));
      if (about.apart) return [base, head];
      if (!this.compared) return [head, head === "0" ? "" : "100%"];
      const tone = change.startsWith("+") ? "slower" : change.startsWith("-") ? "faster" : "";
      return [base, head, make("td", { class: tone }, change)];
    }

    makeFunctions(about) {
      if (!about.functions || !about.functions.length) return null;
      const total = addUp([...about.functions.map((one) => one[3]), about.rest ? about.rest[2] : 0]);
      const rows = about.functions.map(([name, stage, base, head]) => {
        const code = make("span", {}, make("code", {}, this.text(name)), make("span", { class: "under" }, this.nameStage(this.text(stage))));
        return [code, make("td", { class: "words" }, this.nameStage(this.text(stage))), ...this.showBoth(base, head, total, about.apart)];
      });
      if (about.rest) {
        const [others, base, head] = about.rest;
        rows.push([others === 1 ? "1 other function" : `${others} other functions`, make("td", { class: "words" }), ...this.showBoth(base, head, total, about.apart)]);
      }
      rows.push(["In all", make("td", { class: "words" }), ...this.showTotals(about)]);
      return makeSection("Instructions by function", "", makeTable(["Function", "Stage", ...this.headBoth(about.apart)], rows, "numbers sums functions"));
    }

    makeDrawings(about) {
      if (!about.drawings) return null;
      const figures = about.drawings.map(([caption, number]) => {
        const parsed = new DOMParser().parseFromString(this.text(number), "image/svg+xml").documentElement;
        return make("figure", { class: "drawing" }, document.importNode(parsed, true), make("figcaption", {}, this.text(caption)));
      });
      return makeSection("In pictures", "", ...figures);
    }

    makeFlames(index) {
      const titles = this.page.flames[index];
      if (!titles.length) return null;
      // All graphs of the page lie one after the other.
      const first = this.page.flames.slice(0, index).reduce((sum, one) => sum + one.length, 0);
      const section = makeSection("Flame graph", "flames");
      titles.forEach((title, i) => {
        const label = title ? `Flame graph: ${title}` : this.compared ? "Flame graph of the difference" : "Flame graph";
        const button = make("button", { type: "button", class: "flame", "aria-expanded": "false" }, label);
        const place = make("div", { class: "flame-place", hidden: "" });
        let drawn = false;
        button.addEventListener("click", () => {
          const open = place.hidden;
          place.hidden = !open;
          button.setAttribute("aria-expanded", String(open));
          button.textContent = open ? label.replace("Flame", "Hide flame") : label;
          if (!open || drawn) return;
          drawn = true;
          this.readFlames().then(
            (flames) => window.torchmarkFlame(place, flames.names, flames.graphs[first + i]),
            () => (place.textContent = "This browser is too old to unpack flame graphs."),
          );
        });
        section.append(button, place);
      });
      return section;
    }

    makeDefinition(about) {
      const blocks = this.pairs(about.code).map(([title, text]) => make("div", {}, make("p", {}, title), make("pre", {}, make("code", {}, text))));
      const list = make("dl", { class: "facts" });
      for (const [name, text] of this.pairs(about.labels)) list.append(make("dt", {}, name), make("dd", {}, isolated(text)));
      return makeSection("Definition", "", ...blocks, list);
    }

    makeCommands(about, id) {
      const blocks = this.pairs(about.commands).map(([title, text]) => {
        const pre = make("pre", {}, make("code", {}, text));
        return make("div", { class: "command" }, make("p", {}, title), pre, makeCopyButton(text, pre));
      });
      const link = make("p", {}, make("a", { href: `#case-${id}` }, "Link to this case"), " · ", make("a", { href: "#environment" }, "where it was measured"));
      return makeSection(blocks.length ? "Do it again" : "Links", "", ...blocks, link);
    }
  }

  // Pages from a disk may not be allowed to write to the clipboard; then the text is selected, to be copied by hand.
  function makeCopyButton(text, element) {
    const button = make("button", { type: "button", class: "copy" }, "Copy");
    const select = () => {
      const range = document.createRange();
      range.selectNodeContents(element);
      const selection = window.getSelection();
      selection.removeAllRanges();
      selection.addRange(range);
      button.textContent = "Selected";
    };
    button.addEventListener("click", () => {
      if (!navigator.clipboard) {
        select();
        return;
      }
      navigator.clipboard.writeText(text).then(() => (button.textContent = "Copied"), select);
    });
    return button;
  }

  window.torchmarkDetails = { Details, makeCopyButton };
})();
