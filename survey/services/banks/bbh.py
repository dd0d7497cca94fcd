"""Reads BIG-Bench Hard (Suzgun et al., 2022) as its authors publish it: a folder with one JSON file for each task.

Each file is {"examples": [{"input", "target"}, ...]}. Options, if there are any, are "(A) ..." lines in the input.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from .importing import Problems, QuestionRow, read_text_file
from .markup import lines_to_breaks, multiple_choice

# The paper leaves these five of the 27 out (section 3).
LEFT_OUT_BY_THE_PAPER = (
    "boolean_expressions",
    "dyck_languages",
    "geometric_shapes",
    "salient_translation_error_detection",
    "word_sorting",
)
DOMAIN = "BIG-Bench Hard"
OPTION = re.compile(r"^\(([A-Z])\) ?(.*)$")
KEY = re.compile(r"^\(([A-Z])\)$")


def read(folder: Path, problems: Problems, *, paper_tasks: bool = False) -> Iterator[QuestionRow]:
    """Every example, task by task in alphabetical order; with `paper_tasks` only those of the paper's 22 tasks.

    `folder` holds the JSON files, or a folder `bbh` with them, as in the published repository.
    """
    for inner in (folder, folder / "bbh"):
        files = sorted(inner.glob("*.json"))
        if files:
            break
    else:
        problems.add(str(folder), 1, "folder", "holds no TASK.json: name the folder of BIG-Bench Hard's tasks")
        return
    for path in files:
        if not (paper_tasks and path.stem in LEFT_OUT_BY_THE_PAPER):
            yield from _task(path, problems)


def _task(path: Path, problems: Problems) -> Iterator[QuestionRow]:
    before = len(problems)
    text = read_text_file(path, problems)
    if len(problems) > before:
        return
    try:
        examples = json.loads(text)["examples"]
        pairs = [(str(example["input"]), str(example["target"])) for example in examples]
    except json.JSONDecodeError as exc:
        problems.add(str(path), exc.lineno, "file", f"not JSON ({exc.msg}): mend it")
        return
    except (KeyError, TypeError):
        problems.add(str(path), 1, "examples", 'is not a list of {"input", "target"}: name a file of the benchmark')
        return
    for number, (given, target) in enumerate(pairs):
        key = KEY.match(target.strip())
        yield QuestionRow(
            id=f"bbh_{path.stem}:{number}",
            source=f"bbh_{path.stem}",
            question=_marked_up(given),
            answer=key[1] if key else target.strip(),
            domain=DOMAIN,
            file=str(path),
        )


def _marked_up(given: str) -> str:
    """The stem in bold where lettered options follow it; otherwise the text as it stands."""
    lines = given.strip().split("\n")
    first = next((index for index, line in enumerate(lines) if OPTION.match(line)), None)
    if first is None:
        return lines_to_breaks(given)
    options = [OPTION.match(line) for line in lines[first:]]
    letters = [found[1] for found in options if found]
    if first == 0 or letters != [chr(ord("A") + index) for index in range(len(lines) - first)]:
        return lines_to_breaks(given)
    return multiple_choice("\n".join(lines[:first]), [found[2] for found in options if found])
