"""How exactly reading times are measured in a browser: headless Chromium against a scripted clock.

    python -m benchmarks.reading_timing --words 400 --interval 300

A passage is read in Chromium by presses of the space bar that a script dispatches at times of its own, each a fixed
interval after the one before it. The times that the page sends are compared with the times at which the script pressed:
by the browser's own clock where the press was made inside the browser, and by this machine's monotonic clock where it
came through the browser's remote control. The error of a word is the time that was sent less the time between the two
presses. Printed are the median and the 95th percentile of its size, in milliseconds.
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

PORT = 8853
READ = """async ({ interval, count }) => {
  const view = document.querySelector("[data-window]");
  const presses = [];
  const press = () => {
    // The time stamp of an event is made when it is created: the clock is read just before and after.
    const before = performance.now();
    const event = new KeyboardEvent("keydown", { key: " ", code: "Space", bubbles: true, cancelable: true });
    const after = performance.now();
    presses.push((before + after) / 2);
    view.dispatchEvent(event);
  };
  const begin = performance.now() + 200;
  for (let number = 0; number < count; number += 1) {
    const due = begin + number * interval;
    await new Promise((done) => setTimeout(done, Math.max(0, due - performance.now())));
    if (number === count - 1) window.sent = new Promise((done) => {
      document.getElementById("step-form").addEventListener("submit", (event) => {
        event.preventDefault();
        event.stopImmediatePropagation();
        done(document.querySelector("[name=times]").value);
      }, { capture: true });
    });
    press();
  }
  return { presses, times: await window.sent };
}"""
CATCH = """() => { window.sent = new Promise((done) => {
  document.getElementById("step-form").addEventListener("submit", (event) => {
    event.preventDefault();
    event.stopImmediatePropagation();
    done(document.querySelector("[name=times]").value);
  }, { capture: true });
}); }"""


def prepare(words: int) -> None:
    """A database with an open study of passages that have so many words."""
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    folder = Path(os.environ["HUNCH_VAR"])
    with (folder / "passages.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(("id", "source", "text", "question", "answer"))
        for number in range(2):
            table.writerow((f"t{number}", "s", " ".join(["word"] * words), f"Is this {number}?", "yes"))
    call_command("import_questions", str(folder / "passages.csv"), bank="timing", format="passages", verbosity=0)
    study = folder / "timing.toml"
    study.write_text(
        'seed = 1\nslug = "timing"\ntitle = "Timing"\nbank = "timing"\n[instrument]\nkind = "self_paced_reading"\n'
        "[candidates]\nsize = 2\n[roles]\nholdout = 0\ncontrols = 0\n[sitting]\nitems = 1\n[[stages]]\nsittings = 2\n"
        '[[blocks]]\nkind = "consent"\ntext = "Yes?"\nversion = "1"\n[[blocks]]\nkind = "items"\n'
        '[[blocks]]\nkind = "end"\ntext = "Thanks."\n[data]\nretention_until = 2099-12-31\n[panel]\nkind = "open"\n'
        '[texts]\nwelcome = "Welcome."\nminutes = 1\n',
        encoding="utf-8",
    )
    call_command("create_study", str(study), verbosity=0)
    call_command("plan_stage", "timing", "1", verbosity=0)
    call_command("open_stage", "timing", verbosity=0)


def to_passage(page: Any) -> None:
    page.goto(f"http://127.0.0.1:{PORT}/s/timing/")
    page.locator("[data-action=begin]").click()
    page.locator("#consent-yes").click()
    page.locator("[data-start]").click()
    page.wait_for_selector("[data-window].running")


def errors(times: str, presses: np.ndarray) -> np.ndarray:
    """Milliseconds by which each word's time differs from the script's."""
    return np.array(times.split(), dtype=np.float64) - np.diff(presses)


def show(name: str, differences: np.ndarray) -> None:
    size = np.abs(differences)
    print(
        f"{name:48} {len(differences):6} words   median {np.median(size):6.2f} ms   95 % "
        f"{np.quantile(size, 0.95):6.2f} ms   "
        f"largest {size.max():7.2f} ms   mean {differences.mean():+.3f} ms",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--words", type=int, default=200)
    parser.add_argument("--interval", type=float, default=300.0, help="ms between two presses")
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"HUNCH_VAR": folder, "DJANGO_SETTINGS_MODULE": "survey.settings", "HUNCH_LOG_LEVEL": "ERROR"}
        os.environ |= {"HUNCH_DEBUG": "true", "DEBUG": "true"}
        prepare(arguments.words)
        server = subprocess.Popen(
            [sys.executable, "manage.py", "runserver", f"127.0.0.1:{PORT}", "--noreload", "--insecure"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            measure(arguments)
        finally:
            server.terminate()
            server.wait()


def measure(arguments: argparse.Namespace) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=arguments.chromium, args=["--no-sandbox"])
        for _try in range(120):
            try:
                browser.new_page().goto(f"http://127.0.0.1:{PORT}/healthz")
                break
            except Exception:  # The server is not there yet.
                time.sleep(0.5)
        page = browser.new_context().new_page()
        to_passage(page)
        recorded = page.evaluate(READ, {"interval": arguments.interval, "count": arguments.words + 1})
        show("a clock inside the browser", errors(recorded["times"], np.array(recorded["presses"])))
        page = browser.new_context().new_page()
        to_passage(page)
        page.evaluate(CATCH)
        presses, begin = [], time.perf_counter() + 0.2
        for number in range(arguments.words + 1):
            time.sleep(max(0.0, begin + number * arguments.interval / 1000 - time.perf_counter()))
            before = time.perf_counter()
            page.keyboard.down("Space")
            presses.append(500 * (before + time.perf_counter()))
            page.keyboard.up("Space")
        show("a clock outside, keys by remote control", errors(page.evaluate("window.sent"), np.array(presses)))
        browser.close()


if __name__ == "__main__":
    main()
