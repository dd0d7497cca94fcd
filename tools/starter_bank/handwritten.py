"""The questions written by hand: `handwritten.csv`, one per line, with the reason why its key is right.

Dependency rule: the standard library and `drafts` only.
"""

import csv
from itertools import groupby
from pathlib import Path

from .drafts import Draft, Row, lay_out

SOURCE = Path(__file__).with_name("handwritten.csv")

DOMAINS = {
    "word_problems": "mathematics",
    "estimation": "mathematics",
    "deductive_logic": "reasoning",
    "spatial_reasoning": "reasoning",
    "cause_and_effect": "reasoning",
    "geography": "humanities",
    "history": "humanities",
    "arts_and_literature": "humanities",
    "biology": "science",
    "physics": "science",
    "chemistry": "science",
    "astronomy": "science",
    "word_meaning": "language",
    "grammar": "language",
    "everyday_knowledge": "everyday_life",
    "sports_and_games": "everyday_life",
    "computing_concepts": "computing",
    "code_reading": "computing",
    "law_and_ethics": "society",
    "money_and_economics": "society",
}


def rows() -> list[Row]:
    """All handwritten questions, laid out, in the order of the file (a task's lines are together)."""
    with SOURCE.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    laid_out: list[Row] = []
    for task, group in groupby(lines, key=lambda line: line["task"]):
        drafts = [
            Draft(
                stem=line["stem"],
                answer=line["answer"],
                reason=line["reason"],
                wrong=tuple(line[f"wrong_{place}"] for place in (1, 2, 3) if line[f"wrong_{place}"]),
            )
            for line in group
        ]
        laid_out += lay_out(task=task, domain=DOMAINS[task], drafts=drafts)
    return laid_out
