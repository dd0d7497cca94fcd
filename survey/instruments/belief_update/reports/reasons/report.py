"""The report `reasons`: what people wrote about why their belief changed or stayed, by outcome and change."""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from statistics import median

import numpy as np

from survey.contracts.reports import Argument, Intake, ReceivedFile, Report, ReportArguments, ReportFile, ReportResult
from survey.exceptions import HunchError
from survey.figures import Column, Table
from survey.figures.csv_lines import csv_lines, guarded
from survey.models import Study
from survey.services.results.reports import CONDITION

from . import codes as reason_codes
from . import written as reasons
from .written import CHANGES, OUTCOMES, Reason

MAX_SAMPLE = 1_000_000
COUNTS = (
    Column("outcome", "text", "How the evidence was answered: correct or incorrect."),
    Column("change", "text", "raised, lowered or kept: where the belief went, by the study's threshold."),
    Column("asked", "number", "Counted answers whose person was asked for reasons."),
    Column("written", "number", "Those of them with a reason."),
    Column("characters", "number", "The median length of these."),
)
REASONS = (
    Column("answer", "text", "Names the answer without saying whose it is: s and the stage, n and the slot."),
    Column("outcome", "text", "How the evidence was answered: correct or incorrect."),
    Column("change", "text", "raised, lowered or kept."),
    Column("prior", "percentage points", "The belief before the evidence."),
    Column("posterior", "percentage points", "The belief after it."),
    Column("evidence_task", "text", "Task of the evidence question.", heading="from"),
    Column("target_task", "text", "Task of the target question.", heading="to"),
    Column("reason", "text", "As it was written, without blanks around it."),
)
TO_CODE = (
    Column("answer", "text", "Names the answer; leave it as it is."),
    Column("evidence", "text", "The evidence question."),
    Column("target", "text", "The target question."),
    Column("reason", "text", "What was written."),
    Column("code", "text", "To fill in."),
)
FILE = "to_code.csv"


class ReasonsReport(Report):
    """Counts, the reasons themselves, and a random sample of them to be coded."""

    arguments = (
        Argument("outcome", "only after this answer", choices=lambda study: OUTCOMES, label="After the answer"),
        Argument("change", "only of this change", choices=lambda study: CHANGES, label="Change of the belief"),
        Argument("search", "only reasons with these words, in upper or lower case", label="Words"),
        Argument(
            "sample", "so many of them, drawn at random; all without it", on_pages="50", label="Size of the sample"
        ),
        Argument("seed", "another one draws another sample", default="0", label="Seed of the sample"),
        CONDITION,
    )
    intake = Intake(
        "Codes of the reasons",
        f"Filled-in copies of {FILE}, a file for each coder; the file's name names the coder. The columns answer and "
        "code suffice. A coder's new file takes the place of the one before.",
    )

    def take(self, study: Study, files: Sequence[ReceivedFile]) -> str:
        """The codes of each coder, in place of those before."""
        known = reason_codes.known_reasons(reasons.reasons_of(study))
        coders = reason_codes.read_all([(file.content, file.name) for file in files], known)
        reason_codes.store(study, coders, known)
        counts = ", ".join(f"{len(coder.codes)} by {coder.coder}" for coder in coders)
        return f"Stored {sum(len(coder.codes) for coder in coders)} codes: {counts}."

    def obstacle(self, study: Study) -> str:
        return reasons.obstacle(study)

    def make(self, study: Study, arguments: ReportArguments) -> ReportResult:
        """Only what is `verbatim` depends on the search, so that nobody who may not read reasons can try words."""
        for name, known in (("outcome", OUTCOMES), ("change", CHANGES)):
            if arguments.one(name) and arguments.one(name) not in known:
                raise HunchError(f"{name}: {arguments.one(name)!r} is none of {', '.join(known)}")
        size = arguments.whole("sample", lowest=1, highest=MAX_SAMPLE) if arguments.one("sample") else MAX_SAMPLE
        seed = arguments.whole("seed", lowest=0, highest=2**32 - 1)
        asked = reasons.reasons_of(study, condition=arguments["condition"])
        words = arguments.one("search").casefold()
        among = [
            reason
            for reason in asked
            if reason.text
            and arguments.one("outcome") in ("", reason.outcome)
            and arguments.one("change") in ("", reason.change)
            and words in reason.text.casefold()
        ]
        chosen = sampled(among, size=size, seed=seed)
        written = reason_codes.known_reasons(asked)
        coders = reason_codes.stored(written)
        coded, notes = reason_codes.tables_of(coders, written) if coders else ([], [])
        counts = _counts(asked)
        return ReportResult(
            title=f"Reasons: {study.title}",
            lines=[
                f"{len(asked)} counted answers asked for reasons, "
                f"{sum(bool(reason.text) for reason in asked)} have one. "
                f"{FILE} holds the chosen ones without beliefs, for people to code."
            ],
            tables=[counts, *coded, _reasons(chosen, of=len(among))],
            notes=notes,
            files=[ReportFile(FILE, partial(to_code, chosen))],
            data={"asked": len(asked), "counts": counts.records()},
        )


def sampled(among: Sequence[Reason], *, size: int, seed: int) -> list[Reason]:
    """Some of the reasons in a random order; all of them, in their own, if there are no more."""
    if size >= len(among):
        return list(among)
    return [among[place] for place in np.random.default_rng(seed).choice(len(among), size, replace=False).tolist()]


def to_code(chosen: Sequence[Reason]) -> bytes:
    """The reasons as a file that a spreadsheet can open: what it would run is guarded."""
    rows = [[reason.answer, reason.evidence, reason.target, reason.text, None] for reason in chosen]
    return guarded("".join(csv_lines(TO_CODE, rows))).encode()


def _rows(asked: Sequence[Reason]) -> list[list[str | int | float | None]]:
    number = Counter((reason.outcome, reason.change) for reason in asked)
    lengths: dict[tuple[str, str], list[int]] = {}
    for reason in asked:
        if reason.text:
            lengths.setdefault((reason.outcome, reason.change), []).append(len(reason.text))
    order = {name: place for place, name in enumerate((*OUTCOMES, reasons.NO_EVIDENCE, *CHANGES))}
    return [
        [*key, number[key], len(lengths.get(key, ())), median(lengths[key]) if key in lengths else None]
        for key in sorted(number, key=lambda key: (order[key[0]], order[key[1]]))
    ]


def _counts(asked: Sequence[Reason]) -> Table:
    return Table("reason_counts", "Reasons by outcome and change", COUNTS, _rows(asked), note="Of all reasons.")


def _reasons(chosen: Sequence[Reason], *, of: int) -> Table:
    rows = [
        [
            reason.answer,
            reason.outcome,
            reason.change,
            reason.prior,
            reason.posterior,
            reason.evidence_task,
            reason.target_task,
            reason.text,
        ]
        for reason in chosen
    ]
    return Table(
        "reasons",
        "What people wrote",
        REASONS,
        rows,
        note=f"{len(chosen)} of the {of} reasons that fit." if of else "No reason fits.",
        verbatim=True,
    )
