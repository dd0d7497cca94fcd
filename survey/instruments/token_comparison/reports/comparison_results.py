"""All figures of comparisons of next tokens, for studies and for answers that somebody has, as a report."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from predictors.evaluation.scoring import finite
from survey.contracts.reports import Picture, ReportResult
from survey.figures import Column, Figure, FigureColumn, Table, TableView
from survey.figures.charts import Axis, ForestChart, ForestRow, Line, LineChart
from survey.figures.words import number
from survey.instruments.token_comparison.analysis.checking import CheckModel, KnownLoss, check, log_odds_of_model
from survey.instruments.token_comparison.analysis.loss import (
    ComparisonAnswers,
    Comparisons,
    Loss,
    by_draws,
    estimate,
    has_enough_draws,
    rise,
    terms,
    values_of,
)
from survey.instruments.token_comparison.analysis.rewards import RATIOS
from survey.instruments.token_comparison.analysis.rounding import are_rounded, unrounded

PEOPLE, GENERATOR = "people", "generator"
STATED, EXACT, ROUNDED, UNROUNDED = "stated", "exact", "rounded", "unrounded"
LOSSES = (
    Column("who", "text", "people, or a language model whose loss is known."),
    Column(
        "answers",
        "text",
        "stated: by people; exact or rounded: the model's odds as they are, or as people choose; unrounded: the odds "
        "to be expected behind rounded chances.",
    ),
    Column("contexts", "number", "Contexts that the figure is over.", whole=True),
    Column("comparisons", "number", "Different comparisons that were answered.", whole=True),
    Column("difference", "number", "L - L_G: loss less the generator's, nats per token.", heading="L - L_G", digits=3),
    Column("error_texts", "number", "Error 1: its standard error over contexts.", heading="error 1", digits=3),
    Column("error_draws", "number", "Error 2: that of the draws and answers within contexts.", digits=3),
    Column("low", "number", "The difference less 2 times error 1."),
    Column("high", "number", "The difference and 2 times error 1."),
    FigureColumn(
        "resampled",
        "number",
        "Ends alone.",
        heading="95 %, texts and people",
        in_file=False,
        low="Lower end of the 95 % interval by resampling texts and people; empty for rounded chances.",
    ),
    Column("generator_loss", "number", "L_G: the generator's loss on the same contexts, nats per token."),
    Column("loss", "number", "L, nats per token.", heading="L", digits=3),
    FigureColumn(
        "perplexity",
        "number",
        "exp(L); empty where no model is checked next to it, or draws are too few.",
        digits=1,
        interval="2 errors",
        low="exp of L less 2 times its standard error.",
        high="exp of L and 2 times its standard error.",
    ),
    Column("true_difference", "number", "What L - L_G of this model truly is on these contexts; empty for people."),
    Column("true_loss", "number", "What its loss truly is."),
)
PERSONS = (
    Column("person", "text", "The person, by pseudonym."),
    Column("who", "text", "The person, or a model that answers the same comparisons with rounded chances."),
    Column("answers", "number", "Comparisons of this person.", whole=True),
    Column("contexts", "number", "Contexts that the figure is over.", whole=True),
    Column("difference", "number", "L - L_G, nats per token.", heading="L - L_G", digits=3),
    Column("error_texts", "number", "Error 1: its standard error over contexts.", heading="error 1", digits=3),
    Column("perplexity", "number", "exp(L); empty where no model is checked next to it.", digits=1),
    Column("true_difference", "number", "What is true of this model on these contexts; empty for a person.", digits=3),
)
DRAWS = (
    Column("who", "text", "people, or a model."),
    Column("draws", "number", "Draws of a context that are used.", whole=True),
    Column(
        "difference", "number", "L - L_G with so many draws, nats per token: a mean over 20 random orders.", digits=3
    ),
    Column("true_difference", "number", "What is true of the model on these contexts; empty for people.", digits=3),
)
CONTEXTS = (
    Column("context", "text", "The context."),
    Column("text", "text", "The text that it begins."),
    Column("draws", "number", "Draws of the generator.", whole=True),
    Column("same", "number", "How many of them are the true token itself.", whole=True, heading="true token drawn"),
    Column("comparisons", "number", "Different other tokens.", whole=True),
    Column("asked", "number", "How many of these were answered.", whole=True, heading="answered"),
    Column("answers", "number", "Answers of people.", whole=True),
    Column("log_g_true", "number", "Natural logarithm of the generator's probability of the true token."),
    Column("log_e", "number", "ln e_c; empty where nothing was answered.", heading="ln e", digits=3),
    Column("relative_error", "number", "Standard error of e_c divided by e_c.", heading="error", digits=3),
    Column("weight", "number", "1 / the chance of the context to be in the study."),
)
ONE_DISTRIBUTION = (
    "all people are taken as one distribution: the figure is the loss of their mean odds, not the mean of their losses"
)
STATED_ONLY = (
    "people choose from a few chances, and the estimator weighs the smallest and largest most: as stated, their "
    "loss is too high, by .13 nats where the generator is near them. The row unrounded has the odds that are to be "
    "expected behind the stated chances, the interval and the perplexity; the row stated is the original game's. "
    "The same is done for the models, so that the checks tell what is left"
)
TOO_LOW = (
    "the terms of the estimator are heavy-tailed, so that it is too low where the generator is unlike the people or "
    "draws are few: read each figure next to the checks, which are models of known loss on the same comparisons"
)
NO_CHECK = (
    "no language model is checked next to people, so that no perplexity is shown: name one or more whose log-"
    "probabilities of both tokens are known"
)
SHOWN = 40
SOME_DRAWS = (1, 2, 5, 10, 20, 40, 80)
MIN_OF_PERSON = 10  # answers; a person with fewer has no line


@dataclass(frozen=True, eq=False)
class StudyComparisons:
    """What is worked out. models: checks, without the generator, which always is one. contexts, texts: their names.
    persons: what each person answered, by name; None: not asked for. ratios: the chances that people choose from."""

    comparisons: Comparisons
    answers: ComparisonAnswers
    models: Sequence[CheckModel]
    contexts: Sequence[str]
    texts: Sequence[str]
    ratios: Sequence[int] = RATIOS
    persons: Mapping[str, tuple[Comparisons, ComparisonAnswers, Sequence[CheckModel]]] | None = None
    ddof: int = 1


@dataclass(frozen=True, eq=False)
class Figures:
    """What came of it.

    stated: from people's answers as they are. people: the figure, which is the same where chances are not rounded.
    rise: how far it is, in nats, above what half of the draws give.
    """

    stated: Loss
    people: Loss
    is_rounded: bool
    rise: float
    checks: Sequence[KnownLoss]
    generator: KnownLoss
    persons: Sequence[tuple[str, int, Loss, Sequence[KnownLoss]]]
    curves: Sequence[tuple[str, Sequence[tuple[int, float]], float | None]]

    @property
    def why_no_perplexity(self) -> str:
        """ "" where people's perplexity can be read."""
        if not self.checks:
            return NO_CHECK
        if self.people.interval is None:
            return "too few texts for an interval, so that no perplexity is shown: add texts"
        if has_enough_draws(self.rise, self.people.interval):
            return ""
        return (
            f"too few draws: with half of them the figure is {number(abs(self.rise), 3)} nats "
            f"{'lower' if self.rise > 0 else 'higher'}, and with more it would still move. Its interval says too much, "
            "and no perplexity is shown: raise draws, or take a generator nearer to people"
        )

    def as_json(self) -> dict[str, Any]:
        """Plain values; what has no number is null."""
        whole = not self.why_no_perplexity
        return {
            "people": _loss_json(self.stated, whole=bool(self.checks), holds=not self.is_rounded and whole),
            UNROUNDED: _loss_json(self.people, whole=whole, holds=whole) if self.is_rounded else None,
            "rise_from_half_the_draws": finite(self.rise),
            "why_no_perplexity": self.why_no_perplexity,
            "checks": [
                {
                    "model": model_check.name,
                    "true_difference": finite(model_check.true),
                    "true_error": finite(model_check.true_error),
                    "true_loss": finite(model_check.true_loss),
                    "true_perplexity": finite(math.exp(model_check.true_loss)),
                    EXACT: _loss_json(model_check.exact),
                    ROUNDED: _loss_json(model_check.rounded),
                    UNROUNDED: _loss_json(model_check.unrounded),
                }
                for model_check in (*self.checks, self.generator)
            ],
            "persons": [
                {
                    "person": name,
                    "answers": count,
                    **_loss_json(loss, whole=bool(checks)),
                    "checks": [
                        {"model": check.name, "true_difference": finite(check.true), ROUNDED: _loss_json(check.rounded)}
                        for check in checks
                    ],
                }
                for name, count, loss, checks in self.persons
            ],
        }


def _loss_json(loss: Loss | None, *, whole: bool = True, holds: bool = True) -> dict[str, Any]:
    """whole: with the perplexity. holds: with the intervals that are to cover the truth."""
    if loss is None:
        return {"contexts": 0, "difference": None}
    low, high = loss.within()
    ends = loss.perplexity_within() if whole else (None, None)
    return {
        "contexts": loss.contexts,
        "left_out": loss.left_out,
        "difference": finite(loss.difference),
        "error_texts": finite(loss.error_texts),
        "error_draws": finite(loss.error_draws),
        "two_errors": [finite(low), finite(high)],
        "resampled": None if loss.interval is None or not holds else list(loss.interval),
        "generator_loss": finite(loss.generator_loss),
        "loss": finite(loss.loss) if whole else None,
        "perplexity": finite(loss.perplexity) if whole else None,
        "perplexity_two_errors": [finite(end) for end in ends],
        "perplexity_resampled": None
        if loss.interval_of_loss is None or not whole or not holds
        else [math.exp(end) for end in loss.interval_of_loss],
    }


def work_out(material: StudyComparisons, *, rng: np.random.Generator) -> Figures | None:
    """All figures; None where no context has an answer."""
    c, answers, ddof = material.comparisons, material.answers, material.ddof
    stated = people = estimate(c, answers, ddof=ddof, rng=rng)
    if stated is None or people is None or not len(answers):
        return None
    is_rounded = are_rounded(answers, material.ratios)
    if is_rounded:
        answers = unrounded(c, answers, material.ratios)
        people = estimate(c, answers, ddof=ddof, rng=rng) or stated
    checks = [check(c, answers, model, ratios=material.ratios, ddof=ddof) for model in material.models]
    own = CheckModel(GENERATOR, c.log_g_true, c.log_g_other)
    generator = check(c, answers, own, ratios=material.ratios, ddof=ddof)
    curves: list[tuple[str, Sequence[tuple[int, float]], float | None]] = []
    values = values_of(c, answers)
    of_people = list(by_draws(c, values, rng=rng))
    curves.append((PEOPLE, of_people, None))
    for model, model_check in zip(material.models, checks, strict=True):
        own_values = np.where(np.isfinite(values), np.exp(c.log_ratio + log_odds_of_model(c, model)), np.nan)
        curves.append((model.name, list(by_draws(c, own_values, rng=rng)), model_check.true))
    persons = []
    for name, (of_person, person_answers, models) in (material.persons or {}).items():
        loss = estimate(of_person, person_answers, ddof=ddof)
        if loss is not None and len(person_answers) >= MIN_OF_PERSON:
            own_checks = [
                check(of_person, person_answers, model, ratios=material.ratios, ddof=ddof, without_rounding=False)
                for model in models
            ]
            persons.append((name, len(person_answers), loss, own_checks))
    return Figures(stated, people, is_rounded, rise(of_people), checks, generator, persons, curves)


def report_result(
    material: StudyComparisons,
    figures: Figures,
    *,
    title: str,
    lines: Sequence[str] = (),
    notes: Sequence[str] = (),
    data: Mapping[str, Any] | None = None,
) -> ReportResult:
    """The figures as lines, tables, pictures and JSON."""
    tables = [_losses_table(material, figures)]
    if figures.persons:
        tables.append(_persons_table(figures))
    tables += [_draws_table(figures), _contexts_table(material)]
    more = [STATED_ONLY] if figures.is_rounded else []
    more += [figures.why_no_perplexity] if figures.why_no_perplexity else []
    return ReportResult(
        title=title,
        headline=_headline(figures.people),
        lines=[*lines, *_lines(figures)],
        tables=tables,
        pictures=list(_pictures(figures)),
        notes=[*notes, TOO_LOW, ONE_DISTRIBUTION, *more],
        data={**figures.as_json(), **(data or {})},
    )


def _headline(people: Loss) -> str:
    """How much more or less than the generator people lose at a token."""
    difference = Figure(people.difference, *people.within(), unit="nats")
    if not difference.is_defined:
        return ""
    chance = "; the range holds 0, so that they may do as well as it" if difference.holds(0) else ""
    return f"People's loss at a token, less that of the generator, is {difference.in_words(3)}{chance}."


def _lines(figures: Figures) -> Iterator[str]:
    people = figures.people
    if figures.is_rounded:
        yield (
            "L - L_G of people by the chances as they stated them, as in the original game: "
            f"{number(figures.stated.difference, 3)} ({_errors(figures.stated)}); rounding moves that up"
        )
    yield (
        f"L - L_G of people: {Figure(people.difference, *people.within()).in_words(3)} nats per token over "
        f"{people.contexts} contexts (2 times error 1 in brackets); {_errors(people)}; the generator's own loss L_G is "
        f"{number(people.generator_loss, 3)}"
    )
    if not figures.why_no_perplexity and people.interval_of_loss is not None:
        perplexity = Figure.between(people.perplexity, map(math.exp, people.interval_of_loss))
        yield f"Perplexity of people: {perplexity.in_words(0)} (95 % in brackets), next to the checks:"
    for own_check in figures.checks:
        if own_check.rounded is not None and own_check.exact is not None and own_check.unrounded is not None:
            yield (
                f"- check {own_check.name}: the same estimator says {number(own_check.unrounded.difference, 3)} "
                f"({number(own_check.rounded.difference, 3)} from rounded chances as they are, "
                f"{number(own_check.exact.difference, 3)} from exact ones), and {number(own_check.true, 3)} is true"
            )


def _errors(loss: Loss) -> str:
    return f"error 1 {number(loss.error_texts, 3)}, error 2 {number(loss.error_draws, 3)}"


def _losses_table(material: StudyComparisons, figures: Figures) -> Table:
    whole = bool(figures.checks)
    comparisons = len(np.unique(material.answers.item))
    holds = not figures.why_no_perplexity
    rows: list[list[Any]] = []
    if figures.is_rounded:
        rows.append(_loss_row(PEOPLE, UNROUNDED, figures.people, comparisons, whole=holds, holds=holds))
    stated_holds = holds and not figures.is_rounded
    rows.append(_loss_row(PEOPLE, STATED, figures.stated, comparisons, whole=whole, holds=stated_holds))
    for model_check in (*figures.checks, figures.generator):
        for answers, loss in (
            (UNROUNDED, model_check.unrounded),
            (ROUNDED, model_check.rounded),
            (EXACT, model_check.exact),
        ):
            if loss is not None:
                rows.append(_loss_row(model_check.name, answers, loss, comparisons, true=model_check))
    note = (
        "Rounded: the model answers with the chance that is nearest among those that people choose from. Unrounded: "
        "with the odds that are to be expected behind it."
    )
    return Table(
        "losses",
        "Loss of people, and of models of known loss",
        LOSSES,
        rows,
        note=note,
        views=[
            TableView(
                [
                    *("who", "answers", "contexts", "difference", "error_texts", "error_draws", "resampled"),
                    *("loss", "perplexity", "true_difference"),
                ]
            )
        ],
    )


def _loss_row(
    who: str,
    answers: str,
    loss: Loss,
    comparisons: int,
    *,
    whole: bool = True,
    holds: bool = True,
    true: KnownLoss | None = None,
) -> list[Any]:
    return [
        who,
        answers,
        loss.contexts,
        comparisons,
        loss.difference,
        loss.error_texts,
        loss.error_draws,
        *loss.within(),
        Figure.between(None, loss.interval if holds else None),
        loss.generator_loss,
        loss.loss,
        Figure(loss.perplexity, *loss.perplexity_within()) if whole else Figure(),
        None if true is None else true.true,
        None if true is None else true.true_loss,
    ]


def _persons_table(figures: Figures) -> Table:
    rows: list[list[Any]] = []
    for name, count, loss, checks in figures.persons:
        own = [(PEOPLE, loss, bool(checks), None), *((check.name, check.rounded, True, check.true) for check in checks)]
        rows += [
            [
                name,
                who,
                count,
                answered.contexts,
                answered.difference,
                answered.error_texts,
                answered.perplexity if whole else None,
                true,
            ]
            for who, answered, whole, true in own
            if answered is not None
        ]
    note = (
        "Each person alone has few draws of a context, so that these figures are further below the truth than those of "
        "all together; the models next to a person answer the same comparisons, rounded."
    )
    return Table("persons", "Each person alone", PERSONS, rows, note=note, views=[TableView(most=SHOWN)])


def _draws_table(figures: Figures) -> Table:
    rows = [[name, n, value, true] for name, points, true in figures.curves for n, value in points]
    last = {row[0]: row[1] for row in rows}
    some = [place for place, row in enumerate(rows) if row[1] in (*SOME_DRAWS, last[row[0]])]
    return Table(
        "draws",
        "The estimate by the number of draws",
        DRAWS,
        rows,
        views=[TableView(rows=some)],
        note="A line that still rises at its end says that more draws would raise the estimate.",
    )


def _contexts_table(material: StudyComparisons) -> Table:
    c, answers = material.comparisons, material.answers
    loss_terms = terms(c, answers, ddof=material.ddof)
    asked = np.bincount(answers.item, minlength=len(c))
    per_context = np.bincount(c.context, minlength=c.contexts)
    answered = np.bincount(c.context[asked > 0], minlength=c.contexts)
    count = np.bincount(c.context, weights=asked, minlength=c.contexts)
    rows: list[list[Any]] = [
        [
            material.contexts[place],
            material.texts[c.text[place]],
            round(float(c.draws[place])),
            round(float(c.same[place])),
            int(per_context[place]),
            int(answered[place]),
            int(count[place]),
            finite(float(c.log_g_true[place])),
            finite(float(loss_terms.log_e[place])),
            finite(float(loss_terms.relative_error[place])),
            finite(float(c.weight[place])),
        ]
        for place in range(c.contexts)
    ]
    dearest = sorted(range(len(rows)), key=lambda place: -(rows[place][8] if rows[place][8] is not None else -math.inf))
    view = TableView(
        ["context", "draws", "same", "comparisons", "asked", "answers", "log_e", "relative_error"],
        rows=dearest,
        most=SHOWN,
        note="Those that cost people most come first.",
    )
    return Table("contexts", "Contexts", CONTEXTS, rows, views=[view])


def _pictures(figures: Figures) -> Iterator[Picture]:
    people = figures.people
    rows = [ForestRow(PEOPLE, [Figure.between(people.difference, people.within())])]
    for model_check in (*figures.checks, figures.generator):
        answered = model_check.unrounded if figures.is_rounded else model_check.exact
        if answered is not None:
            rows.append(
                ForestRow(
                    model_check.name,
                    [Figure(), Figure.between(answered.difference, answered.within()), Figure(model_check.true)],
                )
            )
    yield Picture.of(
        "differences",
        "Loss less the generator's",
        "L - L_G of people and of models of known loss, with 2 times error 1, and what is true of the models.",
        ForestChart(
            title="Loss less the generator’s",
            x=Axis("L - L_G (nats per token)"),
            series=["people", "model, estimated alike", "model, what is true"],
            rows=rows,
            mark_at=0.0,
        ),
    )
    curves = [(name, points, true) for name, points, true in figures.curves if points]
    if not curves:
        return
    most = max(n for _name, points, _true in curves for n, _value in points)
    lines: list[Line] = []
    for name, points, true in curves:
        lines.append(Line(name, [(float(n), value) for n, value in points], marked=False))
        if true is not None and math.isfinite(true):
            lines.append(Line(f"{name}, what is true", [(1.0, true), (float(most), true)], marked=False))
    yield Picture.of(
        "draws",
        "The estimate by the number of draws",
        "L - L_G as it would be estimated with so many draws of a context, and what is true of the models.",
        LineChart(
            title="The estimate by the number of draws",
            x=Axis("draws of a context"),
            y=Axis("L - L_G (nats per token)"),
            lines=lines,
        ),
    )
