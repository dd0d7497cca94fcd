"""What the belief update's answers estimate, and into which parts its pairs divide. Beliefs in percentage points."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from survey.contracts.measures import Check, Estimands, Measure
from survey.figures.words import integer

from .labels import beliefs_of

if TYPE_CHECKING:
    from survey.models import Assignment, Item, Question, Task

    from .models import Pair

THRESHOLDS = (0, 5, 10)
BELIEFS = (0.0, 100.0)
OUTCOMES = ("incorrect", "correct")
NO_EVIDENCE = "no evidence"


def in_words(*, universe_size: int, n_questions: int) -> str:
    return (
        f"all {integer(universe_size)} pairs of this bank's {integer(n_questions)} questions (evidence, target, "
        "outcome), each pair counted once, so that the two outcomes count half each"
    )


def of_steps_in_words(steps: int, *, language_model: str | None, universe_size: int, n_questions: int) -> str:
    outcomes = "each with either outcome" if language_model is None else f"with the outcomes that {language_model} had"
    return (
        f"all {integer(universe_size)} items of this study's {integer(n_questions)} questions: a target and {steps} "
        f"other questions in an order, {outcomes}, each item counted once"
    )


def of_answers(assignments: Sequence["Assignment"], thresholds: Sequence[int]) -> Estimands:
    """Shares, changes and beliefs of n complete answers. Changes up to the threshold count as none."""
    beliefs = [beliefs_of(answer) for answer in assignments]
    prior = np.array([belief.prior for belief in beliefs], dtype=np.float64)
    posterior = np.array([belief.posterior for belief in beliefs], dtype=np.float64)
    pairs = [answer.slot.item.pair for answer in assignments]
    # After several evidence questions: those that were all correct, and those that were all incorrect.
    outcome = np.array([_all_alike(pair) for pair in pairs], dtype=object)
    several = any(pair.evidence_2_id is not None for pair in pairs)
    after = {right: f"after {'only ' * several}{a} answer{'s' * several}" for right, a in _answers(several).items()}
    wrong, right = outcome == False, outcome == True  # noqa: E712 - None, without evidence, is neither
    change = posterior - prior
    counts = {threshold: np.abs(change) > threshold for threshold in thresholds}
    sentences = _sentences(thresholds[0]) if thresholds else {}
    return Estimands(
        measures=[
            *(
                _measure("changed", "share of beliefs that change", "share", counted, at, sentences)
                for at, counted in counts.items()
            ),
            *(
                _measure("change", "mean change", "points", counted * change, at, sentences, (-BELIEFS[1], BELIEFS[1]))
                for at, counted in counts.items()
            ),
            *(
                _measure("size", "mean absolute change", "points", counted * np.abs(change), at, sentences, BELIEFS)
                for at, counted in counts.items()
            ),
            Measure("prior", "mean prior", "points", prior, span=BELIEFS),
            Measure(
                "posterior_incorrect",
                f"mean posterior {after[False]}",
                "points",
                posterior,
                wrong,
                span=BELIEFS,
            ),
            Measure("posterior_correct", f"mean posterior {after[True]}", "points", posterior, right, span=BELIEFS),
        ],
        checks=[
            Check(
                "prior_by_outcome",
                "prior of pairs shown as correct less that of pairs shown as incorrect",
                "points",
                prior,
                first=wrong,
                second=right,
            )
        ],
        retested=("prior", *(f"changed_over_{threshold}" for threshold in thresholds[:1])),
    )


def _all_alike(pair: "Pair") -> bool | None:
    if pair.evidence_2_id is None:
        return pair.outcome
    outcomes = {step.correct for step in pair.steps}
    return outcomes.pop() if len(outcomes) == 1 else None


def _answers(several: bool) -> dict[bool, str]:
    return {True: "correct", False: "incorrect"} if several else {True: "a correct", False: "an incorrect"}


def _measure(
    name: str,
    title: str,
    unit: str,
    values: np.ndarray,
    threshold: int,
    sentences: Mapping[str, str],
    span: tuple[float, float] | None = None,
) -> Measure:
    by = f" by more than {threshold} points" if name == "changed" else f", counting changes above {threshold} points"
    return Measure(
        f"{name}_over_{threshold}",
        f"{title}{by if threshold else ''}",
        unit,
        np.asarray(values, dtype=np.float64),
        span=span,
        sentence=sentences.get(f"{name}_over_{threshold}", ""),
    )


def _sentences(threshold: int) -> dict[str, str]:
    """What the main figures say, by the name of their measure; changes up to the threshold count as none."""
    by, without = (f"by more than {threshold} points", f", counting those above {threshold} points")
    return {
        f"changed_over_{threshold}": f"{{}} of beliefs changed {by if threshold else 'at all'}",
        f"change_over_{threshold}": f"the mean change of beliefs is {{}}{without if threshold else ''}",
        f"size_over_{threshold}": f"up or down, a belief moves by {{}} on average{without if threshold else ''}",
    }


def divisions(items: Sequence["Item"]) -> dict[str, np.ndarray]:
    """By outcome, task and domain of evidence and target, and by both tasks. Pairs without evidence are a part too."""
    pairs = [item.pair for item in items]
    if any(pair.evidence_2_id is not None for pair in pairs):
        return _divisions_of_steps(pairs)
    evidence = [_task(pair.evidence.task) if pair.evidence else (NO_EVIDENCE, NO_EVIDENCE) for pair in pairs]
    target = [_task(pair.target.task) for pair in pairs]
    parts = {
        "outcome": [NO_EVIDENCE if pair.outcome is None else OUTCOMES[pair.outcome] for pair in pairs],
        "evidence_task": [task for task, _domain in evidence],
        "target_task": [task for task, _domain in target],
        "task_pair": [f"{first[0]} > {other[0]}" for first, other in zip(evidence, target, strict=True)],
        "evidence_domain": [domain for _task, domain in evidence],
        "target_domain": [domain for _task, domain in target],
        "same_task": [
            "same task" if first == other else "other task" for first, other in zip(evidence, target, strict=True)
        ],
    }
    return {name: np.array(part, dtype=str) for name, part in parts.items()}


def _divisions_of_steps(pairs: "Sequence[Pair]") -> dict[str, np.ndarray]:
    """With several evidence questions: by how many were correct, and by the target."""
    steps = [pair.steps for pair in pairs]
    target = [_task(pair.target.task) for pair in pairs]
    parts = {
        "outcome": [
            f"{sum(step.correct for step in own)} of {len(own)} correct" if own else NO_EVIDENCE for own in steps
        ],
        "target_task": [task for task, _domain in target],
        "target_domain": [domain for _task, domain in target],
    }
    return {name: np.array(part, dtype=str) for name, part in parts.items()}


def item_features(items: Sequence["Item"]) -> np.ndarray:
    """Outcome, same task, same domain, each 0 or 1; shape (n, 3)."""
    pairs = [item.pair for item in items]
    parts = [(_task(pair.evidence.task) if pair.evidence else None, _task(pair.target.task)) for pair in pairs]
    features = np.zeros((len(pairs), 3))
    features[:, 0] = [bool(pair.outcome) for pair in pairs]
    features[:, 1] = [first == other for first, other in parts]
    features[:, 2] = [first is not None and first[1] == other[1] for first, other in parts]
    return features


def candidate_features(rows: np.ndarray, questions: Sequence["Question"]) -> np.ndarray:
    """The same for candidates, shape (M, 3)."""
    tasks = [_task(question.task) for question in questions]
    task = np.unique([f"{name} of {domain}" for name, domain in tasks], return_inverse=True)[1]
    domain = np.unique([domain for _name, domain in tasks], return_inverse=True)[1]
    evidence, target = rows["evidence"], rows["target"]
    features = np.empty((len(rows), 3))
    features[:, 0] = rows["outcome"]
    features[:, 1] = task[evidence] == task[target]
    features[:, 2] = domain[evidence] == domain[target]
    return features


def _task(task: "Task") -> tuple[str, str]:
    """A task's name, and its domain; a task without a domain stands for its own."""
    return task.name, task.domain or task.name
