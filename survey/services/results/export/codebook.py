"""What every column of an export means."""

import textwrap
from collections.abc import Mapping
from pathlib import Path

from survey.contracts import instruments
from survey.contracts.tables import Column
from survey.models import Study
from survey.services.answers.conditions import in_words
from survey.services.results.export.answers_file import NO_LEVELS
from survey.services.results.export.columns import columns_of
from survey.services.results.export.contents import file_heads


def codebook(study: Study) -> list[tuple[str, Column]]:
    """Every column of every file of an export, with its file."""
    entries = [("answers.csv", column) for column in columns_of(study)]
    for extra in file_heads(study):
        entries += [(extra.name, column) for column in extra.columns]
    return entries


CODEBOOK_HEADER = (
    Column("file", "text", "The file the column stands in."),
    Column("column", "text", "The column's name."),
    Column("kind", "text", "What its values are."),
    Column("description", "text", "What they mean."),
)


FORMULAS = Path(__file__).with_name("scripts") / "formulas.md"
FILES = (
    "All files are UTF-8 with a header line, lines end in a newline, and an empty cell means that there is "
    "nothing (yet). Texts equal the bank's byte for byte: read them with missing-value detection off (a text may "
    'be "nan"), and do not open the file in a spreadsheet without care (a text may begin with "="). Times are ISO '
    "8601 in UTC."
)


CODEBOOK_PREFACE = """# Codebook

What `manage.py export` writes for a study of the kind `{instrument}`; the export itself brings this page along.

{files}

`answers.csv` has a row for every slot of every plan and each assignment that it was given in: one slot can have several
rows (given back by one person, answered by another) and at most one of them is `counted`. Estimates use the rows whose
status is `counted` and whose role is `sampled` or `holdout`, without those of a pilot and those with something in
`excluded`, each weighted inside its stage by 1 / (inclusion_probability * pool_probability). `weight` puts the stages
together: a mean of answers with these weights is the plain figure of `estimate`.
"""


def codebook_page(study: Study, levels: Mapping[str, str] = NO_LEVELS) -> str:
    """The codebook as Markdown."""
    files = textwrap.fill(f"{FILES} {instruments.of_study(study).export.codebook_note}", width=120)
    lines = [CODEBOOK_PREFACE.format(instrument=study.instrument, files=files)]
    if study.is_test:
        lines.append(
            "This is an export of a test copy: nobody in it took part in a study (`is_test` is 1 in each row).\n"
        )
    if levels:
        lines.append(f"Only answers under {in_words(levels)} are in answers.csv and in the instrument's own files.\n")
    current = ""
    for name, column in codebook(study):
        if name != current:
            lines += [f"## {name}", "", "| column | kind | meaning |", "| --- | --- | --- |"]
            current = name
        lines.append(f"| {column.name} | {column.kind} | {column.description} |")
    if instruments.of_study(study).estimates is not None:
        lines += ["", FORMULAS.read_text(encoding="utf-8").rstrip("\n")]
    return "\n".join(lines) + "\n"
