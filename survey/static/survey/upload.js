/* Says that a file is too large before it is sent. Without this script the server says so. */
"use strict";
document.querySelectorAll("form[data-upload]").forEach((form) => {
  const field = form.querySelector("input[type=file]");
  const note = form.querySelector("[data-too-large]");
  const largest = Number(field.dataset.largest);
  const look = () => {
    const file = field.files[0];
    const large = Boolean(file && file.size > largest);
    note.hidden = !large;
    note.textContent = large
      ? `${file.name} has ${file.size.toLocaleString("en")} bytes; at most ${largest.toLocaleString("en")} are taken. Split the table, or leave columns out.`
      : "";
    return large;
  };
  field.addEventListener("change", look);
  form.addEventListener("submit", (event) => {
    if (look()) {
      event.preventDefault();
      field.focus();
    }
  });
});
