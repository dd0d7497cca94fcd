"""What all estimators have in common: parameters from their settings, checked rows, members. Imports scikit-learn."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from predictors.errors import PredictorError
from predictors.features import TrainingData, as_rows, check_training_data
from predictors.pairs import Progress
from predictors.registry import kind_of, require_readable


class SettingsEstimator(ClassifierMixin, BaseEstimator, ABC):
    """An estimator whose parameters, with their defaults, are the fields of a settings class, and `random_state`.

    A subclass names the class: `class Mine(SettingsEstimator, settings=MySettings)`. scikit-learn reads parameters
    from the signature of `__init__`, which is made from the settings here, so that no default is written twice.
    `fixed` are settings that a class does not leave open; they are no parameters of it.
    """

    settings_class: ClassVar[type]
    fixed_settings: ClassVar[Mapping[str, Any]] = {}
    # Plain results of `fit` that are saved with the parameters, each an attribute of this name and an underscore.
    results: ClassVar[tuple[str, ...]] = ("loss", "n_examples")

    def __init_subclass__(
        cls, settings: type | None = None, fixed: Mapping[str, Any] | None = None, **options: Any
    ) -> None:
        super().__init_subclass__(**options)
        if settings is not None:
            cls.settings_class, cls.fixed_settings = settings, fixed or {}
            cls.__init__ = _constructor(settings, without=cls.fixed_settings)  # type: ignore[method-assign]

    def settings(self) -> Any:
        """The parameters as checked settings.

        Raises:
            PredictorError: a value is out of range.
        """
        params = self.get_params(deep=False)
        params.pop("random_state")
        return self.settings_class(**params, **self.fixed_settings)

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> Self:
        """An unfitted estimator with the parameters of a saved one, in which fixed settings may stand too."""
        return cls(**{name: value for name, value in params.items() if name not in cls.fixed_settings})

    def saved_state(self) -> dict[str, Any]:
        """Parameters and plain results, as `restored` reads them.

        Raises:
            sklearn.exceptions.NotFittedError: it was not fitted.
        """
        check_is_fitted(self)
        return {"params": self.get_params(), **{name: getattr(self, f"{name}_") for name in self.results}}

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> Self:
        """The estimator of a `saved_state`, still without what it has learnt."""
        estimator = cls.from_params(state["params"])
        estimator.classes_ = np.array([0, 1])
        for name in cls.results:
            setattr(estimator, f"{name}_", state[name])
        return estimator

    @abstractmethod
    def predict_proba(self, rows: Sequence[Any], progress: Progress | None = None) -> NDArray[np.float64]:
        """Probabilities of shape (n, 2): of label 0 and of label 1."""

    def predict(self, rows: Sequence[Any]) -> NDArray[np.int64]:
        """The likelier class of each row, 0 or 1: (n,)."""
        return (self.predict_proba(rows)[:, 1] > 0.5).astype(np.int64)

    def checked_rows(self, rows: Iterable[Any]) -> list[Any]:
        """The rows, checked as in `features.as_rows`.

        Raises:
            PredictorError: rows that cannot be read, or features where the predictor reads pairs alone.
        """
        listed = list(rows)
        if kind := kind_of(self):
            require_readable(kind, listed)
        return as_rows(listed)

    def training_data(self, rows: Iterable[Any], labels: Any, sample_weight: Any) -> TrainingData:
        """What `fit` was given, checked as in `features.check_training_data`, with rows that the predictor reads."""
        return check_training_data(self.checked_rows(rows), labels, sample_weight)


class Ensemble(SettingsEstimator):
    """`members` networks from seeds of their own.

    A service that trains each member as a step of its own fits `member(0)`, `member(1)`, ... and joins them by
    `from_members`, with the same result as `fit`.
    """

    member_class: ClassVar[Any]

    @classmethod
    def from_members(cls, members: Sequence[Any]) -> Self:
        """The fitted ensemble of members that were fitted one by one, perhaps on several machines.

        Raises:
            PredictorError: there are none, or they do not belong together.
            sklearn.exceptions.NotFittedError: one of them was not fitted.
        """
        if not members:
            raise PredictorError("members: there are none; an ensemble needs at least one fitted member.")
        for member in members:
            check_is_fitted(member)
        cls.check_members(members)
        ensemble = cls(**{**members[0].get_params(), "members": len(members)})
        ensemble.members_ = list(members)
        ensemble.classes_ = np.array([0, 1])
        return ensemble

    @classmethod
    def check_members(cls, members: Sequence[Any]) -> None:
        """Refuse fitted members that do not belong together."""

    def member(self, index: int) -> Any:
        """The unfitted member number `index`, from 0, with its own seed.

        Raises:
            PredictorError: there is no such member, or a setting is out of range.
        """
        self.settings()
        if not 0 <= index < self.members:
            raise PredictorError(f"member: {index} is not one of the {self.members} members, counted from 0.")
        seed = member_seed(self.random_state, index)
        return self.member_class.from_params({**self.get_params(), "random_state": seed})

    def fit(
        self, rows: Sequence[Any], labels: Any, sample_weight: Any = None, progress: Progress | None = None
    ) -> Self:
        """Fit all members, one after another, as a member's `fit`. `progress` counts steps of all members."""
        fitted = []
        for index in range(self.settings().members):
            inner = part_of_progress(progress, index, self.members, f"member {index + 1} of {self.members}")
            fitted.append(self.member(index).fit(rows, labels, sample_weight, inner))
        self.members_ = fitted
        self.classes_ = np.array([0, 1])
        return self

    def save_files(self, folder: Path) -> None:
        """Write every member into a folder of its own below `folder`; called by `artifacts.save`."""
        check_is_fitted(self)
        for index, member in enumerate(self.members_):
            inner = folder / f"member-{index:02d}"
            inner.mkdir()
            member.save_files(inner)

    @classmethod
    def load_files(cls, folder: Path) -> Self:
        """Read back what `save_files` wrote; called by `artifacts.load`."""
        return cls.from_members([cls.member_class.load_files(inner) for inner in sorted(folder.glob("member-*"))])


def member_seed(seed: int, index: int) -> int:
    """The seed of member `index` of an ensemble seeded with `seed`: independent streams, equal on every machine."""
    return int(np.random.SeedSequence([seed, index]).generate_state(1, np.uint64)[0])


def both_classes(of_label_1: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probabilities of label 1, (n,), as columns (n, 2): of label 0 and of label 1."""
    return np.column_stack([1 - of_label_1, of_label_1])


def part_of_progress(progress: Progress | None, index: int, count: int, text: str) -> Progress | None:
    """Reports of part `index` of `count` equal parts, passed on as progress of the whole."""
    if progress is None or count == 1:
        return progress

    def passed_on(done: int, total: int, inner: str) -> bool | None:
        return progress(index * total + done, count * total, f"{text}: {inner}")

    return passed_on


def write_json(path: Path, value: Any) -> None:
    """Write `value` so that equal content gives equal bytes."""
    path.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _constructor(settings: type, without: Mapping[str, Any]) -> Any:
    """An `__init__` that stores its keyword arguments, which are the settings' fields and `random_state`."""
    names = [field for field in fields(settings) if field.name not in without]
    signature = Signature(
        [
            Parameter("self", Parameter.POSITIONAL_OR_KEYWORD),
            *(
                Parameter(name.name, Parameter.KEYWORD_ONLY, default=name.default, annotation=name.type)
                for name in names
            ),
            Parameter("random_state", Parameter.KEYWORD_ONLY, default=0, annotation=int),
        ]
    )

    def __init__(self: Any, **arguments: Any) -> None:  # noqa: N807
        bound = signature.bind(self, **arguments)
        bound.apply_defaults()
        for name in list(signature.parameters)[1:]:
            setattr(self, name, bound.arguments[name])

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    return __init__
