"""The documents as a site: built strictly, whole, and with nothing loaded from other hosts."""

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.architecture.test_docs import our_commands, read_by_settings

from .html import Page

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.thorough, pytest.mark.any_database]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Page]:
    folder = tmp_path_factory.mktemp("site")
    made = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "HUNCH_VAR": str(tmp_path_factory.mktemp("var")), "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    return {path: Page(path.read_text(encoding="utf-8")) for path in folder.rglob("*.html")}


def test_every_link_leads_to_a_page_and_a_heading(site: dict[Path, Page]) -> None:
    assert len(site) > 25
    wrong = []
    for path, page in site.items():
        if path.name == "404.html":  # Its addresses begin at the root, wherever it is shown.
            continue
        for link in [*page.links, *page.loaded]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file():
                wrong.append(f"{path.name}: {link}")
            elif parts.fragment and target in site and unquote(parts.fragment) not in site[target].ids:
                wrong.append(f"{path.name}: {link} has no such heading")
    assert not wrong, wrong[:20]


def test_nothing_is_loaded_from_elsewhere(site: dict[Path, Page]) -> None:
    for path, page in site.items():
        assert [address for address in page.loaded if urlsplit(address).netloc] == [], path.name
    root = next(iter(site)).parent
    for sheet in root.rglob("*.css"):
        outside = re.findall(r"(?:@import|url\()\s*[\"']?(https?://[^\"')]+)", sheet.read_text(encoding="utf-8"))
        assert outside == [], sheet.name


def test_every_picture_has_a_text_and_is_small(site: dict[Path, Page]) -> None:
    pictures = [picture for page in site.values() for picture in page.pictures if "pictures/" in picture["src"]]
    assert len(pictures) >= 4 and all(len(picture["alt"]) > 20 for picture in pictures)
    for picture in (ROOT / "docs" / "pictures").iterdir():
        assert picture.stat().st_size < 120_000, picture.name


def text_of(site: dict[Path, Page], name: str) -> str:
    return next(path for path in site if path.as_posix().endswith(f"/reference/{name}")).read_text(encoding="utf-8")


def test_the_reference_has_everything_that_the_code_has(site: dict[Path, Page]) -> None:
    commands = text_of(site, "commands.html")
    assert all(f'id="{name}"' in commands for name in our_commands())
    settings = text_of(site, "settings.html")
    assert all(f"<code>{name}</code>" in settings for name in read_by_settings())
    rest = text_of(site, "rest.html")
    assert "studies/{slug}/stages/{index}/{action}/" in rest and "<code>study_create</code>" in rest
