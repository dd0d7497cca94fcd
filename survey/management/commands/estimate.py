"""`manage.py estimate SLUG`: what a study's answers say about all items, with intervals."""

import csv
import json
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bandit import Estimate
from survey.console.command import HunchCommand, add_condition
from survey.console.text_tables import table
from survey.contracts.tables import Column
from survey.exceptions import HunchError
from survey.services.base.writing import replace_file
from survey.services.results import beside, estimate_tables, estimating
from survey.services.results.estimating import MajorityLine, StudyEstimates
from survey.services.results.estimators import DivisionFigures, Figure, in_words_p
from survey.services.results.stage_rows import STATES
from survey.services.studies import finding


def thresholds_of(text: str) -> list[int]:
    try:
        values = [int(part) for part in text.split(",")]
    except ValueError:
        values = [-1]
    if not all(0 <= value < 100 for value in values) or len(set(values)) != len(values):
        raise ArgumentTypeError(f"{text!r} is not a list of different whole numbers from 0 to 99, such as 0,5,10")
    return values


class Command(HunchCommand):
    help = "Estimate, from all answers that count by now, what respondents would answer over all items."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", metavar="SLUG")
        parser.add_argument(
            "--by",
            action="append",
            default=[],
            metavar="DIVISION",
            help="also inside each part of a division that the instrument names, level of a condition, or group of "
            "people by a question of a form; may be given again (a name that there is not shows those that there are)",
        )
        parser.add_argument(
            "--threshold",
            type=thresholds_of,
            default=[],
            metavar="T,...",
            help="changes up to this size count as none (points); --by shows the first one",
        )
        add_condition(parser)
        parser.add_argument(
            "--out",
            type=Path,
            metavar="DIR",
            help="write estimates.csv, slots.csv, leaving.csv, noise.csv, a codebook of them, and estimates.json",
        )

    def handle(
        self,
        *args: Any,
        slug: str,
        by: list[str],
        threshold: list[int],
        condition: list[str],
        out: Path | None,
        **options: Any,
    ) -> None:
        report = estimating.estimate(finding.find_study(slug), thresholds=threshold, by=by, condition=condition)
        for line in _page(report):
            self.stdout.write(line)
        if out is not None:
            for path in _write(report, out):
                self.stdout.write(f"wrote {path}")


# Printing


def _page(report: StudyEstimates) -> Iterator[str]:
    yield f"{report.study}: {report.title}"
    yield f"Over {report.estimand}: what this study's respondents would answer on average."
    for assumption in report.assumptions:
        yield f"- {assumption}"
    if report.provisional:
        yield "- Provisional: a stage that counts here is not frozen yet."
    yield ""
    yield f"{report.answers} answers of {report.respondents} respondents, by stage and stratum"
    yield table(
        ["stage", "role", "design", "stratum", "candidates", "planned", *STATES, "mean", "weight"],
        list(_strata(report)),
    )
    yield ""
    yield "All stages together"
    header = ["figure", "estimate", "95 % interval", "SE", "df", "naive", "answers", "people", "ESS", "weights"]
    header += ["agree p", "interval, such questions"]
    assisted = [report.assisted] if report.assisted else []
    rows = [_row(figure, figure.title) for figure in report.figures]
    rows[1:1] = [_row(figure, f"{figure.title}, model-assisted") for figure in assisted]
    yield table(header, rows)
    yield from _notes([*report.figures, *assisted])
    if report.assisted:
        for part in report.parts:
            if part.predictions:
                yield f"Model assistance, stage {part.stage}: {part.predictions}."
    for check in report.checks:
        yield ""
        yield _check(check)
    yield from _leaving(report)
    yield from _carry_over(report)
    yield ""
    yield "Each stage by itself"
    yield table(
        ["figure", *(_part_title(part.stage, part.role) for part in report.parts)],
        [
            [figure.title, *(_short(stage.estimate, figure.unit) or f"({stage.reason})" for stage in figure.stages)]
            for figure in report.figures
        ],
    )
    others = tuple(f"_over_{threshold}" for threshold in report.thresholds[1:])
    for division in report.divisions:
        yield ""
        yield from _division(division, others)
    yield from _waves(report)
    yield from _anytime(report)
    yield from _noise(report)
    yield from _majorities(report)
    for name, lines in report.slots.items():
        yield ""
        yield f"Slots by {name}"
        yield table(
            [name, "planned", *STATES],
            [[line.label, str(line.planned), *(str(getattr(line, state)) for state in STATES)] for line in lines],
        )


def _part_title(stage: int, role: str) -> str:
    return f"stage {stage}" if role == "sampled" else f"{stage} {role}"


def _strata(report: StudyEstimates) -> Iterator[list[str]]:
    total = sum(part.weight for part in report.parts)
    for part in report.parts:
        for line in part.strata:
            yield [
                str(part.stage),
                part.role,
                part.design,
                line.name,
                f"{line.size:,}",
                str(line.planned),
                *(str(getattr(line, state)) for state in STATES),
                "-" if line.mean is None else f"{line.mean:.3f}",
                f"{100 * part.weight / total:.0f} %" if total else "-",
            ]


def _number(value: float, unit: str) -> str:
    return f"{100 * value:.1f} %" if unit == "share" else f"{value:.2f}"


def _short(estimate: Estimate | None, unit: str) -> str:
    if estimate is None:
        return ""
    return f"{_number(estimate.value, unit)} [{_ends(estimate, unit, ', ')}]"


def _ends(estimate: Estimate, unit: str, between: str) -> str:
    return between.join(_number(end, unit) for end in estimate.interval) if estimate.has_interval else "no interval"


def _row(figure: Figure, title: str) -> list[str]:
    naive = "-" if figure.naive is None else _number(figure.naive.value, figure.unit)
    found = figure.combined
    if found is None:
        return [title, "-", "-", "-", "-", naive, *["-"] * 6]
    return [
        title + (" *" if figure.notes else ""),
        _number(found.value, figure.unit),
        _ends(found, figure.unit, " to "),
        _number(found.standard_error, figure.unit) if found.standard_error else "-",
        f"{found.degrees_of_freedom:.1f}",
        naive,
        str(found.n),
        str(found.n_clusters),
        f"{found.effective_sample_size:.0f}",
        f"{found.weight_range[0]:.2f} to {found.weight_range[1]:.2f}",
        "-" if figure.agreement is None else in_words_p(figure.agreement.p).removeprefix("p = ").removeprefix("p "),
        beside.such_questions_in_words(figure),
    ]


def _notes(figures: Sequence[Figure]) -> Iterator[str]:
    """Each note once, with the figures that it belongs to."""
    by_note: dict[str, list[str]] = {}
    for figure in figures:
        if figure.notes:
            by_note.setdefault(figure.notes, []).append(figure.title)
    for note, titles in by_note.items():
        yield f"* {'all figures' if len(titles) == len(figures) else ', '.join(titles)}: {note}"


def _check(check: Figure) -> str:
    found = check.combined
    if found is None:
        return f"Check: {check.title}: not available ({check.notes})"
    p = found.p_two_sided()
    shown = f"Check: {check.title}: {_short(found, check.unit)} {check.unit}, {in_words_p(p)}"
    if p is None:
        return f"{shown}."
    verdict = "no more than chance makes" if p >= 0.05 else "MORE than chance makes: look for what went wrong"
    return f"{shown}: {verdict}."


def _division(division: DivisionFigures, others: tuple[str, ...]) -> Iterator[str]:
    """Leaves out the figures of further thresholds, whose names end with one of `others`: the files have them."""
    yield f"By {division.name}"
    if division.note:
        yield division.note
    rows = [
        [
            *(label, figure.title, *_row(figure, "")[1:9]),
            *(beside.such_questions_in_words(figure), beside.weighted_in_words(figure)),
            *(beside.bounds_in_words(figure), figure.notes),
        ]
        for label, figures in zip(division.labels, division.figures, strict=True)
        for figure in figures
        if figure.combined is not None and not figure.name.endswith(others)
    ]
    header = [division.name, "figure", "estimate", "95 % interval", "SE", "df", "naive", "answers", "people", "ESS"]
    yield table([*header, "interval, such questions", "weighted for leaving", "bounds", "note"], rows)
    for figure in division.differences:
        if figure.combined is not None and not figure.name.endswith(others):
            yield (
                f"{division.labels[1]} minus {division.labels[0]}, {figure.title}: "
                f"{_short(figure.combined, figure.unit)}, {in_words_p(figure.combined.p_two_sided())}"
                f"{_if_people_left(figure)}"
            )
    if division.rest:
        yield f"{division.name}: each group minus all the others together"
        yield table(
            [
                *(division.name, "figure", "difference", "95 % interval", "SE", "p", "answers", "people"),
                *("weighted for leaving", "bounds", "note"),
            ],
            [
                _rest_row(label, figure)
                for label, figures in zip(division.labels, division.rest, strict=True)
                for figure in figures
                if figure.combined is not None and not figure.name.endswith(others)
            ],
        )
    yield from beside.about_groups(division)
    silent = [
        label
        for label, figures in zip(division.labels, division.figures, strict=True)
        if figures and all(figure.combined is None for figure in figures)
    ]
    if silent:
        yield f"No estimate: {', '.join(silent)}"


def _rest_row(label: str, figure: Figure) -> list[str]:
    found = figure.combined
    if found is None:
        return [label, figure.title, *["-"] * 8, figure.notes]
    return [
        *(label, figure.title, _number(found.value, figure.unit), _ends(found, figure.unit, " to ")),
        _number(found.standard_error, figure.unit) if found.standard_error else "-",
        *(in_words_p(found.p_two_sided()), str(found.n), str(found.n_clusters)),
        *(beside.weighted_in_words(figure), beside.bounds_in_words(figure), figure.notes),
    ]


def _if_people_left(figure: Figure) -> str:
    """What leaving may do to a difference, behind it; empty where nothing is known or nobody left."""
    known = (("weighted for leaving", beside.weighted_in_words(figure)), ("bounds", beside.bounds_in_words(figure)))
    return "".join(f"; {name}: {text}" for name, text in known if text != "-")


def _leaving(report: StudyEstimates) -> Iterator[str]:
    if report.leaving is None:
        return
    yield ""
    yield f"People who left, and after which answer (it: {report.leaving.outcome})"
    yield from beside.about_leaving(report.leaving)
    if not report.leaving.lines[0].unanswered and not report.leaving.excluded:
        return
    yield table(list(beside.LEAVING_HEAD), [beside.leaving_row(line) for line in report.leaving.lines])
    yield table(
        ["figure", "plain", "weighted for leaving", f"bounds, odds ratio {report.leaving.odds_ratio:g}"],
        [
            [
                figure.title,
                _short(figure.combined, figure.unit) or "-",
                beside.weighted_in_words(figure),
                beside.bounds_in_words(figure),
            ]
            for figure in report.figures
        ],
    )


def _carry_over(report: StudyEstimates) -> Iterator[str]:
    if report.carry_over is None:
        return
    yield ""
    yield "Do answers depend on the items before them?"
    yield from beside.about_carry_over(report.carry_over)
    others = tuple(f"_over_{threshold}" for threshold in report.thresholds[1:])
    rows = [*beside.carry_over_rows(report.carry_over, report.figures, without=others)]
    yield table(list(beside.CARRY_OVER_HEAD), rows)


def _noise(report: StudyEstimates) -> Iterator[str]:
    noise = report.noise
    if not noise.false_changes and not noise.retests and noise.auc_limit is None:
        return
    yield ""
    yield "Noise of the answers, from the controls"
    for kind, estimate in noise.false_changes.items():
        yield (
            f"- changes without reason, {kind.replace('_', ' ')}: {_short(estimate, 'share')} "
            f"({estimate.n} answers of {estimate.n_clusters} people)"
            + (f"; too few: {estimate.too_few}" if estimate.too_few else "")
        )
    for name, retest in noise.retests.items():
        low, high = retest.interval
        yield (
            f"- asked twice, {name.replace('_', ' ')}: correlation {retest.correlation:.2f} [{low:.2f}, {high:.2f}], "
            f"the same in {100 * retest.same:.0f} % ({retest.n} items, {retest.n_clusters} people)"
        )
    for sentence in beside.about_the_auc(noise):
        yield f"- {sentence}"


def _waves(report: StudyEstimates) -> Iterator[str]:
    if not report.waves:
        return
    yield ""
    yield "From wave to wave: change within the people who answered in both, with intervals by person"
    yield table(
        ["waves", "figure", "change", "95 % interval", "people in both", "did not come back", "note"],
        [
            [
                line.label,
                line.title,
                "-" if line.estimate is None else _number(line.estimate.value, line.unit),
                "-" if line.estimate is None else _ends(line.estimate, line.unit, " to "),
                str(line.people),
                str(line.not_back),
                line.notes,
            ]
            for line in report.waves
        ],
    )
    yield from dict.fromkeys(line.sentence for line in report.waves)


def _anytime(report: StudyEstimates) -> Iterator[str]:
    if not report.anytime:
        return
    yield ""
    yield f"{report.figures[0].title}, stage by stage, with intervals that hold at any time, however often one looks"
    yield table(
        ["stage", "difference", "estimate", "95 % interval at any time", "people", "stopping rule", "note"],
        [
            [
                str(line.stage),
                f"{line.factor}: {line.label}" if line.factor else "",
                _number(line.value, line.unit),
                f"[{_number(line.low, line.unit)}, {_number(line.high, line.unit)}]",
                str(line.people),
                estimating.rule_in_words(line),
                line.notes,
            ]
            for line in report.anytime
        ],
    )


def _majorities(report: StudyEstimates) -> Iterator[str]:
    for stage in dict.fromkeys(line.stage for line in report.majorities):
        lines = [line for line in report.majorities if line.stage == stage]
        yield ""
        yield f"Majority labels of the items of test stage {stage}: extremes of the scores, no figures of all items"
        header = ["stratum", "items", "answers each", "label 1", "label 0", "ties", "share of label 1", "note"]
        yield table(
            header,
            [
                [
                    line.stratum or "all",
                    str(line.items),
                    answers_each(line),
                    str(line.label_1),
                    str(line.label_0),
                    str(line.tied),
                    _share(line),
                    line.notes,
                ]
                for line in lines
            ],
        )


def _share(line: MajorityLine) -> str:
    if line.share is None or line.low is None or line.high is None:
        return "-"
    return f"{_number(line.share, 'share')} [{_number(line.low, 'share')}, {_number(line.high, 'share')}]"


def answers_each(line: MajorityLine) -> str:
    least, most = line.fewest_answers, line.most_answers
    return str(least) if least == most else f"{least} to {most}"


# Writing


def _write(report: StudyEstimates, folder: Path) -> list[Path]:
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, header, rows in (
            ("estimates.csv", _names(estimate_tables.ESTIMATES), estimate_tables.estimate_rows(report)),
            ("slots.csv", _names(estimate_tables.SLOTS), estimate_tables.slot_rows(report)),
            ("leaving.csv", _names(estimate_tables.LEAVING), estimate_tables.leaving_rows(report)),
            ("noise.csv", _names(estimate_tables.NOISE), estimate_tables.noise_rows(report.noise)),
            ("codebook.csv", ("file", "column", "meaning"), estimate_tables.codebook_rows()),
        ):
            with replace_file(folder / name) as path, path.open("w", encoding="utf-8", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(header)
                writer.writerows(rows)
            written.append(folder / name)
        with replace_file(folder / "estimates.json") as path:
            path.write_text(json.dumps(report.as_json(), indent=1, allow_nan=False), encoding="utf-8")
        written.append(folder / "estimates.json")
    except OSError as exc:
        raise HunchError(f"{folder}: cannot be written: {exc.strerror}") from exc
    return written


def _names(columns: Sequence[Column]) -> list[str]:
    return [column.name for column in columns]
