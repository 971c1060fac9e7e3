/* The table of all cases: sorting, filters, search and opening rows. What is shown is kept in the address, so that a view
   can be handed on. Rows stand in the page already; what they open to is built when somebody looks. */
(function () {
  "use strict";

  const page = JSON.parse(document.getElementById("torchmark-page").textContent);
  const table = document.querySelector("table.cases");
  const body = table.tBodies[0];
  const heads = Array.from(table.tHead.rows[0].cells);
  const keys = heads.map((head) => head.dataset.key);
  const controls = document.querySelector(".controls");
  const search = controls.elements.q;
  const sorter = controls.elements.sort;
  const shown = controls.querySelector(".shown");
  const none = document.querySelector("p.none");
  const tiles = Array.from(document.querySelectorAll(".tile"));
  const collator = new Intl.Collator("en", { numeric: true });
  // Nobody types faster than this, and it is too short to be felt.
  const PAUSE_MS = 60;
  // Rows that are there at once: some screens full. More come when somebody gets to the end of them.
  const BATCH = 150;
  const more = document.querySelector("button.more");

  const rows = Array.from(body.rows).map((element, index) => ({
    element, index, id: element.id.slice("case-".length), name: element.cells[0].textContent, panel: null, open: false,
  }));
  const byId = new Map(rows.map((row) => [row.id, row]));
  const facets = page.facets.map(([key, title, values, ofCases]) => ({ key, title, values, ofCases, select: null }));
  const state = { sort: "", down: false, q: "", chosen: {} };

  let flames = null;
  const readFlames = () => (flames = flames || window.torchmarkFlames(document.getElementById("torchmark-flames").textContent));
  const details = new window.torchmarkDetails.Details(page, readFlames);

  // ---- Filters.

  function makeFacets() {
    const place = controls.querySelector(".facets");
    for (const facet of facets) {
      const select = document.createElement("select");
      select.name = facet.key;
      const numbers = facet.values.map(() => 0);
      for (const one of facet.ofCases) for (const value of one) numbers[value] += 1;
      select.append(new Option("all", ""), ...facet.values.map((value, i) => new Option(`${value} (${numbers[i]})`, value)));
      const label = document.createElement("label");
      label.append(`${facet.title} `, select);
      place.append(label);
      facet.select = select;
    }
    sorter.append(new Option("as they come", ""));
    heads.forEach((head, i) => {
      const title = head.textContent;
      sorter.append(new Option(`${title} ↓`, `-${keys[i]}`), new Option(`${title} ↑`, keys[i]));
    });
  }

  // What is looked for: names, statements, functions, errors. Put together when somebody looks for the first time.
  function haystack(row) {
    if (row.text === undefined) {
      const about = page.details[row.index];
      const numbers = [];
      for (const part of ["code", "labels", "failures"]) for (const pair of about[part] || []) numbers.push(pair[1]);
      for (const one of about.functions || []) numbers.push(one[0]);
      row.text = [row.name, ...numbers.map((number) => page.texts[number])].join("\n").toLowerCase();
    }
    return row.text;
  }

  function isShown(row, words) {
    for (const facet of facets) {
      const wanted = state.chosen[facet.key];
      if (wanted !== undefined && !facet.ofCases[row.index].includes(facet.values.indexOf(wanted))) return false;
    }
    return words.every((word) => haystack(row).includes(word));
  }

  // ---- Order.

  function compare(one, other) {
    if (state.sort === "") return one.index - other.index;
    const sign = state.down ? -1 : 1;
    if (state.sort === "case") return sign * collator.compare(one.name, other.name) || one.index - other.index;
    const column = keys.indexOf(state.sort) - 1;
    const [a, b] = [page.keys[one.index][column], page.keys[other.index][column]];
    // What has no value comes last, whichever way the others are.
    if (a === null || b === null) return (a === null) - (b === null) || one.index - other.index;
    return sign * (a - b) || one.index - other.index;
  }

  let found = rows;
  let limit = BATCH;

  // Only what can be seen stands in the table: browsers take long to lay out many rows.
  function place() {
    const visible = [];
    for (const row of found.slice(0, limit)) {
      visible.push(row.element);
      if (row.panel && row.open) visible.push(row.panel);
    }
    body.replaceChildren(...visible);
    const left = Math.max(found.length - limit, 0);
    more.hidden = left === 0;
    more.textContent = `Show ${Math.min(left, BATCH)} more of ${left}`;
  }

  function showMore() {
    limit += BATCH;
    place();
  }

  function apply() {
    const words = state.q.toLowerCase().split(/\s+/).filter((word) => word);
    found = rows.filter((row) => isShown(row, words)).sort(compare);
    place();
    none.hidden = found.length > 0;
    const all = rows.length === 1 ? "1 case" : `${rows.length} cases`;
    shown.textContent = found.length === rows.length ? `All of ${all}` : `${found.length} of ${all}`;
    mirror();
  }

  // Everything that shows the state says the same.
  function mirror() {
    heads.forEach((head, i) => {
      if (keys[i] !== state.sort) head.removeAttribute("aria-sort");
      else head.setAttribute("aria-sort", state.down ? "descending" : "ascending");
    });
    for (const tile of tiles) tile.setAttribute("aria-pressed", String(state.chosen.verdict === tile.dataset.verdict));
    for (const facet of facets) facet.select.value = state.chosen[facet.key] || "";
    if (search.value !== state.q) search.value = state.q;
    sorter.value = (state.down ? "-" : "") + state.sort;
  }

  // ---- Rows.

  function setOpen(row, open) {
    row.open = open;
    const button = row.element.querySelector("button.open");
    button.setAttribute("aria-expanded", String(open));
    row.element.classList.toggle("opened", open);
    if (open && !row.panel) {
      row.panel = document.createElement("tr");
      row.panel.className = "panel-row";
      row.panel.id = `detail-${row.id}`;
      const cell = row.panel.insertCell();
      cell.colSpan = countColumns();
      const box = details.build(row.index, row.id);
      box.setAttribute("role", "group");
      box.setAttribute("aria-label", row.name);
      cell.append(box);
      button.setAttribute("aria-controls", row.panel.id);
    }
    if (open && row.element.isConnected) row.element.after(row.panel);
    else if (row.panel) row.panel.remove();
  }

  // Columns give way where there is little room. What spans them must not bring them back.
  function countColumns() {
    const cells = body.rows.length ? body.rows[0].cells : heads;
    return Array.from(cells).filter((cell) => getComputedStyle(cell).display !== "none").length || heads.length;
  }

  function span(number) {
    for (const row of rows) if (row.panel) row.panel.cells[0].colSpan = number;
  }

  function openCase(id) {
    const row = byId.get(id);
    if (!row) return;
    if (!found.includes(row)) {
      state.q = "";
      state.chosen = {};
      apply();
    }
    while (found.indexOf(row) >= limit) limit += BATCH;
    place();
    setOpen(row, true);
    row.element.scrollIntoView({ block: "start" });
    row.element.querySelector("button.open").focus({ preventScroll: true });
  }

  // ---- The address.

  function writeAddress() {
    const parts = new URLSearchParams();
    if (state.sort) parts.set("sort", (state.down ? "-" : "") + state.sort);
    if (state.q) parts.set("q", state.q);
    for (const facet of facets) if (state.chosen[facet.key] !== undefined) parts.set(facet.key, state.chosen[facet.key]);
    const open = rows.filter((row) => row.open).map((row) => row.id);
    if (open.length) parts.set("open", open.join(","));
    const text = parts.toString();
    history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
  }

  function readAddress() {
    const text = location.hash.slice(1);
    if (text.startsWith("case-")) {
      apply();
      openCase(text.slice("case-".length));
      return;
    }
    if (text && !text.includes("=")) return; // a place in the page
    const parts = new URLSearchParams(text);
    const sort = parts.get("sort") || "";
    state.down = sort.startsWith("-");
    state.sort = keys.includes(sort.replace("-", "")) ? sort.replace("-", "") : "";
    state.q = parts.get("q") || "";
    state.chosen = {};
    for (const facet of facets) if (facet.values.includes(parts.get(facet.key))) state.chosen[facet.key] = parts.get(facet.key);
    apply();
    const open = (parts.get("open") || "").split(",");
    for (const row of rows) if (row.open !== open.includes(row.id)) setOpen(row, open.includes(row.id));
    const first = byId.get(open[0]);
    if (first && first.element.isConnected) first.element.scrollIntoView({ block: "start" });
  }

  function change(changed) {
    Object.assign(state, changed);
    limit = BATCH;
    apply();
    writeAddress();
  }

  // ---- What people do.

  function choose(key, value) {
    const chosen = Object.assign({}, state.chosen);
    if (value) chosen[key] = value;
    else delete chosen[key];
    change({ chosen });
  }

  function listen() {
    heads.forEach((head, i) => {
      head.querySelector("button").addEventListener("click", () => {
        const first = i > 0 && !page.columns[i - 1][1];
        change(state.sort === keys[i] ? { down: !state.down } : { sort: keys[i], down: first });
      });
    });
    body.addEventListener("click", (event) => {
      const button = event.target.closest("button.open");
      if (!button) return;
      const row = byId.get(button.closest("tr").id.slice("case-".length));
      setOpen(row, !row.open);
      writeAddress();
    });
    let waiting = 0;
    search.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => change({ q: search.value }), PAUSE_MS);
    });
    for (const facet of facets) facet.select.addEventListener("change", () => choose(facet.key, facet.select.value));
    sorter.addEventListener("change", () => change({ sort: sorter.value.replace("-", ""), down: sorter.value.startsWith("-") }));
    controls.addEventListener("submit", (event) => event.preventDefault());
    controls.addEventListener("reset", (event) => {
      event.preventDefault();
      change({ sort: "", down: false, q: "", chosen: {} });
    });
    for (const tile of tiles) {
      const verdict = tile.dataset.verdict;
      // Where all cases have the same, there is nothing to choose.
      tile.disabled = !facets.some((facet) => facet.key === "verdict");
      tile.addEventListener("click", () => {
        choose("verdict", state.chosen.verdict === verdict ? "" : verdict);
        document.getElementById("cases").scrollIntoView({ block: "start" });
      });
    }
    window.addEventListener("hashchange", readAddress);
    window.addEventListener("resize", () => span(countColumns()));
    more.addEventListener("click", showMore);
    if (window.IntersectionObserver) {
      const near = { rootMargin: "600px" };
      new IntersectionObserver((seen) => seen.some((one) => one.isIntersecting) && showMore(), near).observe(more);
    }
    // On paper there are all rows, and the columns that the style sheet leaves there.
    window.addEventListener("beforeprint", () => {
      limit = Infinity;
      place();
      for (const fold of document.querySelectorAll("details.fold")) fold.open = true;
      span(heads.filter((head) => !head.classList.contains("room3")).length);
    });
    window.addEventListener("afterprint", () => span(countColumns()));
  }

  makeFacets();
  listen();
  for (const block of document.querySelectorAll("#method .command")) {
    const pre = block.querySelector("pre");
    block.append(window.torchmarkDetails.makeCopyButton(pre.textContent, pre));
  }
  document.documentElement.classList.add("alive");
  controls.hidden = false;
  readAddress();
})();
