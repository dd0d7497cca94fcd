// Keeps what somebody has entered, so that a reload of the page loses nothing. It stays in this tab of the browser, for this
// sitting and this page alone (data-kept), is never sent by this script, and is gone as soon as the page is sent or another
// page is shown. Pages also work without this script.
"use strict";
(() => {
  const PREFIX = "hunch:";
  let form = null;
  let key = "";

  // What people enter, and what number.js notes next to a number. Never what is filled in otherwise, such as times.
  const fields = () =>
    [...form.querySelectorAll("input[name]:not([type=hidden]), textarea[name], select[name], [data-number] input[type=hidden]")];
  const isChoice = (field) => field.type === "radio" || field.type === "checkbox";

  const stored = (task) => {
    try {
      return task(window.sessionStorage);
    } catch {
      return null; // This browser keeps nothing for pages.
    }
  };
  const save = () => {
    const entered = fields().map((field) => [field.name, field.value, isChoice(field) ? field.checked : null]);
    stored((storage) => storage.setItem(key, JSON.stringify(entered)));
  };
  const forget = () => stored((storage) => storage.removeItem(key));

  const restore = () => {
    const entered = stored((storage) => JSON.parse(storage.getItem(key)));
    if (!Array.isArray(entered)) return;
    for (const field of fields()) {
      const choice = isChoice(field);
      const match = entered.find(([name, value]) => name === field.name && (!choice || value === field.value));
      if (!match) continue;
      if (choice) field.checked = match[2];
      else field.value = match[1];
    }
  };

  // Called for the document's page, and for each page that comes by exchange; before the scripts of a page's fields.
  const start = () => {
    form = document.getElementById("step-form");
    key = form && form.hasAttribute("data-kept") ? PREFIX + form.getAttribute("data-kept") : "";
    stored((storage) => {
      for (const name of Object.keys(storage)) if (name.startsWith(PREFIX) && name !== key) storage.removeItem(name);
    });
    if (key) restore();
  };

  for (const kind of ["input", "change", "click"]) {
    document.addEventListener(kind, (event) => {
      if (key && form.contains(event.target) && event.target.closest("input, textarea, select, label")) save();
    });
  }
  document.addEventListener("submit", (event) => {
    if (key && event.target === form) forget();
  });
  document.addEventListener("hunch:unsent", () => {
    if (key) save();
  });
  document.addEventListener("hunch:page", start);
  start();
})();
