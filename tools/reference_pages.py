"""Pages of the documents that are made from the code when the site is built: a hook of mkdocs.

Commands come from their parsers, settings from the file that reads them, and the addresses of the REST API from its
OpenAPI document. Two pages that stand outside of docs/ are added to the site.
"""

import os
import re
import tempfile
from argparse import SUPPRESS, Action, ArgumentParser, _SubParsersAction
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
MADE = "This page is made from the code.\n"
# Pages of the site, with the files outside of docs/ that they show.
OUTSIDE = {"benchmarks.md": "benchmarks/README.md", "python-client.md": "clients/python/README.md"}
COMMON = {"help", "version", "settings", "pythonpath", "traceback", "no_color", "force_color", "verbosity"}
READ = re.compile(r'read_(?P<kind>\w+)\(\s*"(?P<setting>[A-Z_]+)"')


def on_files(files: Any, config: Any) -> Any:
    """Called by mkdocs: add the pages."""
    from mkdocs.structure.files import File

    for path, text in pages().items():
        files.append(File.generated(config, path, content=text))
    for page, path in OUTSIDE.items():
        text = re.sub(r"\]\((\.\./)+docs/", "](", (ROOT / path).read_text(encoding="utf-8"))
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Called by mkdocs: links to the pages outside of docs/ lead to where the site has them."""
    for name, path in OUTSIDE.items():
        markdown = markdown.replace(f"](../{path}", f"]({name}")
    return markdown


def pages() -> dict[str, str]:
    """Each page's address and its Markdown."""
    _set_up()
    return {
        "reference/commands.md": _commands(),
        "reference/settings.md": _settings(),
        "reference/rest.md": _rest(),
    }


def _set_up() -> None:
    """Load Django, with run-time files in a folder of its own where none is set."""
    import django
    from django.apps import apps

    if not apps.ready:
        os.environ.setdefault("HUNCH_VAR", tempfile.mkdtemp(prefix="hunch-docs-"))
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "survey.settings")
        django.setup()


def _cell(text: object) -> str:
    return " ".join(str(text).split()).replace("|", "\\|").replace("<", "&lt;")


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"


# Commands


def _commands() -> str:
    from django.core.management import get_commands, load_command_class

    ours = sorted(name for name, app in get_commands().items() if app.partition(".")[0] == "survey")
    parts = ["# Every command with its options\n", MADE]
    for name in ours:
        command = load_command_class(get_commands()[name], name)
        parser = command.create_parser("hunch", name)
        parts += [f"## {name}\n", f"{_cell(command.help or parser.description or '')}\n"]
        parts += _options(parser)
    return "\n".join(parts)


def _options(parser: ArgumentParser) -> Iterator[str]:
    rows = []
    for action in parser._actions:
        if isinstance(action, _SubParsersAction):
            for name, inner in action.choices.items():
                yield f"### {parser.prog.removeprefix('hunch ')} {name}\n"
                yield from _options(inner)
        elif action.dest not in COMMON and action.dest != "skip_checks":
            rows.append([f"`{_written(action)}`", _cell(_help_of(action))])
    if rows:
        yield _table(["option", "meaning"], rows)


def _written(action: Action) -> str:
    if not action.option_strings:
        return str(action.metavar or action.dest)
    value = "" if action.nargs == 0 else f" {action.metavar or action.dest.upper()}"
    return ", ".join(action.option_strings) + value


def _help_of(action: Action) -> str:
    words = "" if action.help in (None, SUPPRESS) else str(action.help)
    values = {"default": action.default, "prog": "hunch", "metavar": action.metavar}
    return words % values if "%(" in words else words


# Settings


def _settings() -> str:
    """The settings in the order in which they are read, with what reads each and what docs/operation.md says of it."""
    source = (ROOT / "survey" / "settings.py").read_text(encoding="utf-8")
    said = dict(
        re.findall(r"(?m)^\| `([A-Z_]+)` \| (.+) \|$", (ROOT / "docs" / "operation.md").read_text(encoding="utf-8"))
    )
    seen: dict[str, list[str]] = {}
    for match in READ.finditer(source):
        default, _bar, meaning = said.get(match["setting"], "-|").partition("|")
        kind = match["kind"].replace("_", " ")
        seen.setdefault(match["setting"], [f"`{match['setting']}`", kind, default.strip() or "-", meaning.strip()])
    for row in seen.values():
        # What it links to, seen from this page.
        row[3] = re.sub(r"\]\(#", "](operation.md#", row[3])
        row[3] = re.sub(r"\]\((?!http)", "](../", row[3])
    table = _table(["setting", "read as", "default", "meaning"], list(seen.values()))
    return f"# Every setting\n\n{MADE}\n[Operation](../operation.md) explains them.\n\n{table}"


# The REST API


def _rest() -> str:
    from drf_spectacular.generators import SchemaGenerator

    document = SchemaGenerator().get_schema(request=None, public=True)
    parts = ["# Every address of the REST API\n", MADE, "[The REST API](../rest.md) explains them.\n"]
    for path, operations in document["paths"].items():
        parts.append(f"## `{path}`\n")
        for method, operation in operations.items():
            parts.append(f"**{method.upper()}** {_cell(operation.get('summary', ''))} (`{operation['operationId']}`). ")
            parts.append(f"{_cell(operation.get('description', ''))}\n")
            rows = [
                [f"`{parameter['name']}`", parameter["in"], _cell(parameter.get("description", ""))]
                for parameter in operation.get("parameters", ())
            ]
            if rows:
                parts.append(_table(["parameter", "in", "meaning"], rows))
            parts.append(f"Answers with {', '.join(f'`{status}`' for status in sorted(operation['responses']))}.\n")
    return "\n".join(parts)
