"""Reading pages as a client does: forms, fields and marked parts, by the standard library's parser."""

from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

from django.test import Client

VOID = {"br", "input", "link", "meta"}


@dataclass
class Page:
    """A parsed page."""

    main: dict[str, str] = field(default_factory=dict)
    form: dict[str, str] = field(default_factory=dict)
    hidden: dict[str, str] = field(default_factory=dict)
    inputs: list[dict[str, str]] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)
    parts: dict[str, str] = field(default_factory=dict)
    code: str = ""
    text: str = ""
    tags: list[str] = field(default_factory=list)

    def value_of(self, option: str) -> str:
        """The value that a radio button with that label sends."""
        (chosen,) = (i for i in self.inputs if i["type"] == "radio" and self.labels[i["id"]] == option)
        return chosen["value"]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.page = Page()
        self.open: list[tuple[str, dict[str, str]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self.page.tags.append(tag)
        if tag == "main":
            self.page.main = attributes
        elif tag == "form":
            self.page.form = attributes
        elif tag in ("input", "textarea") and attributes.get("type") == "hidden":
            self.page.hidden[attributes["name"]] = attributes.get("value", "")
        elif tag in ("input", "textarea"):
            self.page.inputs.append({"type": tag, "name": "", **attributes})
        elif tag == "br":
            self.handle_data("\n")
        if tag not in VOID:
            self.open.append((tag, attributes))

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        self.page.text += data
        for tag, attributes in self.open:
            if "data-part" in attributes:
                name = attributes["data-part"]
                self.page.parts[name] = self.page.parts.get(name, "") + data
            if "data-code" in attributes:
                self.page.code += data
            if tag == "label":
                self.page.labels[attributes["for"]] = self.page.labels.get(attributes["for"], "") + data


def read(html: str) -> Page:
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader.page


def get(client: Client, path: str) -> Page:
    return read(client.get(path, follow=True).content.decode())


def arrive(client: Client, slug: str = "cast") -> Page:
    """Welcome, consent, and the first page of the sitting."""
    client.get(f"/s/{slug}/")
    return read(client.post(f"/s/{slug}/consent", {"consent": "yes"}, follow=True).content.decode())


def fields_for(page: Page) -> dict[str, Any]:
    """The answers that a careful respondent of the cast sends from this page."""
    kind = page.main["data-kind"]
    fields: dict[str, Any] = dict(page.hidden)
    if kind == "checks":
        fields |= {"first_check": page.value_of("right one"), "second_check": page.value_of("right")}
    elif kind == "item":
        fields |= {"value": "60" if page.form["data-screen"] == "prior" else "70"}
        if any(field["name"] == "direction" for field in page.inputs):
            fields |= {"direction": "higher"}
    elif kind == "form":
        fields |= {"age": "30", "use": "often", "remark": "none"}
    return fields


def shown_again(client: Client, response: Any) -> Any:
    """The page that came back: its address is loaded, so that the back button of a browser sends nothing again."""
    assert response.status_code == 303, response.status_code
    page = client.get(response.headers["Location"])
    assert page.status_code == 200
    return page


def send(client: Client, page: Page, slug: str = "cast", **changes: Any) -> Page:
    response = client.post(f"/s/{slug}/sitting", {**fields_for(page), **changes}, follow=True)
    return read(response.content.decode())


def go_to(client: Client, kind: str, *, screen: str = "", slug: str = "cast") -> Page:
    """Take part until a page of that kind (and screen) is shown."""
    page = arrive(client, slug)
    while page.main["data-kind"] != kind or (screen and page.form["data-screen"] != screen):
        page = send(client, page, slug)
    return page
