"""What another policy would have found in each stage, from the stage's own logged chances (`bandit.offline`).

Each stage is judged separately: with the same candidates, and predictors that know only the answers before it. Logs
cannot say how a whole study would have gone under another policy, since later stages would have learnt from other
answers.
"""

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError
from pydantic_core import ErrorDetails

import bandit
from bandit import DesignError, Estimate, OfflineEstimate
from predictors import training as predictor_training
from predictors.errors import PredictorError
from predictors.registry import settings_of
from survey.contracts import instruments
from survey.contracts.instruments import Instrument
from survey.exceptions import HunchError, StateRefused
from survey.figures.words import short
from survey.models import Assignment, CandidateSet, Question, Slot, Stage, Study
from survey.services.answers.counting import TRAINED, counted_answers, training_examples
from survey.services.base import files
from survey.services.base.seeds import derive, generator
from survey.services.plans.candidates import (
    DISAGREEMENT,
    candidate_questions,
    column_of,
    drawing_scores,
    plain_rows,
)
from survey.services.plans.drafting import Recipe
from survey.study_file import DESIGNS, LEARNED, DesignConfig

AS_PLANNED = "as planned"
EPSILONS = (0.05, 0.1, 0.2, 0.5)

Progress = Callable[[str], None]


@dataclass(frozen=True)
class PolicyLine:
    """What a policy would have found in expectation, as a share or mean per answer; or why that is unknown.

    `difference`: what it would have found more than the stage as it was planned, by the same answers; None where there
    is not enough support.
    """

    policy: str
    predictor: str
    found: OfflineEstimate | None
    reason: str
    difference: Estimate | None = None


@dataclass(frozen=True)
class StageComparison:
    """One stage's logged finding, and what other policies would have found; `reason` says why if none can be judged."""

    stage: int
    title: str
    unit: str
    design: str
    slots: int
    answers: int
    logged: Estimate | None
    policies: tuple[PolicyLine, ...]
    reason: str


@dataclass(frozen=True, eq=False)
class _Logged:
    """A stage as it ran: every candidate's chance, and the answers with their candidates. `rows` count through
    `questions`."""

    rows: np.ndarray
    questions: Sequence[Question]
    chance: np.ndarray
    planned: tuple[int, ...]
    selected: np.ndarray
    stratum: np.ndarray
    values: np.ndarray
    cluster: np.ndarray

    @property
    def scores(self) -> np.ndarray | None:
        """What the stage was drawn by."""
        return drawing_scores(self.rows)

    @property
    def disagreement(self) -> np.ndarray | None:
        return column_of(self.rows, DISAGREEMENT)


def parse_design(text: str) -> DesignConfig:
    """A design as it is named on the command line: `uniform`, or `softmax:temperature=0.05,floor=0.1`.

    Raises:
        HunchError: unknown design or parameter, or a value out of range.
    """
    kind, _, rest = text.partition(":")
    if kind not in DESIGNS or kind == "test_set":
        raise HunchError(f"{kind!r} is not one of {', '.join(name for name in DESIGNS if name != 'test_set')}")
    settings: dict[str, object] = {"kind": kind}
    for part in filter(None, rest.split(",")):
        name, equals, value = part.partition("=")
        if not equals or name not in DesignConfig(kind=kind).parameters:  # type: ignore[arg-type]
            known = ", ".join(DesignConfig(kind=kind).parameters) or "none"  # type: ignore[arg-type]
            raise HunchError(f"{text!r}: {part!r} is not NAME=VALUE with one of {kind}'s parameters ({known})")
        settings[name] = value
    try:
        return DesignConfig.model_validate(settings)
    except ValidationError as exc:
        wrong = [_in_words(error, kind) for error in exc.errors(include_url=False)]
        raise HunchError(f"{text!r}: {'; '.join(wrong)}") from exc


def _in_words(error: ErrorDetails, kind: str) -> str:
    """One problem with a design's parameters: which one, what is wrong, and what it is now."""
    name = ".".join(map(str, error["loc"])) or kind
    message = error["msg"].removeprefix("Value error, ")
    return f"{name}: {message[:1].lower()}{message[1:]}" + (f", not {error['input']!r}" if error["loc"] else "")


def grid(
    stage: Stage, *, epsilons: Sequence[float], top_fractions: Sequence[float], designs: Sequence[DesignConfig]
) -> list[DesignConfig]:
    """The policies to judge in a stage: those asked for, else uniform and the stage's own with other epsilons."""
    own = design_of(stage)
    kind = own.kind if own.kind in ("epsilon_greedy", "uncertainty") else "epsilon_greedy"
    base = own.parameters if own.kind == kind else DesignConfig(kind=kind).parameters
    wanted = list(designs)
    if epsilons or top_fractions or not designs:
        for epsilon in epsilons or ([base["epsilon"]] if top_fractions else EPSILONS):
            for top_fraction in top_fractions or [base["top_fraction"]]:
                settings = {**base, "kind": kind, "epsilon": epsilon, "top_fraction": top_fraction}
                wanted.append(DesignConfig.model_validate(settings))
    if not designs:
        wanted = [DesignConfig(kind="uniform"), *([own] if own.kind != "uniform" else []), *wanted]
    return [config for place, config in enumerate(wanted) if config not in wanted[:place]]


def design_of(stage: Stage) -> DesignConfig:
    """The design that the stage was planned by."""
    return DesignConfig.model_validate(stage.manifest.get("design") or stage.config.design.model_dump())


def design_words(config: DesignConfig) -> str:
    values = ", ".join(
        f"{name.replace('_', ' ')} {_in_brackets(value)}"
        for name, value in config.parameters.items()
        if not (name in ("floor", "for") and not value) and not (name == "rest_strata" and value == 1)
    )
    return config.kind.replace("_", " ") + (f" ({values})" if values else "")


def _in_brackets(value: Any) -> str:
    if isinstance(value, list):
        return " and ".join(map(str, value))
    return short(value) if isinstance(value, float) else str(value)


def planned_design_words(stage: Stage) -> str:
    """The stage's design, and what it learnt from earlier answers when the stage was planned, if it does."""
    words = design_words(stage.config.design)
    if LEARNED not in stage.manifest:
        return words
    return f"{words}: {Recipe.of_manifest(stage.manifest).drawing_design.learned_in_words}"


def compare(
    study: Study,
    *,
    epsilons: Sequence[float] = (),
    top_fractions: Sequence[float] = (),
    designs: Sequence[DesignConfig] = (),
    predictors: Sequence[str] | None = None,
    say: Progress = lambda text: None,
) -> list[StageComparison]:
    """What other policies would have found in each frozen stage.

    Args:
        predictors: in addition to the stage's own, each trained only on the answers before the stage; by default the
            last of the instrument's baselines.
        say: called with a text about what is being trained, since that may take long.

    Raises:
        StateRefused: no stage is frozen yet, or the instrument names nothing to find.
        HunchError: an unknown predictor.
    """
    if predictors is None:
        learning = instruments.of_study(study).learning
        predictors = [baseline.name for baseline in learning.baselines[-1:]] if learning is not None else []
    for name in predictors:
        try:
            settings_of(name, {})
        except PredictorError as exc:
            raise HunchError(f"--predictor: {exc}") from exc
    stages = list(study.main_stages().filter(state=Stage.State.FROZEN))
    if not stages:
        raise StateRefused(f"{study.slug}: no stage is frozen yet, so there is nothing to compare")
    comparisons = []
    for stage in stages:
        stage.study = study
        comparisons.append(
            _compared(
                stage, grid(stage, epsilons=epsilons, top_fractions=top_fractions, designs=designs), predictors, say
            )
        )
    return comparisons


def _compared(
    stage: Stage, policies: Sequence[DesignConfig], predictors: Sequence[str], say: Progress
) -> StageComparison:
    instrument = instruments.of_study(stage.study)
    answers = counted_answers(stage, roles=TRAINED)
    measures = instruments.estimates_of(instrument).estimands(answers).measures if answers else ()
    first = measures[0] if measures else None
    cluster = [answer.sitting.respondent_id for answer in answers]
    logged = None
    if first and (first.per is None or first.per.sum() > 0):
        logged = bandit.naive_mean(values=first.values, cluster=cluster, share=first.is_share, per=first.per)
    read: _Logged | str = "no answer counts"
    if first and first.per is not None:
        read = f"{first.title} is a ratio of two sums, and policies are judged by the mean of one number an answer"
    elif first:
        read = _read(stage, answers, first.values, instrument)
    lines: list[PolicyLine] = []
    if not isinstance(read, str):
        for title, scores in _all_scores(stage, read, predictors, instrument, say):
            if isinstance(scores, str) and any(config.kind != "uniform" for config in policies):
                lines.append(PolicyLine("any by predicted change", title, None, scores))
            for config in policies:
                if config.kind != "uniform" and isinstance(scores, str):
                    continue
                if config.kind == "uniform" and title != AS_PLANNED:
                    continue  # Its draw does not depend on scores.
                lines.append(_judged(stage, read, config, title, None if isinstance(scores, str) else scores))
    return StageComparison(
        stage=stage.index,
        title=first.title if first else "",
        unit=first.unit if first else "",
        design=design_words(design_of(stage)),
        slots=stage.slots.filter(role=Slot.Role.SAMPLED).count(),
        answers=len(answers),
        logged=logged,
        policies=tuple(lines),
        reason=read if isinstance(read, str) else "",
    )


def _read(stage: Stage, answers: Sequence[Assignment], values: np.ndarray, instrument: Instrument) -> _Logged | str:
    """The stage as it ran, or why its other policies cannot be judged."""
    config = design_of(stage)
    stored = CandidateSet.objects.filter(stage=stage).first()
    if config.kind == "test_set":
        return "a test set asks several people about each item; its answers judge predictors, not policies"
    if stage.manifest.get("responses_per_item", 1) > 1:
        return "several people answered each item; policies are judged where each item has one answer"
    if stored is None or stored.kind != CandidateSet.Kind.POOL:
        return "its candidates are all items there are, of which no list is kept"
    stored.stage = stage
    questions = candidate_questions(stored)
    if questions is None:
        return "questions were flagged since, so its candidates are no longer known"
    rows = files.load_array(stored.file_sha256)
    place = {instrument.item_key(row, questions): index for index, row in enumerate(rows)}
    planned = Counter(stage.slots.filter(role=Slot.Role.SAMPLED).order_by().values_list("stratum", flat=True))
    place_of: dict[int | None, int] = {stratum: index for index, stratum in enumerate(planned)}
    return _Logged(
        rows=rows,
        questions=questions,
        chance=_chances(stage, config, len(rows), drawing_scores(rows), column_of(rows, DISAGREEMENT)),
        planned=tuple(planned.values()),
        selected=np.array([place[answer.slot.item.key] for answer in answers], dtype=np.int64),
        stratum=np.array([place_of[answer.slot.stratum_id] for answer in answers], dtype=np.int64),
        values=values,
        cluster=np.array([answer.sitting.respondent_id for answer in answers]),
    )


def _chances(
    stage: Stage, config: DesignConfig, n_candidates: int, scores: np.ndarray | None, disagreement: np.ndarray | None
) -> np.ndarray:
    """Every candidate's chance before ties at a cut are broken: the mean over the candidates that are tied with it.

    So two policies with the same scores do not differ by how ties were broken at random.
    """
    design = config.build()
    if design.learns:
        if LEARNED not in stage.manifest:
            raise DesignError(f"{config.kind} learns from earlier answers when it plans a stage, and did not plan this")
        design = design.with_facts(stage.manifest[LEARNED])
    chance = bandit.inclusion_probabilities(
        design=design,
        n=stage.slots.filter(role=Slot.Role.SAMPLED).count(),
        scores=scores,
        n_candidates=n_candidates,
        rng=generator(stage.seed, "compare"),
        disagreement=disagreement,
    )
    ranked = design.ranked_by(scores, disagreement)
    if ranked is None:
        return chance
    _, group = np.unique(ranked, return_inverse=True)
    means: np.ndarray = (np.bincount(group, weights=chance) / np.bincount(group))[group]
    return means


def _all_scores(
    stage: Stage, read: _Logged, predictors: Sequence[str], instrument: Instrument, say: Progress
) -> Iterator[tuple[str, np.ndarray | str]]:
    """Scores of every candidate by the stage's own predictor and by the others, or why there are none."""
    own = read.scores
    yield AS_PLANNED, own if own is not None else "the stage was planned without a predictor"
    before = stage.preceding()
    for name in predictors if instrument.learning is not None else ():
        if before is None:
            yield name, "no answers come before it"
            continue
        before.study = stage.study
        say(f"stage {stage.index}: {name}")
        yield name, _scored(stage, before, name, read, instrument)


def _scored(stage: Stage, before: Stage, name: str, read: _Logged, instrument: Instrument) -> np.ndarray | str:
    """Every candidate's score by a predictor that knows only the answers up to and including `before`."""
    learning = instruments.learning_of(instrument)
    seed = derive(stage.seed, "compare", name)
    try:
        inputs, labels = learning.checked_examples(training_examples(before))
        with tempfile.TemporaryDirectory() as temporary:
            folders = [Path(temporary) / str(member) for member in range(predictor_training.members_of(name))]
            for member, folder in enumerate(folders):
                predictor_training.train_member(name, {}, seed, member, inputs, labels.tolist(), None, folder)
            candidates = learning.checked_inputs(rows=plain_rows(read.rows), questions=read.questions)
            return predictor_training.score(folders, candidates).astype(np.float64)
    except PredictorError as exc:
        return str(exc)


def _judged(stage: Stage, read: _Logged, config: DesignConfig, predictor: str, scores: np.ndarray | None) -> PolicyLine:
    title = design_words(config)
    disagreement = read.disagreement if predictor == AS_PLANNED else None
    if config.kind == "uniform":
        predictor, scores = "", None
    log: dict[str, Any] = {
        "values": read.values,
        "selected": read.selected,
        "logged": read.chance,
        "stratum": read.stratum,
        "planned": read.planned,
        "cluster": read.cluster,
    }
    try:
        chances = _chances(stage, config, len(read.rows), scores, disagreement)
        evaluation = bandit.evaluate_policy(other=chances, **log)
        difference = None
        if not evaluation.reason:
            difference = bandit.compare_policies(first=read.chance, second=chances, **log)
    except DesignError as exc:
        return PolicyLine(title, predictor, None, str(exc))
    return PolicyLine(title, predictor, evaluation, evaluation.reason, difference)
