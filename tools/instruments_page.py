"""Writes docs/instruments.md: what an instrument has, as the contract's classes say it.

    python -m tests.renew instruments

Signatures and texts are read from the source of `survey/contracts/`; nothing is written by hand but the introduction.
"""

import ast
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "docs" / "instruments.md"
NOTE = "<!-- Written by `python -m tests.renew instruments`: change the classes in survey/contracts/. -->"
INTRODUCTION = """# The contract of an instrument

All that an instrument may say of itself. [Adding an instrument](adding-an-instrument.md) begins with one that works. A
member marked *required* has no default. The capabilities are properties of `Instrument`, and each is a class below.
`survey.contracts.instruments` has all of them up to `Demonstration`, whichever file they are in.
"""
# Modules of the contract, each with its classes in the reader's order.
CLASSES = {
    "instrument": ("Instrument", "ListedInstrument", "Options", "Needs"),
    "booklets": ("Booklets", "Practice", "Controls"),
    "answers": ("Estimates", "Signals", "LabelReading", "StoredVerdicts"),
    "learning": ("Learning",),
    "drawing": ("Priority", "Pairing"),
    "demonstrations": ("Demonstration",),
    "item_rows": ("ItemRows",),
    "exports": ("AnswerExport", "AnswerColumn", "Answered", "CountedAnswers"),
    "binary_learning": ("BinaryLearning",),
    "screens": ("Screen", "Points", "SimulatedPerson"),
    "expectations": ("Expecting",),
    "budgets": ("BudgetPlanner", "StudyPlan", "PolicySetting", "BudgetColumn"),
}


def page() -> str:
    """The page as it should be."""
    return page_of(CLASSES, introduction=INTRODUCTION, note=NOTE)


def page_of(modules: Mapping[str, Sequence[str]], *, introduction: str, note: str) -> str:
    """A page of these classes, by modules of the contract.

    Raises:
        KeyError: the contract lacks one of them.
    """
    parts = [introduction.split("\n", 1)[0], "", note, introduction.split("\n", 1)[1].rstrip()]
    for module, names in modules.items():
        source = (ROOT / "survey" / "contracts" / f"{module}.py").read_text(encoding="utf-8")
        classes = {node.name: node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)}
        for name in names:
            parts += ["", f"## `{name}`", "", f"In `survey.contracts.{module}`.{_text(classes[name])}", ""]
            parts += _members(classes[name], source.splitlines())
    return "\n".join(parts).rstrip() + "\n"


def _text(node: ast.ClassDef | ast.FunctionDef) -> str:
    """The docstring as Markdown, after a space; headings such as `Args:` become words in the text."""
    text = ast.get_docstring(node) or ""
    paragraphs = [" ".join(paragraph.split()) for paragraph in re.split(r"\n\s*\n", text)]
    return "".join(f" {paragraph}" for paragraph in paragraphs if paragraph)


def _members(node: ast.ClassDef, lines: list[str]) -> Iterator[str]:
    for member in node.body:
        if isinstance(member, ast.AnnAssign | ast.Assign):
            target = member.target if isinstance(member, ast.AnnAssign) else member.targets[0]
            if isinstance(target, ast.Name) and not target.id.startswith("_"):
                text = _comment_above(member.lineno, lines)
                yield f"- `{_one_line(member)}`{f': {text}' if text else ''}"
        elif isinstance(member, ast.FunctionDef) and not member.name.startswith("_"):
            yield f"- {_signature(member)}{_described(member)}"


def _signature(member: ast.FunctionDef) -> str:
    decorators = {ast.unparse(decorator) for decorator in member.decorator_list}
    returns = ast.unparse(member.returns).strip("'\"") if member.returns else "None"
    required = " *required*" if "abstractmethod" in decorators else ""
    if decorators & {"property", "cached_property"}:
        return f"`{member.name}: {_plain(returns)}`{required}"
    arguments = ast.unparse(member.args).removeprefix("self, ").removeprefix("cls, ")
    arguments = "" if arguments in ("self", "cls") else arguments
    return f"`{member.name}({_plain(arguments)}) -> {_plain(returns)}`{required}"


def _described(member: ast.FunctionDef) -> str:
    text = _text(member).strip()
    return f": {text}" if text else ""


def _one_line(member: ast.AnnAssign | ast.Assign) -> str:
    text = _plain(ast.unparse(member)).replace("ClassVar[", "", 1) if "ClassVar[" in ast.unparse(member) else ""
    if text:  # The bracket of ClassVar closes before the default, or at the end.
        head, equals, default = text.partition(" = ")
        text = head.removesuffix("]") + equals + default
    return text or _plain(ast.unparse(member))


def _plain(signature: str) -> str:
    """Without the quotation marks of names that are imported for types alone."""
    return re.sub(r"'([A-Za-z_][\w.\[\], |]*)'", r"\1", signature)


def _comment_above(line: int, lines: list[str]) -> str:
    """The comment that ends right above this line, which is counted from 1."""
    first = line - 1
    while lines[first - 1].lstrip().startswith("#"):
        first -= 1
    return " ".join(textwrap.dedent("\n".join(lines[first : line - 1])).replace("# ", "").split())


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
