// How long a screen was looked at, in hidden fields of its form, and one submission for a double click. Nothing depends on it.
"use strict";
(() => {
  const form = document.getElementById("step-form");
  if (!form) return;
  const now = () => Math.round(performance.now());
  const inputs = [...form.querySelectorAll("input:not([type=hidden]), textarea, select")];
  const facts = { shown_ms: now(), first_touch_ms: "", submitted_ms: "", hidden_ms: 0, focus_losses: 0, changes: 0, first_value: "" };
  let hiddenSince = document.hidden ? now() : null;
  let sent = false;

  const touched = () => {
    if (facts.first_touch_ms === "") facts.first_touch_ms = now();
  };
  for (const input of inputs) {
    for (const kind of ["pointerdown", "keydown"]) input.addEventListener(kind, touched);
    input.addEventListener("input", touched);
    input.addEventListener("change", () => {
      facts.changes += 1;
      if (facts.first_value === "" && /^\d+$/.test(input.value.trim())) facts.first_value = input.value.trim();
    });
  }
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) hiddenSince = now();
    else if (hiddenSince !== null) {
      facts.hidden_ms += now() - hiddenSince;
      hiddenSince = null;
    }
  });
  window.addEventListener("blur", () => {
    facts.focus_losses += 1;
  });
  window.addEventListener("pageshow", () => {
    sent = false;
    form.querySelector("button").removeAttribute("aria-disabled");
  });
  form.addEventListener("submit", (event) => {
    if (sent) {
      event.preventDefault();
      return;
    }
    sent = true;
    facts.submitted_ms = now();
    for (const [name, value] of Object.entries(facts)) {
      const field = form.elements.namedItem(`client_${name}`);
      if (field) field.value = value;
    }
    form.querySelector("button").setAttribute("aria-disabled", "true");
  });
})();
