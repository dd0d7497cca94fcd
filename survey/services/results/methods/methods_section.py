"""The methods section of a study: how it sampled, what became of its people, what it found; and, before data, a text to
preregister and a page for an ethics board.

Everything is made from one set of tables: a text says only what stands in them. Imports models and below.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from django.db.models import Count

from survey.contracts import instruments
from survey.contracts.reports import Picture, Report, ReportArguments, ReportFile, ReportResult
from survey.exceptions import HunchError
from survey.figures import Column, Figure, FigureColumn, Table, TableView, rendering
from survey.figures.charts import Axis, FlowChart, ForestChart, ForestRow
from survey.figures.words import counted, integer, money, number, percent, short
from survey.models import CandidateSet, ConditionLevel, QuotaPlace, Sitting, Slot, Stage, Study
from survey.services.answers.blinding import shown_conditions
from survey.services.answers.exclusions import excluded_sittings
from survey.services.answers.leaving import leavers_of
from survey.services.answers.sitting_flags import rules_in_words
from survey.services.results.estimates import study_estimates
from survey.services.results.estimates.study_estimates import StudyEstimates
from survey.services.results.estimates.study_figures import StudyFigure
from survey.services.results.policies.comparing import design_words, planned_design_words
from survey.study_file import QuotaConfig

SAMPLING = (
    Column("stage", "number", "The stage, from 1.", whole=True),
    Column("pilot", "0 or 1", "1: a pilot, whose answers enter nothing."),
    Column("state", "text", "Its state now."),
    Column("design", "text", "How its items were drawn."),
    Column("candidates", "number", "Items that it could draw.", whole=True),
    Column("items_in_all", "number", "Items that there are.", whole=True),
    Column("sampled", "number", "Slots drawn by the design.", whole=True),
    Column("holdout", "number", "Slots drawn uniformly, to judge predictors.", whole=True),
    Column("control", "number", "Slots that measure noise.", whole=True),
    Column("repeat", "number", "Slots that ask an item again.", whole=True),
    Column("people_planned", "number", "Sittings that it was planned for.", whole=True),
    Column("predictor", "text", "The predictor whose scores it drew by; empty without one."),
    Column("opened", "date", "When it was opened first."),
    Column("frozen", "date", "When its answers were frozen."),
)
STRATA = (
    Column("stage", "number", "The stage, from 1.", whole=True),
    Column("stratum", "text", "The part of the candidates."),
    Column("candidates", "number", "Items in it.", whole=True),
    Column("drawn", "number", "Items that were drawn from it.", whole=True),
)
FLOW = (
    Column("step", "text", "Its name for programs."),
    Column("people", "number", "How many people.", whole=True),
    Column("text", "text", "What it counts."),
)
CONDITIONS = (
    Column("factor", "text", "The factor."),
    Column("level", "text", "The level."),
    Column("people", "number", "Sittings that were given it.", whole=True),
)
ESTIMATES = (
    Column("figure", "text", "Its name."),
    Column("title", "text", "What it is."),
    Column("unit", "text", "share, or the unit."),
    FigureColumn(
        "value",
        "number",
        "Over all items.",
        parts={
            "low": Column("low", "number", "Lower end of its 95 % interval."),
            "high": Column("high", "number", "Upper end of it."),
            "answers": Column("answers", "number", "Answers that it rests on.", whole=True),
            "people": Column("people", "number", "People who gave them.", whole=True),
        },
        heading="estimate",
    ),
    FigureColumn(
        "superpopulation", "number", "", heading="for a population of such questions", in_file=False, parts={}
    ),
    FigureColumn("weighted", "number", "", heading="weighted for leaving", in_file=False, parts={}),
    FigureColumn("bounds", "number", "", heading="bounds for missing answers", in_file=False, parts={}),
)
BESIDE = (
    Column("figure", "text", "Its name."),
    Column("unit", "text", "share, or the unit."),
    FigureColumn(
        "superpopulation",
        "number",
        "",
        prefix="such_",
        low="Lower end of its 95 % interval for a population of such questions.",
        high="Upper end of it.",
        in_file=False,
    ),
    FigureColumn(
        "weighted",
        "number",
        "The figure weighted for people who left.",
        heading="weighted for leaving",
        high="Upper end of it.",
    ),
    Column("odds_ratio", "number", "That of the bounds, between unanswered and answered items."),
    FigureColumn("bounds", "number", "", low="Lower end of the bounds.", high="Upper end of them.", in_file=False),
)
STOPS = (
    Column("stage", "number", "The stage, from 1; only stages with a stopping rule.", whole=True),
    Column("rule", "text", "The rule."),
    Column("looks", "number", "Looks at the stage by it.", whole=True),
    Column("people", "number", "People at the look that ended the stage; empty where none did.", whole=True),
)
SETTING = (
    Column("name", "text", "Its name for programs."),
    Column("fact", "text", "What it is."),
    Column("value", "text", "It, with its unit."),
)
SHOWN = ("title", "value", "answers", "people", "superpopulation", "weighted", "bounds")
FIRST = 3  # estimates that the text names; the table has all
BEFORE_ITEMS = ("screened_out", "failed_checks", "turned_away")
WITH_ITEMS = ("finished", "left", "left_after_items", "inside")
GO_ON = ("arrived", "passed", "finished", "analysed")  # steps of the flow that people pass; the others leave it


@dataclass(frozen=True)
class StudyMethods:
    """The tables of a study's methods, by name, which all texts are made from.

    `estimates` is None before answers count; `why` then says so.
    """

    study: Study
    estimates: StudyEstimates | None
    why: str
    tables: Mapping[str, Table]

    @property
    def flow(self) -> Sequence[tuple[str, int, str]]:
        """Everybody: a step, how many people took it, and what it is."""
        return self.tables["flow"].rows

    def people(self, step: str) -> int:
        return next((people for name, people, _text in self.flow if name == step), 0)

    def records(self, name: str) -> list[dict[str, Any]]:
        return list(self.tables[name].by_name())


class Methods(Report):
    """Sampling, people and estimates in tables, words, LaTeX and figures; a preregistration; a page for the board."""

    def make(self, study: Study, arguments: ReportArguments) -> ReportResult:
        methods = methods_of(study)
        return ReportResult(
            title=f"Methods of {study.slug}",
            lines=[text for chapter in paragraphs(methods).values() for text in chapter],
            tables=[table for table in methods.tables.values() if table.rows],
            pictures=list(_pictures(methods)),
            files=[
                ReportFile("methods.md", lambda: _encoded(markdown(methods))),
                ReportFile("methods.txt", lambda: _encoded(plain(methods))),
                ReportFile("methods.tex", lambda: _encoded(latex(methods))),
                ReportFile("preregistration.md", lambda: _encoded(preregistration(study))),
                ReportFile("ethics.md", lambda: _encoded(ethics_page(study))),
            ],
            notes=() if methods.estimates else (methods.why,),
            data={
                **{name: table.records() for name, table in methods.tables.items()},
                "preregistration": preregistration(study),
                "ethics": ethics_page(study),
            },
        )


def _encoded(text: str) -> bytes:
    return text.encode()


# Reading


def methods_of(study: Study) -> StudyMethods:
    stages = list(study.stages.order_by("index"))
    for stage in stages:
        stage.study = study
    try:
        estimates, why = study_estimates.estimate(study), ""
    except HunchError as exc:
        estimates, why = None, exc.message
    figures = [figure for figure in (estimates.figures if estimates else ()) if figure.combined is not None]
    strata = [
        [stage.index, stratum.name, stratum.size, stratum.slots]
        for stage in stages
        for stratum in stage.strata.order_by("pk")
    ]
    flow = list(_flow([stage for stage in stages if not stage.is_pilot], estimates))
    tables = (
        Table("setting", "Setting", SETTING, list(_setting(study)), views=[TableView(["fact", "value"])]),
        Table("sampling", "Sampling", SAMPLING, [_sampling(stage) for stage in stages]),
        Table("strata", "Strata", STRATA, strata),
        Table("flow", "People", FLOW, flow, views=[TableView({"text": "people who", "people": "number"})]),
        Table("conditions", "Conditions", CONDITIONS, _conditions(study)),
        Table("stops", "Stopping rules", STOPS, list(_stops(study, stages))),
        Table(
            "estimates",
            "Estimates",
            ESTIMATES,
            [_estimate(figure) for figure in figures],
            views=[TableView(dict.fromkeys(SHOWN, "") | {"title": "figure"})],
        ),
        Table(
            "beside",
            "Estimates under other assumptions",
            BESIDE,
            [_other_assumptions(figure) for figure in figures],
            note="For programs; people find them in the table of estimates.",
            views=[TableView(rows=[])],
        ),
    )
    return StudyMethods(study, estimates, why, {table.name: table for table in tables})


def _setting(study: Study) -> Iterator[list[str]]:
    """What each person does, and for what."""
    config = study.config
    yield ["instrument", "instrument", instruments.of_study(study).title.lower()]
    yield ["bank", "bank", str(study.bank)]
    yield ["questions", "questions of the bank", counted(study.bank.question_count, "question")]
    yield ["items", "items of a person", counted(config.sitting.items, "item")]
    yield ["minutes", "expected time of a person", counted(config.expected_minutes, "minute")]
    if config.panel.reward:
        hourly = config.panel.reward * 60 / config.expected_minutes
        yield ["reward", "reward of a person", money(config.panel.reward, config.panel.currency)]
        yield ["hourly_pay", "reward by the hour", money(hourly, config.panel.currency)]


def _estimate(figure: StudyFigure) -> list[Any]:
    _name, _unit, such, stayed, _ratio, bounds = _other_assumptions(figure)
    return [figure.name, figure.title, figure.unit, Figure.of(figure.combined, figure.unit), such, stayed, bounds]


def _other_assumptions(figure: StudyFigure) -> list[Any]:
    bounds, such = figure.bounds, figure.superpopulation
    return [
        *(figure.name, figure.unit),
        Figure.between(None, such.interval if such else None, figure.unit),
        Figure.of(figure.stayed, figure.unit),
        bounds.odds_ratio if bounds else None,
        Figure.between(None, bounds.interval if bounds else None, figure.unit),
    ]


def _stops(study: Study, stages: Sequence[Stage]) -> Iterator[list[Any]]:
    """A rule about a condition is left out while the study is blind."""
    shown_factors = {None, *(shown_condition.factor for shown_condition in shown_conditions(study))}
    for stage in stages:
        rule, stopped = stage.config.stop, stage.manifest.get("stopped")
        if rule is not None and rule.factor in shown_factors:
            words, looks = rule.in_words(stage.config.sittings), stage.looks.count()
            yield [stage.index, words, looks, stopped["people"] if stopped else None]


def _sampling(stage: Stage) -> list[Any]:
    roles = dict(stage.slots.order_by().values_list("role").annotate(n=Count("pk")))
    drawn = CandidateSet.objects.filter(stage=stage).select_related("predictor_run").first()
    run = drawn.predictor_run if drawn else None
    return [
        *(stage.index, stage.is_pilot, stage.get_state_display(), planned_design_words(stage)),
        *(drawn.size if drawn else None, drawn.universe_size if drawn else None),
        *(roles.get(role, 0) for role in (Slot.Role.SAMPLED, Slot.Role.HOLDOUT, Slot.Role.CONTROL, Slot.Role.REPEAT)),
        *(stage.config.sittings, run.name if run else None),
        *(at.date().isoformat() if at else None for at in (stage.opened_at, stage.frozen_at)),
    ]


def _flow(stages: Sequence[Stage], estimates: StudyEstimates | None) -> Iterator[tuple[str, int, str]]:
    """Everybody of the main stages, from arrival to the analysis. Who does not agree leaves no row."""
    rows = list(Sitting.objects.filter(stage__in=stages).order_by().values_list("pk", "state", "withdrawn_at"))
    states = Counter(state for _pk, state, _at in rows)
    leavers = list(leavers_of(stages).values())
    with_items = {sitting for of_stage in leavers for sitting in of_stage.began}
    yield "arrived", len(rows), "agreed to take part (who did not agree is not stored)"
    yield "screened_out", states[Sitting.State.SCREENED_OUT], "were screened out"
    yield "failed_checks", states[Sitting.State.FAILED_CHECKS], "failed the comprehension checks"
    yield "turned_away", states[Sitting.State.TURNED_AWAY], "found all places taken"
    yield "passed", len(with_items), "passed and were given items"
    left = sum(len(of_stage.left) for of_stage in leavers)
    yield "left", left, "left before their last item"
    gone = sum(pk in with_items and state == Sitting.State.EXPIRED for pk, state, _at in rows)
    if gone > left:
        yield "left_after_items", gone - left, "left after their last item"
    inside = sum(pk in with_items and state == Sitting.State.LIVE for pk, state, _at in rows)
    if inside:
        yield "inside", inside, "still inside"
    yield "finished", states[Sitting.State.COMPLETE], "finished"
    if late := sum(len(of_stage.finished_late) for of_stage in leavers):
        yield "finished_late", late, "of these with an answer that came too late"
    withdrawn = sum(at is not None for _pk, _state, at in rows)
    if withdrawn:
        yield "withdrawn", withdrawn, "withdrew their answers"
    excluded = {sitting: flags for stage in stages for sitting, flags in excluded_sittings(stage).items()}
    yield "excluded", len(excluded), "were excluded by the rules of the study file"
    for flag, people in sorted(Counter(flag for flags in excluded.values() for flag in flags).items()):
        yield f"excluded_{flag}", people, f"of these by the flag {flag}"
    yield "analysed", estimates.respondents if estimates else 0, "have answers in the estimates"


def _conditions(study: Study) -> list[list[Any]]:
    factors = [shown_condition.factor for shown_condition in shown_conditions(study)]
    levels = ConditionLevel.objects.filter(sitting__stage__in=study.main_stages(), factor__in=factors)
    rows = levels.order_by("factor", "level")
    return [[*row] for row in rows.values_list("factor", "level").annotate(n=Count("pk"))]


# In words


def paragraphs(methods: StudyMethods) -> dict[str, list[str]]:
    """The chapters with their paragraphs, of sentences made of the tables alone."""
    return {
        "Design": [_setting_sentences(methods), _sampling_sentences(methods)],
        "People": [_people_sentences(methods)],
        "Estimates": _estimates_paragraphs(methods),
    }


def _setting_sentences(methods: StudyMethods) -> str:
    """What each person did, and for what."""
    said = {row["name"]: row["value"] for row in methods.records("setting")}
    pay = f" for {said['reward']} ({said['hourly_pay']} an hour)" if "reward" in said else ""
    return (
        f"The instrument is {said['instrument']}, on {said['questions']} of the bank {said['bank']}. Each person is "
        f"given {said['items']}, planned to take {said['minutes']}{pay}."
    )


def _sampling_sentences(methods: StudyMethods) -> str:
    """A sentence for each stage, or for neighbours that were sampled alike; then what ended stages early."""
    rows = methods.records("sampling")
    sentences = []
    if any(row["sampled"] for row in rows):
        sentences.append(
            "What each stage asked was drawn before it opened, and the chance of each draw was stored. A presentation "
            "is one item, shown to one person."
        )
    for _alike, group in groupby(rows, key=_drawn_alike):
        sentences.append(_stages_sentence(list(group)))
    for row in methods.records("stops"):
        looks = f"it was looked at {_times(row['looks'])}" if row["looks"] else "no look was made yet"
        end = f", and the last look, at {_people(row['people'])}, ended it" if row["people"] else ""
        sentences.append(f"By its stopping rule stage {row['stage']} {row['rule']}; {looks}{end}.")
    return " ".join(sentences)


def _drawn_alike(row: Mapping[str, Any]) -> list[Any]:
    """What two stages share that one sentence can be about."""
    return [row[column.name] for column in SAMPLING if column.name not in ("stage", "opened", "frozen")]


def _stages_sentence(rows: Sequence[Mapping[str, Any]]) -> str:
    row = rows[0]
    numbers = _and([str(row["stage"]) for row in rows])
    named = f"Stages {numbers}" if len(rows) > 1 else f"Stage {numbers}"
    each, pilot = ("each ", "pilots") if len(rows) > 1 else ("", "a pilot")
    kind = f", {pilot} whose answers enter no estimate," if row["pilot"] else ""
    if not row["sampled"]:
        verb = "are" if each else "is"
        return f"{named} ({_people(row['people_planned'])}, {row['design']}){kind} {verb} not planned yet."
    pool = ""
    if row["candidates"]:
        pool = f" from {integer(row['candidates'])} candidates, of {integer(row['items_in_all'])} possible items"
        if row["candidates"] == row["items_in_all"]:
            pool = f" from all {integer(row['candidates'])} possible items"
    how = {"uniform": "uniformly at random"}.get(row["design"], f"by the design {row['design']}")
    scores = f" with the scores of {row['predictor']}" if row["predictor"] else ""
    kinds = (("holdout", "of a uniform holdout"), ("control", "to measure noise"), ("repeat", "to ask an item again"))
    others = [f"{integer(row[role])} {words}" for role, words in kinds if row[role]]
    more = f"; to these came {_and(others)}" if others else ""
    state = "" if row["state"] == Stage.State.FROZEN.label else f" The stage is {row['state']}: its answers may change."
    return (
        f"{named}{kind} {each}drew {integer(row['sampled'])} presentations {how}{scores}{pool}, for "
        f"{_people(row['people_planned'])}{more}.{state}"
    )


def _people_sentences(methods: StudyMethods) -> str:
    if not methods.people("arrived"):
        return "Nobody has taken part yet."
    steps = {name: (people, text) for name, people, text in methods.flow if people}
    before = [f"{steps[name][0]} {steps[name][1]}" for name in BEFORE_ITEMS if name in steps]
    inside = [f"{steps[name][0]} {steps[name][1]}" for name in WITH_ITEMS if name in steps]
    sentences = [
        f"{_people(methods.people('arrived'))} agreed to take part" + (f"; {_and(before)}." if before else ".")
    ]
    if inside:
        were = "was" if methods.people("passed") == 1 else "were"
        sentences.append(f"Of the {methods.people('passed')} who {were} given items, {_and(inside)}.")
    if "finished_late" in steps:
        sentences.append(f"{_people(steps['finished_late'][0])} finished with an answer that came too late.")
    if "withdrawn" in steps:
        sentences.append(f"{_people(steps['withdrawn'][0])} withdrew their answers, which were deleted.")
    if "excluded" in steps:
        reasons = [f"{name.removeprefix('excluded_')} ({steps[name][0]})" for name in steps if "excluded_" in name]
        several = " A person may meet several of these rules." if len(reasons) > 1 else ""
        sentences.append(
            f"By the rules of the study file {_people(steps['excluded'][0])} were excluded: {_and(reasons)}.{several}"
        )
    sentences += _conditions_sentences(methods)
    sentences += [_quota_words(quota) for quota in methods.study.config.quotas]
    if methods.study.config.quotas:
        placed = QuotaPlace.objects.filter(stage__in=methods.study.main_stages(), state=QuotaPlace.State.FULL)
        sentences.append(f"{_people(placed.values('sitting').distinct().count())} found their part full.")
    if "analysed" in steps:
        sentences.append(f"The estimates rest on the answers of {_people(steps['analysed'][0])}.")
    return " ".join(sentences)


def _conditions_sentences(methods: StudyMethods) -> Iterator[str]:
    """How conditions were given, and to how many people where each kept one level."""
    people: dict[str, list[str]] = {}
    for row in methods.records("conditions"):
        people.setdefault(row["factor"], []).append(f"{row['level']} ({row['people']})")
    for condition in shown_conditions(methods.study):
        if condition.per == "item":
            yield f"The level of {condition.factor} was drawn at random for each item: {_and(condition.levels)}."
        elif condition.factor in people:
            yield f"Each person was given a level of {condition.factor} at random: {_and(people[condition.factor])}."


def _quota_words(quota: QuotaConfig) -> str:
    cells = [
        f"{cell.name} ({f'{short(100 * cell.share)} % of the sittings' if cell.share else _people(cell.places or 0)})"
        for cell in quota.cells
    ]
    how = {"study_full": "turned away", "screened_out": "screened out"}
    others = "" if quota.otherwise == "admit" else f"; who belongs in none of these parts is {how[quota.otherwise]}"
    return (
        f"A quota by {' and '.join(sorted(quota.fields))}, answered before the items, limits each stage: "
        f"{', '.join(cells)}. Who comes when their part is full is {how[quota.when_full]}{others}."
    )


def _estimates_paragraphs(methods: StudyMethods) -> list[str]:
    """What the estimates are of, the first of them, and what they rest on; each statement once."""
    if methods.estimates is None:
        return [f"There are no estimates yet: {methods.why}."]
    rows = methods.records("estimates")
    others = [
        words
        for column, words in (
            ("superpopulation", "the interval for a population of such questions"),
            ("weighted", "the figure weighted for people who left"),
        )
        if any(row[column].is_defined or row[column].interval for row in rows)
    ]
    ratios = {row["odds_ratio"] for row in methods.records("beside") if row["odds_ratio"] is not None}
    if ratios:
        most = _and([short(ratio) for ratio in sorted(ratios)])
        others.append(f"bounds if unanswered items differ from answered ones by an odds ratio of at most {most}")
    table = f" The table of estimates has all of them, with {_and(others)}." if others else ""
    first = "; ".join(f"{row['title']}, {row['value']}" for row in rows[:FIRST])
    rests = dict.fromkeys((row["value"].answers, row["value"].people) for row in rows[:FIRST])
    answers = _and([f"{integer(n)} answers of {_people(people)}" for n, people in rests])
    named = "The first estimates are" if len(rows) > FIRST else "The estimates are"
    main = f" {named}, with 95 % intervals in brackets: {first}; from {answers}.{table}" if rows else ""
    estimand = f"Estimates are over {methods.estimates.estimand}, weighted by the chances of the draws."
    return [f"{estimand}{main}", " ".join(methods.estimates.assumptions)]


def _and(parts: Sequence[str]) -> str:
    """a, b and c."""
    return " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _people(count: int) -> str:
    return f"{count} {'person' if count == 1 else 'people'}"


# As files


def markdown(study_methods: StudyMethods) -> str:
    """Paragraphs, the table of estimates, and at the end the other tables, for a supplement."""
    parts = [f"# Methods of {study_methods.study.title}", ""]
    for title, chapter in paragraphs(study_methods).items():
        parts += [f"## {title}", "", *(f"{rendering.markdown_text(text)}\n" for text in chapter)]
    main, *others = _tables(study_methods)
    parts += [rendering.markdown(main), "## Tables of a supplement", ""] if main.rows else ["## Tables", ""]
    return "\n".join([*parts, *map(rendering.markdown, others)])


def latex(methods: StudyMethods) -> str:
    """Text and tables to be included: needs only `\\usepackage{booktabs}`."""
    parts = ["% Needs \\usepackage{booktabs}."]
    for title, chapter in paragraphs(methods).items():
        parts.append(f"\\subsection*{{{title}}}")
        parts += [f"{rendering.escaped_latex(text)}\n" for text in chapter]
    return "\n".join([*parts, *(rendering.latex(table) for table in _tables(methods) if table.rows)]) + "\n"


def plain(methods: StudyMethods) -> str:
    """The same without any markup."""
    parts = []
    for title, chapter in paragraphs(methods).items():
        parts += [title, *chapter]
    for table in _tables(methods):
        parts += ["\n".join(rendering.terminal(table)).strip()] if table.rows else []
    return "\n\n".join(parts) + "\n"


def _tables(methods: StudyMethods) -> list[Table]:
    """That of the estimates, then those which only a supplement has room for."""
    names = ("estimates", "setting", "sampling", "strata", "stops", "flow", "conditions")
    return [methods.tables[name] for name in names if methods.tables[name].rows or name == "estimates"]


def preregistration(study: Study) -> str:
    """What was fixed before any data, from the study file."""
    config, instrument = study.config, instruments.of_study(study)
    people = sum(stage.sittings for stage in config.stages[config.pilots :])
    locked = "not locked yet" if study.locked_at is None else f"locked on {study.locked_at.date().isoformat()}"
    lines = [
        f"# Preregistration: {config.title}",
        "",
        f"Study file sha256 {study.source_sha256}, {locked}. Seed {config.seed}: every draw follows from it.",
        "",
        "## Design",
        "",
        f"- Instrument: {instrument.title}. Bank: {study.bank}, {study.bank.question_count} questions.",
        f"- {len(config.stages) - config.pilots} stages, {_people(people)} in all, {config.sitting.items} items each"
        + (
            f"; before them {counted(config.pilots, 'pilot stage')}, whose answers enter nothing."
            if config.pilots
            else "."
        ),
    ]
    for index, stage in enumerate(config.stages, start=1):
        stop = f"; {stage.stop.in_words(stage.sittings)}" if stage.stop else ""
        lines.append(f"- Stage {index}: {_people(stage.sittings)}, {design_words(stage.design)}{stop}.")
    for shown_condition in shown_conditions(study):
        lines.append(
            f"- Condition {shown_condition.factor}, drawn for each {shown_condition.per}: "
            f"{', '.join(shown_condition.levels)}."
        )
    lines += [f"- {_quota_words(quota)}" for quota in config.quotas]
    if config.predictor is not None:
        lines.append(f"- Predictor: {config.predictor.name}, trained on earlier stages alone.")
    lines += [
        f"- Slots in addition to the sampled ones: {percent(config.roles.holdout, 0)} holdout, "
        f"{percent(config.roles.controls, 0)} controls.",
        "",
        "## Exclusions",
        "",
    ]
    rules = [f"- {name}: {words}." for name, words in rules_in_words(study) if name in config.exclusions.flags]
    lines += rules or ["- No answer is excluded."]
    lines += ["", "## Analysis", ""]
    if instrument.estimates is not None:
        estimands = instruments.estimates_of(instrument)
        lines += [f"- {text}" for text in study_estimates.ASSUMPTIONS]
        thresholds = ", ".join(map(str, estimands.default_thresholds()))
        if thresholds:
            lines.append(f"- Changes up to a threshold count as none; thresholds: {thresholds}.")
    lines.append("- Answers are weighted by 1 / their exact chance of being asked; stages by their plans alone.")
    return "\n".join(lines) + "\n"


def ethics_page(study: Study) -> str:
    """One page: who is asked what, for how long, for what pay, and what becomes of the data."""
    config = study.config
    consent = [block for block in config.blocks if block.kind == "consent"]
    pay = "Nobody is paid by the panel."
    if config.panel.reward:
        hourly = config.panel.reward / 100 * 60 / config.expected_minutes
        pay = (
            f"Each person is paid {money(config.panel.reward, config.panel.currency)} for about "
            f"{short(config.expected_minutes)} minutes, which is {number(hourly)} {config.panel.currency} an hour."
        )
    until = config.data.retention_until
    asked_in_all = sum(stage.sittings for stage in config.stages)
    asked = [
        f"- {block.title or block.name}: {', '.join(str(field.label) for field in block.fields)}"
        for block in config.blocks
        if block.fields
    ]
    lines = [
        f"# {config.title}: page for the ethics board",
        "",
        f"People answer {config.sitting.items} items of the kind {instruments.of_study(study).title.lower()} in about "
        f"{config.texts.minutes} minutes. In all {_people(asked_in_all)} are asked. {pay}",
        "",
        f"They come from: {config.panel.kind}. {config.texts.contact or 'The study file names no contact.'}",
        "",
        "## Consent",
        "",
        *(str(block.text) for block in consent),
        "",
        "## What else is asked",
        "",
        *(asked or ["- Nothing but the items."]),
        "",
        "## Data",
        "",
        "- Answers are stored under pseudonyms. A panel's ids are encrypted and apart, and deleted after paying.",
        f"- Personal data is kept until {until}."
        if until
        else "- The study file does not say yet how long data is kept.",
        "- Everybody may stop at any time, and may withdraw: all they gave is then deleted.",
    ]
    return "\n".join(lines) + "\n"


# Figures


def _pictures(methods: StudyMethods) -> Iterator[Picture]:
    steps = [(f"{people} {text}", name in GO_ON) for name, people, text in methods.flow if people]
    if methods.people("arrived"):
        said = "; ".join(words for words, _goes_on in steps)
        title = "What became of people"
        yield Picture.of("flow", title, f"From top to bottom: {said}.", FlowChart(title=title, steps=steps))
    rows = [row for row in methods.records("estimates") if row["unit"] == "share" and row["value"].interval]
    if rows:
        said = "; ".join(f"{row['title']}: {row['value']}" for row in rows)
        title = "Shares over all items, with 95 % intervals"
        chart = ForestChart(
            title=title,
            x=Axis("share of items", share=True, includes=(0.0, 1.0)),
            rows=[ForestRow(row["title"], [row["value"]], percent(row["value"].value)) for row in rows],
        )
        yield Picture.of("shares", title, f"{said}.", chart)
