/* Drawings of one case: its samples as dots on one axis for all parties, and stages of a call as bars.
   Everything is made of elements with text in them, so that no name can be markup. */
(function () {
  "use strict";

  const SVG = "http://www.w3.org/2000/svg";
  const UNITS = [["s", 1], ["ms", 1e-3], ["us", 1e-6], ["ns", 1e-9]];
  // What lies farther from the middle half than so many times its width is counted at the edge, and not drawn to scale.
  const FAR = 4;
  const DOT = 3;
  const ROW = 92;
  const LEFT = 8;

  function make(name, attributes, text) {
    const element = document.createElementNS(SVG, name);
    for (const key of Object.keys(attributes || {})) element.setAttribute(key, attributes[key]);
    if (text !== undefined) element.textContent = text;
    return element;
  }

  // The opposite of pack_samples: how many there were, and seconds in rising order.
  function unpack(packed) {
    const [number, step, ...steps] = packed;
    let sum = 0;
    return { number, values: steps.map((more) => (sum += more) * step) };
  }

  function quantile(values, share) {
    const place = share * (values.length - 1);
    const low = Math.floor(place);
    const high = Math.min(low + 1, values.length - 1);
    return values[low] + (values[high] - values[low]) * (place - low);
  }

  function findRange(groups) {
    let low = Infinity;
    let high = -Infinity;
    for (const { values } of groups) {
      const reach = FAR * (quantile(values, 0.75) - quantile(values, 0.25));
      const near = values.filter((t) => !reach || Math.abs(t - quantile(values, 0.5)) <= reach);
      low = Math.min(low, near[0]);
      high = Math.max(high, near[near.length - 1]);
    }
    const air = (high - low) * 0.03 || high * 0.01 || 1e-9;
    return [Math.max(low - air, 0), high + air];
  }

  function showTime(seconds, like) {
    const [unit, scale] = UNITS.find((one) => (like === undefined ? seconds : like) >= one[1] * 0.9999999) || UNITS[3];
    return `${Number((seconds / scale).toPrecision(4))} ${unit}`;
  }

  function findTicks(low, high, most) {
    const rough = (high - low) / most;
    const power = Math.pow(10, Math.floor(Math.log10(rough)));
    const step = [1, 2, 5, 10].map((n) => n * power).find((one) => one >= rough);
    const ticks = [];
    for (let tick = Math.ceil(low / step) * step; tick <= high; tick += step) ticks.push(tick);
    return ticks;
  }

  // Dots in columns, the way a histogram has bars: the height tells how many samples are around there.
  function drawParty(group, at, width, top, number) {
    const part = make("g", { class: `party${number}` });
    const bottom = top + ROW - 18;
    const columns = new Map();
    const room = ROW - 38;
    const places = group.values.map((t) => Math.round(Math.min(Math.max(at(t), LEFT), width - LEFT) / (2 * DOT)));
    for (const place of places) columns.set(place, (columns.get(place) || 0) + 1);
    const tallest = Math.max(...columns.values());
    const lift = Math.min(2 * DOT, room / tallest);
    const heights = new Map();
    for (const place of places) {
      const height = heights.get(place) || 0;
      heights.set(place, height + 1);
      part.append(make("circle", { cx: place * 2 * DOT, cy: bottom - DOT - height * lift, r: DOT - 0.4 }));
    }
    const middle = at(quantile(group.values, 0.5));
    part.append(make("line", { class: "median", x1: middle, x2: middle, y1: bottom - room - 2, y2: bottom }));
    part.append(make("line", { class: "ground", x1: 0, x2: width, y1: bottom, y2: bottom }));
    // The values are quantiles of many samples: the maximum is told apart.
    const beyond = at(group.mostSeconds) > width - LEFT + 0.5;
    const text = make("text", { x: 2, y: top + 12, class: "who" }, group.name);
    part.append(text);
    if (beyond) {
      const far = `farther out, up to ${group.most}`;
      part.append(make("text", { x: width - 2, y: top + 12, "text-anchor": "end", class: "far" }, `${far} →`));
    }
    return part;
  }

  // Groups have a name, a number of samples, and values in rising order.
  function drawSamples(groups, width) {
    const [low, high] = findRange(groups);
    const at = (t) => LEFT + ((t - low) / (high - low)) * (width - 2 * LEFT);
    const height = groups.length * ROW + 20;
    const told = groups.map((one) => `${one.name}: ${one.number} samples, median ${one.median}`);
    const svg = make("svg", {
      viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": told.join("; "), class: "samples",
    });
    groups.forEach((group, i) => {
      const number = group.head ? 1 : 0;
      svg.append(drawParty(group, at, width, i * ROW, number));
    });
    for (const tick of findTicks(low, high, Math.max(2, Math.floor(width / 90)))) {
      const x = at(tick);
      svg.append(make("line", { class: "tick", x1: x, x2: x, y1: 0, y2: height - 16 }));
      const anchor = x < 30 ? "start" : x > width - 30 ? "end" : "middle";
      svg.append(make("text", { x, y: height - 3, "text-anchor": anchor, class: "axis" }, showTime(tick, high)));
    }
    return svg;
  }

  window.torchmarkDrawings = { drawSamples, unpack };
})();
