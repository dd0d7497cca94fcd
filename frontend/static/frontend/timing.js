// Puts the time that a screen was looked at into hidden fields of its form, and sends a double click once. A screen that
// is left without being sent is reported to the server, without what was typed. Pages also work without this script.
"use strict";
(() => {
  let form = null;
  let began = 0; // When the page was asked for, in ms since the document was.
  let facts = {};
  let hiddenSince = null;
  let sent = false;
  const now = () => Math.round(performance.now() - began);
  // Use attributes and selectors: a question named "elements" or "dataset" would hide the property form.elements.
  const named = (name) => form.querySelector(`[name="${name}"]`);

  const touched = () => {
    if (facts.first_touch_ms === "") facts.first_touch_ms = now();
  };
  const countHidden = () => {
    if (hiddenSince !== null) facts.hidden_ms += now() - hiddenSince;
    hiddenSince = document.hidden ? now() : null;
  };
  const sendOnce = (event) => {
    if (sent) {
      event.preventDefault();
      return;
    }
    sent = true;
    facts.submitted_ms = now();
    countHidden();
    for (const [name, value] of Object.entries(facts)) {
      const field = named(`client_${name}`);
      if (field) field.value = value;
    }
    form.querySelector("button").setAttribute("aria-disabled", "true");
  };
  const sendAgain = () => {
    sent = false;
    if (form) form.querySelector("button").removeAttribute("aria-disabled");
  };

  // Called for the document's page, and for each page that comes by exchange.
  const start = (asked) => {
    form = document.getElementById("step-form");
    began = asked;
    sent = false;
    hiddenSince = document.hidden ? now() : null;
    facts = {
      shown_ms: now(),
      first_touch_ms: "",
      submitted_ms: "",
      hidden_ms: 0,
      focus_losses: 0,
      copies: 0,
      pastes: 0,
      changes: 0,
      first_value: "",
    };
    if (!form) return;
    for (const input of form.querySelectorAll("input:not([type=hidden]), textarea, select")) {
      for (const kind of ["pointerdown", "keydown"]) input.addEventListener(kind, touched);
      input.addEventListener("input", touched);
      input.addEventListener("change", () => {
        facts.changes += 1;
        if (facts.first_value === "" && /^\d+$/.test(input.value.trim())) facts.first_value = input.value.trim();
      });
    }
    form.addEventListener("submit", sendOnce);
  };

  document.addEventListener("visibilitychange", countHidden);
  for (const [kind, name] of [["copy", "copies"], ["cut", "copies"], ["paste", "pastes"]]) {
    document.addEventListener(kind, () => {
      facts[name] += 1;
    });
  }
  window.addEventListener("blur", () => {
    facts.focus_losses += 1;
  });
  window.addEventListener("pageshow", sendAgain);
  document.addEventListener("hunch:unsent", sendAgain);
  document.addEventListener("hunch:page", (event) => start(event.detail.began));
  window.addEventListener("pagehide", () => {
    const beacon = form && form.getAttribute("data-beacon");
    if (sent || !navigator.sendBeacon || !beacon) return;
    countHidden();
    const word = new FormData();
    for (const name of ["csrfmiddlewaretoken", "step"]) word.append(name, named(name).value);
    for (const [name, value] of Object.entries(facts)) word.append(`client_${name}`, value);
    navigator.sendBeacon(beacon, word);
  });
  start(0);
})();
