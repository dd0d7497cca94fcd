/* The editor of a study file: line numbers, and what the checker finds while somebody types. Without this script the
   page's "Check" button does the same. */
"use strict";
document.querySelectorAll(".hunch-editor").forEach((editor) => {
  const text = editor.querySelector("textarea");
  const gutter = editor.querySelector("[data-gutter]");
  const form = text.form;
  const findings = form.querySelector("[data-findings]");
  const WAIT = 700; // ms after the last key
  let marked = new Map();
  let asking = null;
  let timer = 0;

  const number = () => {
    const count = text.value.split("\n").length;
    const lines = [];
    for (let line = 1; line <= count; line += 1) {
      lines.push(`${marked.has(line) ? (marked.get(line) === "problem" ? "✗ " : "• ") : ""}${line}`);
    }
    gutter.textContent = lines.join("\n");
    gutter.scrollTop = text.scrollTop;
  };
  const mark = () => {
    marked = new Map();
    findings.querySelectorAll("[data-line]").forEach((link) => {
      const line = Number(link.dataset.line);
      const level = link.closest("li").classList.contains("hunch-problem") ? "problem" : "remark";
      if (marked.get(line) !== "problem") marked.set(line, level);
    });
    number();
  };
  const check = async () => {
    if (asking) asking.abort();
    asking = new AbortController();
    const body = new FormData();
    body.append("csrfmiddlewaretoken", form.querySelector("[name=csrfmiddlewaretoken]").value);
    body.append("text", text.value);
    body.append("study", editor.dataset.study);
    try {
      const answer = await fetch(editor.dataset.check, { method: "POST", body, signal: asking.signal });
      if (!answer.ok || answer.redirected) throw new Error(String(answer.status));
      findings.innerHTML = await answer.text();
      mark();
    } catch (error) {
      if (error.name !== "AbortError") {
        findings.textContent = "The checker cannot be reached now. Press “Check” to try again; your text is still here.";
      }
    }
  };
  text.addEventListener("input", () => {
    number();
    window.clearTimeout(timer);
    timer = window.setTimeout(check, WAIT);
  });
  text.addEventListener("scroll", () => { gutter.scrollTop = text.scrollTop; });
  findings.addEventListener("click", (event) => {
    const link = event.target.closest("[data-line]");
    if (!link) return;
    event.preventDefault();
    const lines = text.value.split("\n");
    const wanted = Number(link.dataset.line);
    const start = lines.slice(0, wanted - 1).reduce((sum, line) => sum + line.length + 1, 0);
    text.focus();
    text.setSelectionRange(start, start + (lines[wanted - 1] || "").length);
    const height = text.scrollHeight / lines.length;
    text.scrollTop = Math.max(0, (wanted - 5) * height);
  });
  let sent = false;
  form.addEventListener("submit", () => { sent = true; });
  window.addEventListener("beforeunload", (event) => {
    if (!sent && text.value !== text.defaultValue) event.preventDefault();
  });
  editor.classList.add("hunch-numbered");
  mark();
});
