"""The report `estimates`: every figure of the estimates as tables, for pages, the API, commands and every export.

The page of estimates shows the figures of all stages; here are also those of each stage, worst-case bounds and every
threshold, with all their digits as files.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from survey.contracts import instruments
from survey.contracts.reports import Argument, Findings, Given, Layout, Report, Table
from survey.contracts.tables import Column
from survey.exceptions import HunchError
from survey.models import Study

from . import beside, estimate_tables, stored_estimates
from .estimating import StudyEstimates, own_divisions
from .estimators import in_words_p
from .reports import CONDITION

SHOWN = ("part", "figure", "kind", "estimate", "95 % interval", "p", "answers", "people", "to know")
BY_STAGE = ("part", "figure", "stage", "estimate", "95 % interval", "weight", "answers", "people", "to know")
ONE_STAGE = ", one stage"
NOTHING = "–"


class EstimatesReport(Report):
    """All figures, who left, the noise of answers, and slots by what became of them."""

    arguments = (
        Argument(
            "by",
            "also inside each part of a division of items, or level of a condition",
            many=True,
            choices=own_divisions,
        ),
        CONDITION,
    )
    exported = {
        "estimates": estimate_tables.ESTIMATES,
        "slots": estimate_tables.SLOTS,
        "leaving": estimate_tables.LEAVING,
        "noise": estimate_tables.NOISE,
    }

    def obstacle(self, study: Study) -> str:
        if instruments.of_study(study).estimates is None:
            return f"{study.slug}: its instrument names nothing to estimate"
        return ""

    def make(self, study: Study, given: Given) -> Findings:
        known = own_divisions(study)
        for name in given["by"]:
            if name not in known:
                raise HunchError(
                    f"by: {name} is not one of {', '.join(known)}; groups of people are on the page of estimates, and "
                    f"in: hunch estimate {study.slug} --by {name}",
                    code="invalid",
                )
        report = stored_estimates.current_estimates(study, by=given["by"], condition=given["condition"])
        return Findings(
            title=f"Figures: {study.title}",
            lines=[*_lines(report)],
            tables=[*_tables(report)],
            notes=[*report.assumptions, *beside.about_the_auc(report.noise)],
            data=report.as_json(),
        )


def _lines(report: StudyEstimates) -> Iterator[str]:
    yield f"Over {report.estimand}: what this study's respondents would answer on average."
    yield f"{report.answers} answers of {report.respondents} respondents."
    if report.provisional:
        yield "Provisional: a stage that counts here is not frozen yet."
    if report.leaving is not None:
        yield from beside.about_leaving(report.leaving)


def _tables(report: StudyEstimates) -> Iterator[Table]:
    rows = [*estimate_tables.estimate_rows(report)]
    named = [dict(zip([column.name for column in estimate_tables.ESTIMATES], row, strict=True)) for row in rows]
    of_all = [one for one in named if not one["kind"].endswith(ONE_STAGE)]
    of_one = [one for one in named if one["kind"].endswith(ONE_STAGE)]
    yield Table(
        "estimates",
        "Figures",
        estimate_tables.ESTIMATES,
        rows,
        layouts=[
            Layout(
                SHOWN,
                [_shown(one) for one in of_all],
                "All stages together, and what stands beside each figure",
                " ".join(_meanings({one["kind"] for one in of_all})),
            ),
            Layout(BY_STAGE, [_shown_stage(one) for one in of_one], "Each stage by itself"),
        ],
    )
    yield _plain("leaving", "People who left", estimate_tables.LEAVING, estimate_tables.leaving_rows(report))
    yield _plain("noise", "Noise of the answers", estimate_tables.NOISE, estimate_tables.noise_rows(report.noise))
    yield _plain("slots", "Slots by what became of them", estimate_tables.SLOTS, estimate_tables.slot_rows(report))


def _plain(name: str, title: str, columns: Sequence[Column], rows: Iterator[list[Any]]) -> Table:
    return Table(name, title, columns, [*rows])


def _shown(row: Mapping[str, Any]) -> list[str]:
    kind = row["kind"] if row["stage"] is None else f"{row['kind']}, stage {row['stage']}"
    notes = row["notes"] or ""
    if row["kind"] in beside.MEANINGS:  # What it means is said once, below the table.
        notes = notes.partition("; ")[2]
    return [_part(row), row["title"], kind, *_numbers(row), _p(row["p"]), *_counts(row), notes]


def _meanings(kinds: Collection[str]) -> Iterator[str]:
    for kind, meaning in beside.MEANINGS.items():
        if kind in kinds:
            end = " of at most the stated number" if kind in (beside.BOUNDS, beside.WITH_EXCLUDED) else ""
            yield f"{kind}: {meaning}{end}."


def _shown_stage(row: Mapping[str, Any]) -> list[str]:
    kind = row["kind"].removesuffix(ONE_STAGE)
    title = row["title"] if kind == "combined" else f"{row['title']}, {kind}"
    stage = f"{row['stage']}" if row["role"] == "sampled" else f"{row['stage']} {row['role']}"
    weight = NOTHING if row["weight"] is None else f"{100 * row['weight']:.0f} %"
    return [_part(row), title, stage, *_numbers(row), weight, *_counts(row), row["notes"] or ""]


def _part(row: Mapping[str, Any]) -> str:
    return f"{row['division']}: {row['label']}" if row["label"] else "all"


def _numbers(row: Mapping[str, Any]) -> tuple[str, str]:
    value = NOTHING if row["value"] is None else beside.number(row["value"], row["unit"])
    if row["low"] is None or row["high"] is None:
        return value, NOTHING
    return value, f"{beside.number(row['low'], row['unit'])} to {beside.number(row['high'], row['unit'])}"


def _p(p: float | None) -> str:
    return NOTHING if p is None else in_words_p(p).removeprefix("p ").removeprefix("= ")


def _counts(row: Mapping[str, Any]) -> tuple[str, str]:
    return tuple(NOTHING if row[name] is None else str(row[name]) for name in ("answers", "respondents"))  # type: ignore[return-value]
