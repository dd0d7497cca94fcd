"""A study's estimates as tables with every digit, for files, exports and the report `estimates`; what columns mean."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from bandit import Estimate
from survey.contracts.tables import ExtraFile
from survey.figures import Column, Figure, FigureColumn, PartColumn, Table, TableView, plain_columns
from survey.figures.tables import Columns
from survey.figures.words import DIFFERENCE, is_share, spaced

from . import sensitivity
from .dropout import LeavingLine
from .population import Weighting
from .sensitivity import (
    BOUNDS,
    FIRST_ITEMS,
    FROM_THE_REST,
    POPULATION,
    SAMPLED_MINUS_HOLDOUT,
    STAYED,
    SUCH_QUESTIONS,
    WITH_EXCLUDED,
    WORST_CASE,
)
from .stage_rows import STATES
from .study_estimates import Noise, StudyEstimates, rule_in_words
from .study_figures import DivisionFigures, StudyFigure
from .wave_changes import WaveChange

ESTIMATES = (
    Column("figure", "text", "The figure's name."),
    Column("title", "text", "The figure in words.", heading="figure"),
    Column("unit", "text", "share (0 to 1), or the unit of the answers."),
    Column("division", "text", "How items or people are divided; empty for all of them."),
    Column("label", "text", "The part of that division.", heading="part"),
    Column(
        "kind",
        "text",
        "combined: all stages together. naive: the plain mean of the answers. assisted: with the help of predictions, "
        "assisted difference: a difference of levels, or of groups of people, with it. "
        "check: a difference that should be chance. difference: between two parts. With ', one stage' behind it, each "
        f"of these from one stage. {FROM_THE_REST}: the part minus all the others together. withheld: a group of too "
        f"few people, without figures. {SUCH_QUESTIONS}: the same mean with an interval for a population of questions. "
        f"{STAYED}: answers weighted by 1 / the chance that their person was still there. {POPULATION}: people "
        f"weighted to [weighting] of the study file. {BOUNDS}: what the figure "
        f"can be for the stated odds ratio between unanswered and answered items. {WITH_EXCLUDED}: the same, with the "
        f"items of people whom a rule excludes among the unanswered ones. {WORST_CASE}: what it can be "
        f"whatever these had got. {FIRST_ITEMS}: from people's first items alone. {SAMPLED_MINUS_HOLDOUT}: the mean by "
        "the sampled slots of adaptive stages minus that by their holdouts. at any time: one stage alone, with an "
        "interval that holds however often one looks. "
        "majority: the share of majority labels 1 of a test stage. change within person: a wave minus the one before, "
        "over the people who answered in both.",
    ),
    Column("stage", "number", "The stage, in rows of one stage.", whole=True),
    Column("role", "text", "sampled or holdout, in rows of one stage."),
    Column("weight", "number", "The stage's weight in the mean over the stages, fixed by the plans."),
    FigureColumn(
        "value",
        "number",
        "The estimate. Bounds have none.",
        heading="estimate",
        parts={
            "standard_error": Column("standard_error", "number", "Its standard error.", heading="standard error"),
            "low": Column("low", "number", "The lower end of the 95 % interval; of bounds, that of the lowest mean."),
            "high": Column(
                "high", "number", "The upper end of the 95 % interval; of bounds, that of the highest mean."
            ),
        },
    ),
    Column("method", "text", "t (Student's) or wilson."),
    PartColumn("value", "degrees_of_freedom", Column("degrees_of_freedom", "number", "Of Student's t.", digits=1)),
    PartColumn("value", "answers", Column("answers", "number", "How many answers it rests on.", whole=True)),
    PartColumn(
        "value", "people", Column("respondents", "number", "How many people gave them.", whole=True, heading="people")
    ),
    Column(
        "effective_sample_size",
        "number",
        "How many equally weighted answers would be as precise.",
        heading="effective answers",
        digits=0,
    ),
    Column(
        "weight_lowest",
        "number",
        "The smallest weight of an answer, in mean weights.",
        digits=2,
    ),
    Column("weight_highest", "number", "The largest weight of an answer, in mean weights.", digits=2),
    Column("too_few", "text", "Why the interval is not reliable; empty if it is."),
    Column("p", "number", "Of differences: how often chance alone would take them so far from 0.", style="p"),
    Column(
        "agree_p",
        "number",
        "How often chance alone would take the stages so far apart. Empty where withheld.",
        heading="stages agree, p",
        style="p",
    ),
    Column("notes", "text", "What to know about the row; of bounds, what they assume.", heading="to know"),
    Column(
        "coefficient",
        "number",
        "Of assisted figures of one stage: how many units of the figure a unit of the predictions counts for.",
        digits=2,
    ),
    Column("lowest", "number", "Of bounds: the lowest value that the assumption allows, as estimated."),
    Column("highest", "number", "Of bounds: the highest value that the assumption allows, as estimated."),
    Column("part", "text", "The stage in words.", in_file=False),
    Column("about", "text", "Of a stopping rule, how far it is; of majorities, what they are made of.", in_file=False),
)
SLOTS = (
    Column("division", "text", "What slots are divided by: stratum (of a stage and role), position, or another part."),
    Column("label", "text", "The part of that division."),
    Column("planned", "number", "Slots of the plans in it.", whole=True),
    Column("answered", "number", "Slots with an answer that counts.", whole=True),
    Column("excluded", "number", "Slots whose answer a rule of the study file leaves out.", whole=True),
    Column("withdrawn", "number", "Slots whose answer was taken back by its person.", whole=True),
    Column("late", "number", "Slots that have a late answer alone.", whole=True),
    Column("lost", "number", "Slots without any answer, in frozen stages.", whole=True),
    Column("open", "number", "Slots without any answer yet, in stages that are not frozen.", whole=True),
    Column("candidates", "number", "Of strata: how many candidates the plan drew from.", whole=True),
    Column("slots", "text", "The stage, and the stratum or the role.", in_file=False),
    Column("design", "text", "Of strata: the design of the stage.", style="words", in_file=False),
    Column("mean", "number", "Of strata: the mean of the first figure.", digits=3, in_file=False),
    Column("weight", "share", "Of strata: the weight of the stage.", digits=0, in_file=False),
)
LEAVING = (
    Column("who", "text", "Everybody, or the level.", in_file=False),
    Column("factor", "text", "The condition's factor; empty in the row of everybody."),
    Column("level", "text", "The level of that factor."),
    Column("people", "number", "People who were given items, those whom a rule excludes among them.", whole=True),
    Column("left", "number", "How many of them left before their last item.", whole=True),
    Column(
        "given",
        "number",
        "Items that those whom no rule excludes were given. An item that somebody left may have been given to somebody "
        "else again.",
        whole=True,
        heading="items given",
    ),
    Column(
        "unanswered",
        "number",
        "Of these, the items without an answer that counts, which can get none from that person any more.",
        whole=True,
    ),
    Column(
        "at_risk",
        "number",
        "Answers with a further item to come of which it is known whether the person went on.",
        whole=True,
    ),
    Column("left_after_it", "share", "How many left after an answer above 0 of the first figure, such as a change."),
    Column("left_otherwise", "share", "The share of people who left after another answer."),
    Column(
        "odds_ratio", "number", "Mantel and Haenszel's of leaving between the two, by stage and item number.", digits=2
    ),
    Column("p", "number", "Two-sided p of the test that leaving does not depend on the last answer.", style="p"),
    Column("reason", "text", "Why there is no p."),
    Column(
        "excluded",
        "number",
        "People whom a rule of the study file excludes, with all their answers; the other columns are without them.",
        whole=True,
    ),
    Column(
        "excluded_p",
        "number",
        "Of levels that are drawn for people: Fisher's exact p that rules exclude as many under the other levels.",
    ),
)
NOISE = (
    Column(
        "kind",
        "text",
        "false change: a share that changes without reason. retest: two answers of one person to an item, correlated. "
        "same again: how often these two are equal. auc_limit: the upper limit of the AUC, at 95 % confidence. "
        "item_variance: the variance between items of their chances.",
    ),
    Column("name", "text", "The kind of control, or the figure."),
    Column("noise", "text", "What was measured.", in_file=False),
    Column("of", "text", "Of which controls, or of which figure.", style="words", in_file=False),
    FigureColumn(
        "value",
        "number",
        "The figure; of retests design-weighted.",
        prefix="",
        low="The lower end of the 95 % interval.",
        high="The upper end of the 95 % interval. For item_variance see highest.",
    ),
    Column("highest", "number", "Of item_variance: its upper limit at 96 % confidence, which makes the limit's."),
    Column("n", "number", "Answers, items asked twice, or items that several people answered.", whole=True),
    Column("people", "number", "How many people gave them.", whole=True),
    Column("note", "text", "What to know; in place of the limit, why there is none."),
)


ONE_STAGE = ", one stage"
OTHERWISE = ("naive", SUCH_QUESTIONS, STAYED, POPULATION, BOUNDS, WITH_EXCLUDED, WORST_CASE)
ASSISTED, ASSISTED_DIFFERENCE = "assisted", "assisted difference"
WITHIN_PERSON = "change within person"
DIFFERENCES = ("check", "difference", ASSISTED_DIFFERENCE, FROM_THE_REST, SAMPLED_MINUS_HOLDOUT)


def estimate_rows(report: StudyEstimates) -> Iterator[dict[str, Any]]:
    """Every figure of all stages and of each, by division and label; by the columns of `ESTIMATES`."""
    for figure in report.figures:
        yield from _figure_rows(figure, "combined")
    for figure in report.figures:
        if figure.assisted is not None:
            yield from _figure_rows(figure.assisted, ASSISTED)
    for figure in report.checks:
        yield from _figure_rows(figure, "check")
    if report.carry_over is not None:
        for kind, figures in (
            (FIRST_ITEMS, report.carry_over.first_items),
            (SAMPLED_MINUS_HOLDOUT, report.carry_over.differences),
        ):
            for figure in figures:
                yield _row(figure, figure.combined, kind=kind, notes=figure.notes)
    for division in report.divisions:
        yield from _division_rows(division)
    for change in report.waves:
        notes = "; ".join(filter(None, (change.notes, f"{change.not_back} did not come back")))
        yield _row(
            change,
            change.estimate,
            division="wave",
            label=change.label,
            kind=WITHIN_PERSON,
            p=None if change.estimate is None else change.estimate.p_two_sided(),
            notes=notes,
        )
    for line in report.anytime:
        yield {
            **_names(report.figures[0].name, line.title, division=line.factor, label=line.label, kind="at any time"),
            "unit": line.unit,
            "stage": line.stage,
            "role": "sampled",
            "value": Figure(line.value, line.low, line.high, line.standard_error, people=line.people, unit=line.unit),
            "notes": line.notes,
            "about": rule_in_words(line),
        }
    for majority in report.majorities:
        title = "share of items with the majority label 1"
        yield {
            **_names("majority_label", title, division="stratum", label=majority.stratum or "all", kind="majority"),
            "unit": "share",
            "stage": majority.stage,
            "role": "sampled",
            "value": Figure(majority.share, majority.low, majority.high, unit="share"),
            "notes": majority.notes,
            "about": majority.in_words,
        }


def _division_rows(division: DivisionFigures) -> Iterator[dict[str, Any]]:
    for label, figures in zip(division.labels, division.figures, strict=True):
        for figure in figures:
            yield from _figure_rows(figure, "combined", division.name, label)
    for figure in division.differences:
        yield from _figure_rows(figure, "difference", division.name, f"{division.labels[1]} - {division.labels[0]}")
    for label, figures in zip(division.labels, division.rest or [()] * len(division.labels), strict=True):
        for figure in figures:
            yield from _figure_rows(figure, FROM_THE_REST, division.name, label)
    for place, sentence in enumerate(division.withheld):
        if sentence:
            names = _names(None, None, division=division.name, label=division.labels[place], kind="withheld")
            yield {**names, "value": Figure(people=division.people[place], withheld=sentence), "notes": sentence}


def _figure_rows(figure: StudyFigure, kind: str, division: str = "", label: str = "") -> Iterator[dict[str, Any]]:
    part = {"division": division, "label": label}
    agree = None if figure.agreement is None else figure.agreement.p
    yield _row(figure, figure.combined, kind=kind, agree_p=agree, notes=figure.notes, **part)
    if figure.naive is not None:
        yield _row(figure, figure.naive, kind="naive", **part)
    for other in sensitivity.alternatives(figure):
        row = _row(figure, other.estimate, kind=other.kind, notes=other.note, **part)
        if other.ends is not None:
            row["lowest"], row["highest"] = other.ends
            row["value"] = Figure(None, *other.interval, unit=row["value"].unit, note=other.note)
        yield row
    for stage in figure.stages:
        row = _row(figure, stage.estimate, kind=f"{kind}{ONE_STAGE}", notes=stage.reason, **part)
        title = f"stage {stage.stage}" if stage.role == "sampled" else f"stage {stage.stage}, {stage.role}"
        where = {"stage": stage.stage, "role": stage.role, "weight": stage.weight, "part": title}
        yield {**row, **where, "coefficient": stage.coefficient}
    if figure.assisted is not None and division:
        yield from _figure_rows(figure.assisted, ASSISTED_DIFFERENCE if kind in DIFFERENCES else ASSISTED, **part)


def _names(figure: str | None, title: str | None, *, division: str, label: str, kind: str) -> dict[str, Any]:
    return {"figure": figure, "title": title, "division": division, "label": label, "kind": kind}


def _row(
    figure: StudyFigure | WaveChange,
    estimate: Estimate | None,
    *,
    kind: str,
    notes: str | None = None,
    division: str = "",
    label: str = "",
    **more: Any,
) -> dict[str, Any]:
    names = _names(figure.name, figure.title, division=division, label=label, kind=kind)
    is_difference = kind.removesuffix(ONE_STAGE) in (*DIFFERENCES, WITHIN_PERSON)
    unit = DIFFERENCE if is_difference and is_share(figure.unit) else figure.unit
    row = {**names, "unit": figure.unit, "notes": notes, **more}
    if estimate is None:
        return {**row, "value": Figure(unit=unit, withheld=notes or "")}
    if kind in DIFFERENCES:
        row["p"] = estimate.p_two_sided()
    return {
        **row,
        "value": replace(Figure.of(estimate, unit), note=notes or ""),
        "method": estimate.method,
        "effective_sample_size": estimate.effective_sample_size,
        "weight_lowest": estimate.weight_range[0],
        "weight_highest": estimate.weight_range[1],
        "too_few": estimate.too_few,
    }


def slot_rows(report: StudyEstimates) -> Iterator[dict[str, Any]]:
    """Slots by stratum of each stage, and by the divisions of the report; by the columns of `SLOTS`."""
    total = sum(part.weight for part in report.parts)
    for part in report.parts:
        for line in part.strata:
            yield {
                "division": "stratum",
                "label": f"stage {part.stage} {part.role} {line.name}",
                "slots": _slots_in_words(part.stage, part.role, line.name),
                "planned": line.planned,
                **{state: getattr(line, state) for state in STATES},
                "candidates": line.size,
                "design": part.design,
                "mean": line.mean,
                "weight": part.weight / total if total else None,
            }
    for name, lines in report.slots.items():
        for slots in lines:
            states = {state: getattr(slots, state) for state in STATES}
            yield {"division": name, "label": slots.label, "planned": slots.planned, **states}


def _slots_in_words(stage: int, role: str, stratum: str) -> str:
    """stage 2, top; of slots that are no sampled ones their role, which is the name of their stratum."""
    parts = dict.fromkeys(part for part in (role, stratum) if part not in ("sampled", "all"))
    return ", ".join([f"stage {stage}", *parts])


def leaving_rows(report: StudyEstimates) -> Iterator[dict[str, Any]]:
    """People who left, all and by level; by the columns of `LEAVING`."""
    if report.leaving is None:
        return
    excluded = {(line.factor, line.level): line for line in report.leaving.excluded}
    for line in report.leaving.lines:
        out = excluded.get((line.factor, line.level))
        people = 0 if not excluded else None if out is None else out.excluded
        yield {**_leaving_row(line), "excluded": people, "excluded_p": None if out is None else out.p}


def _leaving_row(line: LeavingLine) -> dict[str, Any]:
    test = line.test
    counts = {name: getattr(line, name) for name in ("factor", "level", "people", "left", "given", "unanswered")}
    row = {"who": line.title, **counts}
    if test is None:
        return {**row, "at_risk": 0, "reason": "nobody could leave after an answer"}
    return {
        **row,
        "at_risk": test.at_risk,
        "left_after_it": test.share_after,
        "left_otherwise": test.share_else,
        "odds_ratio": test.odds_ratio,
        "p": test.p,
        "reason": test.reason,
    }


LIMIT, ITEM_VARIANCE = "auc_limit", "item_variance"
IN_WORDS = {LIMIT: "upper limit of the AUC", ITEM_VARIANCE: "variance between items of their chances"}


def noise_rows(noise: Noise, titles: Mapping[str, str] = MappingProxyType({})) -> Iterator[list[Any]]:
    """False changes, retests and the limit of the AUC; in the order of `NOISE`. titles: of figures, by name."""
    for kind, name, *rest in _noise_cells(noise):
        yield [kind, name, IN_WORDS.get(kind, kind), titles.get(name, name), *rest]


def _noise_cells(noise: Noise) -> Iterator[list[Any]]:
    for kind, rate in noise.false_changes.items():
        yield ["false change", kind, Figure.of(rate, "share"), None, rate.n, rate.n_clusters, rate.too_few]
    for name, retest in noise.retests.items():
        correlation = Figure.between(retest.correlation, retest.interval)
        yield ["retest", name, correlation, None, retest.n, retest.n_clusters, ""]
        yield ["same again", name, Figure(retest.same, unit="share"), None, retest.n, retest.n_clusters, ""]
    limit = noise.auc_limit
    if limit is None:
        yield [LIMIT, "", Figure(), None, None, None, noise.no_limit]
        return
    between = limit.between_items
    yield [LIMIT, "", Figure(limit.limit), None, limit.items, between.n_clusters, ""]
    variance = Figure.between(between.value, between.interval)
    yield [ITEM_VARIANCE, "", variance, limit.highest_variance, limit.items, between.n_clusters, ""]


def codebook_table(design: Sequence[ExtraFile] = ()) -> Table:
    """What every column of the four files means, and of those that `check.R` reads."""
    files: dict[str, Columns] = {
        "estimates.csv": ESTIMATES,
        "slots.csv": SLOTS,
        "leaving.csv": LEAVING,
        "noise.csv": NOISE,
    }
    files |= {file.name: file.columns for file in design}
    columns = tuple(Column(name, "text", "") for name in ("file", "column", "meaning"))
    rows = [
        [file, plain_column.name, plain_column.description]
        for file, declared in files.items()
        for plain_column in plain_columns(declared)
    ]
    return Table("codebook", "What columns mean", columns, rows)


# What people see of them


MARGINS = (
    Column("margin", "text", "The questions whose groups it is about."),
    Column("group", "text", "The group, or the cell."),
    Column("people", "number", "How many people who could be weighted are in it.", whole=True),
    Column("share", "share", "Their share of those."),
    Column("in_population", "share", "The population's share, by [weighting].", heading="in the population"),
    Column("weighted", "share", "The share as the weights make it."),
)


def tables_of(report: StudyEstimates) -> list[Table]:
    """The tables of a study's estimates, for the command `estimate`, its page, the report and files."""
    titles = {figure.name: figure.title for figure in report.figures}
    rows, noise = [*estimate_rows(report)], [*noise_rows(report.noise, titles)]
    leaving = [] if report.leaving is None else [*sensitivity.dropout_sentences(report.leaving)]
    it = "" if report.leaving is None else f"After which answer they left (it: {report.leaving.outcome})"
    return [
        Table("estimates", "Figures", ESTIMATES, rows, views=[*_views(report, rows)]),
        Table(
            "leaving",
            "People who left",
            LEAVING,
            [*leaving_rows(report)],
            note=" ".join(leaving),
            views=[
                TableView(
                    [
                        *("who", "people", "left", "given", "unanswered", "left_after_it", "left_otherwise"),
                        *("odds_ratio", "p", "reason", "excluded", "excluded_p"),
                    ],
                    title=it,
                )
            ],
        ),
        Table(
            "noise",
            "Noise of the answers",
            NOISE,
            noise,
            note=" ".join(sensitivity.auc_sentences(report.noise)),
            # What a row's note says stands below the table.
            views=[
                TableView(
                    ["noise", "of", "value", "highest", "n", "people"],
                    rows=[place for place, row in enumerate(noise) if row[0] != LIMIT or row[4].is_defined],
                )
            ],
        ),
        Table("slots", "Slots by what became of them", SLOTS, [*slot_rows(report)], views=[*_slot_views(report)]),
        *_margins_table(report.weighting),
    ]


def _margins_table(weighting: Weighting | None) -> list[Table]:
    if weighting is None:
        return []
    rows = [
        [
            group.margin,
            group.group,
            group.people,
            group.share,
            group.in_population,
            None if weighting.reason else group.weighted,
        ]
        for group in weighting.groups
    ]
    return [Table("population", "People and the population", MARGINS, rows, note=" ".join(weighting.notes))]


def _views(report: StudyEstimates, rows: Sequence[Mapping[str, Any]]) -> Iterator[TableView]:
    others = tuple(f"_over_{threshold}" for threshold in report.thresholds[1:])

    def places(*kinds: str, division: str = "", every: bool = True) -> list[int]:
        """Of these kinds; without `every` not those of further thresholds, which the files have."""
        return [
            place
            for place, row in enumerate(rows)
            if row["kind"] in kinds
            and row["division"] == division
            and (every or not str(row["figure"]).endswith(others))
        ]

    counts = ("answers", "respondents", "effective_sample_size")
    yield TableView(
        [
            "title",
            "value",
            "standard_error",
            "degrees_of_freedom",
            *counts,
            "weight_lowest",
            "weight_highest",
            "agree_p",
        ],
        title="All stages together",
        rows=places("combined"),
        note="" if report.assisted else f"Not assisted by predictions. {_predictions(report)}",
    )
    yield TableView(
        ["title", "part", "value", "standard_error", "coefficient", "notes"],
        title="With the help of predictions",
        rows=places(ASSISTED, f"{ASSISTED}{ONE_STAGE}", every=False),
        note=f"How much they help is fitted, so that bad ones cost nothing. {_predictions(report)}",
    )
    yield TableView(
        ["title"],
        title="The same figures under other assumptions",
        rows=places(*OTHERWISE),
        across="kind",
        cells="value",
        headings={"naive": "plain"},
    )
    yield TableView(
        ["title", "value", "p", *counts], title="Checks: 0 but for chance", rows=places("check"), note=_verdicts(report)
    )
    if report.carry_over is not None:
        yield TableView(
            ["title", "kind", "value", "p", "answers"],
            title="Do answers depend on the items before them?",
            rows=places(FIRST_ITEMS, SAMPLED_MINUS_HOLDOUT, every=False),
            note=" ".join(sensitivity.carry_over_sentences(report.carry_over)),
        )
    yield TableView(
        ["title"],
        title="Each stage by itself",
        rows=places(f"combined{ONE_STAGE}"),
        across="part",
        cells="value",
    )
    for division in report.divisions:
        name, words = division.name, spaced(division.name)
        yield TableView(
            {"label": words, "title": "", "value": "", "standard_error": "", **dict.fromkeys(counts, "")},
            title=f"By {words}",
            rows=[*places("combined", division=name, every=False), *places("withheld", division=name)],
            note=" ".join(filter(None, (division.note, *sensitivity.group_sentences(division)))),
        )
        yield TableView(
            {"label": words, "title": "", "value": "difference", "p": "", "answers": "", "respondents": ""},
            title=f"Differences by {words}",
            rows=places("difference", FROM_THE_REST, division=name, every=False),
            note="Each group minus all the others together." if any(division.rest) else "",
        )
        yield TableView(
            {"label": words, "title": ""},
            title=f"The same figures under other assumptions, by {words}",
            rows=places(*OTHERWISE, division=name, every=False),
            across="kind",
            cells="value",
            headings={"naive": "plain"},
        )
    yield TableView(
        {"label": "waves", "title": "", "value": "change", "respondents": "people in both"},
        title="From wave to wave: change within the people who answered in both",
        rows=places(WITHIN_PERSON, division="wave"),
        note=" ".join(dict.fromkeys(f"{change.label}: {change.sentence}" for change in report.waves)),
    )
    yield TableView(
        {
            "stage": "",
            "title": "",
            "label": "difference",
            "value": "",
            "respondents": "",
            "about": "stopping rule",
            "notes": "",
        },
        title="While a stage runs: intervals that hold at any time, however often one looks",
        rows=[place for place, row in enumerate(rows) if row["kind"] == "at any time"],
    )
    majorities = "A test stage holds extremes of the scores, so that these are no figures of all items."
    yield TableView(
        {"stage": "", "label": "stratum", "value": "share of label 1", "about": "items", "notes": ""},
        title="Majority labels of the test stage",
        rows=places("majority", division="stratum"),
        note=majorities if report.majorities else "",
    )


def _predictions(report: StudyEstimates) -> str:
    """Whose predictions each stage has, or why it has none."""
    sampled = [part for part in report.parts if part.role == "sampled"]
    return " ".join(f"Stage {part.stage}: {part.predictions}." for part in sampled)


def _verdicts(report: StudyEstimates) -> str:
    for check in report.checks:
        p = None if check.combined is None else check.combined.p_two_sided()
        if p is not None and p < 0.05:
            return "MORE than chance makes: look for what went wrong."
    return ""


def _slot_views(report: StudyEstimates) -> Iterator[TableView]:
    planned = ("planned", *STATES)
    yield TableView(
        ["slots", "design", "candidates", *planned, "mean", "weight"],
        title="Slots by stage and stratum",
        where={"division": "stratum"},
    )
    for name in report.slots:
        words = spaced(name)
        yield TableView({"label": words, **dict.fromkeys(planned, "")}, f"Slots by {words}", where={"division": name})
