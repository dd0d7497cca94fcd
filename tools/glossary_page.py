"""Writes docs/glossary.md: our words with their meaning, and the heads of the reports' tables.

    python -m tests.renew glossary

The words stand in `survey/figures/glossary.py`; pages show the same at the heads of their tables.
"""

from pathlib import Path

from survey.figures.glossary import PARTS, Word

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "docs" / "glossary.md"
INTRODUCTION = """# Our words
<!-- Written by `python -m tests.renew glossary`: change survey/figures/glossary.py. -->

The words that the pages, the documents and the code use. Each has one meaning; the last column has the word of the
field. On pages a word with dots under it shows its meaning when you point at it, tap it, or press Enter on it. The
heads of reports' tables do the same and say what stands in their column; the columns of files are in the
[codebook](codebook.md).
"""


def page() -> str:
    """The page as it should be."""
    lines = [INTRODUCTION]
    for title, words in PARTS.items():
        lines += [f"## {title}\n", "| word | meaning | elsewhere |", "|---|---|---|"]
        lines += [_row(name, word) for name, word in words.items()]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _row(name: str, word: Word) -> str:
    return f"| {name} | {word.meaning} | {word.elsewhere or '-'} |"


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
