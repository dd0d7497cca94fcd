/* The builder: the page that people read follows what is edited, the checker and the sums follow what is typed, and
   cards can be dragged. Without this script the buttons of the page do the same. */
"use strict";
(() => {
  const form = document.getElementById("builder");
  if (!form) return;
  const look = form.querySelector("[data-look]");
  const frame = look.querySelector("[data-look-frame]");
  const say = look.querySelector("[data-look-place]");
  const home = look.parentElement;
  const narrow = window.matchMedia("(max-width: 63.99em)");
  const WAIT = 700; // ms after the last key
  let place = "first";
  let timer = 0;
  let asking = null;
  let changed = false;
  let sent = false;

  const sendAlong = (name, value) => {
    const input = document.createElement("input");
    Object.assign(input, { type: "hidden", name, value });
    form.append(input);
  };
  // What is as the page brought it need not be sent: the file has it already. What was refused is only on the page.
  const isChanged = (one) => {
    if (one.matches("[aria-invalid]")) return true;
    if (one.type === "checkbox") return [...form.elements].some((other) => other.name === one.name && other.checked !== other.defaultChecked);
    if (one.matches("select")) return [...one.options].some((option) => option.selected !== option.defaultSelected && !(one.selectedIndex === 0 && option.index === 0));
    return one.value !== one.defaultValue;
  };
  form.addEventListener("formdata", (event) => {
    const fields = [...form.querySelectorAll(".hunch-field [name]")];
    const kept = new Set(fields.filter(isChanged).map((one) => one.name));
    // Of a text in several languages all boxes are sent, since one alone does not say the others.
    kept.forEach((name) => {
      const box = fields.find((one) => one.name === name).closest(".hunch-build-languages");
      if (box) box.querySelectorAll("[name]").forEach((one) => kept.add(one.name));
    });
    fields.forEach((one) => { if (!kept.has(one.name)) event.formData.delete(one.name); });
  });
  const post = async (more, headers, signal) => {
    const body = new FormData(form);
    Object.entries(more).forEach(([name, value]) => body.set(name, value));
    const answer = await fetch(form.action || window.location.href, { method: "POST", body, headers, signal });
    if (!answer.ok || answer.redirected) throw new Error(String(answer.status));
    return answer.text();
  };
  const show = async (signal) => {
    const html = await post({ look: place }, {}, signal);
    frame.hidden = false;
    frame.srcdoc = html;
    say.textContent = "";
  };
  const check = async (signal) => {
    const parts = document.createElement("div");
    parts.innerHTML = await post({}, { "X-Hunch-Part": "1" }, signal);
    parts.querySelectorAll("[data-live]").forEach((part) => {
      const old = form.querySelector(`[data-live="${part.dataset.live}"]`);
      if (!old) return;
      const wasOpen = old.querySelector("details[open]");
      old.replaceChildren(...part.childNodes);
      if (wasOpen) old.querySelectorAll("details").forEach((one) => { one.open = true; });
    });
  };
  const refresh = async (both) => {
    window.clearTimeout(timer);
    if (asking) asking.abort();
    asking = new AbortController();
    const { signal } = asking;
    try {
      await show(signal);
      if (both) await check(signal);
    } catch (error) {
      if (error.name !== "AbortError") say.textContent = "This cannot be shown now; what you entered is still here.";
    }
  };
  const follow = (element) => {
    const block = element.closest("[data-block]");
    if (!block || block.dataset.block === place) return;
    place = block.dataset.block;
    form.querySelectorAll(".hunch-shown-now").forEach((one) => one.classList.remove("hunch-shown-now"));
    block.classList.add("hunch-shown-now");
    refresh(false);
  };
  form.addEventListener("focusin", (event) => {
    if (!event.target.closest("[data-look]")) follow(event.target);
  });
  form.addEventListener("input", (event) => {
    if (event.target.closest("[data-look]")) return;
    changed = true;
    window.clearTimeout(timer);
    timer = window.setTimeout(() => refresh(true), WAIT);
  });
  form.addEventListener("change", (event) => {
    // Which keys there are depends on it.
    if (!event.target.matches("[data-reload]")) return;
    sendAlong("at", event.target.closest("[id^='at-'][tabindex]").id);
    form.requestSubmit();
  });
  look.addEventListener("change", () => refresh(false));
  form.addEventListener("click", (event) => {
    const button = event.target.closest('button[name="look"]');
    if (!button) return;
    event.preventDefault();
    place = button.value;
    const card = button.closest(".hunch-entry");
    if (narrow.matches && card) card.append(look);
    else home.append(look);
    refresh(false).then(() => look.scrollIntoView({ block: "nearest" }));
  });
  form.addEventListener("submit", () => { sent = true; });
  window.addEventListener("beforeunload", (event) => {
    if (changed && !sent) event.preventDefault();
  });

  // Cards are dragged by a handle and dropped on another card of their list.
  const listOf = (name) => name.replace(/\.\d+$/, "");
  let dragged = "";
  form.querySelectorAll("[data-entry]").forEach((entry) => {
    const orders = entry.querySelector(".hunch-orders");
    if (!orders) return;
    const handle = document.createElement("span");
    handle.className = "hunch-handle";
    handle.textContent = "⠿ drag";
    handle.setAttribute("aria-hidden", "true"); // By keys the buttons move it.
    handle.draggable = true;
    orders.prepend(handle);
    handle.addEventListener("dragstart", (event) => {
      dragged = entry.dataset.entry;
      event.dataTransfer.effectAllowed = "move";
      event.dataTransfer.setData("text/plain", dragged);
    });
    handle.addEventListener("dragend", () => { dragged = ""; });
    const accepts = () => dragged && dragged !== entry.dataset.entry && listOf(dragged) === listOf(entry.dataset.entry);
    entry.addEventListener("dragover", (event) => {
      if (!accepts()) return;
      event.preventDefault();
      event.stopPropagation();
      entry.classList.add("hunch-over");
    });
    entry.addEventListener("dragleave", () => entry.classList.remove("hunch-over"));
    entry.addEventListener("drop", (event) => {
      if (!accepts()) return;
      event.preventDefault();
      event.stopPropagation();
      sendAlong("do", `to:${dragged}:${entry.dataset.entry.split(".").pop()}`);
      form.requestSubmit();
    });
  });
  const focused = form.querySelector("[autofocus]");
  if (focused) focused.focus();
  refresh(false);
})();
