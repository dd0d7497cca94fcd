"""An analysis of judgements as tables, figures and one JSON object, for the command, the page, the API and files."""

import json
import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from bandit.estimate import Estimate
from bandit.fragility import Fragile
from bandit.fragility import in_words as fragile_words
from survey.contracts.reports import Findings, Layout, Picture, ReportFile, Table
from survey.contracts.tables import Column
from survey.figures.charts import Axis, ForestChart, ForestRow, Line, LineChart, MatrixChart, Whisker
from survey.services.results.fragile_table import fragile_table

from ..analysis.analysing import (
    EVERYTHING,
    PEOPLE,
    UNREADABLE_REPLIES,
    UNWEIGHTED,
    Analysis,
    FragileRanking,
    JudgeTable,
)
from ..analysis.errors import MeasuredFigure
from ..analysis.judgements import Judgements
from ..analysis.judging import JudgeFigures
from ..analysis.style import STYLES

ENDS = (
    Column("low", "number", "Lower end of its 95 % interval."),
    Column("high", "number", "Upper end of its 95 % interval."),
)
RANKING = (
    Column("by", "text", "Who judged: people, or the judge of that name."),
    Column("category", "text", "The prompts' category; empty: all of them."),
    Column("place", "number", "Place in the ranking, from 1; equally strong models share theirs."),
    Column("model", "text", "The model."),
    Column("theta", "number", "Bradley-Terry strength in logits, with mean 0 over the models."),
    *ENDS,
    Column("elo", "number", "Elo rating, mean over random orders; people's alone."),
    Column("elo_deviation", "number", "Its standard deviation over these orders."),
)
SIDES = (
    Column("by", "text", "Who judged."),
    Column("category", "text", "The prompts' category; empty: all of them."),
    Column("gamma", "number", "What it adds in logits to be shown first."),
    *ENDS,
    Column("judgements", "number", "Judgements of which the side is known."),
)
WINS = (
    Column("model", "text", "The model."),
    Column("other", "text", "The model that it was compared with."),
    Column("share", "share", "How often it was preferred, by the design's weights; ties half."),
    *ENDS,
    Column("wins", "number", "Judgements for it; ties half, unweighted."),
    Column("ties", "number", "Ties."),
    Column("judgements", "number", "Judgements of this pair."),
)
KAPPAS = (
    Column("pair", "text", "Which people."),
    Column("judgements", "number", "Items, or pairs of judgements of the same item."),
    Column("agree", "share", "On how many both say the same."),
    Column("kappa", "number", "Cohen's kappa."),
    *ENDS,
)
JUDGES = (
    Column("judge", "text", "The judge."),
    Column("category", "text", "The prompts' category; empty: all of them."),
    Column("figure", "text", "Which figure."),
    Column("value", "number", "Its value."),
    *ENDS,
    Column("items", "number", "Items that people and the judge both judged."),
)
RELIABILITY = (
    Column("judge", "text", "The judge."),
    Column("items", "number", "Items of this part."),
    Column("chance", "number", "The judge's mean chance that people prefer A."),
    Column("share", "share", "How often people did; ties half."),
    *ENDS,
)
ASSISTED = (
    Column("judge", "text", "The judge."),
    Column("model", "text", "The model."),
    Column("other", "text", "The model that it was compared with."),
    Column("answers", "number", "People's answers to this pair."),
    Column("items", "number", "Items that the judge judged."),
    Column("people", "share", "Win rate from people alone."),
    Column("people_low", "number", "Lower end of its 95 % interval."),
    Column("people_high", "number", "Upper end of its 95 % interval."),
    Column("assisted", "share", "Win rate with the judge's help."),
    Column("assisted_low", "number", "Lower end of its 95 % interval."),
    Column("assisted_high", "number", "Upper end of its 95 % interval."),
    Column("saved", "number", "Human answers that the judge is worth; below 0 where it helps nothing."),
)
STYLE = (
    Column("by", "text", "Who judged."),
    Column("style", "text", "What the replies differ in."),
    Column("coefficient", "number", "What it adds in logits, strengths held equal."),
    *ENDS,
)
LENGTHS = (
    Column("texts", "text", "Which texts."),
    Column("count", "number", "How many."),
    Column("mean", "number", "Mean of their tokens, words and marks."),
    Column("deviation", "number", "Standard deviation."),
    Column("lower", "number", "Lower quartile."),
    Column("median", "number", "Median."),
    Column("upper", "number", "Upper quartile."),
)
BESIDE = (
    Column("model", "text", "The model."),
    Column(
        "by",
        "text",
        "bank accuracy; unreadable replies, how many of its replies to the bank could not be read and count as not "
        "right; or whose mean rating of its replies.",
    ),
    Column(
        "value", "number", "A share, a number, or a rating from -3.5 to 3.5 (-1 to 1 where only the winner was said)."
    ),
)
FIGURES = {
    "pearson": "Pearson",
    "uncentred": "uncentred",
    "spearman": "Spearman",
    "accuracy": "accuracy",
    "kappa": "kappa",
    "log_score": "log score, bits",
    "ceiling_person": "ceiling: person",
    "ceiling_judge": "ceiling: judge",
    "orders": "orders agree",
    "side": "side bias, logits",
}

BY_CATEGORY = ("uncentred", "pearson", "spearman", "accuracy", "kappa")


def findings(found: Analysis, *, title: str, lines: Sequence[str] = (), notes: Sequence[str] = ()) -> Findings:
    """Everything that is printed of an analysis. `data` has all of it under the names of the specification."""
    data = as_json(found)
    return Findings(
        title=title,
        lines=[*lines, *_lines(found)],
        tables=[table for table in _tables(found) if table.rows],
        pictures=list(_pictures(found)),
        notes=[*notes, *found.notes, *_notes(found)],
        data=data,
    )


def json_file(found: Analysis) -> ReportFile:
    """`preferences.json`, for a command that has no study."""
    text = json.dumps(as_json(found), ensure_ascii=False, indent=1, allow_nan=False) + "\n"
    return ReportFile("preferences.json", text.encode)


def as_json(found: Analysis) -> dict[str, Any]:
    """Every printed figure; null where there is none."""
    models = found.models
    intervals: dict[str, Any] = {
        "bradley_terry": {
            name: {model: found_of(ranking.of(place)) for place, model in enumerate(models)}
            for name, ranking in found.rankings.items()
        },
        "judges": {
            table.judge: {figure: found_of(getattr(table.by_category[EVERYTHING], figure)) for figure in FIGURES}
            for table in found.judges
            if table.by_category
        },
    }
    alpha = found.agreement.alpha
    return {
        "judgements": found.material.people.n,
        "items": len(set(found.material.people.key.tolist())),
        "prompts": len(set(found.material.people.prompt.tolist())),
        "people": len(set(found.material.people.person.tolist())),
        "models": list(models),
        "ridge": found.settings.ridge,
        "ranked_by": "answers" if found.settings.each_answer else "majorities",
        "majority": dict(found.majority),
        "ties": dict(found.ties),
        "bradley_terry": {
            name: {model: number(ranking.theta[place]) for place, model in enumerate(models)}
            for name, ranking in found.rankings.items()
        },
        "bradley_terry_by_category": {
            name: {model: number(ranking.theta[place]) for place, model in enumerate(models)}
            for name, ranking in found.by_category.items()
        },
        "bradley_terry_of_" + ("majorities" if found.settings.each_answer else "answers"): None
        if found.other_ranking is None
        else {model: number(found.other_ranking.theta[place]) for place, model in enumerate(models)},
        "side": {name: found_of(ranking.side) for name, ranking in found.rankings.items()},
        "unbeaten": [] if found.ranking is None else list(found.ranking.unbeaten),
        "fragility": _fragility(found, found.fragile),
        "fragility_of_others": [
            {"by": one.by, "category": one.category, **_fragility(found, one)} for one in found.fragile_others
        ],
        "elo": {model: number(found.elo.rating[place]) for place, model in enumerate(models)},
        "elo_deviation": {model: number(found.elo.deviation[place]) for place, model in enumerate(models)},
        "elo_orders": found.elo.orders,
        "wins": [
            {
                "model": models[one.model],
                "other": models[one.other],
                "judgements": one.n,
                "wins": one.wins,
                "ties": one.ties,
                **{key: number(value) for key, value in one.share.as_json().items()},
            }
            for one in found.wins
        ],
        "agreement": {
            "kappas": [number(one.kappa.value) for one in found.agreement.kappas],
            "alpha": number(alpha.value),
            "alpha_interval": None if alpha.low is None else [alpha.low, alpha.high],
            "pairs": [one.pair for one in found.agreement.kappas],
            "pooled": found.agreement.pooled,
            "kappa_intervals": [found_of(one.kappa) for one in found.agreement.kappas],
        },
        "judges": {
            table.judge: {
                **_judge_json(table.by_category[EVERYTHING]),
                "by_category": {category: _judge_json(one) for category, one in table.by_category.items() if category},
                "reliability": [
                    {
                        "items": part.items,
                        "chance": number(part.chance),
                        "share": number(part.share),
                        "low": number(part.low),
                        "high": number(part.high),
                    }
                    for part in table.bins
                ],
                "assisted": [
                    {
                        "model": one.model,
                        "other": one.other,
                        "answers": one.answers,
                        "items": one.items,
                        "people": _estimate(one.people),
                        "assisted": _estimate(one.assisted),
                        "saved": number(one.saved),
                    }
                    for one in table.assisted
                ],
            }
            for table in found.judges
            if table.by_category
        },
        "style": {
            one.judge: {name: found_of(effect) for name, effect in zip(STYLES, one.effects, strict=True)}
            for one in found.styles
        },
        "lengths": [vars(one) for one in found.material.lengths],
        "automated_beside_human": [
            {key: number(value) if key != "model" else value for key, value in row.items()} for row in found.beside
        ],
        "rank_correlations": {name: number(value) for name, value in found.beside_ranks.items()},
        "intervals": intervals,
    }


def _judge_json(one: JudgeFigures) -> dict[str, Any]:
    return {
        "items": one.items,
        "verdicts": one.verdicts,
        "unreadable": one.unreadable,
        "both_orders": one.both_orders,
        **{name: number(getattr(one, name).value) for name in FIGURES},
    }


def _fragility(found: Analysis, ranking: FragileRanking) -> dict[str, Any]:
    first, neighbours = ranking.fragility.first, ranking.fragility.neighbours
    return {
        "first": None if first is None else _fragile(found, ranking, first),
        "neighbours": [_fragile(found, ranking, one) for one in neighbours],
    }


def _fragile(found: Analysis, ranking: FragileRanking, one: Fragile) -> dict[str, Any]:
    rows = None if one.rows is None else [_label(found, ranking.counted, ranking.by, int(row)) for row in one.rows]
    return {
        "ahead": found.models[one.ahead],
        "behind": found.models[one.behind],
        "margin": number(one.margin),
        "lost": one.count,
        "share": number(one.share),
        "margin_without": number(one.margin_after),
        "rows": rows,
    }


def _estimate(one: Estimate) -> dict[str, float | None]:
    return {"value": number(one.value), "low": number(one.interval[0]), "high": number(one.interval[1])}


def number(value: Any) -> float | None:
    """For JSON: None where it is missing, infinite or no number."""
    return None if value is None or not math.isfinite(value) else float(value)


def found_of(one: MeasuredFigure) -> dict[str, float | None]:
    """A figure with its interval, for JSON."""
    return {key: number(value) for key, value in one.as_json().items()}


def _lines(found: Analysis) -> Iterator[str]:
    people = found.material.people
    items = len(set(people.key.tolist()))
    yield (
        f"{people.n:,} judgements of {items:,} items ({len(set(people.prompt.tolist())):,} prompts, "
        f"{len(found.models)} models) by {len(set(people.person.tolist())):,} people."
    )
    majority = found.majority
    yield (
        f"Majorities: A {majority['a']:,}, B {majority['b']:,}, tie {majority['tie']:,}. Single judgements that are "
        f"ties: {found.ties[PEOPLE]:,}."
    )
    if found.ranking is not None:
        best = found.ranking.order
        side = found.ranking.side
        if len(found.ranking.first) > 1:
            yield f"Nobody is first: {', '.join(found.models[one] for one in found.ranking.first)} are equally strong."
        elif len(best) > 1:
            gap = found.ranking.difference(best[0], best[1])
            yield (f"First is {found.models[best[0]]}, {in_words(gap)} logits before {found.models[best[1]]}.")
        if side.value is not None:
            yield f"Side bias: being shown first adds {in_words(side)} logits."
    agreement = found.agreement
    if agreement.kappas:
        said = "; ".join(f"{one.pair}: {in_words(one.kappa)}" for one in agreement.kappas)
        yield f"Kappa of people: {said}."
    if agreement.alpha.value is not None:
        yield f"Krippendorff's alpha, ordinal: {in_words(agreement.alpha)}."
    for table in found.judges:
        if EVERYTHING in table.by_category:
            one = table.by_category[EVERYTHING]
            yield (
                f"{table.judge}: accuracy {in_words(one.accuracy)}, kappa {in_words(one.kappa)}, "
                f"uncentred correlation {in_words(one.uncentred)}; {one.unreadable:,} of {one.verdicts:,} verdicts "
                "could not be read."
            )


def _notes(found: Analysis) -> Iterator[str]:
    yield from fragile_words(found.fragile.fragility, found.models)
    if not found.settings.each_answer and found.other_ranking is not None:
        yield "The ranking counts the majority of each item once, ties half."
    ridge = found.settings.ridge
    fit = f"Strengths rest on a ridge of {ridge:g}" if ridge else "Strengths are fitted without a ridge"
    vary = "people and prompts vary, both at once" if found.settings.each_answer else "prompts vary"
    yield f"{fit}; intervals count how {vary}."
    for table in found.judges:
        if not table.by_category:
            yield f"{table.judge}: too few items that people judged as well, so nothing is compared."
        scores = [figures.log_score for figures in table.by_category.values()]
        if any(score.low is None and math.isfinite(score.value or math.nan) for score in scores):
            yield (
                f"{table.judge} states no chances, and items weigh unequally: its log score has no interval, since "
                "nobody knows what the chances fitted to people's answers add to it."
            )
    if found.judges:
        yield (
            "Pearson's r depends on which model of a pair is called A; the uncentred correlation does not. "
            "Read both beside the ceiling: what a left-out person reaches against the mean of the others."
        )


def _tables(found: Analysis) -> Iterator[Table]:
    models = found.models
    yield _ranking_table(found)
    all_fragile = [found.fragile, *found.fragile_others]
    titles = [f"{one.by}, {one.category}" if one.category else one.by for one in all_fragile]
    yield fragile_table(
        [(title if len(titles) > 1 else "", one.fragility) for title, one in zip(titles, all_fragile, strict=True)],
        models,
        labels=[partial(_label, found, one.counted, one.by) for one in all_fragile],
    )
    sides = [
        (name, category, ranking.side.value, ranking.side.low, ranking.side.high, ranking.sides)
        for name, category, ranking in _rankings(found)
        if ranking.side.value is not None
    ]
    yield Table(
        "sides",
        "Side bias",
        SIDES,
        sides,
        layouts=[
            Layout(
                ["by", "category", "logits for the first"],
                [
                    [name, category or "all", in_words(MeasuredFigure(value, None, low, high))]
                    for name, category, value, low, high, _n in sides
                ],
            )
        ],
    )
    wins = [
        (
            models[one.model],
            models[one.other],
            one.share.value,
            one.share.low,
            one.share.high,
            one.wins,
            one.ties,
            one.n,
        )
        for one in found.wins
    ]
    yield Table("wins", "How often each model was preferred to each other", WINS, wins, layouts=[_matrix(found)])
    kappas = [
        (one.pair, one.n, one.agree, one.kappa.value, one.kappa.low, one.kappa.high) for one in found.agreement.kappas
    ]
    yield Table("kappas", "Agreement of people", KAPPAS, kappas)
    judged = list(_judge_rows(found))
    yield Table(
        "judges",
        "Judges against people",
        JUDGES,
        judged,
        layouts=[layout for table in found.judges if table.by_category for layout in _judge_layouts(table)],
    )
    bins = [
        (table.judge, one.items, one.chance, one.share, one.low, one.high)
        for table in found.judges
        for one in table.bins
    ]
    yield Table("reliability", "Reliability of judges' chances", RELIABILITY, bins)
    assisted = [
        (
            *(table.judge, one.model, one.other, one.answers, one.items),
            *(one.people.value, *(number(end) for end in one.people.interval)),
            *(one.assisted.value, *(number(end) for end in one.assisted.interval), number(one.saved)),
        )
        for table in found.judges
        for one in table.assisted
    ]
    yield Table(
        "assisted",
        "Win rates with a judge's help",
        ASSISTED,
        assisted,
        note="Right on average however bad the judge is; a bad judge saves nothing.",
        layouts=[
            Layout(
                ["judge", "model", "other", "people alone", "with the judge", "answers", "saved"],
                [
                    [
                        *(str(one) for one in row[:3]),
                        _share(row[5], row[6], row[7]),
                        _share(row[8], row[9], row[10]),
                        f"{row[3]:,}",
                        "-" if row[11] is None else f"{row[11]:,.0f}",
                    ]
                    for row in assisted
                ],
            )
        ],
    )
    styles = [
        (one.judge, name, effect.value, effect.low, effect.high)
        for one in found.styles
        for name, effect in zip(STYLES, one.effects, strict=True)
    ]
    yield Table(
        "style", "Style", STYLE, styles, note="Strengths held equal: towards longer, marked up, listed replies."
    )
    longs = [tuple(vars(one).values()) for one in found.material.lengths]
    yield Table("lengths", "Lengths", LENGTHS, longs, note="In words and marks, the same count for every model.")
    beside = [(row["model"], name, value) for row in found.beside for name, value in row.items() if name != "model"]
    yield Table(
        "beside",
        "Automated beside human",
        BESIDE,
        [row for row in beside if row[2] is not None],
        layouts=[_beside(found)],
        note="; ".join(f"rank correlation of {name}: {value:.2f}" for name, value in found.beside_ranks.items())
        + (". The models are no sample of models, so that there is no interval." if found.beside_ranks else ""),
    )


def _label(found: Analysis, counted: Judgements, by: str, place: int) -> str:
    """A judgement by its prompt, its models and who gave it, or of a judge by which reply it saw first."""
    a, b = (found.models[int(models[place])] for models in (counted.a, counted.b))
    who, first = "", int(counted.first[place])
    if by not in (PEOPLE, UNWEIGHTED):
        who = f", {a if first > 0 else b} first" if first else ""
    elif found.settings.each_answer and int(counted.person[place]) < len(found.material.names):
        who = f" by {found.material.names[int(counted.person[place])]}"
    return f"{counted.prompts[int(counted.prompt[place])]}, {a} : {b}{who}"


def _rankings(found: Analysis) -> Iterator[tuple[str, str, Any]]:
    for name, ranking in found.rankings.items():
        yield name, EVERYTHING, ranking
        if name == PEOPLE:
            for category, one in found.by_category.items():
                yield name, category, one


def _ranking_table(found: Analysis) -> Table:
    rows: list[tuple[Any, ...]] = []
    layouts = []
    for name, category, ranking in _rankings(found):
        own = []
        for model, place in ranking.places.items():
            one = ranking.of(model)
            elos = (
                (number(found.elo.rating[model]), number(found.elo.deviation[model]))
                if name == PEOPLE and not category
                else (None, None)
            )
            rows.append((name, category, place, found.models[model], one.value, one.low, one.high, *elos))
            own.append(
                [
                    str(place),
                    found.models[model],
                    in_words(one),
                    *([] if elos[0] is None else [f"{elos[0]:.0f} ± {elos[1] or 0:.0f}"]),
                ]
            )
        head = ["place", "model", "strength, logits", *(["Elo"] if name == PEOPLE and not category else [])]
        who = "people" if name == PEOPLE else name
        layouts.append(Layout(head, own, title=f"Ranking by {who}" + (f", {category}" if category else "")))
    return Table("ranking", "Ranking", RANKING, rows, layouts=layouts)


def _matrix(found: Analysis) -> Layout:
    shares = {(one.model, one.other): one for one in found.wins}
    order = found.ranking.order if found.ranking is not None else list(range(len(found.models)))
    rows = []
    for row in order:
        cells = []
        for column in order:
            one = shares.get((row, column))
            cells.append(
                "" if one is None or one.share.value is None else f"{100 * one.share.value:.0f} % of {one.n:,}"
            )
        rows.append([found.models[row], *cells])
    return Layout(["model", *(f"against {found.models[one]}" for one in order)], rows)


def _judge_rows(found: Analysis) -> Iterator[tuple[Any, ...]]:
    for table in found.judges:
        for category, one in table.by_category.items():
            for name in FIGURES:
                figure: MeasuredFigure = getattr(one, name)
                if figure.value is not None:
                    yield table.judge, category, name, number(figure.value), figure.low, figure.high, one.items
            yield table.judge, category, "unreadable", one.unreadable, None, None, one.items


def _judge_layouts(table: JudgeTable) -> Iterator[Layout]:
    """Every figure of a judge over all items, and the most telling ones in each category."""
    whole = table.by_category[EVERYTHING]
    rows = [[words, in_words(getattr(whole, name))] for name, words in FIGURES.items()]
    rows += [["items", f"{whole.items:,}"], ["could not be read", f"{whole.unreadable:,} of {whole.verdicts:,}"]]
    yield Layout(["figure", "value, 95 %"], rows, title=f"{table.judge} against people")
    if len(table.by_category) > 1:
        yield Layout(
            ["category", *(FIGURES[name] for name in BY_CATEGORY), "items", "could not be read"],
            [
                [
                    category or "all",
                    *(in_words(getattr(one, name), 2) for name in BY_CATEGORY),
                    f"{one.items:,}",
                    f"{one.unreadable:,}",
                ]
                for category, one in table.by_category.items()
            ],
            title=f"{table.judge} against people, by category",
            note="judges.csv has the other figures of each category.",
        )


def _beside(found: Analysis) -> Layout:
    names = [name for name in (found.beside[0] if found.beside else {}) if name not in ("model", UNREADABLE_REPLIES)]
    return Layout(
        ["model", *names],
        [
            [str(row["model"]), *("-" if row[name] is None else f"{row[name]:.2f}" for name in names)]
            for row in found.beside
        ],
    )


def _pictures(found: Analysis) -> Iterator[Picture]:
    models = found.models
    if found.ranking is not None:
        series = list(found.rankings)
        rows = [
            ForestRow(models[model], [ranking.of(model) for ranking in found.rankings.values()])
            for model in found.ranking.order
        ]
        chart = ForestChart(
            title="Strength by people and judges",
            x=Axis("Bradley-Terry strength, logits"),
            rows=rows,
            series=series,
            mark_at=0.0,
        )
        said = ", ".join(models[model] for model in found.ranking.order)
        text = f"Strengths with 95 % intervals, the strongest first: {said}."
        yield Picture.of("ranking", "Ranking", text, chart)
        shares = {(one.model, one.other): one for one in found.wins}
        order = found.ranking.order
        cells = [
            [
                None
                if (cell := shares.get((row, column))) is None or cell.share.value is None
                else (cell.share.value, cell.n)
                for column in order
            ]
            for row in order
        ]
        title, names = "How often the row's model was preferred", [models[one] for one in order]
        wins = MatrixChart(title=title, names=names, cells=cells)
        yield Picture.of("wins", "Win matrix", "The share of wins of each model against each other.", wins)
    judges = [table for table in found.judges if table.by_category]
    if judges:
        categories = list(dict.fromkeys(category for table in judges for category in table.by_category))
        rows = [
            ForestRow(
                category or "all",
                [
                    table.by_category[category].uncentred if category in table.by_category else Whisker(None)
                    for table in judges
                ],
            )
            for category in categories
        ]
        if any(one.value is not None for row in rows for one in row.figures):
            chart = ForestChart(
                title="Judges against people, by category",
                x=Axis("uncentred correlation of ratings"),
                rows=rows,
                series=[table.judge for table in judges],
                mark_at=0.0,
            )
            text = "Of judges' and people's mean ratings, with 95 % intervals."
            yield Picture.of("correlation", "Correlation by category", text, chart)
        lines = [Line("perfect", [(0.0, 0.0), (1.0, 1.0)], marked=False, reference=True)]
        for table in judges:
            points = [(one.chance, one.share) for one in table.bins]
            band = [
                (one.low if one.low is not None else one.share, one.high if one.high is not None else one.share)
                for one in table.bins
            ]
            if points:
                lines.append(Line(table.judge, points, band))
        reliability = LineChart(
            title="Reliability of judges’ chances",
            x=Axis("the judge's chance of A", share=True, includes=(0.0, 1.0)),
            y=Axis("people for A", share=True, includes=(0.0,)),
            lines=lines,
        )
        text = "How often people preferred A where the judge gave it that chance."
        yield Picture.of("reliability", "Reliability", text, reliability)


def in_words(one: MeasuredFigure, digits: int = 3) -> str:
    """A figure for people, with its interval."""
    if one.value is None:
        return "-"
    if math.isinf(one.value):
        return "∞"
    return f"{one.value:.{digits}f}{_ends((one.low, one.high), digits)}"


def _ends(ends: Any, digits: int = 3) -> str:
    if ends is None or ends[0] is None or ends[1] is None:
        return ""
    return f" [{ends[0]:.{digits}f}, {ends[1]:.{digits}f}]"


def _share(value: Any, low: Any, high: Any) -> str:
    ends = "" if low is None or high is None else f" [{100 * low:.0f}, {100 * high:.0f}]"
    return f"{100 * value:.1f} %{ends}"
