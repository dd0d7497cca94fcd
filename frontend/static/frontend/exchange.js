// Sends an answer and takes the next page in one exchange, in place of loading a document. What was typed stays until the
// server has said that it is stored. A page whose scripts were written for a document of their own (data-exchange =
// "document") is sent in the same way, and the next page is then loaded. Pages also work without this script: their form is
// then sent as any form is.
"use strict";
(() => {
  if (!window.fetch || !window.DOMParser || !window.AbortController) return;
  const HEADER = "X-Hunch-Exchange";
  const PATIENCE = 30000; // ms until a connection counts as broken
  const SCRIPTS = 3000; // ms that a page waits for its scripts. Without them it works, too.
  let busy = false;

  // As a browser sends a form: line breaks are two characters. Attributes are asked for, since a question may be called
  // "action" and would hide the property form.action.
  const fieldsOf = (form, button) => {
    const fields = new URLSearchParams();
    for (const [name, value] of new FormData(form)) fields.append(name, String(value).replace(/\r\n|\r|\n/g, "\r\n"));
    if (button && button.name) fields.append(button.name, button.value);
    return fields;
  };

  const isDocument = (form) => form.getAttribute("data-exchange") === "document";

  // The reply and its text. Throws if the answer may not have arrived.
  const exchange = async (address, fields, whole) => {
    const controller = new AbortController();
    const timer = setTimeout(() => controller.abort(), PATIENCE);
    try {
      const reply = await fetch(address, {
        method: "POST",
        body: fields,
        headers: whole ? {} : { [HEADER]: "1" },
        redirect: whole ? "manual" : "follow",
        credentials: "same-origin",
        signal: controller.signal,
      });
      if (reply.status >= 500 || reply.status === 429) throw new Error(`status ${reply.status}`);
      return [reply, await reply.text()];
    } finally {
      clearTimeout(timer);
    }
  };

  // Each page is an entry of the history, as it is when a document is loaded. The entry of a link inside a page has none.
  const numberOf = (state) => (state && Number.isInteger(state.hunchPage) ? state.hunchPage : null);
  let current = numberOf(history.state) ?? 0;
  history.replaceState({ hunchPage: current }, "");
  window.addEventListener("popstate", (event) => {
    const number = numberOf(event.state);
    if (number !== null && number !== current) location.reload(); // The page shows where the sitting is.
  });

  // The page of the same step once more, with what is to be corrected, takes the place of the one that was sent.
  const isSame = (page) => {
    const [before, after] = [document, page].map((one) => one.querySelector("main").getAttribute("data-step"));
    return before !== null && before === after;
  };

  // A script that comes later would add controls while somebody is among them, and push the one in use out of sight.
  const load = (source) =>
    new Promise((done) => {
      const script = document.createElement("script");
      script.src = source;
      script.onload = done;
      script.onerror = () => {
        script.remove(); // The next page that wants it asks once more.
        done();
      };
      document.head.append(script);
      setTimeout(done, SCRIPTS);
    });
  const loadScripts = async (page, address) => {
    const known = new Set([...document.querySelectorAll("script[src]")].map((script) => script.src));
    const wanted = [...page.querySelectorAll("script[src]")].map((script) => new URL(script.getAttribute("src"), address).href);
    await Promise.all(wanted.filter((source) => !known.has(source)).map(load));
  };

  const show = (page, address, began) => {
    if (isSame(page)) {
      history.replaceState({ hunchPage: current }, "", address);
    } else {
      current += 1;
      history.pushState({ hunchPage: current }, "", address);
    }
    document.title = page.title;
    document.documentElement.lang = page.documentElement.lang;
    document.body.replaceChildren(...page.body.childNodes);
    window.scrollTo(0, 0);
    // A screen reader goes to a new document by itself; here the focus leads it there.
    const first = document.querySelector("[autofocus]") || document.querySelector("h1");
    if (first) {
      // A field can take the focus as it is, and stays among those that Tab leads to.
      if (!first.matches("input, textarea, button, [tabindex]")) first.setAttribute("tabindex", "-1");
      first.focus({ preventScroll: true });
    }
    document.dispatchEvent(new CustomEvent("hunch:page", { detail: { began } }));
  };

  const sendPlainly = (form, button) => {
    form.removeAttribute("data-exchange");
    document.dispatchEvent(new CustomEvent("hunch:unsent")); // So that it counts as not sent yet.
    form.requestSubmit(button);
  };

  const send = async (form, button) => {
    const home = new URL(form.getAttribute("action"), location.href).href;
    // A remark on the question has an address of its own.
    const own = button && button.getAttribute("formaction");
    const address = own ? new URL(own, location.href).href : home;
    const began = performance.now();
    const notice = document.getElementById("unsent");
    const main = document.querySelector("main");
    busy = true;
    main.setAttribute("aria-busy", "true");
    notice.textContent = "";
    notice.hidden = true;
    let reply, text;
    try {
      [reply, text] = await exchange(address, fieldsOf(form, button), isDocument(form));
    } catch {
      busy = false;
      main.removeAttribute("aria-busy");
      notice.textContent = notice.getAttribute("data-words");
      notice.hidden = false;
      notice.scrollIntoView({ block: "nearest" });
      document.dispatchEvent(new CustomEvent("hunch:unsent"));
      return;
    }
    busy = false;
    if (reply.type === "opaqueredirect") {
      location.assign(home);
      return;
    }
    const page = new DOMParser().parseFromString(text, "text/html");
    const next = page.getElementById("step-form");
    if (new URL(reply.url).pathname !== new URL(address).pathname) {
      location.assign(reply.url);
    } else if (isDocument(form) || !page.querySelector("main")) {
      sendPlainly(form, button); // Not one of our pages: the browser shows what it is.
    } else if (next && isDocument(next)) {
      location.assign(home);
    } else {
      busy = true;
      await loadScripts(page, home);
      busy = false;
      show(page, home, began);
    }
  };

  document.addEventListener("submit", (event) => {
    const { target: form, submitter: button } = event;
    if (event.defaultPrevented || !form.hasAttribute("data-exchange")) return;
    if (!("submitter" in event)) return; // An older browser: it would not say which button was pressed.
    event.preventDefault();
    if (!busy) send(form, button);
  });
})();
