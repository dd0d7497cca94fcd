"""Pages of the documents that are made from the code: commands from their parsers, settings from the file that reads
them, and the addresses of the REST API from its OpenAPI document.
"""

import re
from argparse import SUPPRESS, Action, ArgumentParser, _SubParsersAction
from collections.abc import Iterator

from survey.storage.paths import BASE_DIR, DOCUMENTS_DIR

MADE = "This page is made from the code.\n"
COMMON = {"help", "version", "settings", "pythonpath", "traceback", "no_color", "force_color", "verbosity"}
READ = re.compile(r'read_(?P<kind>\w+)\(\s*"(?P<setting>[A-Z_]+)"')
TITLES = {
    "reference/commands": "Every command with its options",
    "reference/settings": "Every setting",
    "reference/rest": "Every address of the REST API",
}


def page(name: str) -> str:
    """The Markdown of one of `TITLES`."""
    makers = {"reference/commands": _commands, "reference/settings": _settings, "reference/rest": _rest}
    return f"# {TITLES[name]}\n\n{MADE}\n{makers[name]()}"


def _cell(text: object) -> str:
    return " ".join(str(text).split()).replace("|", "\\|").replace("<", "&lt;")


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"


# Commands


def _commands() -> str:
    from django.core.management import get_commands, load_command_class

    ours = sorted(name for name, app in get_commands().items() if app.partition(".")[0] == "survey")
    parts = []
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
    source = (BASE_DIR / "survey" / "settings.py").read_text(encoding="utf-8")
    said = dict(
        re.findall(r"(?m)^\| `([A-Z_]+)` \| (.+) \|$", (DOCUMENTS_DIR / "operation.md").read_text(encoding="utf-8"))
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
    return f"[Operation](../operation.md) explains them.\n\n{table}"


# The REST API


def _rest() -> str:
    from drf_spectacular.generators import SchemaGenerator

    document = SchemaGenerator().get_schema(request=None, public=True)
    parts = ["[The REST API](../rest.md) explains them.\n"]
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
