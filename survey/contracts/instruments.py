"""The contract of an instrument, and where instruments are found by name. Imports no model and no service.

An instrument is a Django app whose `InstrumentApp` (contracts/apps) registers it; core and pages know it only by name.
`Instrument` is what every instrument is: items, screens, typed responses, export, simulated people. What some have and
others have not is a capability: an object, or None.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from pydantic import BaseModel, ConfigDict

from survey.exceptions import HunchError, StateRefused

from .measures import Estimands, Measure
from .reports import ReportEntry
from .screens import Points, Screen, SimulatedPerson
from .tables import Column, ExtraFile

if TYPE_CHECKING:
    from bandit.candidates import Pairs
    from survey.models import Assignment, Item, Question, Response, Sitting, Study
    from survey.study_file import Note, StudyConfig

logger = logging.getLogger(__name__)

# Raised when an instrument written for the contract as it was would no longer work. An instrument names the one that it
# was written for; another one is not registered.
CONTRACT = 2

Place = tuple[str | int, ...]


class Options(BaseModel):
    """An instrument's own options in the study file; a subclass adds fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True)
class Candidates:
    """A drawn candidate set: a structured array whose fields the instrument knows, one row a candidate."""

    rows: np.ndarray
    universe_size: int
    probability: float


# The control that asks an earlier item of the same booklet again. The core plans it.
REPEAT = "repeat"


# Capabilities


class Pairing(ABC):
    """Candidates are the ordered pairs of questions with an outcome, so that all of them can be scored and streamed."""

    @abstractmethod
    def rows_of_pairs(self, pairs: "Pairs") -> np.ndarray:
        """Pairs over the questions as candidate rows, in order."""

    @abstractmethod
    def pairs_of_rows(self, rows: np.ndarray) -> "Pairs":
        """The other way round."""

    @abstractmethod
    def outcome_of_evidence(self, questions: Sequence["Question"]) -> np.ndarray | None:
        """The one outcome that each question has as evidence, int8 (N,), where only such pairs are candidates; None
        where both are."""

    @abstractmethod
    def ranks_of(self, keys: Collection[str], questions: Sequence["Question"]) -> np.ndarray:
        """The ranks (bandit's) of the pairs with these keys, int64, increasing; other items' keys are passed over."""


@dataclass(frozen=True)
class Metric:
    """A figure that judges predictors. `name` is its key in `Learning.evaluate`'s result.

    `head` stands over a column of it, the name in capitals unless another is given. `chance` says what a predictor that
    knows nothing has, such as "a coin toss has 0.5".
    """

    name: str
    title: str
    highest_first: bool
    head: str = ""
    chance: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "head", self.head or self.name.upper())

    @property
    def hint(self) -> str:
        """How to read it, as a sentence."""
        better = f"{self.head}: {'higher' if self.highest_first else 'lower'} is better"
        return f"{better}, {self.chance}." if self.chance else f"{better}."


@dataclass(frozen=True)
class AnswerPart:
    """A part of the answers on which predictors are judged by themselves, such as those after a correct answer. The
    first part of a list is all answers. `head` is the title where there is little room."""

    name: str
    title: str
    head: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "head", self.head or self.title)


@dataclass(frozen=True)
class Baseline:
    """A cheap predictor that is always trained beside the study's own. `name` is the library's."""

    name: str
    params: Mapping[str, Any]


class Learning(ABC):
    """A label, what predictors learn it from, and how they are judged."""

    metrics: ClassVar[Sequence[Metric]]
    parts: ClassVar[Sequence[AnswerPart]]
    baselines: ClassVar[Sequence[Baseline]] = ()
    # What `inputs` and `examples` give: "pairs" (predictors.pairs.Pair) or "features" (predictors.features.Features).
    reads: ClassVar[str] = "features"

    @abstractmethod
    def inputs(self, *, rows: np.ndarray, questions: Sequence["Question"]) -> Sequence[Any]:
        """Candidates as the plain data that predictors take."""

    @abstractmethod
    def examples(self, assignments: Sequence["Assignment"]) -> tuple[Sequence[Any], np.ndarray]:
        """Inputs for a predictor and their labels (n,), one for each complete assignment that is learnable."""

    def learnable(self, assignments: Sequence["Assignment"]) -> np.ndarray:
        """Which of the complete assignments `examples` makes something of: bool (n,)."""
        return np.ones(len(assignments), dtype=bool)

    @abstractmethod
    def evaluate(
        self,
        assignments: Sequence["Assignment"],
        scores: np.ndarray,
        *,
        weights: np.ndarray | None,
        clusters: np.ndarray,
        rng: np.random.Generator,
    ) -> dict[str, Any]:
        """Metrics of the scores (n,) that a predictor which has not seen them gives these n learnable assignments.

        Args:
            weights: what each counts (n,); None counts each once.
            clusters: the respondents (n,); whole ones are resampled by `rng` for the intervals.

        Returns:
            `n`; by metric and part the value, None where it is not defined; under `intervals` the same as [low, high].
        """

    @abstractmethod
    def compare(
        self,
        assignments: Sequence["Assignment"],
        scores: np.ndarray,
        others: np.ndarray,
        *,
        weights: np.ndarray | None,
        clusters: np.ndarray,
        rng: np.random.Generator,
    ) -> dict[str, Any]:
        """The differences of those metrics between two predictors: those of `scores` less those of `others`. By metric
        and part: `difference` and `interval`."""


class Priority(ABC):
    """What a stage samples by instead of the predicted chance of a label: a number a candidate, higher ones first.

    Only the order counts, and its ties; `softmax` takes the numbers themselves. It may rest on the predictor's chances,
    on the answers so far, or on neither. It counts for pools, under every design but `uniform`; `uncertainty` is
    refused beside it, since that design draws by the chances.
    """

    name: ClassVar[str]
    # Stored with the candidates: raise it when equal inputs give other numbers.
    version: ClassVar[str] = "1"
    needs_predictor: ClassVar[bool] = False

    @abstractmethod
    def of(
        self,
        *,
        rows: np.ndarray,
        questions: Sequence["Question"],
        chances: np.ndarray | None,
        answers: Sequence["Assignment"],
        rng: np.random.Generator,
    ) -> np.ndarray:
        """float64 (M,), finite.

        Args:
            chances: the predictor's chance of the label for each row (M,); None where the study has no predictor.
            answers: every frozen answer before the stage that may train, in order.
        """

    def facts(self) -> dict[str, str]:
        """For manifests and hashes."""
        return {"name": self.name, "version": self.version}


class Practice(ABC):
    """The instrument's own screens on a researcher's example."""

    @abstractmethod
    def problems(self, example: Mapping[str, str]) -> Iterable[tuple[str, str]]:
        """What is wrong with the texts of an example: the text's name, and what to do."""

    @abstractmethod
    def screen(
        self, *, sitting: "Sitting", example: Mapping[str, str], given: Sequence[Mapping[str, Any]]
    ) -> Screen | None:
        """Its screen on the example after these accepted answers; None when the example is through.

        Args:
            given: `{"screen": name, **fields}` of each answer so far to this example.
        """

    @abstractmethod
    def summary(self, given: Sequence[Mapping[str, Any]]) -> Sequence[str]:
        """What was entered, in sentences; never whether it was right."""


class Controls(ABC):
    """Slots that say how noisy answers are."""

    # Its own kinds, drawn by `draw`, and REPEAT, which the core plans itself.
    kinds: ClassVar[tuple[str, ...]]

    def draw(self, *, kind: str, count: int, questions: Sequence["Question"], rng: np.random.Generator) -> np.ndarray:
        """`count` different rows for control slots of one of its own kinds; DesignError where there are fewer."""
        raise LookupError(f"no control of the kind {kind!r} is drawn here")


class Estimates(ABC):
    """What a study's answers are estimates of."""

    @abstractmethod
    def outcomes(self, assignments: Sequence["Assignment"]) -> dict[str, np.ndarray]:
        """Named 0/1 or numeric results, one for each complete assignment (n,), that tables by stratum show. The first
        one is what a predictor predicts."""

    def estimand(self, *, universe_size: int, n_questions: int) -> str:
        """Over what an estimate is a mean, in words."""
        return f"all {universe_size:,} items of the bank's {n_questions:,} questions"

    def estimands(self, assignments: Sequence["Assignment"], *, thresholds: Sequence[int] = ()) -> Estimands:
        """What is estimated from these n complete assignments. `thresholds`: how small a change counts as none, for an
        instrument that has changes; the first is the study's own."""
        return Estimands(
            measures=[
                Measure(name, name.replace("_", " "), "share" if set(values.tolist()) <= {0.0, 1.0} else "mean", values)
                for name, values in self.outcomes(assignments).items()
            ]
        )

    def default_thresholds(self) -> tuple[int, ...]:
        """The thresholds that are estimated unless others are asked for; the first is the study's own."""
        return ()

    def divisions(self, items: Sequence["Item"]) -> dict[str, np.ndarray]:
        """How items can be told apart in tables, by name: the part each of the n items is in, as text (n,)."""
        return {}

    def item_features(self, items: Sequence["Item"]) -> np.ndarray:
        """A few numbers that are known of an item before it is answered (n, k), for the model that assists the first
        stage's estimate; k is 0 where there are none."""
        return np.empty((len(items), 0))

    def candidate_features(self, *, rows: np.ndarray, questions: Sequence["Question"]) -> np.ndarray:
        """The same for candidates (M, k)."""
        return np.empty((len(rows), 0))


class Signals:
    """What flags of careless sittings are read from. By itself it knows nothing."""

    # Answers that people give who do not think: the pilot report says how often each was given.
    round_values: ClassVar[Sequence[Hashable]] = ()

    def word_counts(self, items: Collection[int]) -> Mapping[int, int]:
        """How many words of the bank somebody reads who answers an item, by the items' primary keys; nothing where it
        is not known."""
        return {}

    def stated_values(self, sittings: Collection[int]) -> Iterable[tuple[int, str, Hashable]]:
        """(sitting, kind of question, answer) for each answer that is one of a few, of the sittings with these primary
        keys: who gives the same one throughout is perhaps not reading."""
        return ()


# The instrument itself


class Instrument(ABC):
    """One kind of item, as one study has it.

    `Kind(study)` is the instrument of that study; `Kind()` is that of none, which knows what it can and reads no row.
    """

    contract: ClassVar[int]
    name: ClassVar[str]
    title: ClassVar[str]
    options_model: ClassVar[type[Options]] = Options
    needs_answer_key: ClassVar[bool] = False
    fewest_questions: ClassVar[int] = 1
    # Options that `[conditions.options.LEVEL]` may change: those that only change what a screen shows or asks, since
    # items, labels and estimates of a study are the same for all of its levels.
    condition_options: ClassVar[frozenset[str]] = frozenset()
    # Values for options that a stored study does not name: it was created before the option existed, and its screens
    # must stay as they were. New studies are stored with all options.
    older_options: ClassVar[Mapping[str, Any]] = {}
    columns: ClassVar[Sequence[Column]] = ()
    # A sentence of the codebook on how this instrument's values are written, such as their unit; empty where there is
    # nothing to say.
    codebook_note: ClassVar[str] = ""

    def __init__(self, study: "Study | None" = None) -> None:
        self._study = study

    @property
    def study(self) -> "Study":
        """
        Raises:
            RuntimeError: this is the instrument of no study.
        """
        if self._study is None:
            raise RuntimeError(f"{self.name}: this needs the study that it is the instrument of")
        return self._study

    # What it can beside that; a subclass has an object where it can.

    @property
    def pairing(self) -> Pairing | None:
        return None

    @property
    def learning(self) -> Learning | None:
        return None

    @property
    def priority(self) -> Priority | None:
        return None

    @property
    def practice(self) -> Practice | None:
        return None

    @property
    def controls(self) -> Controls | None:
        return None

    @property
    def estimates(self) -> Estimates | None:
        return None

    @property
    def signals(self) -> Signals:
        return Signals()

    def reports(self) -> Sequence[ReportEntry]:
        """What can be reported of a study of this kind."""
        return ()

    # Options

    @cached_property
    def options(self) -> Any:
        """The study's options by the study file in force."""
        return self.options_under(self.study.config, {})

    def options_for(self, assignment: "Assignment") -> Any:
        """The study's options as the levels of this assignment and of its sitting change them; screens read these. By
        the study file that the sitting began with, whatever was amended since."""
        config = self.study.as_of(assignment.sitting.study_sha256)
        changes = any(condition.options for condition in config.conditions)
        return self.options_under(config, assignment.levels() if changes else {})

    def options_under(self, config: "StudyConfig", levels: Mapping[str, str]) -> Any:
        """A study file's options under the levels of its factors; the last condition that changes an option wins."""
        changed: dict[str, Any] = {}
        for condition in config.conditions:
            changed |= condition.options.get(levels.get(condition.factor, ""), {})
        return self.options_model.model_validate({**self.older_options, **config.instrument.options, **changed})

    def problems(self) -> Iterable[tuple[Place, str]]:
        """What it finds wrong with a study that is to be created: the place in the study file, and what to do."""
        return ()

    def remarks(self) -> "Sequence[Note]":
        """What whoever creates the study should know of it."""
        return ()

    # Items

    def usable(self, questions: "list[Question]") -> "list[Question]":
        """Those of the study's questions that it can ask about, in order."""
        return questions

    def drawn_by(self) -> Any:
        """What beside bank, filters and flags decides which items there are, as JSON values; None: nothing."""
        return None

    @abstractmethod
    def universe_size(self, questions: Sequence["Question"]) -> int:
        """How many candidates there are over these questions. Called without reading their texts where it need not."""

    @abstractmethod
    def draw_candidates(
        self, *, questions: Sequence["Question"], size: int, rng: np.random.Generator, exclude: Collection[str] = ()
    ) -> Candidates:
        """A uniform candidate set of `size` rows (or all there are), with the first phase's probability.

        `exclude`: keys of items that may not be drawn; what is no candidate anyway is passed over.
        """

    @abstractmethod
    def item_key(self, row: np.void, questions: Sequence["Question"]) -> str:
        """The candidate's name, the same on every machine."""

    @abstractmethod
    def conflict_keys(self, row: np.void) -> tuple[Any, ...]:
        """What may stand only once in a booklet."""

    @abstractmethod
    def conflict_keys_of(self, items: Sequence["Item"]) -> list[tuple[Any, ...]]:
        """The same for stored items, in order."""

    def questions_of(self, items: Sequence["Item"]) -> list[tuple["Question", ...]]:
        """The questions that each stored item shows, in order; the one that it asks about comes first. The items may be
        of several studies of this kind."""
        return [() for _item in items]

    def spread_over(self, row: np.void, questions: Sequence["Question"]) -> tuple[Hashable, ...]:
        """What every booklet is to have its even share of, beside strata and roles; nothing by default."""
        return ()

    @abstractmethod
    def create_typed_items(self, *, items: Sequence["Item"], rows: np.ndarray, questions: Sequence["Question"]) -> None:
        """Write the instrument's own rows for new items, in order."""

    # Screens and typed responses

    @abstractmethod
    def next_screen(self, assignment: "Assignment") -> Screen | None:
        """The screen after the responses given so far; None when the assignment is complete."""

    @abstractmethod
    def save(self, *, response: "Response", cleaned: Mapping[str, Any]) -> None:
        """Write the typed row of a response that the screen's form has accepted. Not called for a screen that asks
        nothing."""

    def score(self, response: "Response") -> Points | None:
        """Points for a response, computed on the server; None where there are none."""
        return None

    def counts_unfinished(self, assignment: "Assignment") -> bool:
        """Whether an assignment whose person left counts with the responses given so far. Asked when the sitting
        expires; the assignment is complete then, and its slot is not given to somebody else."""
        return False

    @abstractmethod
    def answer_values(self, assignment: "Assignment") -> list[Any]:
        """What the snapshot's hash is taken of: the answer's content as JSON values."""

    # Export

    @abstractmethod
    def export_values(self, assignment: "Assignment") -> list[Any]:
        """One value for each of `columns`; None where there is nothing (yet)."""

    @abstractmethod
    def prefetch(self) -> Sequence[str]:
        """Relations of Assignment that the above read, to fetch ahead."""

    def label_relations(self) -> Sequence[str]:
        """Those of them that labels, estimands and divisions read: a large study's answers are read often for these."""
        return self.prefetch()

    def extra_files(self, assignments: Iterable["Assignment"]) -> Iterable[ExtraFile]:
        """Further files, of the answers that count."""
        return ()

    # Simulation

    @abstractmethod
    def simulated_person(self, *, seed: int, null: bool = False) -> SimulatedPerson: ...


# Where they are found


class InstrumentMissing(HunchError):
    """A study's instrument is not installed, or is broken: the study can be neither run nor read."""

    code = "instrument_missing"
    status = 503


_kinds: dict[str, type[Instrument]] = {}
_broken: dict[str, str] = {}


def register(kind: type[Instrument]) -> None:
    """Make an instrument known by its name. One that was written for another contract, or that lacks a method of this
    one, is refused with a warning, so that the rest goes on."""
    written_for = getattr(kind, "contract", None)
    if written_for != CONTRACT:
        report_broken(kind.name, f"it is written for contract {written_for}, and this is contract {CONTRACT}")
        return
    if lacking := sorted(getattr(kind, "__abstractmethods__", ())):
        report_broken(kind.name, f"it lacks {', '.join(lacking)}")
        return
    _broken.pop(kind.name, None)
    _kinds[kind.name] = kind


def report_broken(name: str, reason: str) -> None:
    """Remember and log that an instrument cannot be used."""
    _broken[name] = reason
    logger.warning("the instrument %s cannot be used: %s", name, reason)


def kind(name: str) -> type[Instrument]:
    """The instrument of that name, of no study yet.

    Raises:
        InstrumentMissing: with the names there are.
    """
    if name in _kinds:
        return _kinds[name]
    if name in _broken:
        raise InstrumentMissing(f"the instrument {name!r} cannot be used: {_broken[name]}")
    raise InstrumentMissing(f"no instrument is called {name!r}; there are: {', '.join(names())}")


def is_known(name: str) -> bool:
    """Whether an instrument of that name can be used."""
    return name in _kinds


def problem_with(name: str) -> str:
    """Why the instrument of that name cannot be used, in a sentence; empty where it can."""
    try:
        kind(name)
    except InstrumentMissing as exc:
        return exc.message
    return ""


def of_study(study: "Study") -> Instrument:
    """The study's instrument, as the study has it.

    Raises:
        InstrumentMissing: it is not installed, or is broken.
    """
    return kind(study.instrument)(study)


def names() -> list[str]:
    return sorted(_kinds)


def pairing_of(instrument: Instrument) -> Pairing:
    """
    Raises:
        StateRefused: the instrument has no such capability.
    """
    if instrument.pairing is None:
        raise StateRefused(f"{instrument.name} does not pair questions")
    return instrument.pairing


def learning_of(instrument: Instrument) -> Learning:
    """
    Raises:
        StateRefused: the instrument has no such capability.
    """
    if instrument.learning is None:
        raise StateRefused(f"{instrument.name} has no label that a predictor could learn")
    return instrument.learning


def estimates_of(instrument: Instrument) -> Estimates:
    """
    Raises:
        StateRefused: the instrument has no such capability.
    """
    if instrument.estimates is None:
        raise StateRefused(f"{instrument.name} names nothing to estimate")
    return instrument.estimates
