"""An analysis of judgements as tables, figures and one JSON object, for the command, the page, the API and files."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Any

from bandit.estimate import Estimate
from bandit.fragility import Fragile
from bandit.fragility import in_words as fragile_words
from survey.contracts.reports import Picture, ReportFile, ReportResult
from survey.figures import Column, Figure, FigureColumn, Table, TableView
from survey.figures.charts import Axis, ForestChart, ForestRow, Line, LineChart, MatrixChart
from survey.figures.figure import finite
from survey.figures.words import counted, integer, number, percent, short
from survey.services.results.people_and_models.fragile_table import fragile_table

from ..analysis.analysing import (
    EVERYTHING,
    PEOPLE,
    UNREADABLE_REPLIES,
    UNWEIGHTED,
    Analysis,
    FragileRanking,
    WinShare,
)
from ..analysis.judgements import Judgements
from ..analysis.judging import Assisted, ChanceBin, JudgeFigures
from ..analysis.style import STYLES, Lengths


def _ends(of: str = "") -> dict[str, Column]:
    sides = {"low": "Lower", "high": "Upper"}
    return {end: Column(f"{of}{end}", "number", f"{side} end of its 95 % interval.") for end, side in sides.items()}


ENDS = _ends()
MAX_IN_HEADLINE = 3  # models that are all compared with each other in the headline
RANKING = (
    Column("by", "text", "Who judged: people, or the judge of that name."),
    Column("category", "text", "The prompts' category; empty: all of them."),
    Column("place", "number", "Place in the ranking, from 1; equally strong models share theirs."),
    Column("model", "text", "The model."),
    FigureColumn(
        "theta",
        "number",
        "Bradley-Terry strength in logits, with mean 0 over the models.",
        heading="strength, logits",
        digits=3,
        parts=ENDS,
    ),
    Column("elo", "number", "Elo rating by the same judgements without weights, mean over random orders.", digits=0),
    Column("elo_deviation", "number", "Its standard deviation over these orders.", digits=0),
)
SIDES = (
    Column("by", "text", "Who judged."),
    Column("category", "text", "The prompts' category; empty: all of them."),
    FigureColumn("gamma", "number", "What it adds in logits to be shown first.", digits=3, parts=ENDS),
    Column("judgements", "number", "Judgements of which the side is known."),
)
WINS = (
    Column("model", "text", "The model."),
    Column("other", "text", "The model that it was compared with."),
    FigureColumn(
        "share", "share", "How often it was preferred, by the design's weights; ties half.", digits=0, parts=ENDS
    ),
    Column("wins", "number", "Judgements for it; ties half, unweighted."),
    Column("ties", "number", "Ties."),
    Column("judgements", "number", "Judgements of this pair."),
)
PAIRS = (
    Column("by", "text", "Who judged: people, or the judge of that name."),
    Column("model", "text", "The model."),
    Column("other", "text", "The model that it was compared with."),
    Column("judgements", "number", "Judgements of this pair that could be read."),
    FigureColumn("rating", "number", "Mean rating towards the model.", digits=2, parts=ENDS),
    FigureColumn("ties", "share", "How many are ties.", digits=0, parts=_ends("ties_")),
    FigureColumn(
        "first",
        "share",
        "How often the reply that was shown first was preferred, both orders counting alike; half: no position bias.",
        heading="first is preferred",
        digits=0,
        parts=_ends("first_"),
    ),
    Column("sides", "number", "Judgements of which the order is known.", heading="with known order"),
)
WAYS = (
    Column("judge", "text", "The judge."),
    Column("other", "text", "The judge, or the way of judging, that it is compared with."),
    Column("items", "number", "Items that both and people have judged."),
    FigureColumn(
        "accuracy",
        "number",
        "Its accuracy less that of the other, by people's majorities.",
        heading="difference of accuracies",
        digits=3,
        parts=ENDS,
    ),
    FigureColumn("same", "share", "On how many items both say the same.", digits=0, parts=_ends("same_")),
)
KAPPAS = (
    Column("pair", "text", "Which people."),
    Column("judgements", "number", "Items, or pairs of judgements of the same item."),
    Column("agree", "share", "On how many both say the same."),
    FigureColumn("kappa", "number", "Cohen's kappa.", digits=3, parts=ENDS),
)
JUDGES = (
    Column("judge", "text", "The judge."),
    Column("category", "text", "The prompts' category; empty: all of them."),
    Column("figure", "text", "Which figure."),
    Column("words", "text", "The same in words.", heading="figure", in_file=False),
    FigureColumn("value", "number", "Its value.", parts=ENDS),
    Column("items", "number", "Items that people and the judge both judged."),
)
RELIABILITY = (
    Column("judge", "text", "The judge."),
    Column("items", "number", "Items of this part."),
    Column("chance", "number", "The judge's mean chance that people prefer A.", style="percent"),
    FigureColumn("share", "share", "How often people did; ties half.", parts=ENDS),
)
ALL = "all judges"
ASSISTED = (
    Column("judge", "text", "The judge; all judges: with the help of all of them together."),
    Column("model", "text", "The model."),
    Column("other", "text", "The model that it was compared with."),
    Column("answers", "number", "People's answers to this pair."),
    Column("items", "number", "Items that the judge judged."),
    FigureColumn("people", "share", "Win rate from people alone.", parts=_ends("people_")),
    FigureColumn("assisted", "share", "Win rate with the judge's help.", parts=_ends("assisted_")),
    Column("saved", "number", "Human answers that the judge is worth.", digits=0),
    Column("coefficient", "number", "How much a unit of the judge's chance counts, as fitted.", digits=2),
    Column("notes", "text", "Why the judge does not help; empty where it does.", heading="to know"),
)
STYLE = (
    Column("by", "text", "Who judged."),
    Column("style", "text", "What the replies differ in."),
    FigureColumn("coefficient", "number", "What it adds in logits, strengths held equal.", digits=3, parts=ENDS),
)
LENGTHS = (
    Column("texts", "text", "Which texts."),
    Column("count", "number", "How many."),
    Column("mean", "number", "Mean of their tokens."),
    Column("deviation", "number", "Standard deviation."),
    Column("lower", "number", "Lower quartile."),
    Column("median", "number", "Median."),
    Column("upper", "number", "Upper quartile."),
    Column("shortest", "number", "The shortest."),
    Column("longest", "number", "The longest."),
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
        "value",
        "number",
        "A share, a number, or a rating from -3.5 to 3.5 (-1 to 1 where only the winner was said).",
        digits=2,
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


def report_result(
    analysis: Analysis,
    *,
    title: str,
    lines: Sequence[str] = (),
    notes: Sequence[str] = (),
    files: Sequence[ReportFile] = (),
) -> ReportResult:
    """Everything that is printed of an analysis. `data` has all of it under the names of the specification."""
    data = as_json(analysis)
    return ReportResult(
        title=title,
        headline=headline(analysis),
        lines=[*lines, *_lines(analysis)],
        tables=[table for table in _tables(analysis) if table.rows],
        pictures=list(_pictures(analysis)),
        files=files,
        notes=[*notes, *analysis.notes, *_notes(analysis)],
        data=data,
    )


def headline(analysis: Analysis) -> str:
    """Who is preferred to whom: each two of few models; of many, the first two of the ranking."""
    order = range(len(analysis.models)) if analysis.ranking is None else analysis.ranking.order
    pairs = list(combinations(order, 2)) if len(order) <= MAX_IN_HEADLINE else [(order[0], order[1])]
    shares = {(win.model, win.other): win for win in analysis.wins}
    said = [_preferred(analysis.models, shares, *pair) for pair in pairs]
    return f"{'; '.join(said)}." if said else ""


def _preferred(models: Sequence[str], shares: Mapping[tuple[int, int], WinShare], first: int, second: int) -> str:
    win = shares.get((first, second))
    if win is None or win.share.value is None:
        return f"{models[first]} and {models[second]} were not compared"
    if win.share.value < 0.5:
        return _preferred(models, shares, second, first)
    rounded = percent(win.share.value, 0)
    interval = f" ({Figure(None, *win.share.interval, unit='share').in_words(0)})" if win.share.interval else ""
    of = f"in {rounded} of {counted(win.n, 'comparison')}{interval}"
    if rounded == percent(0.5, 0):
        return f"{models[first]} and {models[second]} are preferred to each other equally often, {of}"
    return f"{models[first]} is preferred to {models[second]} {of}"


def as_json(analysis: Analysis) -> dict[str, Any]:
    """Every printed figure; null where there is none."""
    models = analysis.models
    intervals: dict[str, Any] = {
        "bradley_terry": {
            name: {model: ranking.of(place).as_json() for place, model in enumerate(models)}
            for name, ranking in analysis.rankings.items()
        },
        "judges": {
            table.judge: {figure: getattr(table.by_category[EVERYTHING], figure).as_json() for figure in FIGURES}
            for table in analysis.judges
            if table.by_category
        },
    }
    alpha = analysis.agreement.alpha
    return {
        "judgements": analysis.material.people.n,
        "items": len(set(analysis.material.people.key.tolist())),
        "prompts": len(set(analysis.material.people.prompt.tolist())),
        "people": len(set(analysis.material.people.person.tolist())),
        "models": list(models),
        "ridge": analysis.settings.ridge,
        "ranked_by": "answers" if analysis.settings.each_answer else "majorities",
        "majority": dict(analysis.majority),
        "ties": dict(analysis.ties),
        "bradley_terry": {
            name: {model: finite(ranking.theta[place]) for place, model in enumerate(models)}
            for name, ranking in analysis.rankings.items()
        },
        "bradley_terry_by_category": {
            name: {model: finite(ranking.theta[place]) for place, model in enumerate(models)}
            for name, ranking in analysis.by_category.items()
        },
        "bradley_terry_of_" + ("majorities" if analysis.settings.each_answer else "answers"): None
        if analysis.other_ranking is None
        else {model: finite(analysis.other_ranking.theta[place]) for place, model in enumerate(models)},
        "side": {name: ranking.side.as_json() for name, ranking in analysis.rankings.items()},
        "unbeaten": [] if analysis.ranking is None else list(analysis.ranking.unbeaten),
        "fragility": _fragility(analysis, analysis.fragile),
        "fragility_of_others": [
            {"by": fragile_other.by, "category": fragile_other.category, **_fragility(analysis, fragile_other)}
            for fragile_other in analysis.fragile_others
        ],
        "elo": {model: finite(analysis.elo.rating[place]) for place, model in enumerate(models)},
        "elo_deviation": {model: finite(analysis.elo.deviation[place]) for place, model in enumerate(models)},
        "elo_orders": analysis.elo.orders,
        "wins": [
            {
                "model": models[win.model],
                "other": models[win.other],
                "judgements": win.n,
                "wins": win.wins,
                "ties": win.ties,
                **win.share.as_json(),
            }
            for win in analysis.wins
        ],
        "agreement": {
            "kappas": [finite(kappa.kappa.value) for kappa in analysis.agreement.kappas],
            "alpha": finite(alpha.value),
            "alpha_interval": alpha.interval,
            "pairs": [kappa.pair for kappa in analysis.agreement.kappas],
            "pooled": analysis.agreement.pooled,
            "kappa_intervals": [kappa.kappa.as_json() for kappa in analysis.agreement.kappas],
        },
        "judges": {
            table.judge: {
                **_judge_json(table.by_category[EVERYTHING]),
                "by_category": {
                    category: _judge_json(figures) for category, figures in table.by_category.items() if category
                },
                "reliability": [
                    {
                        "items": part.items,
                        "chance": finite(part.chance),
                        "share": finite(part.share),
                        "low": finite(part.low),
                        "high": finite(part.high),
                    }
                    for part in table.bins
                ],
                "assisted": [_assisted_json(row) for row in table.assisted],
            }
            for table in analysis.judges
            if table.by_category
        },
        "assisted_by_all_judges": [_assisted_json(row) for row in analysis.together],
        "style": {
            style.judge: {name: effect.as_json() for name, effect in zip(STYLES, style.effects, strict=True)}
            for style in analysis.styles
        },
        "lengths": [vars(length) for length in analysis.material.lengths],
        "automated_beside_human": [
            {key: finite(value) if key != "model" else value for key, value in row.items()} for row in analysis.beside
        ],
        "rank_correlations": {name: finite(value) for name, value in analysis.beside_ranks.items()},
        "intervals": intervals,
    }


def _assisted_json(row: Assisted) -> dict[str, Any]:
    return {
        "model": row.model,
        "other": row.other,
        "answers": row.answers,
        "items": row.items,
        "people": _of(row.people).as_json(),
        "assisted": _of(row.assisted).as_json(),
        "saved": finite(row.saved),
        "coefficient": row.coefficient,
        "notes": row.notes,
    }


def _judge_json(figures: JudgeFigures) -> dict[str, Any]:
    return {
        "items": figures.items,
        "verdicts": figures.verdicts,
        "unreadable": figures.unreadable,
        "both_orders": figures.both_orders,
        **{name: finite(getattr(figures, name).value) for name in FIGURES},
    }


def _fragility(analysis: Analysis, ranking: FragileRanking) -> dict[str, Any]:
    first, neighbours = ranking.fragility.first, ranking.fragility.neighbours
    return {
        "first": None if first is None else _fragile(analysis, ranking, first),
        "neighbours": [_fragile(analysis, ranking, neighbour) for neighbour in neighbours],
    }


def _fragile(analysis: Analysis, ranking: FragileRanking, fragile: Fragile) -> dict[str, Any]:
    rows = (
        None
        if fragile.rows is None
        else [_label(analysis, ranking.counted, ranking.by, int(row)) for row in fragile.rows]
    )
    return {
        "ahead": analysis.models[fragile.ahead],
        "behind": analysis.models[fragile.behind],
        "margin": finite(fragile.margin),
        "lost": fragile.count,
        "share": finite(fragile.share),
        "margin_without": finite(fragile.margin_after),
        "rows": rows,
    }


def _observed(part: ChanceBin) -> Figure:
    """How often people preferred A where the judge gave it about this chance."""
    return Figure(part.share, part.low, part.high)


def _of(estimate: Estimate) -> Figure:
    return Figure.between(estimate.value, estimate.interval)


def _lines(analysis: Analysis) -> Iterator[str]:
    people = analysis.material.people
    items = len(set(people.key.tolist()))
    yield (
        f"{integer(people.n)} judgements of {integer(items)} items ({integer(len(set(people.prompt.tolist())))} "
        f"prompts, {len(analysis.models)} models) by {integer(len(set(people.person.tolist())))} people."
    )
    majority = analysis.majority
    yield (
        f"Majorities: A {integer(majority['a'])}, B {integer(majority['b'])}, tie {integer(majority['tie'])}. Single "
        f"judgements that are ties: {integer(analysis.ties[PEOPLE])}."
    )
    if analysis.ranking is not None:
        best = analysis.ranking.order
        side = analysis.ranking.side
        if len(analysis.ranking.first) > 1:
            equals = ", ".join(analysis.models[model] for model in analysis.ranking.first)
            yield f"Nobody is first: {equals} are equally strong."
        elif len(best) > 1:
            gap = analysis.ranking.difference(best[0], best[1])
            yield (f"First is {analysis.models[best[0]]}, {gap.in_words(3)} logits before {analysis.models[best[1]]}.")
        if side.value is not None:
            yield f"Side bias: being shown first adds {side.in_words(3)} logits."
    agreement = analysis.agreement
    if agreement.kappas:
        said = "; ".join(f"{kappa.pair}: {kappa.kappa.in_words(3)}" for kappa in agreement.kappas)
        yield f"Kappa of people: {said}."
    if agreement.alpha.value is not None:
        yield f"Krippendorff's alpha, ordinal: {agreement.alpha.in_words(3)}."
    for table in analysis.judges:
        if EVERYTHING in table.by_category:
            figures = table.by_category[EVERYTHING]
            yield (
                f"{table.judge}: accuracy {figures.accuracy.in_words(3)}, kappa {figures.kappa.in_words(3)}, uncentred "
                f"correlation {figures.uncentred.in_words(3)}; {integer(figures.unreadable)} of "
                f"{integer(figures.verdicts)} "
                "verdicts could not be read."
            )


def _notes(analysis: Analysis) -> Iterator[str]:
    yield from fragile_words(analysis.fragile.fragility, analysis.models)
    if not analysis.settings.each_answer and analysis.other_ranking is not None:
        yield "The ranking counts the majority of each item once, ties half."
    ridge = analysis.settings.ridge
    fit = f"Strengths rest on a ridge of {short(ridge)}" if ridge else "Strengths are fitted without a ridge"
    vary = "people and prompts vary, both at once" if analysis.settings.each_answer else "prompts vary"
    yield f"{fit}; intervals count how {vary}."
    for table in analysis.judges:
        if not table.by_category:
            yield f"{table.judge}: too few items that people judged as well, so nothing is compared."
        scores = [figures.log_score for figures in table.by_category.values()]
        if any(score.interval is None and score.is_defined for score in scores):
            yield (
                f"{table.judge} states no chances, and items weigh unequally: its log score has no interval, since "
                "nobody knows what the chances fitted to people's answers add to it."
            )
    if analysis.judges:
        yield (
            "Pearson's r depends on which model of a pair is called A; the uncentred correlation does not. "
            "Read both next to the ceiling: what a left-out person reaches against the mean of the others."
        )


def _tables(analysis: Analysis) -> Iterator[Table]:
    models = analysis.models
    yield _ranking_table(analysis)
    all_fragile = [analysis.fragile, *analysis.fragile_others]
    titles = [f"{fragile.by}, {fragile.category}" if fragile.category else fragile.by for fragile in all_fragile]
    yield fragile_table(
        [
            (title if len(titles) > 1 else "", fragile.fragility)
            for title, fragile in zip(titles, all_fragile, strict=True)
        ],
        models,
        labels=[partial(_label, analysis, fragile.counted, fragile.by) for fragile in all_fragile],
    )
    sides = [
        (name, category, ranking.side, ranking.sides)
        for name, category, ranking in _rankings(analysis)
        if ranking.side.value is not None
    ]
    yield Table("sides", "Side bias", SIDES, sides)
    yield _wins_table(analysis)
    yield _pairs_table(analysis)
    kappas = [(kappa.pair, kappa.n, kappa.agree, kappa.kappa) for kappa in analysis.agreement.kappas]
    yield Table("kappas", "Agreement of people", KAPPAS, kappas)
    yield _judges_table(analysis)
    ways = [(way.judge, way.other, way.items, way.accuracy, way.same) for way in analysis.ways]
    yield Table(
        "ways",
        "Ways of judging",
        WAYS,
        ways,
        note="On the same items: above 0 the judge agrees with people's majorities more often than the other.",
    )
    bins = [(table.judge, part.items, part.chance, _observed(part)) for table in analysis.judges for part in table.bins]
    yield Table("reliability", "Reliability of judges' chances", RELIABILITY, bins)
    assisted = [
        (
            judge,
            assisted_row.model,
            assisted_row.other,
            assisted_row.answers,
            assisted_row.items,
            _of(assisted_row.people),
            _of(assisted_row.assisted),
            assisted_row.saved,
            assisted_row.coefficient,
            assisted_row.notes,
        )
        for judge, rows in [*((table.judge, table.assisted) for table in analysis.judges), (ALL, analysis.together)]
        for assisted_row in rows
    ]
    yield Table(
        "assisted",
        "Win rates with a judge's help",
        ASSISTED,
        assisted,
        note="How much the judge's chances help is fitted, so that a bad judge costs nothing.",
    )
    styles = [
        (style.judge, name, effect)
        for style in analysis.styles
        for name, effect in zip(STYLES, style.effects, strict=True)
    ]
    yield Table(
        "style", "Style", STYLE, styles, note="Strengths held equal: towards longer, marked up, listed replies."
    )
    yield lengths_table(analysis.material.lengths)
    beside = [
        (row["model"], name, value)
        for row in analysis.beside
        for name, value in row.items()
        if name != "model" and value is not None
    ]
    read = [place for place, row in enumerate(beside) if row[1] != UNREADABLE_REPLIES]
    yield Table(
        "beside",
        "Automated next to human",
        BESIDE,
        beside,
        views=[TableView(["model"], rows=read, across="by", cells="value")],
        note="; ".join(f"rank correlation of {name}: {number(value)}" for name, value in analysis.beside_ranks.items())
        + (". The models are no sample of models, so that there is no interval." if analysis.beside_ranks else ""),
    )


def lengths_table(
    lengths: Sequence[Lengths], note: str = "In words and marks, the same count for every model."
) -> Table:
    return Table("lengths", "Lengths", LENGTHS, [tuple(vars(length).values()) for length in lengths], note=note)


def _label(analysis: Analysis, counted: Judgements, by: str, place: int) -> str:
    """A judgement by its prompt, its models and who gave it, or of a judge by which reply it saw first."""
    a, b = (analysis.models[int(models[place])] for models in (counted.a, counted.b))
    who, first = "", int(counted.first[place])
    if by not in (PEOPLE, UNWEIGHTED):
        who = f", {a if first > 0 else b} first" if first else ""
    elif analysis.settings.each_answer and int(counted.person[place]) < len(analysis.material.names):
        who = f" by {analysis.material.names[int(counted.person[place])]}"
    return f"{counted.prompts[int(counted.prompt[place])]}, {a} : {b}{who}"


def _rankings(analysis: Analysis) -> Iterator[tuple[str, str, Any]]:
    for name, ranking in analysis.rankings.items():
        yield name, EVERYTHING, ranking
        if name == PEOPLE:
            for category, category_ranking in analysis.by_category.items():
                yield name, category, category_ranking


def _ranking_table(analysis: Analysis) -> Table:
    rows: list[tuple[Any, ...]] = []
    views = []
    for name, category, ranking in _rankings(analysis):
        ratings = analysis.elos.get((name, category))
        for model, place in ranking.places.items():
            elo = (None, None) if ratings is None else (ratings.rating[model], ratings.deviation[model])
            rows.append((name, category, place, analysis.models[model], ranking.of(model), *map(finite, elo)))
        views.append(
            TableView(
                ["place", "model", "theta", "elo", "elo_deviation"],
                where={"by": name, "category": category},
                title=f"Ranking by {name}" + (f", {category}" if category else ""),
            )
        )
    return Table("ranking", "Ranking", RANKING, rows, views=views)


def _wins_table(analysis: Analysis) -> Table:
    """In a file a row for each pair; for people a matrix, the strongest model first."""
    models = analysis.models
    order = analysis.ranking.order if analysis.ranking is not None else list(range(len(models)))
    rows = [(models[win.model], models[win.other], win.share, win.wins, win.ties, win.n) for win in analysis.wins]
    strongest = [models[place] for place in order]
    view = TableView(
        ["model"],
        rows=sorted(
            (place for place, row in enumerate(rows) if {row[0], row[1]} <= set(strongest)),
            key=lambda place: strongest.index(rows[place][0]),
        ),
        across="other",
        cells="share",
        headings={name: f"against {name}" for name in strongest},
        note="The picture and wins.csv say how many judgements each pair has.",
    )
    return Table("wins", "How often each model was preferred to each other", WINS, rows, views=[view])


def _pairs_table(analysis: Analysis) -> Table:
    models = analysis.models
    rows = [
        (by, models[pair.model], models[pair.other], pair.n, pair.rating, pair.ties, pair.first, pair.sides)
        for by, pairs in analysis.pairs.items()
        for pair in pairs
    ]
    note = "Position bias: with both orders counted alike the better model does not matter."
    return Table("pairs", "Scores, ties and position bias by pair", PAIRS, rows, note=note)


def _pair_pictures(analysis: Analysis) -> Iterator[Picture]:
    """Each pair of models a row, people and judges side by side."""
    models = analysis.models
    of = {by: {(pair.model, pair.other): pair for pair in pairs} for by, pairs in analysis.pairs.items()}
    keys = sorted({key for pairs in of.values() for key in pairs})
    for name, title, axis, mark_at, text in (
        ("rating", "Scores by pair", Axis("mean rating towards the first model"), 0.0, "Mean ratings of each pair."),
        ("ties", "Ties by pair", Axis("ties", share=True, includes=(0.0,)), None, "The share of ties of each pair."),
        (
            "first",
            "Position bias by pair",
            Axis("the first reply is preferred", share=True),
            0.5,
            "How often the reply that was shown first was preferred.",
        ),
    ):
        rows = [
            ForestRow(
                f"{models[model]} : {models[other]}",
                [getattr(pairs[model, other], name) if (model, other) in pairs else Figure() for pairs in of.values()],
            )
            for model, other in keys
        ]
        if any(figure.value is not None for row in rows for figure in row.figures):
            chart = ForestChart(title=title, x=axis, rows=rows, series=list(of), mark_at=mark_at)
            yield Picture.of(f"pairs_{name}", title, f"{text} With 95 % intervals.", chart)


def _judges_table(analysis: Analysis) -> Table:
    """Every figure of a judge over all items, and the most telling ones in each category."""
    rows = list(_judge_rows(analysis))
    views = []
    for table in analysis.judges:
        if not table.by_category:
            continue
        title = f"{table.judge} against people"
        views.append(
            TableView(["words", "value", "items"], where={"judge": table.judge, "category": EVERYTHING}, title=title)
        )
        if len(table.by_category) > 1:
            telling = [place for place, row in enumerate(rows) if row[0] == table.judge and row[2] in BY_CATEGORY]
            views.append(
                TableView(
                    ["category", "items"],
                    rows=telling,
                    across="words",
                    cells="value",
                    title=f"{title}, by category",
                    note="judges.csv has the other figures of each category.",
                )
            )
    return Table("judges", "Judges against people", JUDGES, rows, views=views)


def _judge_rows(analysis: Analysis) -> Iterator[tuple[Any, ...]]:
    for table in analysis.judges:
        for category, figures_of_category in table.by_category.items():
            for name, words in FIGURES.items():
                figure: Figure = getattr(figures_of_category, name)
                if figure.value is not None:
                    yield table.judge, category, name, words, figure, figures_of_category.items
            yield (
                table.judge,
                category,
                "unreadable",
                "could not be read",
                figures_of_category.unreadable,
                figures_of_category.items,
            )


def _pictures(analysis: Analysis) -> Iterator[Picture]:
    models = analysis.models
    if analysis.ranking is not None:
        series = list(analysis.rankings)
        rows = [
            ForestRow(models[model], [ranking.of(model) for ranking in analysis.rankings.values()])
            for model in analysis.ranking.order
        ]
        chart = ForestChart(
            title="Strength by people and judges",
            x=Axis("Bradley-Terry strength, logits"),
            rows=rows,
            series=series,
            mark_at=0.0,
        )
        said = ", ".join(models[model] for model in analysis.ranking.order)
        text = f"Strengths with 95 % intervals, the strongest first: {said}."
        yield Picture.of("ranking", "Ranking", text, chart)
        shares = {(win.model, win.other): win for win in analysis.wins}
        order = analysis.ranking.order
        cells = [
            [
                None
                if (cell := shares.get((row, column))) is None or cell.share.value is None
                else (cell.share.value, cell.n)
                for column in order
            ]
            for row in order
        ]
        title, names = "How often the row's model was preferred", [models[model] for model in order]
        wins = MatrixChart(title=title, names=names, cells=cells)
        yield Picture.of("wins", "Win matrix", "The share of wins of each model against each other.", wins)
    yield from _pair_pictures(analysis)
    judges = [table for table in analysis.judges if table.by_category]
    if judges:
        categories = list(dict.fromkeys(category for table in judges for category in table.by_category))
        rows = [
            ForestRow(
                category or "all",
                [
                    table.by_category[category].uncentred if category in table.by_category else Figure()
                    for table in judges
                ],
            )
            for category in categories
        ]
        if any(figure.value is not None for row in rows for figure in row.figures):
            chart = ForestChart(
                title="Judges against people, by category",
                x=Axis("uncentred correlation of ratings"),
                rows=rows,
                series=[table.judge for table in judges],
                mark_at=0.0,
            )
            text = "Of judges' and people's mean ratings, with 95 % intervals."
            yield Picture.of("correlation", "Correlation by category", text, chart)
        lines = [Line.diagonal("perfect")]
        lines += [Line.of(table.judge, [(part.chance, _observed(part)) for part in table.bins]) for table in judges]
        reliability = LineChart(
            title="Reliability of judges’ chances",
            x=Axis("the judge's chance of A", share=True, includes=(0.0, 1.0)),
            y=Axis("people for A", share=True, includes=(0.0,)),
            lines=lines,
        )
        text = "How often people preferred A where the judge gave it that chance."
        yield Picture.of("reliability", "Reliability", text, reliability)
