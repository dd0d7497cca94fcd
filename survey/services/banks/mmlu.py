"""Reads MMLU (Hendrycks et al., 2021) as its authors publish it: one CSV file without header for each subject.

Each row is question, A, B, C, D, letter. Every cell is a text: "nan" and "None" are options, not gaps.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from survey.exceptions import FileErrors
from survey.input_tables import reader
from survey.input_tables.problems import Problems
from survey.input_tables.reader import TableReading

from .importing import QuestionRow, benchmark_files
from .markup import multiple_choice

LETTERS = ("A", "B", "C", "D")
COLUMNS = ("question", *LETTERS, "letter")
NEEDED = "is not question, four options and a letter from A to D: correct it"

# The four groups in which the benchmark's authors report results.
DOMAINS = {
    "STEM": (
        "abstract_algebra astronomy college_biology college_chemistry college_computer_science "
        "college_mathematics college_physics computer_security conceptual_physics electrical_engineering "
        "elementary_mathematics high_school_biology high_school_chemistry high_school_computer_science "
        "high_school_mathematics high_school_physics high_school_statistics machine_learning"
    ),
    "humanities": (
        "formal_logic high_school_european_history high_school_us_history high_school_world_history "
        "international_law jurisprudence logical_fallacies moral_disputes moral_scenarios philosophy prehistory "
        "professional_law world_religions"
    ),
    "social sciences": (
        "econometrics high_school_geography high_school_government_and_politics high_school_macroeconomics "
        "high_school_microeconomics high_school_psychology human_sexuality professional_psychology public_relations "
        "security_studies sociology us_foreign_policy"
    ),
    "other": (
        "anatomy business_ethics clinical_knowledge college_medicine global_facts human_aging management marketing "
        "medical_genetics miscellaneous nutrition professional_accounting professional_medicine virology"
    ),
}
DOMAIN_OF = {subject: domain for domain, subjects in DOMAINS.items() for subject in subjects.split()}


def read(folder: Path, problems: Problems) -> Iterator[QuestionRow]:
    """Every question of the test split, subject by subject in alphabetical order.

    `folder` holds the files `SUBJECT_test.csv`, or a folder `test` with them, or `data/test` as in the archive.
    """
    needed = "holds no SUBJECT_test.csv: name the folder of MMLU's test split"
    for path in benchmark_files(folder, "*_test.csv", problems, inside=("test", "data/test"), needed=needed):
        yield from _subject(path, path.name.removesuffix("_test.csv"), problems)


def _subject(path: Path, subject: str, problems: Problems) -> Iterator[QuestionRow]:
    if subject not in DOMAIN_OF:
        problems.add(str(path), 1, "file", f"{subject!r} is not one of MMLU's {len(DOMAIN_OF)} subjects: move it away")
        return
    try:
        table = reader.read_path(path, TableReading(delimiter=","), guesses=False, header=COLUMNS)
    except FileErrors as exc:
        problems.found += exc.problems
        return
    problems.found += [replace(problem, message=NEEDED) for problem in table.problems_in()]
    for number, (line, values) in enumerate(table.rows):
        if values[-1].strip() not in LETTERS:
            problems.add(str(path), line, "row", NEEDED)
            continue
        yield QuestionRow(
            id=f"mmlu_{subject}:{number}",
            source=f"mmlu_{subject}",
            question=multiple_choice(values[0], values[1:-1]),
            answer=values[-1].strip(),
            domain=DOMAIN_OF[subject],
            file=str(path),
            line=line,
        )
