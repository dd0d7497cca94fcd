"""Codes that people gave to a study's reasons: files as `to_code.csv`, and how far the coders agree."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import PlainValidator

from predictors.evaluation.agreement import agreement, krippendorff_alpha
from survey.contracts.reports import ReportResult
from survey.exceptions import HunchError
from survey.figures import Column, Figure, FigureColumn, Table
from survey.input_tables import cells, reader
from survey.input_tables.decoding import read_bytes
from survey.input_tables.problems import Problems
from survey.input_tables.rows import TableRow, column, declared, rows_of
from survey.models import Study

from ...models import ReasonCode
from ..alignment.files import SHOWN
from .written import Reason, reasons_of

LONGEST_NAME = 60  # characters of a coder's name
LONGEST_CODE = 80
BATCH = 500

AGREEMENT = (
    Column("first", "text", "The first coder: the file's name."),
    Column("second", "text", "The second coder."),
    Column("n", "number", "Reasons that both coded.", heading="reasons"),
    Column("agree", "share", "How often they gave the same code."),
    FigureColumn(
        "kappa",
        "number",
        "Cohen's kappa; empty where both used one code alone.",
        digits=3,
        prefix="",
        low="Lower end of its 95 % interval over reasons.",
    ),
)
ALPHA = (
    Column("coders", "text", "All coders, by name."),
    Column(
        "n",
        "number",
        "Reasons that at least two of them coded; the others say nothing of agreement.",
        heading="reasons",
    ),
    Column("codes", "number", "Codes given to these reasons."),
    FigureColumn(
        "alpha",
        "number",
        "Krippendorff's alpha, nominal; empty where fewer than two different codes were given.",
        digits=3,
        prefix="",
        low="Lower end of its 95 % interval over reasons.",
    ),
)
CODES = (
    Column("coder", "text", "The coder: the file's name."),
    Column("outcome", "text", "How the evidence was answered."),
    Column("change", "text", "raised, lowered or kept."),
    Column("code", "text", "The code."),
    Column("n", "number", "How many reasons got it.", heading="reasons"),
    Column("share", "share", "Of this coder's reasons of this outcome and change."),
)


def _code(text: str) -> str:
    code = " ".join(text.split())
    if len(code) > LONGEST_CODE or not code.isprintable():
        raise ValueError(f"must have at most {LONGEST_CODE} printable characters, not {len(code)}; shorten it")
    return code


@declared
class CodedRow(TableRow):
    """A reason, and the code that the coder gave to it. The file's name names the coder."""

    read_by = "`reason_codes FILE`, the page of the report `reasons`"
    answer: cells.Stripped = column("The answer's name, as `to_code.csv` has it.")
    code: Annotated[str, PlainValidator(_code)] = column(
        f"The code, of at most {LONGEST_CODE} characters; empty: none is given."
    )


@dataclass(frozen=True)
class Coded:
    """One coder's codes by answer; reasons without a code are left out."""

    coder: str
    codes: Mapping[str, str]


def read_codes(content: bytes, path: str, known: Mapping[str, Reason]) -> Coded:
    """
    Args:
        content: what the file holds; `path` names it, and its name without the ending names the coder.

    Raises:
        FileErrors: columns missing, an answer that the study does not have or that stands twice, no code, or a code or
            a coder's name that is too long.
    """
    problems = Problems(shown=SHOWN)
    codes: dict[str, str] = {}
    seen: set[str] = set()
    coder = Path(path).stem
    if not coder.isprintable() or not 1 <= len(coder) <= LONGEST_NAME:
        message = f"its name, which names the coder, must have 1 to {LONGEST_NAME} printable characters; rename it"
        problems.add(path, 1, "file", message)
    table = reader.read(content, path, limits=reader.OWN_FILES, guesses=False)
    rows = rows_of(CodedRow, table, problems)
    for row in rows:
        if row.answer not in known:
            message = f"{row.answer[:40]!r} is no answer with a reason in this study; give the file that it wrote"
            rows.wrong(row.line, "answer", message)
        elif row.answer in seen:
            rows.wrong(row.line, "answer", f"{row.answer} stands twice; keep one row")
        elif row.code:
            codes[row.answer] = row.code
        seen.add(row.answer)
    if not codes and not problems:
        rows.wrong(1, "code", "is empty in every row; fill in at least one")
    problems.raise_if_any()
    return Coded(coder, codes)


def codes_of(study: Study, paths: Sequence[Path], *, seed: int = 0) -> ReportResult:
    """The codes by outcome and change, and the agreement of every two coders, from files.

    Raises:
        FileErrors: as `read_codes`, or a file that cannot be read.
        HunchError: two files have the same name, or no two coders have coded a reason in common.
    """
    known = known_reasons(reasons_of(study))
    coders = read_all([(read_bytes(path), str(path)) for path in paths], known)
    tables, notes = tables_of(coders, known, seed=seed)
    pairs = list(combinations(coders, 2))
    if pairs and not any(first.codes.keys() & second.codes.keys() for first, second in pairs):
        names = [coder.coder for coder in coders]
        raise HunchError(f"{', '.join(names[:-1])} and {names[-1]}: have coded no reason in common")
    return ReportResult(title=f"Codes of the reasons in {study.slug}", tables=tables, notes=notes)


def known_reasons(asked: Sequence[Reason]) -> dict[str, Reason]:
    """Those that have been written, by the name of their answer."""
    return {reason.answer: reason for reason in asked if reason.text}


def read_all(files: Sequence[tuple[bytes, str]], known: Mapping[str, Reason]) -> list[Coded]:
    """A coder for each file (content, name).

    Raises:
        FileErrors: as `read_codes`.
        HunchError: two files have the same name.
    """
    coders = [read_codes(content, path, known) for content, path in files]
    names = Counter(coder.coder for coder in coders)
    if doubled := [name for name, count in names.items() if count > 1]:
        raise HunchError(f"{doubled[0]}: two files have this name, which names the coder; rename one")
    return coders


def store(study: Study, coders: Sequence[Coded], known: Mapping[str, Reason]) -> None:
    """Keep the coders' codes with the study, in place of all that these coders gave before."""
    ReasonCode.objects.filter(
        explanation__response__assignment__slot__stage__study=study, coder__in=[coder.coder for coder in coders]
    ).delete()
    ReasonCode.objects.bulk_create(
        [
            ReasonCode(explanation_id=known[answer].explanation, coder=coder.coder, code=code)
            for coder in coders
            for answer, code in coder.codes.items()
        ],
        batch_size=BATCH,
    )


def stored(known: Mapping[str, Reason]) -> list[Coded]:
    """The stored codes of these reasons, by coder."""
    by_row = {reason.explanation: answer for answer, reason in known.items()}
    stored_codes: dict[str, dict[str, str]] = {}
    keys = list(by_row)
    for start in range(0, len(keys), BATCH):
        rows = ReasonCode.objects.filter(explanation__in=keys[start : start + BATCH]).order_by("coder", "explanation")
        for row, coder, code in rows.values_list("explanation_id", "coder", "code"):
            stored_codes.setdefault(coder, {})[by_row[row]] = code
    return [Coded(coder, codes) for coder, codes in sorted(stored_codes.items())]


def tables_of(coders: Sequence[Coded], known: Mapping[str, Reason], *, seed: int = 0) -> tuple[list[Table], list[str]]:
    """Agreement and codes as tables, and what a reader should know. Two coders without a reason in common are named."""
    rows: list[list[Any]] = []
    notes = []
    for first, second in combinations(coders, 2):
        common = sorted(first.codes.keys() & second.codes.keys())
        if not common:
            notes.append(f"{first.coder} and {second.coder} have coded no reason in common")
            continue
        agreed = agreement(
            [first.codes[key] for key in common],
            [second.codes[key] for key in common],
            rng=np.random.default_rng(seed),
        )
        withheld = "" if agreed["kappa"] is not None else "both used one code alone, so that kappa is not defined"
        kappa = Figure.between(agreed["kappa"], agreed["interval"], withheld=withheld)
        rows.append([first.coder, second.coder, agreed["n"], agreed["agree"], kappa])
    if len(coders) == 1:
        notes.append("one file: agreement needs those of two coders")
    note = "Cohen's kappa; reasons are resampled for its interval."
    if not rows:
        note = "There is one coder." if len(coders) == 1 else "No two coders have coded the same reasons."
    tables = [
        Table("agreement", "Agreement of the coders", AGREEMENT, rows, note),
        _alpha_table(coders, seed=seed),
        Table("codes", "Codes by outcome and change", CODES, list(_code_rows(coders, known))),
    ]
    return tables, notes


def _alpha_table(coders: Sequence[Coded], *, seed: int) -> Table:
    alpha = krippendorff_alpha([coder.codes for coder in coders], rng=np.random.default_rng(seed))
    names = ", ".join(coder.coder for coder in coders)
    row = [names, alpha["units"], alpha["codes"], Figure.between(alpha["alpha"], alpha["interval"])]
    note = "Krippendorff's alpha for codes without an order; reasons are resampled for its interval."
    if alpha["alpha"] is None:
        note = "No reason has codes by two coders." if not alpha["units"] else "One code alone was given: no alpha."
    return Table("alpha", "Agreement of all coders together", ALPHA, [row], note)


def _code_rows(coders: Sequence[Coded], known: Mapping[str, Reason]) -> list[list[Any]]:
    rows = []
    for coder in coders:
        counts = Counter((known[key].outcome, known[key].change, code) for key, code in coder.codes.items())
        totals: Counter[tuple[str, str]] = Counter()
        for (outcome, change, _code), number in counts.items():
            totals[outcome, change] += number
        rows += [[coder.coder, *key, number, number / totals[key[:2]]] for key, number in sorted(counts.items())]
    return rows
