"""What every instrument is: items, screens, typed responses, export, simulated people.

What some have and others have not is a capability: an object, or None. Imports no model and no service.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from bandit.errors import DesignError
from survey.study_file import as_far_as_possible

from .answers import Estimates, LabelReading, Signals, StoredVerdicts
from .booklets import Booklets, Controls, Practice
from .demonstrations import Demonstration
from .drawing import Candidates, Pairing, Priority
from .expectations import Expecting
from .exports import AnswerExport
from .item_rows import ItemRows
from .learning import Learning
from .preparation import Preparation
from .reports import ReportEntry
from .screens import Points, Screen, SimulatedPerson

if TYPE_CHECKING:
    from survey.models import Assignment, Item, Question, Response, Study
    from survey.study_file import Note, StudyConfig


# The contract's version: raised when older instruments would no longer work. Every instrument names the version that
# it was written for; it is registered only if the versions agree.
CONTRACT = 5


FieldPath = tuple[str | int, ...]


class Options(BaseModel):
    """An instrument's own options in the study file; a subclass adds fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    # Options that `[conditions.options.LEVEL]` may change: those that only change what a screen shows or asks, since
    # items, labels and estimates of a study are the same for all of its levels.
    by_condition: ClassVar[frozenset[str]] = frozenset()
    # Options that say how many points of `panel.bonus_per_point` people get, or may get: where these are paid, they are
    # changed by who may spend.
    money: ClassVar[frozenset[str]] = frozenset()
    # By option, the defaults that it had in earlier versions, oldest first. Studies are stored with all options, so a
    # new default changes none of them. A study that was stored before an option existed has the first of these values;
    # an amendment whose file does not name the option keeps whichever of them the study has.
    earlier_defaults: ClassVar[Mapping[str, Sequence[Any]]] = {}

    @property
    def may_stop(self) -> bool:
        """Whether people may stop behind an item: some of its screens have a `stop_field`."""
        return False

    @classmethod
    def stored(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        """A stored study's options, with the first default of those that came later."""
        first = {name: values[0] for name, values in cls.earlier_defaults.items() if values}
        return {**first, **options}


@dataclass(frozen=True)
class Needs:
    """What an instrument cannot do without. `answer_key`: it asks only about questions whose answer the bank knows.
    `questions`: the fewest that a study has. `script`: its screens work only where the browser runs scripts; people
    without learn it before they consent, and go back to where they came from."""

    answer_key: bool = False
    questions: int = 1
    script: bool = False


class Instrument(ABC):
    """One kind of item, as one study has it.

    `Kind(study)` is the instrument of that study. `Kind()` has no study: it knows its capabilities and reads no row.
    """

    # `CONTRACT` as it was when the instrument was written. After a change that would break it, it is not loaded.
    contract: ClassVar[int]
    name: ClassVar[str]
    title: ClassVar[str]
    # Its options in the study file, `[instrument.options]`.
    options_model: ClassVar[type[Options]] = Options
    needs: ClassVar[Needs] = Needs()
    # Where it keeps what items show and what was answered. From it follows how the core reads them.
    rows: ClassVar[ItemRows] = ItemRows()
    # Kinds of simulated people that `simulate --people KIND` may ask for; `simulated_person` then takes `kind`.
    simulated_kinds: ClassVar[Sequence[str]] = ()
    # The study that `hunch demo --instrument NAME` runs; None: it has none.
    demonstration: ClassVar[Demonstration | None] = None
    # The path of the `BudgetPlanner` that reads files for `hunch plan_budget`, as module.class; empty: it has none.
    budget_planner: ClassVar[str] = ""

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

    # Capabilities; a subclass sets an object for each that it has.

    @property
    def pairing(self) -> Pairing | None:
        """Items that are pairs of questions, so that all of them can be scored."""
        return None

    @property
    def learning(self) -> Learning | None:
        """A label, and what predictors learn it from. For a label that is yes or no take `BinaryLearning`."""
        return None

    @property
    def priority(self) -> Priority | None:
        """A number by which a stage samples, instead of the predicted chance of the label."""
        return None

    @property
    def practice(self) -> Practice | None:
        """Screens on a researcher's examples, for a block of kind `practice`."""
        return None

    @property
    def controls(self) -> Controls | None:
        """Slots that say how noisy answers are."""
        return None

    @property
    def estimates(self) -> Estimates | None:
        """What the answers are estimates of, as means or ratios."""
        return None

    @property
    def expectations(self) -> Expecting | None:
        """What people answered, and what models, judges or predictors say of the same items; with it a study has the
        reports `agreement`, `calibration` and `gaps`."""
        return None

    @property
    def preparation(self) -> Preparation | None:
        """What a worker computes of the study's texts, where plans or reports need it; the job `prepare` does it."""
        return None

    @property
    def signals(self) -> Signals:
        """What careless answering is recognised by: words written, values given."""
        return Signals()

    @property
    def booklets(self) -> Booklets:
        """What may come only once in a booklet, and what booklets share out evenly."""
        return Booklets(self.rows)

    @property
    def label_reading(self) -> LabelReading:
        """How labels and outcomes of many answers are read."""
        return LabelReading(self.rows)

    @property
    def verdicts(self) -> StoredVerdicts | None:
        """What it has to do with verdicts on language models' answers, which newer rules judge again."""
        return None

    @property
    @abstractmethod
    def export(self) -> AnswerExport:
        """Its columns of `answers.csv` and its files beside it."""

    def reports(self) -> Sequence[ReportEntry]:
        """The reports of studies of this kind."""
        return ()

    # Options

    @cached_property
    def options(self) -> Any:
        """The study's options, from the study file in force."""
        return self.options_under(self.study.config, {})

    def options_for(self, assignment: "Assignment") -> Any:
        """The study's options as the levels of this assignment and its sitting change them; screens read these. They
        come from the study file that the sitting began with, not from later amendments."""
        config = self.study.as_of(assignment.sitting.study_sha256)
        changes = any(condition.options for condition in config.conditions)
        return self.options_under(config, assignment.levels() if changes else {})

    def options_under(self, config: "StudyConfig", levels: Mapping[str, str]) -> Any:
        """A study file's options under the levels of its factors; the last condition that changes an option wins."""
        changed: dict[str, Any] = {}
        for condition in config.conditions:
            changed |= condition.options.get(levels.get(condition.factor, ""), {})
        values = {**self.options_model.stored(config.instrument.options), **changed}
        try:
            return self.options_model.model_validate(values)
        except ValidationError:
            if not self.study.pk:  # A study that is not stored yet is refused.
                raise
            return as_far_as_possible(self.options_model, values)  # An earlier version has accepted them.

    def problems(self) -> Iterable[tuple[FieldPath, str]]:
        """Problems of a study that is to be created: the place in the study file, and what to do."""
        return ()

    def remarks(self) -> "Sequence[Note]":
        """Remarks for the person who creates the study."""
        return ()

    # Items

    def usable(self, questions: "list[Question]") -> "list[Question]":
        """Those of the study's questions that the instrument can ask about, in order."""
        return questions

    def universe_fingerprint(self) -> Any:
        """What else than bank, filters and flags decides which items exist, as JSON values; None if nothing does."""
        return None

    @abstractmethod
    def universe_size(self, questions: Sequence["Question"]) -> int:
        """How many candidates there are over these questions. Should not read their texts unless it must."""

    @abstractmethod
    def draw_candidates(
        self, *, questions: Sequence["Question"], size: int, rng: np.random.Generator, exclude: Collection[str] = ()
    ) -> Candidates:
        """A uniform candidate set of `size` rows (or all there are), with the first phase's probability.

        `exclude`: keys of items that may not be drawn; keys that are no candidates are ignored.
        """

    @abstractmethod
    def item_key(self, row: np.void, questions: Sequence["Question"]) -> str:
        """The candidate's name, the same on every machine."""

    @abstractmethod
    def create_typed_items(self, *, items: Sequence["Item"], rows: np.ndarray, questions: Sequence["Question"]) -> None:
        """Write the instrument's own rows for new items, in order."""

    # Screens and typed responses

    @abstractmethod
    def next_screen(self, assignment: "Assignment") -> Screen | None:
        """The screen after the responses given so far; None when the assignment is complete."""

    @abstractmethod
    def save(self, *, response: "Response", cleaned: Mapping[str, Any]) -> None:
        """Write the typed row of a response that the form accepted. Not called for screens that ask nothing."""

    def opened(  # noqa: B027 - most instruments keep nothing of it
        self, *, assignment: "Assignment", screen: str, nonce: str, now: datetime
    ) -> None:
        """A browser says that a screen was begun in one of its windows, before the answer comes. `nonce` is that
        window's own. Called under the sitting's lock; the base class keeps nothing of it."""

    def answer_in_words(self, response: "Response") -> str:
        """What somebody answered on one screen, for a person who reads the sitting again; empty where nothing was
        asked."""
        return ""

    def score(self, response: "Response") -> Points | None:
        """Points for a response, computed on the server; None if there are none."""
        return None

    def counts_unfinished(self, assignment: "Assignment") -> bool:
        """Whether an assignment counts with the responses so far although the person left. Asked when the sitting
        expires. If true, the assignment is complete and its slot is not given to somebody else."""
        return False

    @abstractmethod
    def answer_values(self, assignment: "Assignment") -> list[Any]:
        """The answer's content as JSON values, for the snapshot's hash."""

    # Simulation

    @abstractmethod
    def simulated_person(self, *, seed: int, null: bool = False) -> SimulatedPerson:
        """Somebody who answers its screens. `null`: nothing that is measured has an effect on them."""


class ListedInstrument(Instrument):
    """An instrument whose candidates can all be listed. It says what there is; the draw and its probability follow."""

    @abstractmethod
    def universe(self, questions: Sequence["Question"]) -> np.ndarray:
        """Every candidate over these questions: a structured array, always in the same order."""

    def universe_size(self, questions: Sequence["Question"]) -> int:
        return len(self.universe(questions))

    def draw_candidates(
        self, *, questions: Sequence["Question"], size: int, rng: np.random.Generator, exclude: Collection[str] = ()
    ) -> Candidates:
        rows = universe = self.universe(questions)
        if exclude:
            rows = universe[[self.item_key(row, questions) not in exclude for row in universe]]
        if size < 1 or not len(rows):
            raise DesignError(f"{len(rows)} of {len(universe)} items are left to draw {size} from; add questions")
        count = min(size, len(rows))
        return Candidates(
            rows=rows[np.sort(rng.choice(len(rows), size=count, replace=False))],
            universe_size=len(universe),
            probability=count / len(rows),
        )
