"""Every predictor, declared once. An estimator's module is imported when one is created, so that listing costs nothing.

To add a predictor: write its settings into `predictors.settings`, its estimator into a module under
`predictors.models`, and one line into `DECLARATIONS`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from predictors import settings
from predictors.errors import PredictorError
from predictors.features import Features, as_rows, number_names
from predictors.pairs import Progress

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Reads = Literal["pairs", "features"]


@dataclass(frozen=True)
class Declaration:
    """What there is to know of a predictor without importing it.

    estimator: dotted path of its class, which is imported on first use.
    settings: its settings with their defaults, a frozen data class.
    reads: `features` of any instrument (and pairs), or `pairs` of the belief update alone.
    heavy: training and scoring take long enough to belong on the machine-learning worker.
    member: dotted path of the class of one member, where members of an ensemble are trained one by one.
    fixed: parameters of the class that this predictor does not leave to its settings.
    """

    estimator: str
    settings: type[DataclassInstance]
    reads: Reads
    heavy: bool = True
    member: str | None = None
    fixed: Mapping[str, Any] = field(default_factory=dict)


_MODULES = "predictors.models"
DECLARATIONS: dict[str, Declaration] = {
    "previous_correct": Declaration(
        f"{_MODULES}.logistic.LogisticPredictor",
        settings.NoSettings,
        "features",
        heavy=False,
        fixed={"numbers": ("previous_correct",), "columns": ()},
    ),
    "same_task": Declaration(
        f"{_MODULES}.logistic.LogisticPredictor",
        settings.NoSettings,
        "features",
        heavy=False,
        fixed={"numbers": ("previous_correct", "same_task"), "columns": ()},
    ),
    "logistic": Declaration(
        f"{_MODULES}.logistic.LogisticPredictor", settings.LogisticSettings, "features", heavy=False
    ),
    "bert": Declaration(
        f"{_MODULES}.bert.BertPredictor", settings.BertSettings, "features", member=f"{_MODULES}.bert.BertMember"
    ),
    "embedding_xgboost": Declaration(
        f"{_MODULES}.embedding_xgboost.EmbeddingXgboost", settings.EmbeddingXgboostSettings, "features"
    ),
    "causal_lm": Declaration(
        f"{_MODULES}.causal_lm.CausalLmPredictor",
        settings.CausalLmSettings,
        "pairs",
        member=f"{_MODULES}.causal_lm.CausalLmMember",
    ),
    "llm_prompt": Declaration(f"{_MODULES}.llm_prompt.LlmPrompt", settings.LlmPromptSettings, "pairs"),
    "hybrid": Declaration(f"{_MODULES}.hybrid.HybridPredictor", settings.HybridSettings, "pairs"),
}


class Estimator(Protocol):
    """The contract of every predictor: scikit-learn's, over rows of one kind, `Pair` or `Features`."""

    def fit(
        self,
        rows: Sequence[Any],
        labels: Any,
        sample_weight: Any = None,
        progress: Progress | None = None,
    ) -> Estimator:
        """Learn from n rows and n labels (0, 1 or fractions), weighted; returns itself."""

    def predict_proba(self, rows: Sequence[Any], progress: Progress | None = None) -> NDArray[np.float64]:
        """Probabilities of shape (n, 2): of label 0 and of label 1."""


def names() -> list[str]:
    """The names of all predictors, in alphabetical order."""
    return sorted(DECLARATIONS)


def declaration(name: str) -> Declaration:
    """What is declared of the predictor `name`.

    Raises:
        PredictorError: no such predictor; the message lists the known ones.
    """
    if name not in DECLARATIONS:
        raise PredictorError(f"predictor: {name!r} is not known; choose one of {', '.join(names())}.")
    return DECLARATIONS[name]


def reads(name: str) -> Reads:
    """`features` where the predictor `name` learns from rows of any instrument, `pairs` where from pairs alone."""
    return declaration(name).reads


def is_heavy(name: str) -> bool:
    """Whether training and scoring take long enough to belong on the machine-learning worker."""
    return declaration(name).heavy


def default_params(name: str) -> dict[str, Any]:
    """The settings of the predictor `name` with their defaults; imports nothing heavy."""
    return asdict(settings_of(name, {}))


def settings_of(name: str, params: Mapping[str, Any]) -> DataclassInstance:
    """The checked settings of the predictor `name`, `params` over the defaults.

    Raises:
        PredictorError: no such predictor, no such setting, or a value out of range.
    """
    made_of = declaration(name).settings
    known = [field.name for field in fields(made_of)]
    unknown = sorted(set(params) - set(known))
    if unknown:
        choice = f"it has {', '.join(known)}" if known else "it has no settings"
        raise PredictorError(f"params: {name} does not know {', '.join(map(repr, unknown))}; {choice}.")
    return made_of(**params)


def create(name: str, params: Mapping[str, Any] | None = None, seed: int = 0) -> Estimator:
    """An unfitted estimator of the predictor `name`, with `params` over its defaults.

    Raises:
        PredictorError: unknown name or setting (the message lists the known ones), or a value out of range.
    """
    chosen = asdict(settings_of(name, params or {}))
    declared = DECLARATIONS[name]
    estimator: Estimator = class_at(declared.estimator, name)(**chosen, **declared.fixed, random_state=seed)
    return estimator


def class_at(path: str, name: str) -> Any:
    """The class at a dotted path, which the predictor `name` uses.

    Raises:
        PredictorError: a library that the class needs is not installed.
    """
    module, _, attribute = path.rpartition(".")
    try:
        return getattr(import_module(module), attribute)
    except ModuleNotFoundError as exc:
        raise PredictorError(
            f"predictor: {name} needs {exc.name}, which is not installed; install it (`make install` does), or choose "
            "another predictor."
        ) from exc


def kinds() -> dict[str, str]:
    """What a saved folder may hold: dotted paths of classes by kind, a predictor's name or `NAME_member`."""
    estimators = {name: declaration.estimator for name, declaration in DECLARATIONS.items()}
    return estimators | {
        f"{name}_member": declaration.member for name, declaration in DECLARATIONS.items() if declaration.member
    }


def kind_of(estimator: object) -> str | None:
    """The kind that an estimator is saved as; None where no predictor declares its class."""
    path = f"{type(estimator).__module__}.{type(estimator).__qualname__}"
    for kind, dotted in kinds().items():
        fixed = DECLARATIONS[kind].fixed if kind in DECLARATIONS else {}
        if dotted == path and all(getattr(estimator, name, None) == value for name, value in fixed.items()):
            return kind
    return None


def require_readable(kind: str, rows: Sequence[object]) -> None:
    """Refuse rows that a predictor cannot read.

    Args:
        kind: a predictor's name or the kind of its member.
        rows: pairs, plain tuples in their order, or features.

    Raises:
        PredictorError: features for a predictor of pairs; the message names it and those that read features.
    """
    name = kind.removesuffix("_member")
    if reads(name) == "pairs" and any(isinstance(row, Features) for row in rows):
        able = ", ".join(other for other in names() if reads(other) == "features")
        raise PredictorError(
            f"predictor: {name} reads pairs of the belief update alone, and these rows are features of another "
            f"instrument; choose one of {able}."
        )


def require_numbers(name: str, params: Mapping[str, Any], rows: Iterable[Any]) -> None:
    """Refuse rows that lack a number which the predictor `name` reads: one that its settings name, or that it always
    reads.

    Raises:
        PredictorError: a number is missing; or as `features.as_rows` and `require_readable`.
    """
    checked = as_rows(rows)
    require_readable(name, checked)
    wanted = declaration(name).fixed.get("numbers", getattr(settings_of(name, params), "numbers", ()))
    if missing := [number for number in wanted if checked and number not in number_names(checked)]:
        there_are = ", ".join(number_names(checked)) or "none"
        raise PredictorError(f"{name} reads the number {missing[0]!r}, which these rows lack; they have {there_are}.")
