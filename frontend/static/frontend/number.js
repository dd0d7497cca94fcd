// Connects a number's field with a slider that has no thumb until it is touched, shows the number, and notes how it was
// entered. Without this script the field works by itself and takes the same answers.
"use strict";
(() => {
  const whole = (text) => (/^(100|\d{1,2})$/.test(text.trim()) ? Number(text) : null);

  // Returns what draws the number anew.
  const connect = (box) => {
    const field = box.querySelector("input:not([type=hidden], [type=range])");
    const track = box.querySelector("input[type=range]");
    const note = (fact) => box.querySelector(`[name="${field.name}_${fact}"]`);
    const untouched = track.dataset.untouched;
    let last = whole(field.value);
    let pointing = false;

    const draw = () => {
      const value = whole(field.value);
      track.classList.toggle("untouched", value === null);
      track.setAttribute("aria-valuetext", value === null ? untouched : `${value} %`);
      if (value !== null) track.value = value;
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
    track.addEventListener("keydown", () => (pointing = false));
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
    };
    if (name) for (const choice of field.form.querySelectorAll(`[name="${name}"]`)) choice.addEventListener("change", show);

    if ("prefilled" in box.dataset && note("by").value === "") note("by").value = "prefilled";
    box.querySelector("[data-track]").hidden = false;
    return () => {
      draw();
      show();
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
