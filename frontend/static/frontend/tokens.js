// Lists what somebody may mean who types, under a field that names the file of all tokens (data-tokens), most frequent
// first. The file is the same at every guess and is asked for once, so that neither the list nor the time that it takes
// depends on what comes next. Arrow keys go through the list, Enter takes an entry, Escape closes the list (the pattern
// "combobox" of WAI-ARIA). Without this script a button of the page shows the same list.
"use strict";
(() => {
  const files = new Map(); // Lists of tokens by their addresses, or promises of them.

  const tokensAt = (address) => {
    if (!files.has(address)) {
      const wanted = fetch(address)
        .then((reply) => (reply.ok ? reply.text() : ""))
        .then((text) => (text === "" ? null : text.split("\n")))
        .catch(() => null);
      files.set(address, wanted);
      wanted.then((tokens) => (tokens === null ? files.delete(address) : files.set(address, tokens)));
    }
    return files.get(address);
  };

  // As survey/instruments/next_token/wording.py has them: the page sets the space before a new word.
  const meant = (text, newWord, closing, tokens) => {
    const typed = text.replace(/[\u00a0\u2009\u202f]/g, " ").replace(/^·+/, (dots) => " ".repeat(dots.length));
    if (!newWord || typed === "" || typed.startsWith(" ") || closing.includes(typed[0])) return typed;
    const begins = (beginning) => tokens.some((token) => token.startsWith(beginning) && token.trim() !== "");
    return !begins(` ${typed}`) && begins(typed) ? typed : ` ${typed}`;
  };
  const shown = (token) => token.replace(/^ +/, "");

  const connect = (field) => {
    const words = field.dataset;
    const most = Number(words.most);
    const tick = words.tick ? field.form.querySelector(`[name="${words.tick}"]`) : null;
    const area = document.createElement("div");
    const said = document.createElement("p");
    const list = document.createElement("ul");
    // Where the page itself has a list, no place is kept for this one.
    area.className = field.form.querySelector('[name="choice"]') ? "tokens beside" : "tokens";
    said.className = "hint";
    said.setAttribute("role", "status");
    list.id = `${field.id}_list`;
    list.setAttribute("role", "listbox");
    list.setAttribute("aria-label", words.list);
    list.hidden = true;
    area.append(said, list);
    (tick === null ? field : tick.closest(".field")).after(area);
    for (const [name, value] of [["role", "combobox"], ["aria-autocomplete", "list"], ["aria-expanded", "false"], ["aria-controls", list.id]]) {
      field.setAttribute(name, value);
    }
    let active = -1; // The place in the list of the token that Enter takes.
    let listed = []; // The tokens of the list.

    const options = () => [...list.children];
    const mark = (place) => {
      const all = options();
      if (active >= 0 && active < all.length) all[active].setAttribute("aria-selected", "false");
      active = place;
      if (active < 0) {
        field.removeAttribute("aria-activedescendant");
        return;
      }
      all[active].setAttribute("aria-selected", "true");
      field.setAttribute("aria-activedescendant", all[active].id);
      // Within the list alone: the page stays where it is.
      const { offsetTop: top, offsetHeight: height } = all[active];
      if (top < list.scrollTop) list.scrollTop = top;
      else if (top + height > list.scrollTop + list.clientHeight) list.scrollTop = top + height - list.clientHeight;
    };
    const setOpen = (open) => {
      mark(-1);
      list.hidden = !open;
      field.setAttribute("aria-expanded", String(open));
    };
    const close = () => setOpen(false);

    const fill = () => {
      const tokens = files.get(words.tokens);
      mark(-1);
      if (!Array.isArray(tokens) || field.value === "") {
        list.replaceChildren();
        said.textContent = "";
        close();
        return;
      }
      const beginning = meant(field.value, tick !== null && tick.checked, words.closing, tokens);
      listed = [];
      for (const token of tokens) {
        if (listed.length === most) break;
        if (token.startsWith(beginning) && token.trim() !== "") listed.push(token);
      }
      const fits = listed.length > 0;
      if (!fits) {
        const known = new Set(tokens);
        for (let end = beginning.length - 1; end > 0; end -= 1) {
          const part = beginning.slice(0, end);
          if (part.trim() !== "" && known.has(part)) listed.push(part);
        }
      }
      list.replaceChildren(
        ...listed.map((token, place) => {
          const option = document.createElement("li");
          option.id = `${list.id}_${place}`;
          option.setAttribute("role", "option");
          option.setAttribute("aria-selected", "false");
          option.textContent = shown(token);
          return option;
        }),
      );
      list.scrollTop = 0;
      said.textContent = fits ? words.found : listed.length > 0 ? words.parts : words.none;
      setOpen(listed.length > 0);
    };

    const take = (place) => {
      const token = listed[place];
      field.value = tick !== null && /^ [^ ]/.test(token) ? token.slice(1) : token;
      if (tick !== null) tick.checked = token.startsWith(" ");
      field.setSelectionRange(field.value.length, field.value.length);
      said.textContent = "";
      close();
    };

    field.addEventListener("input", fill);
    if (tick !== null) tick.addEventListener("change", fill);
    field.addEventListener("blur", close);
    field.addEventListener("keydown", (event) => {
      if (event.isComposing || event.ctrlKey || event.metaKey) return;
      const last = list.children.length - 1;
      const down = event.key === "ArrowDown";
      if (down || event.key === "ArrowUp") {
        event.preventDefault();
        if (event.altKey && !down) {
          close();
          return;
        }
        if (list.hidden) fill();
        if (list.hidden || event.altKey) return;
        // From the field to the first or the last token, and beyond these back to the field.
        if (down) mark(active === last ? -1 : active + 1);
        else mark(active < 0 ? last : active - 1);
      } else if (event.key === "Enter" && active >= 0) {
        event.preventDefault(); // Takes the token; Enter once more sends the page.
        take(active);
      } else if (event.key === "Escape" && !list.hidden) {
        event.preventDefault();
        close();
      } else if (["ArrowLeft", "ArrowRight", "Home", "End"].includes(event.key)) {
        mark(-1);
      }
    });
    // The focus stays in the field while somebody points at the list.
    list.addEventListener("mousedown", (event) => event.preventDefault());
    list.addEventListener("click", (event) => {
      const option = event.target.closest("[role=option]");
      if (option) take(options().indexOf(option));
    });

    Promise.resolve(tokensAt(words.tokens)).then(() => {
      // What was typed before the tokens were there.
      if (document.activeElement === field && field.value !== "") fill();
    });
  };

  const start = () => {
    for (const field of document.querySelectorAll("input[data-tokens]:not([role])")) connect(field);
  };
  document.addEventListener("hunch:page", start); // A page that came by exchange.
  start();
})();
