"""The fenced blocks of a page of docs/ that a comment marks: files to write, and commands to run, in their order."""

import re
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
BLOCK = re.compile(
    r"(?ms)^<!-- (?P<what>file: (?P<name>[\w.-]+)|run in the background|run) -->\n```\w+\n(?P<text>.*?)^```$"
)


@dataclass(frozen=True)
class Block:
    """`name` is empty for commands."""

    name: str
    text: str
    is_background: bool = False


def blocks_of(page: str) -> list[Block]:
    text = (DOCS / page).read_text(encoding="utf-8")
    blocks = [
        Block(match["name"] or "", match["text"], "background" in match["what"]) for match in BLOCK.finditer(text)
    ]
    assert len(blocks) == len(re.findall(r"<!-- (?:file|run)", text)), f"{page}: a marked block is not written as one"
    return blocks


def files_of(page: str) -> dict[str, str]:
    return {block.name: block.text for block in blocks_of(page) if block.name}
