"""What the documents say is there: commands, options, settings, files and make targets. None is left out of them."""

import re
import shutil
import tomllib
from argparse import ArgumentParser, _SubParsersAction
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from django.conf import settings
from django.core.management import get_commands, load_command_class
from towncrier.build import _main as towncrier

ROOT = Path(settings.BASE_DIR)
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "benchmarks" / "README.md"])
NAMES = [path.relative_to(ROOT).as_posix() for path in PAGES]
COMMANDS = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
OPERATION = (ROOT / "docs" / "operation.md").read_text(encoding="utf-8")
NOT_OURS = {"DJANGO_SETTINGS_MODULE"}
# Read by docker-compose.yml alone.
OF_COMPOSE = {
    "HUNCH_ACME_URL",
    "HUNCH_CERTIFICATES",
    "HUNCH_DATABASE_MEMORY",
    "HUNCH_EXTRAS",
    "HUNCH_ML_MEMORY",
    "HUNCH_TLS",
}
# `hunch NAME` and `manage.py NAME`, with what follows on the line or up to the closing backtick.
CALL = re.compile(r"(?:(?<![\w/.-])hunch|manage\.py) ([a-z][a-z_]+)\b([^`\n#]*)")


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def code_of(page: Path) -> Iterator[str]:
    """Fenced blocks and what stands between backticks."""
    fenced = re.findall(r"(?ms)^```\w*\n(.*?)^```", text_of(page))
    inline = re.findall(r"`([^`\n]+)`", re.sub(r"(?ms)^```.*?^```", "", text_of(page)))
    yield from fenced
    yield from inline


def anchors_of(page: Path) -> set[str]:
    headings = re.findall(r"(?m)^#+ (.+)$", text_of(page))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def read_by_settings() -> set[str]:
    source = (ROOT / "survey" / "settings.py").read_text(encoding="utf-8")
    return set(re.findall(r'read_\w+\(\s*"([A-Z_]+)"', source)) - NOT_OURS


def read_by_predictors() -> set[str]:
    """The libraries read their servers' addresses and keys where they are used."""
    sources = (path.read_text(encoding="utf-8") for path in (ROOT / "predictors").rglob("*.py"))
    return {name for source in sources for name in re.findall(r'"((?:HUNCH|VOYAGE)_[A-Z_]+[A-Z])"', source)}


def our_commands() -> set[str]:
    return {name for name, app in get_commands().items() if app.partition(".")[0] == "survey"}


def options_of(command: str) -> set[str]:
    """Those of its own subcommands too."""
    parsers: list[ArgumentParser] = [
        load_command_class(get_commands()[command], command).create_parser("hunch", command)
    ]
    options: set[str] = set()
    for parser in parsers:
        for action in parser._actions:
            options.update(action.option_strings)
            parsers.extend(action.choices.values() if isinstance(action, _SubParsersAction) else ())
    return options


def rows_of_commands() -> list[tuple[str, str]]:
    """Each command in the table of commands, with the call as it stands there."""
    calls = re.findall(r"(?m)^\| (`.+?`) \| ", COMMANDS)
    rows = [row for call in calls for row in re.findall(r"`([a-z_]+)((?: [^`]*)?)`", call.replace("\\|", "/"))]
    return [(name, rest) for name, rest in rows if name != "make"]


def released() -> list[str]:
    """The versions in the changelog, the newest first."""
    return re.findall(r"(?m)^## (\S+) \(\d{4}-\d\d-\d\d\)$", text_of(ROOT / "CHANGELOG.md"))


def test_every_setting_has_its_row_and_every_row_its_setting() -> None:
    rows = set(re.findall(r"(?m)^\| `([A-Z_]+)` \|", OPERATION))
    assert rows == read_by_settings() | read_by_predictors()


def test_every_setting_that_a_page_names_exists() -> None:
    known = read_by_settings() | read_by_predictors() | OF_COMPOSE
    assert all(f"${{{name}" in (ROOT / "docker-compose.yml").read_text(encoding="utf-8") for name in OF_COMPOSE)
    named = {(page.name, name) for page in PAGES for name in re.findall(r"\b(HUNCH_[A-Z_]+[A-Z])\b", text_of(page))}
    assert {(page, name) for page, name in named if name not in known} == set()


def test_every_command_of_ours_is_in_the_table() -> None:
    assert our_commands() - {name for name, _options in rows_of_commands()} == set()


def test_every_command_and_option_in_the_table_exists() -> None:
    for name, rest in rows_of_commands():
        assert name in get_commands(), name
        unknown = set(re.findall(r"--[a-z-]+", rest)) - options_of(name)
        assert unknown == set(), f"{name} has no {unknown}"


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_command_and_option_that_a_page_names_exists(page: Path) -> None:
    for code in code_of(page):
        for name, rest in CALL.findall(code.replace("\\\n", " ")):
            assert name in get_commands(), f"{page.name} names the command {name}"
            unknown = set(re.findall(r"(?<!\S)--[a-z-]+", rest)) - options_of(name)
            assert unknown == set(), f"{page.name}: {name} has no {unknown}"


def test_the_pages_do_name_commands() -> None:
    assert sum(len(CALL.findall(code)) for page in PAGES for code in code_of(page)) > 40


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_file_and_heading_that_a_page_links_to_exists(page: Path) -> None:
    for link in re.findall(r"\]\(([^):\s]+)\)", text_of(page)):
        name, _sharp, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.is_file(), f"{page.name} links to {link}"
        assert not anchor or anchor in anchors_of(target), f"{page.name} links to {link}"


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_path_that_a_page_names_exists(page: Path) -> None:
    folders = "bandit|benchmarks|deploy|docs|frontend|predictors|proxy|requirements|studies|survey|tests|tools"
    pattern = rf"(?<![\w/.:-])((?:{folders})/[a-z_][\w./-]*\w)"
    for path in re.findall(pattern, " ".join(code_of(page))):
        # docs/threats.md names tests by their place in tests/; NAME stands for any name.
        assert (ROOT / path).exists() or (ROOT / "tests" / path).exists() or "NAME" in path, f"{page.name} names {path}"


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_make_target_that_a_page_names_exists(page: Path) -> None:
    targets = set(re.findall(r"(?m)^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8")))
    named = {name for code in code_of(page) for name in re.findall(r"(?m)^make ([a-z-]+)", code)}
    assert named <= targets


def test_every_page_is_reached_from_the_readme() -> None:
    reached: set[Path] = set()
    coming = [ROOT / "README.md"]
    while coming:
        page = coming.pop()
        if page not in reached and page in PAGES:
            reached.add(page)
            coming += [(page.parent / link).resolve() for link in re.findall(r"\]\(([^):#\s]+)", text_of(page))]
    assert [page.name for page in PAGES if page not in reached] == []


def test_the_readme_is_short() -> None:
    text = text_of(ROOT / "README.md")
    assert text.count("\n") <= 80 and text.count("](") <= 15


def test_the_walk_of_an_answer_names_what_is_there() -> None:
    """`path.py`: `name` is a function or class of that file."""
    named = re.findall(r"`([\w/]+\.py)`: `(\w+)`", text_of(ROOT / "docs" / "one-answer.md"))
    assert len(named) > 15
    for path, name in named:
        source = (ROOT / path).read_text(encoding="utf-8")
        assert re.search(rf"(?m)^ *(?:def|class) {name}\b", source), f"{path} has no {name}"


def test_every_benchmark_is_listed() -> None:
    text = text_of(ROOT / "benchmarks" / "README.md")
    scripts = {path.stem for path in (ROOT / "benchmarks").glob("[a-z]*.py")}
    assert {name for name in scripts if not re.search(rf"(?m)^\| `.*benchmarks[/.]{name}\b.*`", text)} == set()


def test_citation_client_and_changelog_are_of_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    client = tomllib.loads((ROOT / "clients/python/pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert citation["version"] == client["version"] == released()[0] == project["version"]
    assert " AND ".join(citation["license"]) == project["license"]


def test_fragments_of_the_changelog_are_gathered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that wait in changes/ too: towncrier silently leaves out a file whose name it does not understand."""
    for name in ("pyproject.toml", "CHANGELOG.md", "changes"):
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, tmp_path / name)
    (tmp_path / "changes" / "+hour.added.md").write_text("Exports have the column `hour`.\n", encoding="utf-8")
    fragments = list((tmp_path / "changes").glob("*.md"))
    monkeypatch.chdir(tmp_path)
    CliRunner().invoke(towncrier, ["--keep", "--version", "99.1.0", "--date", "2027-01-02"], catch_exceptions=False)
    text = text_of(tmp_path / "CHANGELOG.md")
    newest = text[: text.index(f"\n## {released()[0]}")]
    assert "\n## 99.1.0 (2027-01-02)\n\n### Added\n" in newest and "- Exports have the column `hour`.\n" in newest
    assert [path.name for path in fragments if " ".join(text_of(path).split()) not in " ".join(newest.split())] == []
    assert {path.name for path in (ROOT / "changes").iterdir()} - {path.name for path in fragments} == {".gitignore"}


def test_every_threat_names_a_test_that_exists_or_says_what_is_not_held() -> None:
    """At least 24 of them, by everybody who may turn bad."""
    text = text_of(ROOT / "docs" / "threats.md")
    threats = re.findall(r"(?m)^\| \d+ \| (.+?) \| (.+) \|$", text)
    assert len(threats) >= 24
    for threat, held in threats:
        named = re.findall(r"`([\w/]+\.py)(?:::(test_\w+))?`", held)
        assert named or "not held" in held.lower(), threat
        for path, test in named:
            assert f"def {test}(" in (ROOT / "tests" / path).read_text(encoding="utf-8"), f"{path}::{test}"
    for who in ("respondent", "crowd", "researcher", "administrator", "worker", "panel", "export", "backup"):
        assert re.search(rf"(?m)^## .*{who}", text), who
