"""The whole analysis of judgements of replies, in one value that every table, figure and file is made from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bandit
from bandit.errors import DesignError
from bandit.fragility import Fragile, Fragility, fragile_bradley_terry
from survey.figures import Figure
from survey.figures.words import integer, short

from . import agreement, bradley_terry, judging
from .agreement import PeopleAgreement
from .bradley_terry import NoRanking, Ranking
from .by_pair import PairFigures, by_pair
from .elo import Elo, elo
from .errors import NOTHING, share_figure
from .judgements import TIE, UNREADABLE, A, B, JudgedItems, Judgements, majorities
from .judging import Assisted, ChanceBin, JudgeFigures
from .style import STYLES, Lengths

Floats = NDArray[np.float64]

FEW_CATEGORIES = 3
"""Categories without a ranking up to which the reason of each is said."""
EVERYTHING = ""
"""The name of all categories together."""
PEOPLE = "people"
UNREADABLE_REPLIES = "unreadable replies"
"""The name of their number next to a model's accuracy on the bank."""
UNWEIGHTED = "people, each answer once"
"""People's ranking without the design's weights, next to the one with them where the weights differ."""


@dataclass(frozen=True)
class AnalysisSettings:
    """How judgements are analysed.

    weighted: answers weigh by the design; else each counts once, which rests on the model alone. each_answer: the
    ranking of people counts each answer; else the majority of each item counts once. ridge, side: as
    in `bradley_terry.fit`. tie: `none`, or `4-5` where the two middle places are ties.
    """

    each_answer: bool = False
    ridge: float = bradley_terry.RIDGE
    side: bool = True
    tie: str = "none"
    weighted: bool = True


@dataclass(frozen=True)
class Material:
    """What is analysed. judges: by name, with the same models and prompts. names: of people, by their number. styles:
    the three differences of style of an item towards people's A, by key. universe: the keys of all items there are, for
    assisted win rates; without it those that the judge has."""

    people: Judgements
    judges: Mapping[str, Judgements] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    styles: Mapping[int, tuple[float, float, float]] = field(default_factory=dict)
    lengths: Sequence[Lengths] = ()
    accuracy: Mapping[str, float] = field(default_factory=dict)
    """The share of the bank's questions with a key that a model answers rightly, by model."""
    unreadable: Mapping[str, int] = field(default_factory=dict)
    """How many of its replies to them could not be read and count as not right, by model."""
    notes: Sequence[str] = ()
    """What a reader of the figures should know of where they come from."""


@dataclass(frozen=True)
class WinShare:
    """How often a model's reply was preferred to another's; ties half. `n`: judgements."""

    model: int
    other: int
    n: int
    wins: float
    ties: int
    share: Figure


@dataclass(frozen=True)
class Style:
    """Coefficients of style, by whom."""

    judge: str
    effects: tuple[Figure, ...]


@dataclass(frozen=True, eq=False)
class FragileRanking:
    """Which few judgements carry one ranking. counted: those that it counts, whose places `fragility` names."""

    by: str
    category: str
    fragility: Fragility
    counted: Judgements


@dataclass(frozen=True)
class JudgeTable:
    """A judge against people: overall under the empty name, and by category. chances: of each two models, by the item's
    key, that people prefer the first."""

    judge: str
    by_category: Mapping[str, JudgeFigures]
    bins: Sequence[ChanceBin] = ()
    assisted: Sequence[Assisted] = ()
    chances: Mapping[tuple[int, int], Mapping[int, float]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Analysis:
    """Everything that is printed. rankings: by judge, `people` first; by_category: those of people in each category.
    beside: one row per model."""

    settings: AnalysisSettings
    material: Material
    majority: Mapping[str, int]
    ties: Mapping[str, int]
    ranking: Ranking | None
    other_ranking: Ranking | None
    rankings: Mapping[str, Ranking]
    by_category: Mapping[str, Ranking]
    elos: Mapping[tuple[str, str], Elo]
    """By who judged and the category, as the rankings are."""
    wins: Sequence[WinShare]
    agreement: PeopleAgreement
    judges: Sequence[JudgeTable]
    ways: Sequence[judging.Ways]
    """Each two judges on the same items."""
    pairs: Mapping[str, Sequence[PairFigures]]
    """What is said of each two models, by who judged."""
    together: Sequence[Assisted]
    """Win rates with the help of all judges; empty with fewer than two."""
    styles: Sequence[Style]
    beside: Sequence[Mapping[str, Any]]
    beside_ranks: Mapping[str, float]
    notes: Sequence[str]
    fragile: FragileRanking
    """Of the ranking of people."""
    fragile_others: Sequence[FragileRanking]
    """Of people in each category, and of each judge."""

    @property
    def elo(self) -> Elo:
        """That of people, over all prompts."""
        return self.elos[PEOPLE, EVERYTHING]

    @property
    def models(self) -> tuple[str, ...]:
        return self.material.people.models


def analyse(material: Material, settings: AnalysisSettings, *, rng: np.random.Generator) -> Analysis:
    """
    Raises:
        NoRanking: people's judgements do not rank the models.
    """
    people = material.people.with_ties(settings.tie)
    judges = {name: judged.with_ties(settings.tie) for name, judged in material.judges.items()}
    material = replace(material, people=people, judges=judges)
    items, one_each, notes = JudgedItems.of(people), majorities(people), list(material.notes)
    each, of_items = people, one_each
    main = each if settings.each_answer else of_items
    several_weights = bool(len(main.probability) and np.ptp(main.probability) > 0)
    if not settings.weighted:
        main = main.unweighted()
    ranking = bradley_terry.fit(main, ridge=settings.ridge, side=settings.side)
    other = _tried(of_items if settings.each_answer else each, settings)
    rankings = {PEOPLE: ranking}
    if several_weights and settings.weighted:
        rankings[UNWEIGHTED] = bradley_terry.fit(main.unweighted(), ridge=settings.ridge, side=settings.side)
        notes.append(
            "Answers weigh by the design, which is right whatever people think of single prompts. The ranking with "
            "each answer once is more precise after adaptive stages, and right if a model is as strong on every "
            "prompt."
        )
    readable = {name: judged.where(judged.outcome != UNREADABLE) for name, judged in judges.items()}
    for name, judged in readable.items():
        if judges[name].n and not judged.n:
            notes.append(
                f"{name}: none of its {integer(judges[name].n)} verdicts could be read, so that it ranks nobody."
            )
            continue
        try:
            rankings[name] = bradley_terry.fit(
                judging.own_person_each(judged), ridge=settings.ridge, side=settings.side
            )
        except NoRanking as exc:
            notes.append(f"{name}: no ranking: {exc}.")
    by_category = {}
    unranked: dict[str, str] = {}
    categories = sorted(set(people.category.tolist()))
    for category in categories if len(categories) > 1 else []:
        try:
            by_category[category] = bradley_terry.fit(
                main.where(main.category == category), ridge=settings.ridge, side=settings.side
            )
        except NoRanking as exc:
            unranked[category] = str(exc)
    if len(unranked) <= FEW_CATEGORIES:
        notes += [f"{category or 'without a category'}: no ranking: {why}." for category, why in unranked.items()]
    else:
        names = ", ".join(category or "without a category" for category in unranked)
        notes.append(f"{len(unranked)} categories have too few judgements for a ranking of their own: {names}.")
    notes += [
        f"{'' if name == PEOPLE else f'{name}: '}{ranking.side_lost}; the strengths are fitted without it."
        for name, ranking in rankings.items()
        if ranking.side_lost and name != UNWEIGHTED
    ]
    if ranking.unbeaten:
        notes.append(
            f"{', '.join(ranking.unbeaten)}: never lost or never won against the others. The ridge of "
            f"{short(settings.ridge)} alone keeps the strength finite."
        )
    tables = [_judge_table(material, name, judged, categories) for name, judged in judges.items()]
    chances = [table.chances for table in tables if table.chances]
    return Analysis(
        settings=settings,
        material=material,
        majority={
            "a": int((items.outcome == A).sum()),
            "b": int((items.outcome == B).sum()),
            "tie": int((items.outcome == TIE).sum()),
        },
        ties={name: int((judged.outcome == TIE).sum()) for name, judged in {PEOPLE: people, **judges}.items()},
        ranking=ranking,
        other_ranking=other,
        rankings=rankings,
        by_category=by_category,
        elos={place: elo(judged, rng=rng) for place, judged in _ranked(main, readable, rankings, by_category)},
        wins=win_shares(people),
        agreement=agreement.of_people(people, names=material.names),
        judges=tables,
        ways=_ways(people, judges),
        pairs={name: by_pair(judged) for name, judged in {PEOPLE: people, **judges}.items()},
        together=_assisted(people, chances) if len(chances) > 1 else (),
        styles=_styles(material, settings),
        **_beside(material),
        notes=notes,
        fragile=_fragile_ranking(PEOPLE, EVERYTHING, main, ranking, settings),
        fragile_others=list(_other_rankings(main, readable, rankings, by_category, settings)),
    )


def _ways(people: Judgements, judges: Mapping[str, Judgements]) -> list[judging.Ways]:
    compared = {name: judging.compare(people, judged) for name, judged in judges.items()}
    there = [(name, own) for name, own in compared.items() if own is not None and not own.says_nothing]
    ways = [judging.compare_ways(*first, *second) for first, second in combinations(there, 2)]
    return [way for way in ways if way is not None]


def _ranked(
    main: Judgements,
    judges: Mapping[str, Judgements],
    rankings: Mapping[str, Ranking],
    by_category: Mapping[str, Ranking],
) -> Iterator[tuple[tuple[str, str], Judgements]]:
    """What each ranking rests on, by who judged and the category; that of people first. Without weights, which Elo's
    rule knows none of."""
    yield (PEOPLE, EVERYTHING), main
    for category in by_category:
        yield (PEOPLE, category), main.where(main.category == category)
    for name, judged in judges.items():
        if name in rankings:
            yield (name, EVERYTHING), judged


def _other_rankings(
    main: Judgements,
    judges: Mapping[str, Judgements],
    rankings: Mapping[str, Ranking],
    by_category: Mapping[str, Ranking],
    settings: AnalysisSettings,
) -> Iterator[FragileRanking]:
    for category, ranking in by_category.items():
        yield _fragile_ranking(PEOPLE, category, main.where(main.category == category), ranking, settings)
    if UNWEIGHTED in rankings:
        yield _fragile_ranking(UNWEIGHTED, EVERYTHING, main.unweighted(), rankings[UNWEIGHTED], settings)
    for name, judged in judges.items():
        if name in rankings:
            yield _fragile_ranking(name, EVERYTHING, judged, rankings[name], settings)


def _fragile_ranking(
    by: str, category: str, judged: Judgements, ranking: Ranking, settings: AnalysisSettings
) -> FragileRanking:
    try:
        fragility = _fragility(judged, ranking, settings)
    except (DesignError, np.linalg.LinAlgError):  # Nothing is said where it does not settle.
        fragility = Fragility(np.array(ranking.order, dtype=np.int64), ranking.theta, None, ())
    return FragileRanking(by, category, fragility, judged)


def _fragility(judged: Judgements, ranking: Ranking, settings: AnalysisSettings) -> Fragility:
    """Which few judgements carry the ranking. The side counts where it is known of every judgement."""
    turned = judged.first < 0
    there = np.unique(np.concatenate([judged.a, judged.b]))
    fragility = fragile_bradley_terry(
        first=np.searchsorted(there, np.where(turned, judged.b, judged.a)),
        second=np.searchsorted(there, np.where(turned, judged.a, judged.b)),
        outcome=np.where(turned, 1 - judged.win, judged.win),
        names=len(there),
        weight=judged.weight,
        ridge=settings.ridge,
        side=ranking.gamma is not None and bool((judged.first != 0).all()),
    )

    def named(pair: Fragile) -> Fragile:
        return replace(pair, ahead=int(there[pair.ahead]), behind=int(there[pair.behind]))

    scores = np.full(len(judged.models), np.nan)
    scores[there] = fragility.scores
    return Fragility(
        order=there[fragility.order],
        scores=scores,
        first=None if fragility.first is None else named(fragility.first),
        neighbours=tuple(map(named, fragility.neighbours)),
    )


def _tried(judged: Judgements, settings: AnalysisSettings) -> Ranking | None:
    try:
        return bradley_terry.fit(judged, ridge=settings.ridge, side=settings.side)
    except NoRanking:
        return None


def win_shares(judged: Judgements) -> list[WinShare]:
    """Of each two models, how often either's reply was preferred, by the design's weights; ties half."""
    shares = []
    m = len(judged.models)
    for low in range(m):
        for high in range(low + 1, m):
            chosen = (np.minimum(judged.a, judged.b) == low) & (np.maximum(judged.a, judged.b) == high)
            if not chosen.any():
                continue
            rows = judged.where(chosen)
            win = np.where(rows.a == low, rows.win, 1 - rows.win)
            share = share_figure(win, rows.weight, person=rows.person, prompt=rows.prompt)
            ties = int((rows.outcome == TIE).sum())
            shares.append(WinShare(low, high, rows.n, float(win.sum()), ties, share))
            value, least, most = (None if end is None else 1 - end for end in (share.value, share.high, share.low))
            turned = Figure(value, least, most, share.standard_error)
            shares.append(WinShare(high, low, rows.n, float((1 - win).sum()), ties, turned))
    return shares


def _judge_table(material: Material, name: str, judged: Judgements, categories: Sequence[str]) -> JudgeTable:
    by_category: dict[str, JudgeFigures] = {}
    whole = judging.compare(material.people, judged)
    if whole is None:
        return JudgeTable(name, {})
    by_category[EVERYTHING] = judging.figures(whole, judged)
    for category in categories if len(categories) > 1 else []:
        part = whole.where(whole.category == category)
        if part.m >= judging.MIN_ITEMS:
            by_category[category] = judging.figures(part, judged.where(judged.category == category))
    if whole.says_nothing:
        return JudgeTable(name, by_category)
    chances = _chances(material.people, judged, whole)
    return JudgeTable(name, by_category, judging.reliability(whole), _assisted(material.people, [chances]), chances)


def _chances(
    people: Judgements, judge: Judgements, whole: judging.Compared
) -> Mapping[tuple[int, int], Mapping[int, float]]:
    """The judge's chance of every item it judged: stated, or by the regression on the items that people judged too."""
    read = JudgedItems.of(judge)
    known = dict(zip(whole.rows.key.tolist(), whole.chance[whole.row_item].tolist(), strict=True))
    first = judge.where(read.where)
    value = read.value
    stated = judging.mean_by_item(
        judge.chance[judge.outcome != UNREADABLE], judge.key[judge.outcome != UNREADABLE], read.key
    )
    if np.isnan(stated).any():
        rating, win = whole.judge[whole.row_item], whole.rows.win
        # Each answer both ways round: no model's name may tell which reply is better.
        both, wins = np.concatenate([rating, -rating]), np.concatenate([win, 1 - win])
        stated = np.where(np.isnan(stated), judging.fitted(both, wins, value), stated)
    orient = {}
    for key, a in zip(people.key.tolist(), people.a.tolist(), strict=True):
        orient[key] = a
    chances: dict[tuple[int, int], dict[int, float]] = {}
    for key, a, b, chance in zip(read.key.tolist(), first.a.tolist(), first.b.tolist(), stated.tolist(), strict=True):
        low, high = min(a, b), max(a, b)
        towards_low = chance if a == low else 1 - chance
        if key in known:
            towards_low = known[key] if orient[key] == low else 1 - known[key]
        chances.setdefault((low, high), {})[key] = towards_low
    return chances


def _assisted(people: Judgements, judges: Sequence[Mapping[tuple[int, int], Mapping[int, float]]]) -> list[Assisted]:
    """Win rates with the help of these judges together, over the items that all of them judged."""
    universe: dict[tuple[int, int], np.ndarray] = {}
    predictions: dict[int, list[float]] = {}
    for pair, of_first in judges[0].items():
        keys = [key for key in of_first if all(key in judge.get(pair, {}) for judge in judges)]
        own = {key: [judge[pair][key] for judge in judges] for key in keys}
        universe[pair] = np.array(list(own.values())).reshape(len(own), len(judges))
        predictions |= own
    turned = people.a > people.b
    straight = replace(
        people,
        a=np.minimum(people.a, people.b),
        b=np.maximum(people.a, people.b),
        outcome=np.where(turned & np.isin(people.outcome, (A, B)), -people.outcome, people.outcome),
        value=np.where(turned, -people.value, people.value),
        first=np.where(turned, -people.first, people.first),
    )
    return judging.assisted(straight, predictions, universe=universe)


def _styles(material: Material, settings: AnalysisSettings) -> list[Style]:
    """Coefficients of style in each fit; they need the replies' texts."""
    if not material.styles:
        return []
    styles = []
    orient = dict(zip(material.people.key.tolist(), material.people.a.tolist(), strict=True))
    for name, judged in {PEOPLE: material.people, **material.judges}.items():
        there = np.isin(judged.key, np.fromiter(material.styles, dtype=np.int64))
        rows = judged.where(there & (judged.outcome != UNREADABLE))
        if rows.n < judging.MIN_ITEMS:
            continue
        style = np.array([material.styles[key] for key in rows.key.tolist()])
        turn = np.array(
            [1 if orient.get(key, a) == a else -1 for key, a in zip(rows.key.tolist(), rows.a.tolist(), strict=True)]
        )
        style = style * turn[:, None]
        own = rows if name == PEOPLE else judging.own_person_each(rows)
        try:
            ranking = bradley_terry.fit(own, ridge=settings.ridge, side=settings.side, style=style)
        except (NoRanking, np.linalg.LinAlgError):
            continue
        effects = [ranking.styled(place) if style[:, place].any() else NOTHING for place in range(len(STYLES))]
        styles.append(Style(name, tuple(effects)))
    return styles


def _beside(material: Material) -> dict[str, Any]:
    """One row per model: accuracy on the bank, people's and judges' mean rating, and how far these rank alike; and how
    many of its replies to the bank could not be read."""
    models = material.people.models
    columns: dict[str, list[float | None]] = {}
    if material.accuracy:
        columns["bank accuracy"] = [material.accuracy.get(model) for model in models]
    for name, judged in {PEOPLE: material.people, **material.judges}.items():
        readable = judged.where(judged.outcome != UNREADABLE)
        means: list[float | None] = []
        for place in range(len(models)):
            own, others = readable.a == place, readable.b == place
            weight = readable.weight[own | others]
            value = np.where(own, readable.value, -readable.value)[own | others]
            means.append(float(np.average(value, weights=weight)) if len(value) else None)
        columns[f"rating by {name}"] = means
    counts = [
        {UNREADABLE_REPLIES: material.unreadable[model]} if model in material.unreadable else {} for model in models
    ]
    rows = [
        {"model": model, **{name: values[place] for name, values in columns.items()}, **counts[place]}
        for place, model in enumerate(models)
    ]
    ranks: dict[str, float] = {}
    names = list(columns)
    for place, first in enumerate(names):
        for other in names[place + 1 :]:
            both = [
                (x, y) for x, y in zip(columns[first], columns[other], strict=True) if x is not None and y is not None
            ]
            if len(both) > 2:
                value = bandit.weighted_correlation(*(bandit.ranks(part) for part in zip(*both, strict=True)))
                if not np.isnan(value):
                    ranks[f"{first}, {other}"] = value
    return {"beside": rows, "beside_ranks": ranks}
