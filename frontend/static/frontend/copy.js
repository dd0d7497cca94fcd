// A button next to the completion code that copies it. Without this script, or where a browser has no clipboard for pages,
// there is no button, and the code can be marked as any text.
"use strict";
(() => {
  if (!navigator.clipboard) return;
  const start = () => {
    for (const button of document.querySelectorAll("[data-copy][hidden]")) {
      const [code, said] = ["[data-code]", "[role=status]"].map((name) => button.parentElement.querySelector(name));
      button.hidden = false;
      button.addEventListener("click", async () => {
        try {
          await navigator.clipboard.writeText(code.textContent.trim());
          said.textContent = button.dataset.copy;
        } catch {
          getSelection().selectAllChildren(code); // Not allowed here: it is marked, ready to be copied by hand.
        }
      });
    }
  };
  document.addEventListener("hunch:page", start); // A page that came by exchange.
  start();
})();
