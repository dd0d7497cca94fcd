"""A whole sitting by keyboard only at 400 %, one as a screen reader reads it, one without scripts; and page weight."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from survey.instruments.belief_update.models import Belief
from survey.models import Sitting
from tests.browser.everything import RIGHT, bank, open_study, sitting_at
from tests.browser.test_accessibility import ENTRANCE, begin, outcome, state_of
from tests.browser.visitor import HEAVIEST, WEIGHT, ZOOMED, Visitor

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def visitor(browser: Any, live_server: Any) -> Iterator[Visitor]:
    made = Visitor(browser, live_server.url)
    yield made
    made.close()


# By keyboard

WHERE = """() => {
  const at = document.activeElement, box = at.getBoundingClientRect(), style = getComputedStyle(at);
  return {
    kind: at.type || at.tagName.toLowerCase(), id: at.id, name: at.name || "", value: at.value || "",
    text: (at.labels?.[0] ?? at).innerText.trim(),
    visible: box.bottom > 0 && box.top < innerHeight && box.left >= 0 && box.right <= innerWidth &&
      style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2,
  };
}"""


class Keys:
    """A person who uses only the keyboard."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.press = page.keyboard.press
        self.type = page.keyboard.type

    def where(self) -> dict[str, Any]:
        place: dict[str, Any] = self.page.evaluate(WHERE)
        return place

    def tab(self) -> dict[str, Any]:
        """Press Tab. Returns the element with the focus, which must be visible."""
        self.press("Tab")
        at = self.where()
        assert at["kind"] == "body" or at["visible"], at
        return at

    def tab_to(self, text: str) -> None:
        for _stop in range(40):
            if self.tab()["text"] == text:
                return
        raise AssertionError(f"no way by Tab to {text!r}")

    def enter(self) -> None:
        with self.page.expect_navigation():
            self.press("Enter")

    def send(self, text: str = "Continue") -> None:
        self.tab_to(text)
        self.enter()

    def choose(self, at: dict[str, Any]) -> None:
        """Within a group: go to its first option, and on to the right one."""
        self.press("Space")
        for _option in range(6):
            at = self.where()
            if at["name"] == "direction" and at["value"] == "higher":
                return
            if at["name"] != "direction" and at["text"].startswith(RIGHT):
                return
            self.press("ArrowDown")

    def answer(self) -> None:
        """Go through every control of the page in order, up to Continue."""
        asks_first, stays = (self.page.locator(mark).count() for mark in ("[data-screen=prior]", "[name=keep]"))
        for _stop in range(60):
            at = self.tab()
            if at["kind"] == "radio":
                self.choose(at)
            elif at["kind"] == "checkbox" and at["value"] in ("telephone",):
                self.press("Space")
            elif at["kind"] == "range" and not stays:
                # The slider, which has no thumb until it is touched.
                self.press("ArrowRight" if asks_first else "End")
            elif at["kind"] == "text" and "percent" not in at["text"]:
                self.type("30" if at["name"] in ("age", "years") else "water")
            elif at["kind"] == "textarea":
                self.type("So.")
            elif at["text"] in ("Continue", "Use my data"):
                if stays:
                    self.tab_to("My answer stays at 0 %")
                self.enter()
                return
        raise AssertionError("no way by Tab to the end of the page")


def test_a_whole_sitting_by_keyboard_alone(visitor: Visitor) -> None:
    study = open_study(stages=[{"sittings": 1}])
    page, keys = visitor.page, Keys(visitor.page)
    page.set_viewport_size(ZOOMED)
    visitor.go(ENTRANCE.format("a"))
    assert keys.tab()["text"] == "Skip to the content"
    keys.send()
    keys.send("I agree and take part")
    for _kind in visitor.pages("checks"):
        keys.answer()
    keys.send()
    page.wait_for_selector(".error-summary:focus")
    assert "Choose one of the answers" in keys.tab()["text"]
    keys.press("Enter")
    page.wait_for_selector("input[type=radio]:focus")
    keys.choose(keys.where())
    for _kind in visitor.pages("end"):
        keys.answer()
    keys.tab_to("Go back to Prolific")
    assert page.locator("[data-code]").inner_text() == study.completion_code("completed")
    beliefs = Belief.objects.all()
    assert set(beliefs.filter(response__number=1).values_list("value", "entered_by")) == {(0, "track_keys")}
    assert beliefs.filter(direction="higher", value=100, entered_by="track_keys").exists()
    assert beliefs.filter(value=0, entered_by="button").exists()
    assert visitor.problems == []


# As a screen reader reads it

CONTROLS = {"button", "checkbox", "link", "radio", "slider", "spinbutton", "textbox", "combobox", "DisclosureTriangle"}
NAMED = CONTROLS | {"radiogroup", "navigation", "heading"}


@dataclass(frozen=True)
class Node:
    role: str
    name: str
    description: str
    facts: dict[str, Any]


def facts_of(session: Any, node: dict[str, Any]) -> dict[str, Any]:
    """What a screen reader says about a control besides its name.

    Chromium hands `aria-valuetext` to screen readers, but newer ones (156 for instance) put a slider's plain number
    into `valuetext` here, whatever the page says. So a slider's text is that of its attribute.
    """
    facts = {fact["name"]: fact["value"].get("value") for fact in node.get("properties", ())}
    if node["role"]["value"] == "slider":
        flat_attributes = session.send("DOM.describeNode", {"backendNodeId": node["backendDOMNodeId"]})["node"][
            "attributes"
        ]
        attributes = dict(zip(flat_attributes[::2], flat_attributes[1::2], strict=True))
        facts["valuetext"] = attributes.get("aria-valuetext", facts["valuetext"])
    return facts


def nodes_of(visitor: Visitor) -> list[Node]:
    """The accessibility tree in order, without ignored nodes."""
    session = visitor.context.new_cdp_session(visitor.page)
    nodes_by_id = {node["nodeId"]: node for node in session.send("Accessibility.getFullAXTree")["nodes"]}
    nodes: list[Node] = []
    waiting = [key for key, node in nodes_by_id.items() if "parentId" not in node]
    while waiting:
        node = nodes_by_id[waiting.pop()]
        waiting += reversed([key for key in node.get("childIds", ()) if key in nodes_by_id])
        if not node["ignored"]:
            nodes.append(
                Node(
                    role=node["role"]["value"],
                    name=node.get("name", {}).get("value", "").strip(),
                    description=node.get("description", {}).get("value", ""),
                    facts=facts_of(session, node),
                )
            )
    session.detach()
    return nodes


def controls(nodes: list[Node]) -> list[tuple[str, str]]:
    return [(node.role, node.name) for node in nodes if node.role in CONTROLS]


def one(nodes: list[Node], role: str) -> Node:
    (match,) = (node for node in nodes if node.role == role)
    return match


FIRST = ("link", "Skip to the content")
REPORT = ("DisclosureTriangle", "Something is wrong with this question")
PERCENT = ("textbox", "Your answer in percent, from 0 to 100")
TRACK = ("slider", "The same answer on a track from 0 to 100 percent")
CONTINUE = ("button", "Continue")
CONTACT = ("link", "a-person-with-a-long-name@university.example.org")


@pytest.mark.thorough
def test_a_whole_sitting_as_a_screen_reader_tells_it(visitor: Visitor) -> None:
    open_study(stages=[{"sittings": 1}])
    page = visitor.page
    visitor.go(ENTRANCE.format("a"))
    links = [("link", name) for name in ("English", "Deutsch", "Continue")]
    assert controls(nodes_of(visitor)) == [FIRST, *links, CONTACT]
    visitor.press("Continue")
    buttons = [("button", name) for name in ("I agree and take part", "I do not agree")]
    assert controls(nodes_of(visitor)) == [FIRST, *buttons, CONTACT]
    visitor.press("I agree and take part")
    heard: dict[str, list[Node]] = {}
    for kind in visitor.pages("end"):
        nodes = heard.setdefault(state_of(visitor), nodes_of(visitor))
        assert [node for node in nodes if node.role in NAMED and not node.name] == []
        assert one(nodes, "main") and [node.name for node in nodes if node.role == "RootWebArea"] == [page.title()]
        assert one(nodes, "progressbar").name == "How much is done"
        if kind == "debriefing":
            visitor.press("Use my data")
        else:
            visitor.fill(RIGHT)
            visitor.press("Continue")
    assert controls(heard["item: prior"]) == [FIRST, PERCENT, TRACK, CONTINUE, REPORT, CONTACT]
    assert one(heard["item: prior"], "slider").facts["valuetext"] == "no answer yet"
    direction = heard["practice: posterior direction"]
    assert {name for role, name in controls(direction) if role == "radio"} == {
        "Lower than 60 %",
        "The same, 60 %",
        "Higher than 60 %",
    }
    assert "Compared with before, your answer now is:" in [node.name for node in direction]
    assert ("textbox", "If it changed: your new number in percent, from 0 to 100") not in controls(direction)
    every_field = controls(heard["form: work"])
    assert [name.replace(" :", ":") for role, name in every_field if role == "radio"][4:15] == [
        "1: not at all likely",
        *map(str, range(2, 11)),
        "11: extremely likely",
    ]
    assert [name for role, name in every_field if role == "textbox"][-1] == "Anything else? (optional)"
    page.wait_for_selector("[data-copy]:visible")
    assert controls(nodes_of(visitor)) == [FIRST, ("button", "Copy the code"), ("link", "Go back to Prolific"), CONTACT]


@pytest.mark.thorough
def test_errors_and_thanks_are_reported_at_once(visitor: Visitor) -> None:
    visitor.sit_down(sitting_at(open_study(), "item"))
    visitor.page.get_by_label("Your answer in percent").fill("101")
    visitor.press("Continue")
    nodes = nodes_of(visitor)
    assert one(nodes, "alert").facts["live"] == "assertive"
    (field,) = (node for node in nodes if (node.role, node.name) == PERCENT)
    assert field.facts["invalid"] == "true"
    assert field.description == "The highest answer is 100. Enter a number from 0 to 100."
    assert ("link", field.description) in controls(nodes)
    visitor.page.locator("details.report summary").click()
    visitor.page.get_by_label("What is wrong?").fill("odd")
    visitor.press("Send this remark")
    assert one(nodes_of(visitor), "status").facts["live"] == "polite"


# Without scripts; and heavy


@pytest.mark.thorough
def test_a_whole_sitting_without_scripts_meets_every_kind_of_page(browser: Any, live_server: Any) -> None:
    study = open_study()
    visitor = Visitor(browser, live_server.url, java_script_enabled=False)
    begin(visitor, "a")
    for kind in visitor.pages("end"):
        if kind == "debriefing":
            visitor.press("Use my data")
        else:
            assert visitor.page.locator("[data-track]:visible").count() == 0
            visitor.fill(RIGHT)
            visitor.press("Continue")
    assert outcome(visitor) == "completed" and Sitting.objects.get().state == Sitting.State.COMPLETE
    assert visitor.page.locator("[data-code]").inner_text() == study.completion_code("completed")
    assert Belief.objects.count() == 2 * 4
    assert visitor.problems == []
    visitor.close()


@pytest.mark.thorough
def test_the_longest_questions_stay_within_the_weight_of_a_page(visitor: Visitor) -> None:
    # As long as the longest questions and replies of the usual benchmarks.
    case = "A case is put at length. " * 200
    bank(texts=tuple(f"<b>{number}: {case}</b>" for number in range(40)), reply="So. " * 999)
    visitor.sit_down(sitting_at(open_study(), "practice"))
    weights: dict[str, int] = {}
    for _kind in visitor.pages("attention"):
        weights[state_of(visitor)] = visitor.page.evaluate(WEIGHT)
        visitor.fill(RIGHT)
        visitor.press("Continue")
    assert 20_000 < max(weights.values()) < HEAVIEST, weights
    assert visitor.problems == []
