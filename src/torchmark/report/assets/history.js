"use strict";

// Without a script all cases are shown; with one they can be searched by name.
(() => {
  const form = document.querySelector(".search");
  const input = form.querySelector("input");
  const output = form.querySelector("output");
  const cases = Array.from(document.querySelectorAll(".case"));

  const show = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const one of cases) {
      const fits = words.every((word) => one.dataset.name.includes(word));
      one.hidden = !fits;
      shown += Number(fits);
    }
    for (const section of document.querySelectorAll("section")) {
      section.hidden = !section.querySelector(".case:not([hidden])");
    }
    output.textContent = words.length ? `${shown} of ${cases.length}` : "";
  };

  input.addEventListener("input", show);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = cases.length < 2;
  // What a browser has kept from the last visit.
  show();
})();
