"""What a study's answers say about all its items: stage by stage, together, and compared with the naive figure.

Combines `bandit`'s estimators. Takes arrays and returns figures: imports neither Django nor models. A part is the
sampled or the holdout slots of one stage. Every estimate of a part uses only that stage's probabilities. The parts'
weights in their mean come from the plans (bandit.combining), never from the answers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import bandit
from bandit import Agreement, Bounds, DesignError, Estimate, GivenItems, StageAnswers
from bandit.assistance import MIN_PEOPLE
from bandit.estimate import MIN_OF_A_MEAN
from bandit.estimators import MIN_EFFECTIVE
from survey.figures.words import number

NOTHING = "nothing to divide by"
NO_WEIGHTS = "too few people left"
NOT_ASSISTED = "not assisted"
NO_PREDICTIONS = "there are no predictions of these items"
ONE_DECIDES = "one answer carries most of the weight"
MISSING = 0.03  # the largest part of the candidates that a figure may say nothing about
NEVER_SEEN = 3.0  # n answers may miss a kind of candidates that makes up to 3 / n of all (the rule of three)


@dataclass(frozen=True, eq=False)
class ItemPredictions:
    """Predictions by a predictor that has not seen the answers: of each answer's item (n,), and their means over each
    stratum's candidates. In any unit: how much they count is fitted (`bandit.assist`). `source` says in words whose
    they are.
    """

    values: NDArray[np.float64]
    means: tuple[float, ...]
    source: str


@dataclass(frozen=True, eq=False)
class Unanswered:
    """The items of a part that were given to somebody and can get no answer of theirs any more; arrays (m,).

    `divisions`: the part of each, by the name of a division or a factor. `is_excluded`: whether it was given to
    somebody whom a rule leaves out, with all their answers; None for none of them.
    """

    stratum: NDArray[np.int64]
    cluster: NDArray[np.int64]
    probability: NDArray[np.float64]
    divisions: Mapping[str, NDArray[np.str_]]
    is_excluded: NDArray[np.bool_] | None = None

    @property
    def excludes(self) -> bool:
        return self.is_excluded is not None and bool(self.is_excluded.any())

    def under(self, mask: NDArray[np.bool_]) -> Unanswered:
        return Unanswered(
            is_excluded=None if self.is_excluded is None else self.is_excluded[mask],
            stratum=self.stratum[mask],
            cluster=self.cluster[mask],
            probability=self.probability[mask],
            divisions={name: labels[mask] for name, labels in self.divisions.items()},
        )


@dataclass(frozen=True, eq=False)
class StagePart:
    """The sampled or the holdout slots of a stage with the n answers to them that count; arrays of shape (n,).

    `sizes` and `slots`: candidates and planned slots by stratum. `universe_size` is given if the candidates are a
    uniform pool from that many items. `planned_probability`: the inclusion probability of every planned slot. `item`:
    each answer's item, if the plan has several slots per item; errors are then between respondents and between items.
    `people`: how many people the plan deals the slots to; it decides how much a person's answers share.
    `staying`: each answer's chance that its person was still there, where it is known. `subjects`: the one or two
    questions of each answer's item, shape (n, 2), -1 for none; None where items are about none or about more.
    `predictions`: those of its items, or why there are none.
    """

    stage: int
    role: str
    names: tuple[str, ...]
    sizes: tuple[int, ...]
    slots: tuple[int, ...]
    universe_size: int | None
    stratum: NDArray[np.int64]
    cluster: NDArray[np.int64]
    probability: NDArray[np.float64]
    planned_probability: NDArray[np.float64]
    predictions: ItemPredictions | str = NO_PREDICTIONS
    item: NDArray[np.int64] | None = None
    people: int | None = None
    staying: NDArray[np.float64] | None = None
    unanswered: Unanswered | None = None
    subjects: NDArray[np.int64] | None = None

    @property
    def title(self) -> str:
        return f"stage {self.stage}" if self.role == "sampled" else f"stage {self.stage} {self.role}"

    @cached_property
    def is_unequal(self) -> bool:
        """Whether candidates of one stratum had different chances (softmax, proportional)."""
        if len(self.names) > 1 or not self.planned_probability.size:
            return False
        return bool(np.ptp(self.planned_probability) > 0)

    @cached_property
    def answered(self) -> tuple[int, ...]:
        return tuple(np.bincount(self.stratum, minlength=len(self.names)).tolist())

    @cached_property
    def plan_weight(self) -> float:
        """The plan's information about a mean over all candidates, in equally weighted slots; 0 if it has none."""
        if self.is_unequal:
            return bandit.kish_size(self.planned_probability, people=self.people)
        return bandit.plan_weight(sizes=self.sizes, slots=self.slots, people=self.people)

    @cached_property
    def obstacle(self) -> str:
        """Why this part gives no mean over all candidates; empty if it does."""
        for name, slots in zip(self.names, self.slots, strict=True):
            if not slots:
                return f"gives the candidates in {name} probability 0"
        for name, count in zip(self.names, self.answered, strict=True):
            if not count:
                return f"no answers in {name}" if len(self.names) > 1 else "no answers"
            if count == 1 and len(self.names) > 1:
                return f"one answer in {name}, which does not say how much answers vary there"
        return ""

    @cached_property
    def weighs(self) -> bool:
        """Whether its answers enter figures of several stages: its plan reached all candidates, people and items
        differ, and no single answer decides."""
        if self.obstacle or not self.plan_weight > 0 or np.unique(self.cluster).size < 2:
            return False
        if self.item is not None and np.unique(self.item).size < 2:
            return False
        return bool(1 / np.dot(self.answer_weights, self.answer_weights) >= MIN_EFFECTIVE)

    @cached_property
    def answer_weights(self) -> NDArray[np.float64]:
        """Each answer's weight in the part's mean over all candidates, shape (n,); they sum to 1. Only without an
        obstacle."""
        if self.is_unequal:
            weight = 1 / self.probability
        else:
            weight = (np.array(self.sizes, dtype=np.float64) / np.array(self.answered))[self.stratum]
        weights: NDArray[np.float64] = weight / weight.sum()
        return weights

    @cached_property
    def stayed_weights(self) -> NDArray[np.float64]:
        """The same for the mean that is weighted for leaving. Only with `staying` and without an obstacle."""
        if self.staying is None:
            raise ValueError("staying: is not known of this part")
        weight = self.answer_weights / self.staying
        if not self.is_unequal:  # A stratum's answers together weigh what its candidates do.
            weight *= self._by_stratum(self.answer_weights)[self.stratum] / self._by_stratum(weight)[self.stratum]
        weights: NDArray[np.float64] = weight / weight.sum()
        return weights

    def _by_stratum(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.bincount(self.stratum, weights=values, minlength=len(self.sizes)).astype(np.float64)

    def gap(self, inside: NDArray[np.bool_] | None) -> str:
        """Why the answers of a part of the candidates do not stand for it in this stage; empty if they do.

        A stratum without answers of that part may still have candidates of it: among n answers of a stratum none is of
        a part that makes up to 3 / n of it.
        """
        if inside is None or len(self.names) == 1 or self.is_unequal:
            return ""
        here = np.bincount(self.stratum[inside], minlength=len(self.names))
        total = sum(size * n / r for size, n, r in zip(self.sizes, here.tolist(), self.answered, strict=True))
        for name, size, n, r in zip(self.names, self.sizes, here.tolist(), self.answered, strict=True):
            unseen = size * min(1.0, NEVER_SEEN / r)
            if not n and unseen > MISSING * (total + unseen):
                return f"no answers there in {name}, where it may have candidates"
        return ""

    def stage_answers(
        self,
        values: NDArray[np.float64],
        *,
        inside: NDArray[np.bool_] | None,
        first: NDArray[np.bool_] | None = None,
        per: NDArray[np.float64] | None = None,
        weighted_for_leaving: bool = False,
    ) -> StageAnswers:
        common: dict[str, Any] = {"cluster": self.cluster, "item": self.item, "per": per, "first": first}
        if weighted_for_leaving:
            common["staying"] = self.staying
        if self.is_unequal:
            common["probability"] = self.probability
        return StageAnswers(
            values=values,
            stratum=self.stratum,
            sizes=self.sizes,
            inside=inside,
            universe_size=None if self.is_unequal else self.universe_size,
            **common,
        )

    def _predictions_of(self, mask: NDArray[np.bool_]) -> ItemPredictions | str:
        if isinstance(self.predictions, str):
            return self.predictions
        return replace(self.predictions, values=self.predictions.values[mask])

    def under(self, mask: NDArray[np.bool_], lost: NDArray[np.bool_] | None = None) -> StagePart:
        """The same part with only these answers, and with only these of its unanswered items: those under one level of
        a factor, which was drawn at random."""
        return replace(
            self,
            stratum=self.stratum[mask],
            cluster=self.cluster[mask],
            probability=self.probability[mask],
            predictions=self._predictions_of(mask),
            item=None if self.item is None else self.item[mask],
            staying=None if self.staying is None else self.staying[mask],
            subjects=None if self.subjects is None else self.subjects[mask],
            unanswered=None if self.unanswered is None or lost is None else self.unanswered.under(lost),
        )


@dataclass(frozen=True)
class StageFigure:
    """A part's own estimate, or why there is none; `weight` is its plan's weight in the figure of all stages.

    Of an assisted figure: `coefficient`, how much a unit of the predictions counts, or why it is the plain estimate.
    """

    stage: int
    role: str
    estimate: Estimate | None
    reason: str
    weight: float
    coefficient: float | None = None


@dataclass(frozen=True)
class StudyFigure:
    """One figure: the stages' estimates, the figure of all stages, and the plain mean of the answers for comparison.

    `agreement` tests whether the stages estimate the same; where it is None, `agreement_withheld` says why.

    `stayed` is the mean with answers weighted by the chance that their person was still there, `bounds` what it can be
    for a stated odds ratio, `worst_case` for anything whatever; None where nobody left, or nothing can be said.
    `with_excluded` are bounds that take the items of people whom a rule excludes for unanswered too, None where there
    are none. `superpopulation` is the combined mean with an interval over questions like these. `assisted` is the same
    figure with the help of predictions, None where there are none.
    """

    name: str
    title: str
    unit: str
    stages: tuple[StageFigure, ...]
    combined: Estimate | None
    agreement: Agreement | None
    naive: Estimate | None
    agreement_withheld: str = ""
    stayed: Estimate | None = None
    bounds: Bounds | None = None
    worst_case: Bounds | None = None
    superpopulation: Estimate | None = None
    with_excluded: Bounds | None = None
    assisted: StudyFigure | None = None

    @property
    def notes(self) -> str:
        """What a reader must know about it: too few answers, stages left out, stages that disagree."""
        notes = []
        if self.combined is None:
            notes.append("no estimate")
        elif self.combined.too_few:
            notes.append(f"too few: {self.combined.too_few}")
        without = [stage for stage in self.stages if stage.reason and not stage.weight]
        if without:
            notes.append(f"left out: {', '.join(f'{_title(stage)} ({stage.reason})' for stage in without)}")
        notes += [
            f"{_title(stage)} {stage.reason}"
            for stage in self.stages
            if stage.reason and stage.weight and stage.estimate
        ]
        if self.agreement is not None and self.agreement.p < 0.05:
            notes.append(f"the stages' estimates are further apart than their errors ({in_words_p(self.agreement.p)})")
        if self.agreement_withheld:
            notes.append(f"no test whether the stages agree: {self.agreement_withheld}")
        return "; ".join(notes)


def in_words_p(p: float | None) -> str:
    """A p value as people read it; never "p = 0.000"."""
    if p is None:
        return "no p, since nothing varies"
    return "p < 0.001" if p < 0.001 else f"p = {number(p, 3)}"


@dataclass(frozen=True)
class DivisionFigures:
    """The figures inside each part of a division of the items (or people), and the difference where there are two."""

    name: str
    labels: tuple[str, ...]
    figures: tuple[tuple[StudyFigure, ...], ...] = field(repr=False)
    """By label, then measure."""
    differences: tuple[StudyFigure, ...] = ()
    """By measure: the second label minus the first; empty unless there are exactly two."""
    note: str = ""
    """How the parts were made, if the items do not show that."""
    people: tuple[int, ...] = ()
    """Of groups of people, by label: how many people."""
    withheld: tuple[str, ...] = ()
    """Of groups of people, by label: why there are no figures (which are then ()); "" where there are."""
    rest: tuple[tuple[StudyFigure, ...], ...] = ()
    """By label, then measure: the label minus all the others together; () without it, or for labels without it."""


def estimate(
    part: StagePart,
    values: NDArray[np.float64],
    *,
    where: NDArray[np.bool_] | None = None,
    per: NDArray[np.float64] | None = None,
    share: bool = False,
) -> tuple[Estimate | None, str]:
    """The mean over all candidates (of the domain `where`) from one part, or None and the reason.

    `values`, `where`: one entry per answer, shape (n,). Weights are N_h / r_h, or 1 / inclusion probability if the
    design gives each candidate a different chance. `per`, shape (n,), makes it the ratio of the weighted sum of
    `values` to that of `per`, linearised like a domain's mean.
    """
    if part.obstacle:
        return None, part.obstacle
    inside = None if where is None or where.all() else where
    if inside is not None and not inside.any():
        return None, "no answers there"
    if gap := part.gap(inside):
        return None, gap
    if _is_nothing(per, inside):
        return None, NOTHING
    if part.is_unequal:
        mean_estimate = bandit.hajek(values=values, domain=inside, share=share, per=per, **_chances(part))
    else:
        mean_estimate = bandit.stratified_mean(values=values, domain=inside, share=share, per=per, **_strata(part))
    return _known(mean_estimate)


def stayed(
    part: StagePart,
    values: NDArray[np.float64],
    *,
    where: NDArray[np.bool_] | None,
    per: NDArray[np.float64] | None,
    share: bool,
) -> tuple[Estimate | None, str]:
    """As `estimate`, with each answer weighted by 1 / the chance that its person was still there."""
    if part.obstacle or part.staying is None:
        return None, part.obstacle or NO_WEIGHTS
    inside = None if where is None or where.all() else where
    if inside is not None and not inside.any():
        return None, "no answers there"
    if gap := part.gap(inside):
        return None, gap
    if _is_nothing(per, inside):
        return None, NOTHING
    if part.is_unequal:
        chances = _chances(part, weighted_for_leaving=True)
        return _known(bandit.hajek(values=values, domain=inside, share=share, per=per, **chances))
    return _known(
        bandit.stratified_mean(
            values=values, domain=inside, share=share, per=per, staying=part.staying, **_strata(part)
        )
    )


def stayed_of(
    figure: StudyFigure,
    parts: Sequence[StagePart],
    results: Sequence[tuple[Estimate | None, str]],
    *,
    pooled: Sequence[StageAnswers] = (),
    share: bool = False,
) -> Estimate | None:
    """The figure's mean with answers weighted for leaving: of the same stages with the same weights, put together in
    the same way. None without a figure, or where a stage of it has no such weights.

    `found`: of each part, by `stayed`; `pooled`: each part's answers with `staying`, for a figure about a part of the
    candidates.
    """
    weights = [stage.weight for stage in figure.stages]
    used = [place for place, weight in enumerate(weights) if weight]
    if figure.combined is None or any(parts[place].staying is None for place in used):
        return None
    if pooled and len(used) > 1:
        return _pooled(pooled, weights, share)
    if any(results[place][0] is None for place in used):
        return None
    return bandit.combine_stages(estimates=[estimate for estimate, _reason in results], plan_weights=weights).estimate


def bounds_of(
    figure: StudyFigure,
    parts: Sequence[StagePart],
    values: Sequence[NDArray[np.float64]],
    *,
    where: Sequence[NDArray[np.bool_] | None],
    inside: Sequence[NDArray[np.bool_]] | None,
    lost: Sequence[NDArray[np.bool_]] | None,
    odds_ratio: float,
    span: tuple[float, float] | None,
    share: bool,
    is_side: bool = False,
    with_excluded: bool,
) -> Bounds | None:
    """Bounds of the figure's mean if everybody had answered all their items: of the same stages with the same weights,
    put together in the same way. None without a figure, or where that has no interval. The arrays are one for each
    part.

    `where`: which answers the figure is about at all; it is not known of the unanswered items, which are taken to be so
    as often as the answers of their stratum. `inside` and `lost`: which answers and which unanswered items are in a
    part of a division. `is_side`: the figure is a difference, and the parts are one side of it. `with_excluded`:
    items of people whom a rule leaves out are unanswered too.
    """
    if figure.combined is None or (math.isinf(odds_ratio) and span is None and not share):
        return None
    plain: Estimate | None = figure.combined
    if is_side:
        answers = [
            part.stage_answers(own, inside=in_both(mask, None if inside is None else inside[place]))
            for place, (part, own, mask) in enumerate(zip(parts, values, where, strict=True))
        ]
        try:
            plain = _pooled(answers, [stage.weight for stage in figure.stages], share)
        except DesignError:  # One person alone answered on this side in some stage.
            plain = None
    if plain is None or not plain.has_interval:
        return None
    stage_items, weights = [], []
    for place, (stage, part) in enumerate(zip(figure.stages, parts, strict=True)):
        if not stage.weight:
            continue
        if part.unanswered is None:
            return None
        within = np.ones(values[place].size, dtype=bool) if inside is None else inside[place]
        unanswered, missing = part.unanswered, None if lost is None else lost[place]
        if unanswered.is_excluded is not None and not with_excluded:
            of_others = ~unanswered.is_excluded
            unanswered, missing = unanswered.under(of_others), None if missing is None else missing[of_others]
        stage_items.append(
            _given_items(
                part,
                unanswered,
                values[place],
                within=within,
                where=where[place],
                lost=missing,
            )
        )
        weights.append(stage.weight)
    bounds = bandit.bounds(
        stages=stage_items, plain=plain, plan_weights=weights, odds_ratio=odds_ratio, span=span, share=share
    )
    return None if math.isnan(bounds.lower.standard_error) else bounds


def in_both(mask: NDArray[np.bool_] | None, other: NDArray[np.bool_] | None) -> NDArray[np.bool_] | None:
    """Where both masks are true; None is true everywhere."""
    if mask is None or other is None:
        return mask if other is None else other
    return mask & other


def with_losses(bounds: Bounds | None) -> Bounds | None:
    """Bounds that say something: None where no item is unanswered, or no interval is known."""
    return None if bounds is None or not bounds.unanswered or any(map(math.isnan, bounds.interval)) else bounds


def _given_items(
    part: StagePart,
    unanswered: Unanswered,
    values: NDArray[np.float64],
    *,
    within: NDArray[np.bool_],
    where: NDArray[np.bool_] | None,
    lost: NDArray[np.bool_] | None,
) -> GivenItems:
    domain = within if where is None else within & where
    size = len(part.names)
    counts = np.bincount(part.stratum[within], minlength=size)
    part_of = np.bincount(part.stratum[domain], minlength=size) / np.maximum(counts, 1)
    chances: dict[str, Any] = {}
    if part.is_unequal:
        chances = {"weight": 1 / part.probability, "missing_weight": 1 / unanswered.probability}
    return GivenItems(
        values=values,
        domain=domain,
        missing_stratum=unanswered.stratum,
        missing_cluster=unanswered.cluster,
        missing_domain=part_of[unanswered.stratum] * (1.0 if lost is None else lost),
        **chances,
        **_strata(part),
    )


def superpopulation(
    figure: StudyFigure,
    parts: Sequence[StagePart],
    values: Sequence[NDArray[np.float64]],
    masks: Sequence[NDArray[np.bool_] | None],
    per: Sequence[NDArray[np.float64] | None],
) -> Estimate | None:
    """The figure's mean with an interval for questions like these; None without a mean, or where items are not about
    questions. The arrays are one for each part, as `estimate` took them."""
    if figure.combined is None or not figure.combined.has_interval:
        return None
    errors = _errors(figure, parts, values, masks, per)
    if errors is None:
        return None
    about, things, alone = [], [], -1
    for part in errors.parts:
        if part.subjects is None:
            return None
        about.append(part.subjects)
        # Items of different stages are drawn separately, and single ones are in no variance by item.
        own = np.arange(len(part.cluster)) if part.item is None else np.unique(part.item, return_inverse=True)[1]
        things.append(own + alone + 1)
        alone = int(things[-1].max())
    try:
        return bandit.superpopulation_estimate(
            figure.combined,
            contributions=errors.contributions,
            shares=errors.shares,
            cluster=errors.people,
            subjects=np.concatenate(about),
            item=np.concatenate(things) if any(part.item is not None for part in parts) else None,
        )
    except DesignError:
        return None


def widen_for_far_answers(
    figure: StudyFigure,
    parts: Sequence[StagePart],
    values: Sequence[NDArray[np.float64]],
    masks: Sequence[NDArray[np.bool_] | None],
    per: Sequence[NDArray[np.float64] | None],
) -> StudyFigure:
    """The figure with an interval that allows for a few answers that decide it (`Measure.has_far_answers`). The arrays
    are one for each part, as `estimate` took them."""
    if figure.combined is None or not figure.combined.has_interval:
        return figure
    errors = _errors(figure, parts, values, masks, per)
    return replace(figure, combined=_for_far_answers(figure.combined, errors))


def widen_for_heavy_people(
    figure: StudyFigure,
    parts: Sequence[StagePart],
    values: Sequence[NDArray[np.float64]],
    masks: Sequence[NDArray[np.bool_] | None],
    per: Sequence[NDArray[np.float64] | None],
) -> StudyFigure:
    """The figure whose mean weighted for leaving allows for people who weigh much: anyone who stayed where others left
    stands for them, and pulls the mean to themselves, so that its spread seems too small. The arrays are one for each
    part, as `stayed` took them."""
    if figure.stayed is None or not figure.stayed.has_interval:
        return figure
    errors = _errors(figure, parts, values, masks, per, weighted_for_leaving=True)
    return replace(figure, stayed=_for_far_answers(figure.stayed, errors))


def _for_far_answers(estimate: Estimate, errors: _Errors | None) -> Estimate:
    if errors is None or np.unique(errors.people[errors.shares != 0]).size < 2:
        return estimate
    return bandit.widen_for_far_answers(
        estimate, contributions=errors.contributions, shares=errors.shares, cluster=errors.people
    )


def cut(figure: StudyFigure, span: tuple[float, float] | None) -> StudyFigure:
    """The figure with all its intervals cut to what can be true: from the lowest to the highest value that it can have.
    With few people Student's t may reach far beyond; the truth is never there, so that cut intervals hold as often."""
    if span is None:
        return figure

    def inside(estimate: Estimate | None) -> Estimate | None:
        if estimate is None:
            return None
        return replace(estimate, interval=bandit.cut_to_span(estimate.interval, span))

    def ends(bounds: Bounds | None) -> Bounds | None:
        lower, upper = (inside(end) for end in ((None, None) if bounds is None else (bounds.lower, bounds.upper)))
        return None if bounds is None or lower is None or upper is None else replace(bounds, lower=lower, upper=upper)

    return replace(
        figure,
        stages=tuple(replace(stage, estimate=inside(stage.estimate)) for stage in figure.stages),
        combined=inside(figure.combined),
        naive=inside(figure.naive),
        stayed=inside(figure.stayed),
        superpopulation=inside(figure.superpopulation),
        bounds=ends(figure.bounds),
        worst_case=ends(figure.worst_case),
        with_excluded=ends(figure.with_excluded),
    )


def for_a_part(
    figure: StudyFigure,
    parts: Sequence[StagePart],
    values: Sequence[NDArray[np.float64]],
    masks: Sequence[NDArray[np.bool_] | None],
    per: Sequence[NDArray[np.float64] | None],
) -> StudyFigure:
    """A mean in points inside a part of the items or people, where a few large answers may decide.

    `widen_for_far_answers`, unless the effective sample is so small that it says nothing of how far answers lie.
    `Estimate.too_few` warns then.
    """
    if figure.combined is None or figure.combined.effective_sample_size < MIN_OF_A_MEAN:
        return figure
    return widen_for_far_answers(figure, parts, values, masks, per)


class _Errors(NamedTuple):
    """What each answer of these parts adds to a figure's error, its share of the figure, and who gave it; (n,)."""

    parts: list[StagePart]
    contributions: NDArray[np.float64]
    shares: NDArray[np.float64]
    people: NDArray[np.int64]


def _errors(
    figure: StudyFigure,
    parts: Sequence[StagePart],
    values: Sequence[NDArray[np.float64]],
    masks: Sequence[NDArray[np.bool_] | None],
    per: Sequence[NDArray[np.float64] | None],
    *,
    weighted_for_leaving: bool = False,
) -> _Errors | None:
    """Of the parts that have a weight and answers; None where none has."""
    used, errors, shares, total = [], [], [], 0.0
    for stage, part, value, mask, below in zip(figure.stages, parts, values, masks, per, strict=True):
        if not stage.weight or (mask is not None and not mask.any()):
            continue
        sizes = np.array(part.sizes, dtype=np.float64) / np.maximum(part.answered, 1)
        weight = 1 / part.probability if part.is_unequal else sizes[part.stratum]
        if weighted_for_leaving and part.staying is not None:
            each = 1 / part.staying
            if not part.is_unequal:  # A stratum's answers together weigh what its candidates do.
                sums = np.bincount(part.stratum, weights=each, minlength=len(part.sizes))
                each = each * (np.array(part.answered) / np.maximum(sums, 1e-300))[part.stratum]
            weight = weight * each
        # The stages' sums are put together, so that a stage counts by how much of the part it has.
        inside = weight if below is None else weight * below
        within = stage.weight * float((inside if mask is None else inside[mask]).sum() / weight.sum())
        if not within > 0:
            continue
        error, share = bandit.error_contributions(values=value, weight=weight, domain=mask, per=below)
        total += within
        used.append(part)
        errors.append(within * error)
        shares.append(within * share)
    if not used:
        return None
    return _Errors(
        used,
        np.concatenate(errors) / total,
        np.concatenate(shares) / total,
        np.concatenate([part.cluster for part in used]),
    )


def difference(
    part: StagePart,
    values: NDArray[np.float64],
    *,
    first: NDArray[np.bool_],
    second: NDArray[np.bool_],
    per: NDArray[np.float64] | None = None,
    weighted_for_leaving: bool = False,
) -> tuple[Estimate | None, str]:
    """The mean over the candidates in `second` minus that over `first`, from one part; else like `estimate`.

    `weighted_for_leaving`: each answer counts 1 / the chance that its person was still there, as in `stayed`.
    """
    if weighted_for_leaving and part.staying is None:
        return None, NO_WEIGHTS
    if part.obstacle:
        return None, part.obstacle
    if not first.any() or not second.any():
        return None, "no answers on one side"
    if gap := part.gap(first) or part.gap(second):
        return None, gap
    if _is_nothing(per, first) or _is_nothing(per, second):
        return None, NOTHING
    if part.is_unequal:
        chances = _chances(part, weighted_for_leaving=weighted_for_leaving)
        return _known(bandit.hajek_difference(values=values, first=first, second=second, per=per, **chances))
    staying = part.staying if weighted_for_leaving else None
    return _known(
        bandit.stratified_difference(
            values=values, first=first, second=second, per=per, staying=staying, **_strata(part)
        )
    )


def effect(
    part: StagePart,
    values: NDArray[np.float64],
    *,
    first: NDArray[np.bool_],
    second: NDArray[np.bool_],
    where: NDArray[np.bool_] | None = None,
    per: NDArray[np.float64] | None = None,
    weighted_for_leaving: bool = False,
) -> tuple[Estimate | None, str]:
    """The mean over all candidates (of the domain `where`) under the level `second` minus that under `first`, from one
    part; else like `difference`. Levels are drawn at random, so each level's answers are weighted separately."""
    if weighted_for_leaving and part.staying is None:
        return None, NO_WEIGHTS
    for level in (first, second):
        if obstacle := part.under(level).obstacle:
            return None, f"{obstacle} under one level"
        if where is not None and not (level & where).any():
            return None, "no answers there under one level"
        if where is not None and (gap := part.gap(level & where)):
            return None, f"{gap} under one level"
    both = (first, second) if where is None else (first & where, second & where)
    if part.is_unequal:
        return difference(
            part, values, first=both[0], second=both[1], per=per, weighted_for_leaving=weighted_for_leaving
        )
    if _is_nothing(per, both[0]) or _is_nothing(per, both[1]):
        return None, NOTHING
    staying = part.staying if weighted_for_leaving else None
    return _known(
        bandit.stratified_effect(
            values=values, first=first, second=second, domain=where, per=per, staying=staying, **_strata(part)
        )
    )


def sampled_minus_holdout(
    sampled: tuple[Estimate | None, str], holdout: tuple[Estimate | None, str]
) -> tuple[Estimate | None, str]:
    """The mean by a stage's sampled slots minus that by its holdout, which other people answer; both by `estimate`."""
    sampled_mean, other = sampled[0], holdout[0]
    if sampled_mean is None or other is None:
        return None, "; ".join(
            f"{role}: {reason}" for role, (_, reason) in (("sampled", sampled), ("holdout", holdout)) if reason
        )
    difference = bandit.minus(sampled_mean, other, same_people=False)
    return (difference, "") if difference.has_interval else (None, "nothing varies between the answers")


class Assisted(NamedTuple):
    """A part's estimate with the help of predictions. `coefficient`: the units of the figure that a unit of them counts
    for; None where they do not help, and `reason` says why: the estimate is then the plain one. `adjustment`: what they
    take off each answer (n,)."""

    estimate: Estimate | None
    reason: str
    coefficient: float | None = None
    adjustment: NDArray[np.float64] | None = None

    def adjusted(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return values if self.adjustment is None else values - self.adjustment


def assisted(
    part: StagePart,
    values: NDArray[np.float64],
    *,
    per: NDArray[np.float64] | None = None,
    share: bool = False,
) -> Assisted:
    """The mean over all candidates from one part with the help of its predictions; else like `estimate`."""
    plain = estimate(part, values, per=per, share=share)
    if plain[0] is None:
        return Assisted(*plain)
    fitted = _fitted(part, values, per)
    if isinstance(fitted, str):
        return Assisted(plain[0], fitted)
    own: dict[str, Any] = {"values": values, "share": share, "per": per, "adjustment": fitted.adjustment}
    if part.is_unequal:
        pool: dict[str, Any] = {"candidates": part.sizes[0], "universe_size": part.universe_size}
        helped = bandit.hajek(**own, **_chances(part), **pool)
    else:
        helped = bandit.stratified_mean(**own, **_strata(part))
    return Assisted(helped, "", float(fitted.coefficient[0]), fitted.adjustment)


def assisted_effect(
    part: StagePart,
    values: NDArray[np.float64],
    *,
    first: NDArray[np.bool_],
    second: NDArray[np.bool_],
    per: NDArray[np.float64] | None = None,
) -> Assisted:
    """The mean under the level `second` minus that under `first` with the help of predictions, whose coefficient is
    fitted under each level; else like `effect`. `coefficient`: the mean of the two."""
    sides: dict[str, Any] = {"first": first, "second": second, "per": per}
    plain = effect(part, values, **sides)
    if plain[0] is None:
        return Assisted(*plain)
    adjustment, coefficients, reasons = np.zeros(values.size), [], []
    for level in (first, second):
        fitted = _fitted(part.under(level), values[level], None if per is None else per[level])
        if isinstance(fitted, str):
            reasons.append(fitted)
            coefficients.append(0.0)
        else:
            adjustment[level] = fitted.adjustment
            coefficients.append(float(fitted.coefficient[0]))
    if len(reasons) == len(coefficients):
        return Assisted(plain[0], reasons[0])
    # What predictions tell of a pool is nearly the same under both levels, and cancels out.
    return Assisted(*effect(part, values - adjustment, **sides), float(np.mean(coefficients)), adjustment)


def _fitted(part: StagePart, values: NDArray[np.float64], per: NDArray[np.float64] | None) -> bandit.Assistance | str:
    """What predictions take off the answers of a part; else why it is nothing."""
    if isinstance(part.predictions, str):
        return f"{NOT_ASSISTED}: {part.predictions}"
    fitted = bandit.assist(
        values=values,
        predictions=part.predictions.values,
        prediction_means=part.predictions.means,
        stratum=part.stratum,
        weight=part.answer_weights,
        cluster=part.cluster,
        item=part.item,
        per=per,
    )
    return f"{NOT_ASSISTED}: {fitted.withheld}" if fitted.withheld else fitted


def combine(
    parts: Sequence[StagePart],
    results: Sequence[tuple[Estimate | None, str]],
    *,
    name: str,
    title: str,
    unit: str,
    naive: Estimate | None,
    pooled: Sequence[StageAnswers] = (),
    share: bool = False,
) -> StudyFigure:
    """The figure of all stages from the parts' estimates, weighted by the parts' plans.

    `pooled`: each part's answers, for a figure about a part of the candidates. The stages' sums are then put together
    (`bandit.pooled_mean`, or `bandit.pooled_difference` where they have a `first`), so that a stage without an estimate
    of its own still counts, and the plans alone decide the weights. Otherwise parts without an estimate are left out,
    with their reasons.
    """
    weights = [
        part.plan_weight if estimate is not None else 0.0
        for part, (estimate, _reason) in zip(parts, results, strict=True)
    ]
    estimates = [estimate for estimate, _reason in results]
    agreement, withheld = bandit.agreement_of(
        [estimate if weight else None for estimate, weight in zip(estimates, weights, strict=True)]
    )
    together: Estimate | None = None
    if any(weights) and pooled:
        weighing = [part.plan_weight if part.weighs else 0.0 for part in parts]
        if sum(map(bool, weighing)) > 1:
            weights, together = weighing, _pooled(pooled, weighing, share)
        else:  # There is nothing to put together: the estimates that there are.
            together = bandit.combine_stages(estimates=estimates, plan_weights=weights).estimate
    elif any(weights):
        together = bandit.combine_stages(estimates=estimates, plan_weights=weights).estimate
    if together is None:
        weights = [0.0 for _part in parts]
    total = sum(weights) or 1.0
    return StudyFigure(
        name=name,
        title=title,
        unit=unit,
        stages=tuple(
            StageFigure(stage=part.stage, role=part.role, estimate=estimate, reason=reason, weight=weight / total)
            for part, (estimate, reason), weight in zip(parts, results, weights, strict=True)
        ),
        combined=together,
        agreement=agreement,
        naive=naive,
        agreement_withheld=withheld,
    )


def _pooled(stages: Sequence[StageAnswers], weights: Sequence[float], share: bool) -> Estimate | None:
    """None where one answer or one person decides: nothing then says how people differ."""
    weighted_stages = [stage for stage, weight in zip(stages, weights, strict=True) if weight]
    used = [weight for weight in weights if weight]
    if any(stage.first is not None for stage in stages):
        pooled = bandit.pooled_difference(stages=weighted_stages, plan_weights=used)
    else:
        pooled = bandit.pooled_mean(stages=weighted_stages, plan_weights=used, share=share)
    return pooled if pooled.effective_sample_size >= MIN_EFFECTIVE and pooled.n_clusters > 1 else None


def naive(
    parts: Sequence[StagePart],
    values: Sequence[NDArray[np.float64]],
    masks: Sequence[NDArray[np.bool_] | None],
    share: bool,
    per: Sequence[NDArray[np.float64]] | None,
) -> Estimate | None:
    """The plain mean of all answers, or their plain ratio, from all stages. It is about the drawn items only, so its
    error is only between respondents."""

    def pooled(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
        return np.concatenate(
            [array if mask is None else array[mask] for array, mask in zip(arrays, masks, strict=True)]
        )

    below = None if per is None else pooled(per)
    if not parts or not pooled(values).size or _is_nothing(below, None):
        return None
    return bandit.naive_mean(
        values=pooled(values), cluster=pooled([part.cluster for part in parts]), share=share, per=below
    )


def folded_predictions(
    part: StagePart,
    values: NDArray[np.float64],
    *,
    item: NDArray[np.int64],
    features: NDArray[np.float64],
    candidates: NDArray[np.float64],
    rng: np.random.Generator,
) -> ItemPredictions | str:
    """Predictions for a stage that no earlier answers can train: a regression, by folds of people and items; logistic
    where all `values` (n,) are 0 or 1.

    `features` (n, k) are those of the answers' items, `candidates` (M, k) those of all candidates of the only stratum.
    Without predictions, why there are none.
    """
    if not features.shape[1]:
        return "nothing is known of these items that could predict answers"
    if len(part.names) != 1:
        return NO_PREDICTIONS
    if np.unique(part.cluster).size < MIN_PEOPLE:
        return f"{np.unique(part.cluster).size} people, and a coefficient needs {MIN_PEOPLE}"
    known, every = _with_intercept(features), _with_intercept(candidates)
    ridge = np.full(known.shape[1], 0.5)
    ridge[0] = 1e-3
    is_share = bool(np.isin(values, (0, 1)).all())
    predicted = np.zeros(values.size)
    for fold in bandit.cross_fit_folds(cluster=part.cluster, item=item, rng=rng):
        if not fold.train.any() or not fold.held.any():
            return "too few people and items to predict those of one fold from the others"
        columns, label = known[fold.train], values[fold.train]
        if is_share:
            fitted = bandit.fit_logistic(columns=columns, label=label, precision=ridge)
            own, everywhere = (bandit.predict_logistic(rows, fitted) for rows in (known[fold.held], every))
        else:
            line = np.linalg.solve(columns.T @ columns + np.diag(ridge), columns.T @ label)
            own, everywhere = known[fold.held] @ line, every @ line
        # A fold of many changes is predicted from one of few: its own mean takes that out.
        predicted[fold.held] = own - everywhere.mean()
    kind = "logistic" if is_share else "linear"
    source = f"a {kind} regression on what is known of the items, by folds of people and items"
    return ItemPredictions(values=predicted, means=(0.0,), source=source)


def as_json(value: Any) -> Any:
    """Data classes as plain JSON values, including an `Estimate`'s properties; NaN and infinity become null."""
    if isinstance(value, np.generic):
        value = value.item()
    if is_dataclass(value) and not isinstance(value, type):
        row = {field.name: as_json(getattr(value, field.name)) for field in fields(value)}
        if isinstance(value, Estimate):
            row["too_few"] = value.too_few
        if isinstance(value, Bounds):
            row["interval"] = as_json(value.interval)
        if isinstance(value, StudyFigure):
            row["notes"] = value.notes
        # Of figures that predictions can assist alone.
        for name in ("assisted", "coefficient") if isinstance(value, StudyFigure | StageFigure) else ():
            if name in row and row[name] is None:
                del row[name]
        return row
    if isinstance(value, Mapping):
        return {str(key): as_json(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _strata(part: StagePart) -> dict[str, Any]:
    return {
        "stratum": part.stratum,
        "sizes": part.sizes,
        "cluster": part.cluster,
        "universe_size": part.universe_size,
        "item": part.item,
    }


def _chances(part: StagePart, *, weighted_for_leaving: bool = False) -> dict[str, Any]:
    chance = part.probability
    if weighted_for_leaving and part.staying is not None:
        chance = chance * part.staying
    return {"probability": chance, "cluster": part.cluster, "item": part.item}


def _known(estimate: Estimate) -> tuple[Estimate | None, str]:
    """The estimate, or why its error is unknown."""
    if math.isnan(estimate.standard_error):
        return None, "one respondent only" if estimate.n_clusters < 2 else "one item only"
    return (estimate, "") if estimate.effective_sample_size >= MIN_EFFECTIVE else (None, ONE_DECIDES)


def _is_nothing(per: NDArray[np.float64] | None, inside: NDArray[np.bool_] | None) -> bool:
    """Whether a ratio over these answers divides by 0."""
    return per is not None and not (per if inside is None else per[inside]).sum() > 0


def _with_intercept(features: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.column_stack([np.ones(len(features)), features])


def _title(stage: StageFigure) -> str:
    return f"stage {stage.stage}" if stage.role == "sampled" else f"stage {stage.stage} {stage.role}"
