// Connects a number's field with a slider that has no thumb until it is touched, shows the number, and notes how it was
// entered. Without this script the field works by itself and takes the same answers.
"use strict";
(() => {
  const whole = (text) => (/^(100|\d{1,2})$/.test(text.trim()) ? Number(text) : null);

  // Returns what draws the number again.
  const connect = (box) => {
    const field = box.querySelector("input:not([type=hidden], [type=range])");
    const track = box.querySelector("input[type=range]");
    const note = (fact) => box.querySelector(`[name="${field.name}_${fact}"]`);
    const untouched = track.dataset.untouched;
    const earlier = "earlier" in box.dataset ? Number(box.dataset.earlier) : null;
    let last = whole(field.value);
    let pointing = false;

    const draw = () => {
      const value = whole(field.value);
      const fits = value !== null && value >= Number(track.min) && value <= Number(track.max);
      track.classList.toggle("untouched", !fits);
      track.setAttribute("aria-valuetext", value === null ? untouched : `${value} %`);
      if (fits) track.value = value;
    };
    // A track from 61 to 100, say, covers that part of the line from 0 to 100.
    const cut = (low, high) => {
      if (Number(track.min) === low && Number(track.max) === high) return;
      track.min = low;
      track.max = high;
      track.style.marginLeft = `calc((100% - 1.5rem) * ${low / 100})`;
      track.style.width = `calc((100% - 1.5rem) * ${(high - low) / 100} + 1.5rem)`;
    };
    const settle = (by) => {
      const value = whole(field.value);
      if (value === last) return;
      last = value;
      if (value === null) return;
      note("by").value = by;
      if (note("first").value === "") note("first").value = value;
      note("changes").value = Number(note("changes").value) + 1;
    };
    const take = () => {
      if (field.value !== track.value) field.value = track.value;
      draw();
    };

    field.addEventListener("input", draw);
    field.addEventListener("change", () => settle("typed"));
    track.addEventListener("pointerdown", () => (pointing = true));
    track.addEventListener("keydown", (event) => {
      pointing = false;
      if (!track.classList.contains("untouched")) return;
      // The first key brings the thumb in from an end: a start in the middle would suggest an answer.
      const low = ["ArrowRight", "ArrowUp", "PageUp", "Home"].includes(event.key);
      if (!low && !["ArrowLeft", "ArrowDown", "PageDown", "End"].includes(event.key)) return;
      event.preventDefault();
      track.value = low ? track.min : track.max;
      take();
      settle("track_keys");
    });
    track.addEventListener("input", take);
    track.addEventListener("change", () => {
      take();
      settle(pointing ? "track" : "track_keys");
    });
    // A click on the slider's middle changes no value for the browser, but for the person it is an answer.
    track.addEventListener("click", () => {
      take();
      settle("track");
    });

    const holder = box.closest(".field");
    const name = box.dataset.shownWith;
    const show = () => {
      if (!name) return;
      const chosen = field.form.querySelector(`[name="${name}"]:checked`);
      const needed = chosen !== null && chosen.value !== "same";
      holder.hidden = field.disabled = !needed;
      if (earlier === null || !needed) return;
      if (chosen.value === "lower") cut(0, earlier - 1);
      else cut(earlier + 1, 100);
      draw();
    };
    if (name) for (const choice of field.form.querySelectorAll(`[name="${name}"]`)) choice.addEventListener("change", show);

    if ("prefilled" in box.dataset && note("by").value === "") note("by").value = "prefilled";
    box.querySelector("[data-track]").hidden = false;
    return () => {
      show();
      draw();
    };
  };

  let numbers = [];
  const start = () => {
    numbers = [...document.querySelectorAll("[data-number]")].map(connect);
    for (const draw of numbers) draw();
  };
  // A browser may restore what was entered when the page was left.
  window.addEventListener("pageshow", () => numbers.forEach((draw) => draw()));
  document.addEventListener("hunch:page", start); // A page that came by exchange.
  start();
})();
