"""Codes that people gave to a study's reasons: files as `to_code.csv`, and how far the coders agree."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from predictors.evaluation.agreement import agreement
from survey.contracts.reports import Findings, Layout, Table
from survey.contracts.tables import Column
from survey.exceptions import FileErrors, HunchError, Problem
from survey.models import Study

from .alignment_files import SHOWN, csv_rows
from .reasons import Reason, reasons_of

AGREEMENT = (
    Column("first", "text", "The first coder: the file's name."),
    Column("second", "text", "The second coder."),
    Column("n", "number", "Reasons that both coded."),
    Column("agree", "share", "How often they gave the same code."),
    Column("kappa", "number", "Cohen's kappa; empty where both used one code alone."),
    Column("low", "number", "Lower end of its 95 % interval over reasons."),
    Column("high", "number", "Its upper end."),
)
CODES = (
    Column("coder", "text", "The coder: the file's name."),
    Column("outcome", "text", "How the evidence was answered."),
    Column("change", "text", "raised, lowered or kept."),
    Column("code", "text", "The code."),
    Column("n", "number", "How many reasons got it."),
    Column("share", "share", "Of this coder's reasons of this outcome and change."),
)


@dataclass(frozen=True)
class Coded:
    """One coder's codes by answer; reasons without a code are left out."""

    coder: str
    codes: Mapping[str, str]


def read_codes(path: Path, known: Mapping[str, Reason]) -> Coded:
    """
    Raises:
        FileErrors: unreadable, columns missing, an answer that the study does not have or that stands twice, no code.
    """
    problems: list[Problem] = []
    codes: dict[str, str] = {}
    seen: set[str] = set()
    for line, row in csv_rows(path, ("answer", "code")):
        answer, code = row["answer"].strip(), " ".join(row["code"].split())
        if answer not in known:
            message = f"{answer[:40]!r} is no answer with a reason in this study; give the file that it wrote"
            problems.append(Problem(str(path), line, "answer", message))
        elif answer in seen:
            problems.append(Problem(str(path), line, "answer", f"{answer} stands twice; keep one row"))
        elif code:
            codes[answer] = code
        seen.add(answer)
    if not codes and not problems:
        problems.append(Problem(str(path), 1, "code", "is empty in every row; fill in at least one"))
    if problems:
        raise FileErrors(problems, shown=SHOWN)
    return Coded(path.stem, codes)


def codes_of(study: Study, paths: Sequence[Path], *, seed: int = 0) -> Findings:
    """The codes by outcome and change, and the agreement of every two coders.

    Raises:
        FileErrors: as `read_codes`.
        HunchError: two files have the same name, or two coders have coded no reason in common.
    """
    known = {one.answer: one for one in reasons_of(study) if one.text}
    coders = [read_codes(path, known) for path in paths]
    names = Counter(one.coder for one in coders)
    if doubled := [name for name, count in names.items() if count > 1]:
        raise HunchError(f"{doubled[0]}: two files have this name, which names the coder; rename one")
    rows: list[list[Any]] = []
    shown, notes = [], []
    for first, second in combinations(coders, 2):
        common = sorted(first.codes.keys() & second.codes.keys())
        if not common:
            raise HunchError(f"{first.coder} and {second.coder}: have coded no reason in common")
        found = agreement(
            [first.codes[key] for key in common],
            [second.codes[key] for key in common],
            rng=np.random.default_rng(seed),
        )
        low, high = found["interval"] or (None, None)
        rows.append([first.coder, second.coder, found["n"], found["agree"], found["kappa"], low, high])
        kappa = "–" if found["kappa"] is None else f"{found['kappa']:.3f}"
        if low is not None and high is not None:
            kappa += f" [{low:.3f}, {high:.3f}]"
        shown.append([first.coder, second.coder, str(found["n"]), f"{100 * found['agree']:.1f} %", kappa])
        if found["kappa"] is None:
            notes.append(f"{first.coder} and {second.coder}: both used one code alone, so that kappa is not defined")
    if len(coders) == 1:
        notes.append("one file: agreement needs those of two coders")
    note = "Cohen's kappa; in brackets its 95 % interval, reasons resampled." if rows else "There is one coder."
    header = ["first", "second", "reasons", "agree", "kappa"]
    return Findings(
        title=f"Codes of the reasons in {study.slug}",
        tables=[
            Table("agreement", "Agreement of the coders", AGREEMENT, rows, note, [Layout(header, shown)]),
            Table("codes", "Codes by outcome and change", CODES, list(_code_rows(coders, known))),
        ],
        notes=notes,
    )


def _code_rows(coders: Sequence[Coded], known: Mapping[str, Reason]) -> list[list[Any]]:
    rows = []
    for coder in coders:
        counts = Counter((known[key].outcome, known[key].change, code) for key, code in coder.codes.items())
        totals: Counter[tuple[str, str]] = Counter()
        for (outcome, change, _code), number in counts.items():
            totals[outcome, change] += number
        rows += [[coder.coder, *key, number, number / totals[key[:2]]] for key, number in sorted(counts.items())]
    return rows
