// The study page: lets its clock run between two refreshes, keeps what is shown when a refresh fails, and unfolds the
// part that a link on the page leads to.
(() => {
  const inWords = (seconds) => (seconds < 120 ? `${seconds} s ago` : `${Math.floor(seconds / 60)} min ago`);
  let shownAt = Date.now();
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.xhr.getResponseHeader("X-Hunch-Live")) return;
    event.detail.shouldSwap = false; // An error, or the page to log in: the old picture stays, and its clock goes on.
    if (new URL(event.detail.xhr.responseURL || location.href, location.href).pathname.includes("/login/")) location.reload();
  });
  document.addEventListener("htmx:beforeSwap", () => {
    const open = new Set([...document.querySelectorAll("#live details[open]")].map((one) => one.id));
    const opened = () => open.forEach((id) => document.getElementById(id)?.setAttribute("open", ""));
    document.addEventListener("htmx:afterSwap", opened, { once: true });
  });
  document.addEventListener("htmx:afterSwap", () => { shownAt = Date.now(); });
  const unfold = () => {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    const fold = target && target.closest("details");
    if (!fold || fold.open) return;
    fold.open = true;
    target.scrollIntoView();
  };
  // Tabs: the part that the address names, or that holds what it names, is shown alone.
  const tabs = [...document.querySelectorAll(".hunch-tab")];
  const show = () => {
    const named = location.hash && document.getElementById(location.hash.slice(1));
    const shown = (named && named.closest(".hunch-tab")) || tabs[0];
    tabs.forEach((tab) => { tab.hidden = tab !== shown; });
    document.querySelectorAll("[data-tabs] a").forEach((link) => {
      if (link.hash === `#${shown.id}`) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    });
    if (named && named !== shown) named.scrollIntoView();
    unfold();
  };
  addEventListener("hashchange", show);
  if (tabs.length) show();
  document.querySelectorAll("[data-copy]").forEach((button) => {
    if (!navigator.clipboard) return;
    button.hidden = false;
    button.addEventListener("click", () => navigator.clipboard.writeText(button.dataset.copy).then(() => { button.textContent = "Copied"; }));
  });
  setInterval(() => {
    const clock = document.querySelector("[data-hunch-age]");
    if (clock) clock.textContent = inWords(Number(clock.dataset.hunchAge) + Math.round((Date.now() - shownAt) / 1000));
  }, 1000);
})();
