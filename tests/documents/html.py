"""What a page of the documents links to and loads."""

from html.parser import HTMLParser


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.pictures: list[dict[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self.ids |= {attributes[name] for name in ("id", "name") if name in attributes}
        if tag == "a" and "href" in attributes:
            self.links.append(attributes["href"])
        if tag in ("script", "img", "iframe") and "src" in attributes:
            self.loaded.append(attributes["src"])
        if tag == "link" and attributes.get("rel") not in ("canonical", "next", "prev") and "href" in attributes:
            self.loaded.append(attributes["href"])
        if tag == "img":
            self.pictures.append(attributes)
