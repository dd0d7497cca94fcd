"""A person in a real browser, who looks at each page in every layout and colour scheme that a reader may need."""

import re
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

from axe_playwright_python.base import AXE_SCRIPT
from django.conf import settings
from playwright.sync_api import TimeoutError as TooLate

from frontend.cookies import SITTING
from survey.models import Sitting
from tests.browsing import Browser

NARROW, ZOOMED = {"width": 320, "height": 640}, {"width": 320, "height": 256}  # 1280 x 1024 at 400 % is 320 x 256
SPACED = (
    "* { line-height: 1.5 !important; letter-spacing: .12em !important; word-spacing: .16em !important; }"
    "p { margin-bottom: 2em !important; }"
)
LAYOUTS = {"320 px": (NARROW, ""), "400 %": (ZOOMED, ""), "text spacing": (NARROW, SPACED)}
HEAVIEST = 50_000


def only_violations(*tags: str) -> dict[str, Any]:
    return {"runOnly": {"type": "tag", "values": tags}, "resultTypes": ["violations"]}


RULES = only_violations("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")


def only(*rules: str) -> dict[str, Any]:
    return {"runOnly": {"type": "rule", "values": rules}, "resultTypes": ["violations"]}


# What depends on the colour scheme; on the layout; on the words alone, for another language of pages that RULES saw.
COLOURS = only("color-contrast")
SIZES = only("target-size", "scrollable-region-focusable")
WORDS = only(
    *("document-title", "html-has-lang", "html-lang-valid", "valid-lang", "empty-heading", "summary-name"),
    *("button-name", "link-name", "label", "aria-input-field-name", "target-size", "scrollable-region-focusable"),
)
IN_ENGLISH: dict[str, Any] = {}
IN_ANOTHER_LANGUAGE: dict[str, Any] = {"layouts": ["text spacing"], "schemes": ["light"], "rules": WORDS}
AXE = """async rules => (await axe.run(rules)).violations.map(
  found => `${found.id}: ${found.nodes.map(node => node.target + " " + node.failureSummary).join("; ")}`)"""
# In a style that belongs to the reader and not to the page. Made in this way, the content policy does not apply to it.
RESTYLE = """css => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(css);
  document.adoptedStyleSheets = css ? [sheet] : [];
}"""
# The page's width in that style, and what axe finds.
LOOK = f"""async ([css, rules]) => {{
  ({RESTYLE})(css);
  return [document.documentElement.scrollWidth, await ({AXE})(rules)];
}}"""
FACTS = """() => ({
  lang: document.documentElement.lang,
  headings: [...document.querySelectorAll("h1")].map(heading => heading.innerText.trim()),
  title: document.title,
  problem: document.querySelector(".error-summary li") !== null,
})"""
# Of the page that is shown: its document or the exchange that it came by, and all that it loaded next to that.
WEIGHT = """() => {
  const loaded = performance.getEntriesByType("resource").filter(entry => entry.initiatorType !== "beacon");
  const isExchange = entry => entry.initiatorType === "fetch" && !entry.name.includes("/tokens/");
  const page = loaded.filter(isExchange).at(-1) ?? performance.getEntriesByType("navigation")[0];
  const others = loaded.filter(entry => !isExchange(entry));
  return [page, ...others].reduce((sum, entry) => sum + entry.decodedBodySize, 0);
}"""
# The options of each group of them, and whether one says that the answer stays the same.
OPTIONS = """groups => groups.map(group => [
  [...group.querySelectorAll("label[data-option]")].map(label => label.innerText),
  group.querySelector("input[value=same]") !== null,
])"""
TYPED = "input:visible:not([type=radio], [type=checkbox], [type=range])"
FIELDS = f"#step-form {TYPED}, #step-form textarea:visible"
ICON = settings.BASE_DIR / "frontend/static/frontend/icon.svg"
PROBLEM = {"en": "There is a problem", "de": "Etwas stimmt nicht"}
CONTINUE = {"en": "Continue", "de": "Weiter"}
AGREE = {"en": "I agree and take part", "de": "Ich willige ein und nehme teil"}
# What `cast.open_study` takes for a study of nothing but items, in both languages.
IN_TWO_LANGUAGES: dict[str, Any] = {
    "roles": {"holdout": 0, "controls": 0},
    "texts": {"languages": ["en", "de"], "welcome": {"en": "Welcome.", "de": "Willkommen."}, "minutes": 3},
    "blocks": [
        {"kind": "consent", "text": {"en": "Do you agree?", "de": "Stimmen Sie zu?"}, "version": "1"},
        {"kind": "items"},
        {"kind": "end", "text": {"en": "Thanks.", "de": "Danke."}},
    ],
}


def looks_in(language: str) -> dict[str, Any]:
    """How a visitor looks at pages that tests show in English too: in another language at what depends on the words, in
    the layout that leaves them the least room."""
    return IN_ENGLISH if language == "en" else IN_ANOTHER_LANGUAGE


def use_axe(page: Any) -> None:
    """Load it, unless this document has it: an exchange keeps the document."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)


def sit_down(page: Any, root: str, sitting: Sitting) -> None:
    """Open a sitting where it is, for tests that are not about the way to there."""
    address = urlsplit(root)
    path = sitting.stage.study.get_absolute_url()
    cookie = {"name": SITTING, "value": sitting.token, "domain": address.hostname, "path": path, "sameSite": "Lax"}
    page.context.add_cookies([{**cookie, "httpOnly": True}])
    page.goto(f"{root}{path}sitting")


def settle(page: Any) -> None:
    """Wait for the page that an answer leads to, whether it is loaded or comes by exchange."""
    page.wait_for_load_state()
    page.wait_for_selector("main:not([aria-busy])")


class Visitor:
    """A person with a separate browser. `problems` lists what they found, one sentence each; `seen` the states seen."""

    def __init__(
        self,
        browser: Browser,
        root: str,
        *,
        layouts: Sequence[str] = tuple(LAYOUTS),
        schemes: Sequence[str] = ("light", "dark"),
        rules: dict[str, Any] = RULES,
        **options: Any,
    ) -> None:
        self.root, self.layouts, self.schemes, self.rules = root, layouts, schemes, rules
        self.problems: list[str] = []
        self.seen: list[str] = []
        self.page, self.scheme = browser.new_page(viewport=NARROW, **options), "light"  # As of every new page.
        self.context = self.page.context
        self.context.on("request", self._note_request)
        self.page.on("console", self._note_console)
        self.page.on("pageerror", lambda error: self.problems.append(f"script: {error}"))

    def _note_request(self, request: Any) -> None:
        address = urlsplit(request.url)
        if address.scheme != "data" and f"{address.scheme}://{address.netloc}" != self.root:
            self.problems.append(f"another host: {request.url}")

    def _note_console(self, message: Any) -> None:
        # The browser logs each refused page, which is expected. Everything else is a problem.
        refused = re.search(r"the server responded with a status of (4\d\d|500)", message.text)
        if message.type in ("error", "warning") and not refused:
            self.problems.append(f"console: {message.text}")

    def go(self, path: str) -> None:
        self.page.goto(self.root + path)

    def begin(self, slug: str, language: str = "en") -> None:
        """Go from the study's first page over the consent to what follows it."""
        self.go(f"/s/{slug}/?language={language}")
        self.press(CONTINUE[language])
        self.press(AGREE[language])

    def sit_down(self, sitting: Sitting) -> None:
        sit_down(self.page, self.root, sitting)

    def press(self, name: str) -> None:
        """Press the button or link with that name and wait for the page that it leads to."""
        self.page.locator("button:visible, a.button:visible").get_by_text(name, exact=True).click()
        settle(self.page)

    def send_unanswered(self) -> None:
        """Send the form without any button, as a browser without our scripts may do."""
        with self.page.expect_navigation():
            self.page.evaluate("document.querySelector('form').submit()")

    @property
    def kind(self) -> str:
        return str(self.page.locator("main").get_attribute("data-kind") or "")

    def pages(self, until: str, *, screen: str = "") -> Iterator[str]:
        """The kind of each page on the way to one of that kind (and screen). The caller must answer each page."""
        for _page in range(80):
            if self.kind == until and (not screen or self.page.locator(f"[data-screen={screen}]").count()):
                return
            yield self.kind
        raise AssertionError(f"never came to {until}: is at {self.kind}, {self.page.title()}")

    def look(self, state: str, *, language: str = "en", title: str = "") -> None:
        """Check the current page in every layout, and in every colour scheme in the first layout; once for each state.

        Args:
            title: a name for the page, if it is not the heading.
        """
        if state in self.seen:
            return
        self.seen.append(state)
        page, say = self.page, lambda words: self.problems.append(f"{state}: {words}")
        facts = page.evaluate(FACTS)
        if facts["lang"] != language:
            say(f"lang is {facts['lang']}")
        if len(facts["headings"]) != 1:
            say(f"{len(facts['headings'])} main headings")
        elif (title or facts["headings"][0]) not in facts["title"]:
            say(f"the title does not say {facts['headings'][0]!r}: {facts['title']!r}")
        if facts["problem"] != facts["title"].startswith(PROBLEM[language]):
            say(f"problem shown: {facts['problem']}, and the title is {facts['title']!r}")
        if facts["problem"]:
            try:  # The browser sets the focus when it draws the page, which is after loading it.
                page.wait_for_selector(".error-summary:focus", timeout=20_000)
            except TooLate:
                say("the summary of errors has no focus")
        if (weight := page.evaluate(WEIGHT) + ICON.stat().st_size) > HEAVIEST:
            say(f"{weight} bytes")
        use_axe(page)
        for number, layout in enumerate(self.layouts):
            size, css = LAYOUTS[layout]
            self._resize(size)
            # Names, roles and order are the same in every layout, and a scheme changes colours alone.
            schemes = self.schemes if number == 0 else self.schemes[:1]
            for scheme in schemes:
                self._recolour(scheme)
                rules = SIZES if number else self.rules if scheme == schemes[0] else COLOURS
                width, violations = page.evaluate(LOOK, [css, rules])
                if width > size["width"]:
                    say(f"{layout}, {scheme}: {width} px wide")
                for violation in violations:
                    say(f"{layout}, {scheme}: {violation}")
        page.evaluate(RESTYLE, "")
        self._resize(NARROW)

    def _resize(self, size: Any) -> None:
        if self.page.viewport_size != size:
            self.page.set_viewport_size(size)

    def _recolour(self, scheme: str) -> None:
        if self.scheme != scheme:
            self.page.emulate_media(color_scheme=scheme)
            self.scheme = scheme

    def fill(self, right: Sequence[str], *, wrong: bool = False) -> None:
        """Answer the page: the right option, else the same or the first one; a number; some words."""
        page, groups = self.page, self.page.locator("fieldset.field")
        for number, (texts, has_same) in enumerate(groups.evaluate_all(OPTIONS)):
            if not texts:
                continue
            fitting = [place for place, text in enumerate(texts) if text.startswith(tuple(right)) != wrong]
            labels = groups.nth(number).locator("label[data-option]")
            same = groups.nth(number).locator("input[value=same]")
            (same if has_same else labels.nth(fitting[0] if fitting else 0)).click()
        fields = page.locator(FIELDS)
        for number, kind in enumerate(fields.evaluate_all("fields => fields.map(at => at.inputMode || at.type)")):
            answers = {"numeric": "60", "textarea": "So it seemed to me."}
            fields.nth(number).fill(answers.get(kind, "water"))

    def close(self) -> None:
        self.context.remove_listener("request", self._note_request)
        self.page.close()
