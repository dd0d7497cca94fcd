// Says at once that one word is asked for. Without this script the next page says so.
"use strict";
for (const field of document.querySelectorAll("#step-form input[name=word]")) {
  field.addEventListener("input", () => {
    field.setAttribute("aria-invalid", String(/\S\s+\S/.test(field.value)));
  });
}
