"""Reads BIG-Bench Hard (Suzgun et al., 2022) as its authors publish it: a folder with one JSON file for each task.

Each file is {"examples": [{"input", "target"}, ...]}. Options, if there are any, are "(A) ..." lines in the input.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from survey import letters
from survey.input_tables.decoding import json_of
from survey.input_tables.problems import Problems
from survey.input_tables.rows import read_text_file

from .importing import QuestionRow, benchmark_files
from .markup import lines_to_breaks, multiple_choice

TASKS = (
    "boolean_expressions",
    "causal_judgement",
    "date_understanding",
    "disambiguation_qa",
    "dyck_languages",
    "formal_fallacies",
    "geometric_shapes",
    "hyperbaton",
    "logical_deduction_five_objects",
    "logical_deduction_seven_objects",
    "logical_deduction_three_objects",
    "movie_recommendation",
    "multistep_arithmetic_two",
    "navigate",
    "object_counting",
    "penguins_in_a_table",
    "reasoning_about_colored_objects",
    "ruin_names",
    "salient_translation_error_detection",
    "snarks",
    "sports_understanding",
    "temporal_sequences",
    "tracking_shuffled_objects_five_objects",
    "tracking_shuffled_objects_seven_objects",
    "tracking_shuffled_objects_three_objects",
    "web_of_lies",
    "word_sorting",
)
# The paper leaves these five of them out (section 3).
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


def read(folder: Path, problems: Problems) -> Iterator[QuestionRow]:
    """Every example, task by task in alphabetical order.

    `folder` holds the JSON files, or a folder `bbh` with them, as in the published repository.
    """
    needed = "holds no TASK.json: name the folder of BIG-Bench Hard's tasks"
    for path in benchmark_files(folder, "*.json", problems, inside=("bbh",), needed=needed):
        yield from _task(path, problems)


def _task(path: Path, problems: Problems) -> Iterator[QuestionRow]:
    if path.stem not in TASKS:
        problems.add(
            str(path), 1, "file", f"{path.stem!r} is not one of BIG-Bench Hard's {len(TASKS)} tasks: move it away"
        )
        return
    before = len(problems)
    text = read_text_file(path, problems)
    if len(problems) > before:
        return
    try:
        examples = json_of(text)["examples"]
        pairs = [(example["input"], example["target"]) for example in examples]
    except json.JSONDecodeError as exc:
        problems.add(str(path), exc.lineno, "file", f"not JSON ({exc.msg}): correct it")
        return
    except ValueError as exc:
        problems.add(str(path), 1, "file", f"not JSON that can be read ({exc}): correct it")
        return
    except (KeyError, TypeError):
        problems.add(str(path), 1, "examples", 'is not a list of {"input", "target"}: name a file of the benchmark')
        return
    for number, (input_text, target) in enumerate(pairs):
        if not (isinstance(input_text, str) and isinstance(target, str)):
            what = next(name for name, text in (("input", input_text), ("target", target)) if not isinstance(text, str))
            problems.add(str(path), 1, f"examples.{number}.{what}", "is no text: put it in quotes")
            continue
        for name, text in (("input", input_text), ("target", target)):
            if message := letters.control_character(text):  # JSON writes them with a backslash.
                problems.add(str(path), 1, f"examples.{number}.{name}", message)
        key = KEY.match(target.strip())
        yield QuestionRow(
            id=f"bbh_{path.stem}:{number}",
            source=f"bbh_{path.stem}",
            question=_marked_up(input_text),
            answer=key[1] if key else target.strip(),
            domain=DOMAIN,
            file=str(path),
        )


def _marked_up(text: str) -> str:
    """The stem in bold where lettered options follow it; otherwise the text as it stands."""
    lines = text.strip().split("\n")
    first = next((index for index, line in enumerate(lines) if OPTION.match(line)), None)
    if first is None:
        return lines_to_breaks(text)
    options = [OPTION.match(line) for line in lines[first:]]
    letters = [option[1] for option in options if option]
    if first == 0 or letters != [chr(ord("A") + index) for index in range(len(lines) - first)]:
        return lines_to_breaks(text)
    return multiple_choice("\n".join(lines[:first]), [option[2] for option in options if option])
