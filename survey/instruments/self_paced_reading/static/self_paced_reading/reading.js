// The moving window. Each press of the space bar, or tap, shows the next word and hides the one before. A word's time is
// from the press that showed it to the next one, by the time stamps of these events, which are those of performance.now().
// What could make the times wrong is marked and sent with them.
"use strict";
(() => {
  const box = document.querySelector("[data-reading]");
  const form = document.getElementById("step-form");
  if (!box || !form) return;
  const [start, view, said] = ["start", "window", "said"].map((name) => box.querySelector(`[data-${name}]`));
  const words = [...view.querySelectorAll("[data-part=passage] span")];
  const field = (name) => form.querySelector(`[name="${name}"]`);
  const buttons = [...form.querySelectorAll("button[type=submit]")];
  const LONGEST = 60000; // ms that a word may have
  const APART = 1000; // ms by which two clocks may differ
  const OLD = 5000; // ms that an event may have waited
  const nonce = [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  const place = `${location.pathname} ${field("step").value}`;
  const marks = new Set();
  const means = new Set();
  const presses = []; // When each word was called, and when the last one was left.
  let running = false;
  let shownAt = 0; // When the dashes were shown.
  let wall = 0; // How far the clock of the day is ahead of the other one.

  // Two windows of one browser tell each other; the server knows of others.
  const channel = "BroadcastChannel" in window ? new BroadcastChannel("hunch reading") : null;
  const tell = (kind) => channel && channel.postMessage({ kind, place, nonce });
  if (channel) {
    channel.addEventListener("message", ({ data }) => {
      if (!running || data.place !== place || data.nonce === nonce) return;
      marks.add("second_window");
      if (data.kind === "begun") tell("here");
    });
  }

  const mark = (name) => {
    if (running) marks.add(name);
  };
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) mark("background");
  });
  for (const kind of ["freeze", "pagehide"]) window.addEventListener(kind, () => mark("background"));
  window.addEventListener("blur", () => mark("focus"));
  window.addEventListener("pageshow", (event) => {
    if (event.persisted) location.reload(); // A page from the browser's memory would go on where it was.
  });

  const checkClocks = () => {
    if (Math.abs(Date.now() - performance.now() - wall) > APART) mark("clock");
  };

  // An event's own time, if it can be right.
  const timeOf = (event) => {
    const now = performance.now();
    const last = presses.length ? presses[presses.length - 1] : shownAt;
    if (event.timeStamp <= now + 1 && event.timeStamp > now - OLD && event.timeStamp >= last) return event.timeStamp;
    mark("clock");
    return Math.max(now, last);
  };

  const finish = () => {
    running = false;
    if (channel) channel.close();
    const times = presses.slice(1).map((time, number) => Math.round(time - presses[number]));
    if (times.some((time) => time > LONGEST)) marks.add("pause");
    field("times").value = times.map((time) => Math.min(time, LONGEST)).join(" ");
    field("nonce").value = nonce;
    field("lead_ms").value = Math.round(presses[0] - shownAt);
    field("means").value = means.size > 1 ? "both" : [...means][0];
    field("marks").value = [...marks].join(" ");
    for (const button of buttons) button.hidden = false;
    form.requestSubmit(buttons[0]);
  };

  const press = (event, by) => {
    if (!running) return;
    event.preventDefault();
    if (event.repeat) return; // A key that is held down.
    const time = timeOf(event);
    checkClocks();
    means.add(by);
    presses.push(time);
    const number = presses.length - 1;
    if (number > 0) words[number - 1].classList.add("masked");
    if (number === words.length) {
      finish();
      return;
    }
    words[number].classList.remove("masked");
    words[number].scrollIntoView({ block: "nearest" });
  };

  document.addEventListener("keydown", (event) => {
    if (event.code !== "Space" && event.key !== " ") return;
    if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return;
    // In the field for remarks, and on a button, the space bar does what it always does.
    if (event.target !== view && event.target.closest("input, textarea, select, button, summary, a")) return;
    press(event, "key");
  });
  view.addEventListener("pointerdown", (event) => {
    if (event.isPrimary && event.button === 0) press(event, "tap");
  });

  const begin = async () => {
    start.disabled = true;
    said.hidden = true;
    const fields = new URLSearchParams({ opened: nonce });
    for (const name of ["csrfmiddlewaretoken", "step"]) fields.append(name, field(name).value);
    let reply = null;
    try {
      reply = await fetch(form.getAttribute("data-beacon"), { method: "POST", body: fields, credentials: "same-origin" });
    } catch {
      // Said below.
    }
    if (reply !== null && reply.status === 409) {
      location.reload(); // The sitting is elsewhere by now.
      return;
    }
    if (reply === null || !reply.ok) {
      start.disabled = false;
      said.textContent = box.getAttribute("data-failed");
      said.hidden = false;
      return;
    }
    start.closest("p").hidden = true;
    box.querySelector("[data-before]").hidden = true;
    for (const word of words) word.classList.add("masked");
    view.hidden = false;
    view.classList.add("running");
    view.focus();
    running = true;
    shownAt = performance.now();
    wall = Date.now() - shownAt;
    if (document.hidden) mark("background");
    tell("begun");
  };

  for (const button of buttons) button.hidden = true;
  // A window that has begun a passage once does not begin it again by a second click.
  start.addEventListener("click", begin);
  start.hidden = false;
})();
