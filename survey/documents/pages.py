"""The documents as HTML: which there are, in which order, and what each shows.

They lie in docs/, in the order of mkdocs.yml, from which mkdocs can also build a site of files. Pages that are made of
the code are in `reference.py`. A process renders a page once.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import sha256
from pathlib import Path, PurePosixPath
from posixpath import normpath
from threading import Lock
from typing import Any
from urllib.parse import quote, urlsplit

import yaml
from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token

from survey.storage.paths import DOCUMENTS_DIR, DOCUMENTS_MENU, OUTSIDE_DOCUMENTS

from . import reference
from .addresses import help_address

# Pages of the site, with the files outside of docs/ that they show.
OUTSIDE = {"benchmarks.md": "benchmarks/README.md", "python-client.md": "clients/python/README.md"}
FIRST = "index"
PICTURE_TYPES = {".svg": "image/svg+xml", ".png": "image/png"}
# What mkdocs reads behind a link or a heading, such as { .md-button }.
ATTRIBUTES = re.compile(r"^\{ ?([.#][\w. #-]+)\}")
_LOCK = Lock()


@dataclass(frozen=True)
class Heading:
    level: int
    text: str
    anchor: str


@dataclass(frozen=True)
class Section:
    """What stands under one heading, as plain text."""

    heading: Heading
    text: str


@dataclass(frozen=True)
class Document:
    """`name`: its address without the ending, such as `reference/rest`."""

    name: str
    title: str
    html: SafeString
    sections: Sequence[Section]

    @property
    def headings(self) -> list[Heading]:
        """Those below the title that a menu shows."""
        return [section.heading for section in self.sections if section.heading.level == 2]

    @cached_property
    def anchors(self) -> set[str]:
        return {section.heading.anchor for section in self.sections}


@dataclass(frozen=True)
class MenuPage:
    name: str
    title: str


@dataclass(frozen=True)
class MenuGroup:
    title: str
    pages: Sequence[MenuPage]

    @property
    def names(self) -> set[str]:
        return {page.name for page in self.pages}


@cache
def menu() -> Sequence[MenuGroup]:
    """The pages in their groups, as mkdocs.yml orders them."""
    # Read as it is: mkdocs.yml names no Python.
    entries = yaml.safe_load(DOCUMENTS_MENU.read_text(encoding="utf-8"))["nav"]
    groups = []
    for entry in entries:
        if isinstance(entry, str):
            groups.append(MenuGroup("", [_menu_page(entry)]))
        else:
            ((title, pages),) = entry.items()
            groups.append(MenuGroup(title, [_menu_page(page) for page in pages]))
    return groups


def _menu_page(entry: Any) -> MenuPage:
    ((title, path),) = entry.items() if isinstance(entry, dict) else [("", entry)]
    name = path.removesuffix(".md")
    if not title:
        # Made pages take long to make, and need not be for their titles.
        title = reference.TITLES.get(name) or _text(name).partition("\n")[0].removeprefix("# ")
    return MenuPage(name, title.replace("`", ""))


@cache
def names() -> Sequence[str]:
    """All pages, in the order of the menu."""
    return [page.name for group in menu() for page in group.pages]


def document(name: str) -> Document | None:
    """The page with that name; None if there is none."""
    if name not in names():  # So that no other file can be asked for.
        return None
    with _LOCK:  # Who asks meanwhile waits for what the first one makes.
        return _document(name)


def beside(name: str) -> tuple[MenuPage | None, MenuPage | None]:
    """The pages before and after this one in the menu."""
    pages = [page for group in menu() for page in group.pages]
    place = [page.name for page in pages].index(name)
    return pages[place - 1] if place else None, pages[place + 1] if place + 1 < len(pages) else None


def _text(name: str) -> str:
    """The page's Markdown."""
    if name in reference.TITLES:
        return reference.page(name)
    outside = OUTSIDE.get(f"{name}.md")
    path = OUTSIDE_DOCUMENTS / outside if outside else DOCUMENTS_DIR / f"{name}.md"
    return as_in_docs(path.read_text(encoding="utf-8"))


def as_in_docs(markdown: str) -> str:
    """With links between docs/ and the pages outside of it as if all of them lay in docs/."""
    for page, path in OUTSIDE.items():
        markdown = markdown.replace(f"](../{path}", f"]({page}")
    return re.sub(r"\]\((\.\./)+docs/", "](", markdown)


# Pictures


@cache
def picture(name: str) -> tuple[bytes, str, str] | None:
    """A picture's content, type and the hash that its address names; None if there is none of that name."""
    path = DOCUMENTS_DIR / "pictures" / name
    if path.suffix not in PICTURE_TYPES or PurePosixPath(name).name != name or not path.is_file():
        return None
    content = path.read_bytes()
    return content, PICTURE_TYPES[path.suffix], sha256(content).hexdigest()[:16]


# Rendering


_markdown = MarkdownIt("commonmark").enable(["table", "strikethrough"])


@cache
def _document(name: str) -> Document:
    tokens = _markdown.parse(_text(name))
    sections = list(_sections(tokens))
    _mark_headings(tokens, [section.heading for section in sections])
    for token in tokens:
        _rewrite(token.children or (), name)
    html = _markdown.renderer.render(tokens, _markdown.options, {})
    # A table may be wider than a phone.
    html = html.replace("<table>", '<div class="doc-wide" tabindex="0"><table>').replace("</table>", "</table></div>")
    title = sections[0].heading.text if sections else name
    return Document(name, title, mark_safe(html), sections)  # noqa: S308 - our own documents


def _sections(tokens: Sequence[Token]) -> Iterator[Section]:
    heading: Heading | None = None
    words: list[str] = []
    anchors: set[str] = set()
    for place, token in enumerate(tokens):
        if token.type == "heading_open":
            if heading is not None:
                yield Section(heading, " ".join(words))
            text = _plain(tokens[place + 1])
            heading, words = Heading(int(token.tag[1]), text, _anchor(text, anchors)), []
        elif token.type == "inline" and tokens[place - 1].type != "heading_open":
            words.append(_plain(token))
        elif token.type == "fence":
            words.append(token.content)
    if heading is not None:
        yield Section(heading, " ".join(words))


def _plain(token: Token) -> str:
    words = (
        child.content if child.type in ("text", "code_inline") else " " if "break" in child.type else ""
        for child in token.children or ()
    )
    return "".join(words).strip()


def _anchor(text: str, taken: set[str]) -> str:
    """As mkdocs makes it, so that one link leads to a heading in both."""
    letters = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    anchor = root = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", letters).strip().lower())
    number = 0
    while anchor in taken:
        number += 1
        anchor = f"{root}_{number}"
    taken.add(anchor)
    return anchor


def _mark_headings(tokens: Sequence[Token], headings: Sequence[Heading]) -> None:
    opening = [token for token in tokens if token.type == "heading_open"]
    for token, heading in zip(opening, headings, strict=True):
        token.attrSet("id", heading.anchor)


def _rewrite(children: Sequence[Token], name: str) -> None:
    """Links to other pages, the addresses of pictures, and what mkdocs reads as attributes of a link."""
    link: Token | None = None
    for place, token in enumerate(children):
        if token.type == "link_open":
            link = token
            token.attrSet("href", _address(str(token.attrGet("href")), name))
        elif token.type == "image":
            token.attrSet("src", picture_address(str(token.attrGet("src"))))
        elif link is not None and children[place - 1].type == "link_close":
            if match := ATTRIBUTES.match(token.content):
                token.content = token.content[match.end() :]
                link.attrSet("class", match[1].replace(".", " ").strip())
            link = None


def _address(link: str, name: str) -> str:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc or not parts.path.endswith(".md"):
        return link
    page = normpath(PurePosixPath(name).parent / parts.path)
    return help_address(f"{page}#{parts.fragment}" if parts.fragment else page)


def picture_address(source: str) -> str:
    """With the hash of its content, so that a browser may keep it."""
    file = Path(source).name
    stored_picture = picture(file)
    return f"{reverse('document_picture', args=[file])}?v={quote(stored_picture[2]) if stored_picture else ''}"
