"""A page as a simulated person sees it: what it says and what its form asks for. Standard library (html.parser)."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from html.parser import HTMLParser

VOID = frozenset(["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"])


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    children: list["Element | str"] = field(default_factory=list)

    def walk(self) -> Iterator["Element"]:
        yield self
        for child in self.children:
            if isinstance(child, Element):
                yield from child.walk()

    def first(self, attribute: str) -> "Element | None":
        return next((element for element in self.walk() if attribute in element.attributes), None)

    @property
    def text(self) -> str:
        if self.tag == "br":
            return "\n"
        return "".join(child if isinstance(child, str) else child.text for child in self.children)


class _Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[-1].children.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        for depth in range(len(self.open) - 1, 0, -1):
            if self.open[depth].tag == tag:
                del self.open[depth:]
                return

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


class Page:
    def __init__(self, body: str) -> None:
        builder = _Builder()
        builder.feed(body)
        builder.close()
        self.root = builder.root

    @cached_property
    def main(self) -> Element:
        return next((element for element in self.root.walk() if element.tag == "main"), self.root)

    @property
    def kind(self) -> str:
        return self.main.attributes.get("data-kind", "")

    @property
    def step(self) -> str:
        return self.main.attributes.get("data-step", "")

    @property
    def links(self) -> list[str]:
        """Where the page's links lead."""
        return [element.attributes["href"] for element in self.root.walk() if element.attributes.get("href")]

    @property
    def refused(self) -> str:
        return self.main.attributes.get("data-refused", "")

    @property
    def errors(self) -> str:
        """Why the page was not accepted, as its summary says; empty if it has none."""
        boxes = (element for element in self.main.walk() if "error-summary" in element.attributes.get("class", ""))
        return next((" ".join(box.text.split())[:300] for box in boxes), "")

    @property
    def outcome(self) -> str:
        return self.main.attributes.get("data-outcome", "")

    @property
    def code(self) -> str:
        element = self.main.first("data-code")
        return element.text.strip() if element else ""

    @property
    def summary(self) -> str:
        """What the page says, in one line, for an error message."""
        return " ".join(self.main.text.split())[:300]

    @cached_property
    def form(self) -> Element | None:
        """The form to fill in; a page shows one."""
        return next(
            (
                element
                for element in self.main.walk()
                if element.tag == "form" and element.attributes.get("method", "").lower() == "post"
            ),
            None,
        )

    @property
    def screen(self) -> str:
        return self.form.attributes.get("data-screen", "") if self.form else ""

    @property
    def parts(self) -> dict[str, str]:
        """What an item's screen shows, by the parts' names: a part's data-value if it has one, else its text."""
        return {
            element.attributes["data-part"]: element.attributes.get("data-value") or element.text
            for element in self.main.walk()
            if "data-part" in element.attributes
        }

    @property
    def hidden(self) -> dict[str, str]:
        return {
            element.attributes["name"]: element.attributes.get("value", "")
            for element in self._named("input")
            if element.attributes.get("type") == "hidden"
        }

    @property
    def choices(self) -> dict[str, list[tuple[str, str]]]:
        """Radio buttons by name: (value, the label's text) in the order shown."""
        labels: dict[str, str] = {}
        for label in self.main.walk():
            if label.tag != "label":
                continue
            option = label.first("data-option") or label
            own = [inner.attributes.get("id", "") for inner in label.walk() if inner.tag == "input"]
            for identifier in filter(None, [label.attributes.get("for", ""), *own]):
                labels[identifier] = option.text.strip()
        choices: dict[str, list[tuple[str, str]]] = {}
        for element in self._named("input"):
            if element.attributes.get("type") == "radio":
                value = element.attributes.get("value", "")
                text = labels.get(element.attributes.get("id", ""), value)
                choices.setdefault(element.attributes["name"], []).append((value, text))
        return choices

    @property
    def several(self) -> list[str]:
        """Names of the questions in which any number of boxes may be checked."""
        boxes = [e.attributes["name"] for e in self._named("input") if e.attributes.get("type") == "checkbox"]
        return list(dict.fromkeys(boxes))

    @property
    def buttons(self) -> dict[str, list[str]]:
        """Buttons that send a value with the form: their values by name."""
        buttons: dict[str, list[str]] = {}
        for element in self._named("button"):
            buttons.setdefault(element.attributes["name"], []).append(element.attributes.get("value", ""))
        return buttons

    @property
    def blanks(self) -> list[str]:
        """Names of the fields to write in."""
        typed = [e for e in self._named("input") if e.attributes.get("type", "text") in ("text", "number")]
        return [element.attributes["name"] for element in [*typed, *self._named("textarea")]]

    def _named(self, tag: str) -> list[Element]:
        return [e for e in (self.form.walk() if self.form else ()) if e.tag == tag and e.attributes.get("name")]
