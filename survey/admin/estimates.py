"""The estimates of a study as a page: shows what `manage.py estimate` prints, without the files that it writes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.utils.text import capfirst

from bandit import Estimate
from survey.contracts import instruments
from survey.exceptions import HunchError
from survey.models import Study
from survey.services.answers.conditions import pairs_of
from survey.services.results import beside, estimating, stored_estimates
from survey.services.results.estimators import DivisionFigures, Figure, in_words_p
from survey.services.results.people_groups import people_questions


@dataclass(frozen=True)
class FigureRow:
    """A figure in words: its estimate with the 95 % interval, the naive figure, and notes about it."""

    title: str
    value: str
    interval: str
    naive: str
    answers: str
    people: str
    effective: str
    agree: str
    p: str
    notes: str
    such_questions: str
    weighted: str
    bounds: str


def context(
    study: Study, by: Sequence[str], condition: Sequence[str] = (), *, may_see_people: bool = False
) -> dict[str, Any]:
    """What the page shows: all figures and, for each part of the divisions in `by`, those of the first threshold.

    Args:
        may_see_people: whether the reader may see single people's answers. Who may not gets no groups by forms: the
            figures of a small group could be computed from those of the others.
    """
    if problem := instruments.problem_with(study.instrument):
        return {"problem": problem}
    own = estimating.own_divisions(study)
    questions = [*people_questions(study, own).values()] if may_see_people else []
    shown: dict[str, Any] = {
        "divisions": own,
        "questions": questions,
        "by": [*dict.fromkeys(by)],
        "conditions": pairs_of(study),
        "condition": [*dict.fromkeys(condition)],
    }
    if not may_see_people and set(by) & {*people_questions(study, own)}:
        problem = "Figures by people's answers are for members who may export: ask an owner for the role of an analyst."
        return {**shown, "problem": problem}
    try:
        stored = stored_estimates.shown_estimates(study, by=shown["by"], condition=shown["condition"])
    except HunchError as exc:
        return {**shown, "problem": exc.message}
    report = stored.report
    others = tuple(f"_over_{threshold}" for threshold in report.thresholds[1:])
    assisted = [row(report.assisted, f"{report.assisted.title}, model-assisted")] if report.assisted else []
    rows = [row(figure) for figure in report.figures]
    return {
        **shown,
        "stored": stored,
        "report": report,
        "as_files": _query([name for name in shown["by"] if name in own], shown["condition"]),
        "figures": [*rows[:1], *assisted, *rows[1:]],
        "checks": [row(check) for check in report.checks],
        "leaving_notes": [] if report.leaving is None else [*beside.about_leaving(report.leaving)],
        "leaving_head": beside.LEAVING_HEAD,
        "leaving_rows": []
        if report.leaving is None or not (report.leaving.lines[0].unanswered or report.leaving.excluded)
        else [list(zip(beside.LEAVING_HEAD, beside.leaving_row(line), strict=True)) for line in report.leaving.lines],
        "leaving_figures": rows,
        "carry_over_notes": [] if report.carry_over is None else [*beside.about_carry_over(report.carry_over)],
        "carry_over_head": beside.CARRY_OVER_HEAD,
        "carry_over_rows": []
        if report.carry_over is None
        else [
            list(zip(beside.CARRY_OVER_HEAD, cells, strict=True))
            for cells in beside.carry_over_rows(report.carry_over, report.figures, without=others)
        ],
        "tables": [
            (
                division,
                [*beside.about_groups(division)],
                [*_differences(division, others)],
                [
                    (label, row(figure))
                    for label, figures in zip(division.labels, division.figures, strict=True)
                    for figure in figures
                    if figure.combined is not None and not figure.name.endswith(others)
                ],
            )
            for division in report.divisions
        ],
        "majorities": [
            (
                line,
                line.stratum or "all",
                str(line.fewest_answers)
                if line.fewest_answers == line.most_answers
                else f"{line.fewest_answers} to {line.most_answers}",
                _share(line),
            )
            for line in report.majorities
        ],
        "about_the_auc": [*beside.about_the_auc(report.noise)],
        "wave_sentences": [*dict.fromkeys(f"{capfirst(line.label)}: {line.sentence}" for line in report.waves)],
        "waves": [
            (
                line,
                "–" if line.estimate is None else _number(line.estimate.value, line.unit),
                "–" if line.estimate is None else _interval(line.estimate, line.unit),
            )
            for line in report.waves
        ],
        "anytime": [
            (
                line,
                f"{line.factor}: {line.label}" if line.factor else "all",
                _number(line.value, line.unit),
                f"{_number(line.low, line.unit)} to {_number(line.high, line.unit)}",
                estimating.rule_in_words(line),
            )
            for line in report.anytime
        ],
        "noise": [
            (f"changes without reason, {kind.replace('_', ' ')}", _with_interval(found, "share"), found.n)
            for kind, found in report.noise.false_changes.items()
        ]
        + [
            (f"asked twice, {name.replace('_', ' ')}: correlation", f"{found.correlation:.2f}", found.n)
            for name, found in report.noise.retests.items()
        ],
    }


def _query(by: Sequence[str], condition: Sequence[str]) -> str:
    """What the report with all figures is asked for, as the end of its address."""
    asked = urlencode({"by": by, "condition": condition}, doseq=True)
    return f"?{asked}" if asked else ""


def _differences(division: DivisionFigures, others: tuple[str, ...]) -> Iterator[tuple[str, FigureRow]]:
    """What is compared, and the difference: one part with the other, or with all the others together."""
    compared = [(" minus ".join(reversed(division.labels)), division.differences)]
    compared += [
        (f"{label} minus the others", found) for label, found in zip(division.labels, division.rest, strict=False)
    ]
    for what, figures in compared:
        for figure in figures:
            if figure.combined is not None and not figure.name.endswith(others):
                yield what, row(figure)


def row(figure: Figure, title: str = "") -> FigureRow:
    found = figure.combined
    return FigureRow(
        title=title or figure.title,
        value="–" if found is None else _number(found.value, figure.unit),
        interval="–" if found is None else _interval(found, figure.unit),
        naive="–" if figure.naive is None else _number(figure.naive.value, figure.unit),
        answers="–" if found is None else str(found.n),
        people="–" if found is None else str(found.n_clusters),
        effective="–" if found is None else f"{found.effective_sample_size:.0f}",
        agree="–" if figure.agreement is None else in_words_p(figure.agreement.p),
        p="" if found is None else in_words_p(found.p_two_sided()),
        notes=figure.notes,
        such_questions=beside.such_questions_in_words(figure),
        weighted=beside.weighted_in_words(figure),
        bounds=beside.bounds_in_words(figure),
    )


def _share(line: estimating.MajorityLine) -> str:
    if line.share is None or line.low is None or line.high is None:
        return "–"
    return f"{_number(line.share, 'share')} ({_number(line.low, 'share')} to {_number(line.high, 'share')})"


def _number(value: float, unit: str) -> str:
    return f"{100 * value:.1f} %" if unit == "share" else f"{value:.2f}"


def _with_interval(estimate: Estimate, unit: str) -> str:
    return f"{_number(estimate.value, unit)} ({_interval(estimate, unit)})"


def _interval(estimate: Estimate, unit: str) -> str:
    return " to ".join(_number(end, unit) for end in estimate.interval) if estimate.has_interval else "none"
