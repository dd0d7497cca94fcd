"""The contract of an instrument, and where instruments are found by name. Imports no model and no service.

An instrument is a Django app whose AppConfig calls `register` in `ready`; core and pages know it only from here.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from django.forms import Form
from pydantic import BaseModel, ConfigDict

from survey.exceptions import StateRefused

if TYPE_CHECKING:
    from bandit.candidates import Pairs
    from survey.models import Assignment, Item, Question, Response, Sitting, Study
    from survey.study_file import Note, StudyConfig


class Options(BaseModel):
    """An instrument's own options in the study file; a subclass adds fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True)
class Screen:
    """One screen of an item: what it shows and what may be answered.

    `parts` is all that pages and API may show, by name: `{"kind": "question" | "text" | "number", "value": ...}`, and
    `words` are the sentences around it. The part `variant` says readably in which form a screen is shown.
    """

    name: str
    title: str
    template: str
    form: type[Form]
    parts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)

    def content(self) -> dict[str, Any]:
        """What the screen's hash is taken of. Without a variant the words are not in it, as they were not before there
        were variants: such screens keep their hashes."""
        content = {"screen": self.name, "title": str(self.title), "parts": self.parts}
        return {**content, "words": self.words} if "variant" in self.parts else content


@dataclass(frozen=True)
class Candidates:
    """A drawn candidate set: a structured array whose fields the instrument knows, one row a candidate."""

    rows: np.ndarray
    universe_size: int
    probability: float


# The control that asks an earlier item of the same booklet again.
REPEAT = "repeat"


@dataclass(frozen=True)
class Column:
    """One column of an export: its name, its type in words, and what it means."""

    name: str
    kind: str
    description: str


@dataclass(frozen=True)
class ExtraFile:
    """A further file of an export, such as the layout of a paper."""

    name: str
    columns: Sequence[Column]
    rows: Iterable[Sequence[Any]]


@dataclass(frozen=True)
class Measure:
    """A figure that can be estimated: one value an answer, whose mean over all candidates is meant.

    `where`, where given, is true for the answers to the part of the candidates that the mean is over. A share has
    values 0 and 1. `unit` is "share" or the unit in words.
    """

    name: str
    title: str
    unit: str
    values: np.ndarray
    where: np.ndarray | None = None

    @property
    def is_share(self) -> bool:
        return self.unit == "share"


@dataclass(frozen=True)
class Check:
    """A difference that only chance should make: the mean of `values` where `second` less that where `first`."""

    name: str
    title: str
    unit: str
    values: np.ndarray
    first: np.ndarray
    second: np.ndarray


@dataclass(frozen=True)
class Estimands:
    """What a study's answers are estimates of; arrays of one entry an answer.

    The first of `measures` is the one that a predictor predicts, where the instrument has one. `retested` names those
    that are compared between an item and its repeat.
    """

    measures: Sequence[Measure]
    checks: Sequence[Check] = ()
    retested: Sequence[str] = ()


@dataclass(frozen=True, eq=False)
class BeliefRows:
    """What n people expected of a language model on a target question, before and after they saw it at an evidence
    question: beliefs in percentage points, outcomes 0 or 1, questions and tasks by primary key; arrays of n."""

    prior: np.ndarray
    posterior: np.ndarray
    outcome: np.ndarray
    evidence: np.ndarray
    target: np.ndarray
    target_task: np.ndarray


@dataclass(frozen=True, eq=False)
class AnswerRows:
    """What people themselves answered: n questions by primary key, and 1 where the answer is right; arrays of n."""

    question: np.ndarray
    correct: np.ndarray


@dataclass(frozen=True)
class Points:
    value: Decimal
    rule: str
    version: str


class SimulatedPerson(ABC):
    """Answers an instrument's screens from what they show."""

    @abstractmethod
    def answer(self, *, screen: str, parts: Mapping[str, str]) -> dict[str, str]:
        """Form data for a screen, from the texts of its parts as a reader sees them."""


class Instrument(ABC):
    """One kind of item: its candidates, screens, typed responses, labels, export and simulated people."""

    name: ClassVar[str]
    title: ClassVar[str]
    options_model: ClassVar[type[Options]] = Options
    needs_answer_key: ClassVar[bool] = False
    fewest_questions: ClassVar[int] = 1
    # Whether a predictor can be trained on its labels. Without, only uniform designs can be planned.
    predicts: ClassVar[bool] = False
    # Kinds of control slots it can ask: its own, drawn by `draw_controls`, and REPEAT, which the core plans itself.
    control_kinds: ClassVar[tuple[str, ...]] = ()
    # Whether its people answer the bank's questions themselves, so that `own_answers` gives them.
    answered_by_people: ClassVar[bool] = False
    # Whether its candidates are the ordered pairs of questions with an outcome, so that all of them can be scored.
    pairs_questions: ClassVar[bool] = False
    # Options that `[conditions.options.LEVEL]` may change: those that only change what a screen shows or asks, since
    # items, labels and estimates of a study are the same for all of its levels.
    condition_options: ClassVar[frozenset[str]] = frozenset()
    # What a stored study has for an option that it does not name: it was created before there was that option, and its
    # screens stay as they were. New studies are stored with all options.
    older_options: ClassVar[Mapping[str, Any]] = {}

    def options(self, study: "Study") -> Any:
        """The study's options by the study file in force."""
        return self.options_under(study.config, {})

    def options_for(self, assignment: "Assignment") -> Any:
        """The study's options as the levels of this assignment and of its sitting change them; screens read these. By
        the study file that the sitting began with, whatever was amended since."""
        config = assignment.slot.stage.study.as_of(assignment.sitting.study_sha256)
        changes = any(condition.options for condition in config.conditions)
        return self.options_under(config, assignment.levels() if changes else {})

    def options_under(self, config: "StudyConfig", levels: Mapping[str, str]) -> Any:
        """A study file's options under the levels of its factors; the last condition that changes an option wins."""
        changed: dict[str, Any] = {}
        for condition in config.conditions:
            changed |= condition.options.get(levels.get(condition.factor, ""), {})
        return self.options_model.model_validate({**self.older_options, **config.instrument.options, **changed})

    def for_study(self, study: "Study") -> "Instrument":
        """Itself as this study has it: what there is to draw from may depend on the study's options."""
        return self

    def problems(self, study: "Study") -> Iterable[tuple[tuple[str | int, ...], str]]:
        """What it finds wrong with a study that is to be created: the place in the study file, and what to do."""
        return ()

    def remarks(self, study: "Study") -> "Sequence[Note]":
        """What whoever creates the study should know of it."""
        return ()

    def evidence_model(self, study: "Study") -> str:
        """The language model whose real outcomes its items show; empty where they show none's."""
        return ""

    # Planning
    def usable(self, questions: "list[Question]") -> "list[Question]":
        """Those of the study's questions that it can ask about, in order."""
        return questions

    def drawn_by(self) -> Any:
        """What beside bank, filters and flags decides which items there are, as JSON values; None: nothing."""
        return None

    @abstractmethod
    def universe_size(self, n_questions: int) -> int:
        """How many candidates there are over that many questions."""

    @abstractmethod
    def draw_candidates(
        self, *, questions: Sequence["Question"], size: int, rng: np.random.Generator, leave_out: Collection[str] = ()
    ) -> Candidates:
        """A uniform candidate set of `size` rows (or all there are), with the first phase's probability.

        `leave_out`: keys of items that may not be drawn; what is no candidate anyway is passed over.
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
        """The questions that each stored item shows, in order; the one that it asks about comes first."""
        return [() for _item in items]

    def spread_over(self, row: np.void, questions: Sequence["Question"]) -> tuple[Hashable, ...]:
        """What every booklet is to have its even share of, beside strata and roles; nothing by default."""
        return ()

    @abstractmethod
    def create_typed_items(self, *, items: Sequence["Item"], rows: np.ndarray, questions: Sequence["Question"]) -> None:
        """Write the instrument's own rows for new items, in order."""

    def draw_controls(
        self, *, kind: str, count: int, questions: Sequence["Question"], rng: np.random.Generator
    ) -> np.ndarray:
        """`count` different rows for control slots of one of its own kinds; DesignError where there are fewer."""
        raise LookupError(f"{self.name} has no control of the kind {kind!r}")

    def rows_of_pairs(self, pairs: "Pairs") -> np.ndarray:
        """Pairs over the questions as candidate rows, in order."""
        raise TypeError(f"{self.name} does not pair questions")

    def pairs_of_rows(self, rows: np.ndarray) -> "Pairs":
        """The other way round."""
        raise TypeError(f"{self.name} does not pair questions")

    def outcome_of_evidence(self, questions: Sequence["Question"]) -> np.ndarray | None:
        """The one outcome that each question has as evidence, int8 (N,), where only such pairs are candidates; None
        where both are."""
        return None

    def ranks_of(self, keys: Collection[str], questions: Sequence["Question"]) -> np.ndarray:
        """The ranks (bandit's) of the pairs with these keys, int64, increasing; other items' keys are passed over."""
        raise TypeError(f"{self.name} does not pair questions")

    def predictor_inputs(self, *, rows: np.ndarray, questions: Sequence["Question"]) -> Sequence[Any]:
        """Candidates as the plain data that predictors take."""
        raise TypeError(f"{self.name} has no predictor")

    # Showing and answering
    @abstractmethod
    def next_screen(self, assignment: "Assignment") -> Screen | None:
        """The screen after the responses given so far; None when the assignment is complete."""

    @abstractmethod
    def save(self, *, response: "Response", cleaned: Mapping[str, Any]) -> None:
        """Write the typed row of a response that the screen's form has accepted."""

    def score(self, response: "Response") -> Points | None:
        """Points for a response, computed on the server; None where there are none."""
        return None

    # Learning
    def examples(self, assignments: Sequence["Assignment"], study: "Study") -> tuple[Sequence[Any], np.ndarray]:
        """Inputs for a predictor and their labels (n,), one for each complete assignment."""
        raise TypeError(f"{self.name} has no predictor")

    def learnable(self, assignments: Sequence["Assignment"], study: "Study") -> np.ndarray:
        """Which of the complete assignments `examples` makes something of: bool (n,)."""
        return np.ones(len(assignments), dtype=bool)

    def evaluate(
        self,
        assignments: Sequence["Assignment"],
        scores: np.ndarray,
        study: "Study",
        *,
        weights: np.ndarray | None,
        clusters: np.ndarray,
        rng: np.random.Generator,
    ) -> dict[str, Any]:
        """Metrics of the scores (n,) that a predictor which has not seen them gives these n learnable assignments.

        Args:
            weights: what each counts (n,); None counts each once.
            clusters: the respondents (n,); whole ones are resampled by `rng` for the intervals.
        """
        raise TypeError(f"{self.name} has no predictor")

    def compare(
        self,
        assignments: Sequence["Assignment"],
        scores: np.ndarray,
        others: np.ndarray,
        study: "Study",
        *,
        weights: np.ndarray | None,
        clusters: np.ndarray,
        rng: np.random.Generator,
    ) -> dict[str, Any]:
        """The differences of those metrics between two predictors: those of `scores` less those of `others`."""
        raise TypeError(f"{self.name} has no predictor")

    @abstractmethod
    def answer_values(self, assignment: "Assignment") -> list[Any]:
        """What the snapshot's hash is taken of: the answer's content as JSON values."""

    # Export and figures
    columns: ClassVar[Sequence[Column]] = ()

    @abstractmethod
    def export_values(self, assignment: "Assignment", study: "Study") -> list[Any]:
        """One value for each of `columns`; None where there is nothing (yet)."""

    @abstractmethod
    def prefetch(self) -> Sequence[str]:
        """Relations of Assignment that the above read, to fetch ahead."""

    def label_relations(self) -> Sequence[str]:
        """Those of them that labels, estimands and divisions read: a large study's answers are read often for these."""
        return self.prefetch()

    def extra_files(self, assignments: Iterable["Assignment"], study: "Study") -> Iterable[ExtraFile]:
        return ()

    def outcomes(self, assignments: Sequence["Assignment"], study: "Study") -> dict[str, np.ndarray]:
        """Named 0/1 or numeric results, one for each complete assignment (n,), that tables by stratum show. The first
        one is what a predictor predicts."""
        return {}

    # Estimates
    def estimand(self, *, universe_size: int, n_questions: int) -> str:
        """Over what an estimate is a mean, in words."""
        return f"all {universe_size:,} items of the bank's {n_questions:,} questions"

    def estimands(
        self, assignments: Sequence["Assignment"], study: "Study", *, thresholds: Sequence[int] = ()
    ) -> Estimands:
        """What is estimated from these n complete assignments. `thresholds`: how small a change counts as none, for an
        instrument that has changes; the first is the study's own."""
        return Estimands(
            measures=[
                Measure(name, name.replace("_", " "), "share" if set(values.tolist()) <= {0.0, 1.0} else "mean", values)
                for name, values in self.outcomes(assignments, study).items()
            ]
        )

    def default_thresholds(self, study: "Study") -> tuple[int, ...]:
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

    def beliefs(self, assignments: Sequence["Assignment"]) -> BeliefRows:
        """What the people of these n complete assignments, each with evidence, expected of a language model."""
        raise StateRefused(f"{self.name} does not ask what people expect of a language model after evidence")

    def own_answers(self, assignments: Sequence["Assignment"]) -> AnswerRows:
        """What the people of these n complete assignments answered to questions themselves."""
        raise StateRefused(f"{self.name} does not have people answer questions themselves")

    # Practice
    offers_practice: ClassVar[bool] = False

    def practice_problems(self, example: Mapping[str, str]) -> Iterable[tuple[str, str]]:
        """What is wrong with the texts of a practice block: the text's name, and what to do."""
        return ()

    def practice_screen(
        self, *, sitting: "Sitting", example: Mapping[str, str], given: Sequence[Mapping[str, Any]]
    ) -> Screen | None:
        """Its screen on the researcher's example after these accepted answers; None when the example is through.

        Args:
            given: `{"screen": name, **fields}` of each answer so far.
        """
        raise LookupError(f"{self.name} has no practice")

    def practice_summary(self, *, given: Sequence[Mapping[str, Any]]) -> Sequence[str]:
        """What was entered, in sentences; never whether it was right."""
        return ()

    # Flags
    def word_counts(self, items: "Collection[int]") -> Mapping[int, int]:
        """How many words of the bank somebody reads who answers an item, by the items' primary keys; nothing where it
        is not known."""
        return {}

    def stated_values(self, sittings: "Collection[int]") -> Iterable[tuple[int, str, Hashable]]:
        """(sitting, kind of question, answer) for each answer that is one of a few, of the sittings with these primary
        keys: who gives the same one throughout is perhaps not reading."""
        return ()

    # Simulation
    @abstractmethod
    def simulated_person(self, *, study: "Study", seed: int, null: bool = False) -> SimulatedPerson: ...


_instruments: dict[str, Instrument] = {}


def register(instrument: Instrument) -> None:
    _instruments[instrument.name] = instrument


def get(name: str) -> Instrument:
    """The instrument of that name.

    Raises:
        LookupError: with the names there are.
    """
    try:
        return _instruments[name]
    except KeyError:
        raise LookupError(f"no instrument is called {name!r}; there are: {', '.join(names())}") from None


def of_study(study: "Study") -> Instrument:
    """The study's instrument, as the study has it."""
    return get(study.instrument).for_study(study)


def names() -> list[str]:
    return sorted(_instruments)
