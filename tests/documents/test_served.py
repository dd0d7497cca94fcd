"""The documents on the site: each page, picture and link, the search, and what a stranger may ask for."""

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from django.test import Client

from survey.documents import pages, reference
from survey.documents.addresses import help_address, help_link
from survey.documents.search import search

from .html import Page

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.any_database
WRITTEN = [name for name in pages.names() if name not in reference.TITLES]


def test_the_menu_has_every_page_once() -> None:
    lying = {path.relative_to(ROOT / "docs").with_suffix("").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    outside = {page.removesuffix(".md") for page in pages.OUTSIDE}
    assert len(pages.names()) == len(set(pages.names()))
    assert set(pages.names()) == lying | outside | set(reference.TITLES)


@pytest.fixture(scope="module")
def site() -> dict[str, Page]:
    """Every written page by its path, as a browser gets it."""
    client = Client()
    addresses = [help_address(name) for name in WRITTEN]
    return {address: Page(client.get(address).content.decode()) for address in addresses}


def test_every_link_leads_to_a_page_and_a_heading(site: dict[str, Page]) -> None:
    wrong = []
    known = {"/docs/", *(help_address(name) for name in pages.names())}
    for address, page in site.items():
        for link in page.links:
            parts = urlsplit(link)
            target = parts.path or address
            if not parts.scheme and target in site and parts.fragment:
                if unquote(parts.fragment) not in site[target].ids:
                    wrong.append(f"{address}: {link} has no such heading")
            elif not parts.scheme and target.startswith("/docs/") and target not in known:
                wrong.append(f"{address}: {link}")
    assert not wrong, wrong


def test_every_picture_is_there_has_a_text_and_may_be_kept(site: dict[str, Page], client: Client) -> None:
    pictures = {picture["src"]: picture for page in site.values() for picture in page.pictures}
    assert len(pictures) > 4
    for address, picture in pictures.items():
        answer = client.get(address)
        assert answer.status_code == 200 and answer["Content-Type"] in pages.PICTURE_TYPES.values(), address
        assert "immutable" in answer["Cache-Control"] and len(picture["alt"]) > 20
        other = client.get(urlsplit(address).path + "?v=0123456789abcdef")
        assert "no-store" in other["Cache-Control"], "what is at another address than its own must be asked for again"


def test_nothing_is_loaded_from_elsewhere_and_no_script_stands_in_a_page(site: dict[str, Page], client: Client) -> None:
    for page in site.values():
        assert page.loaded and all(address.startswith(("/static/", "/docs/")) for address in page.loaded)
    answer = client.get(help_address("index"))
    assert "default-src 'self'" in answer["Content-Security-Policy"]
    assert re.findall(r"<script(?! src=)|<style|\son\w+=|\sstyle=", answer.content.decode()) == []


@pytest.mark.parametrize(
    "address",
    [
        "/docs/none.html",
        "/docs/../README.html",
        "/docs/%2e%2e/README.html",
        "/docs/adding-an-instrument",
        "/docs/pictures/none.png",
        "/docs/pictures/..%2fmkdocs.yml",
        "/docs/pictures/%2e%2e",
        "/docs/pictures/idea.md",
    ],
)
def test_nothing_else_can_be_asked_for(client: Client, address: str) -> None:
    assert client.get(address).status_code == 404


def test_it_is_read_without_an_account_and_only_read(client: Client) -> None:
    assert client.get("/docs/").headers["Location"] == help_address("index")
    assert client.post(help_address("index")).status_code == 405


@pytest.mark.parametrize(
    ("question", "place"),
    [
        ("attention check", "study-file.html#sittingattention_checks"),
        ("preview", "trying-out.html#previews"),
        ("HUNCH_PORT", "operation.html"),
        ("blind stud", "study-file.html#blind-studies"),
        ("ADDING a PANEL", "panels.html#adding-a-panel"),
    ],
)
def test_the_search_finds(question: str, place: str) -> None:
    first = [result.address for result in search(question)[:4]]
    assert any(place in address for address in first), first


def test_the_search_asks_for_every_word_and_marks_it(client: Client) -> None:
    assert search("preview zebra") == [] and search("  ") == [] and search("%&") == []
    assert any("<mark>preview</mark>" in place.excerpt.lower() for place in search("preview"))
    page = client.get("/docs/search", {"q": "zebra <script>"}).content.decode()
    assert "Nothing has all of" in page and "<script>" not in page.replace("<script src", "")
    assert "place" in client.get("/docs/search", {"q": "preview"}).content.decode()


def test_a_help_link_is_escaped() -> None:
    assert help_link("panels.md#adding-a-panel", "A & B") == '<a href="/docs/panels.html#adding-a-panel">A &amp; B</a>'


@pytest.mark.slow
def test_the_reference_is_shown_too(client: Client) -> None:
    page = client.get(help_address("reference/settings")).content.decode()
    assert "<code>HUNCH_PORT</code>" in page and f'href="{help_address("operation")}"' in page
