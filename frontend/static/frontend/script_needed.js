// For studies that cannot do without scripts: shows what is there only for browsers that run them, and says so with the
// consent.
"use strict";
(() => {
  for (const part of document.querySelectorAll("[data-with-script]")) part.hidden = false;
  for (const field of document.querySelectorAll('input[name="script"]')) field.value = "1";
})();
