"""The contract of an instrument, and where instruments are found by name. Imports no model and no service.

An instrument is a Django app whose `InstrumentApp` (contracts/apps) registers it; core and pages know it only by name.
`Instrument` is what every instrument is: items, screens, typed responses, export, simulated people. What some have and
others have not is a capability: an object, or None.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from bandit.errors import DesignError
from predictors.errors import PredictorError
from survey.exceptions import HunchError, StateRefused
from survey.study_file import as_far_as_possible

from .expectations import Expecting
from .exports import AnswerExport
from .item_rows import SLOT_ITEM, ItemRows, read_relations
from .measures import Estimands, Measure
from .reports import ReportEntry
from .screens import Points, Screen, SimulatedPerson

if TYPE_CHECKING:
    from pathlib import Path

    from django.db.models import QuerySet

    from bandit.designs import Design
    from bandit.draws import Stratum
    from survey.models import Assignment, Bank, Item, Question, Response, Sitting, Study
    from survey.study_file import Note, StudyConfig

logger = logging.getLogger(__name__)

# The contract's version: raised when older instruments would no longer work. Every instrument names the version that
# it was written for; it is registered only if the versions agree.
CONTRACT = 5

FieldPath = tuple[str | int, ...]
# Called as progress(parts done, parts).
BlockProgress = Callable[[int, int], object]


class Options(BaseModel):
    """An instrument's own options in the study file; a subclass adds fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    # Options that `[conditions.options.LEVEL]` may change: those that only change what a screen shows or asks, since
    # items, labels and estimates of a study are the same for all of its levels.
    by_condition: ClassVar[frozenset[str]] = frozenset()
    # By option, the defaults that it had in earlier versions, oldest first. Studies are stored with all options, so a
    # new default changes none of them. A study that was stored before an option existed has the first of these values;
    # an amendment whose file does not name the option keeps whichever of them the study has.
    earlier_defaults: ClassVar[Mapping[str, Sequence[Any]]] = {}

    @classmethod
    def stored(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        """A stored study's options, with the first default of those that came later."""
        first = {name: values[0] for name, values in cls.earlier_defaults.items() if values}
        return {**first, **options}


@dataclass(frozen=True)
class Candidates:
    """A drawn candidate set: a structured array, one row per candidate. Only the instrument knows the fields."""

    rows: np.ndarray
    universe_size: int
    probability: float


# The control that asks an earlier item of the same booklet again. The core plans it.
REPEAT = "repeat"
# The control that asks an item of another booklet of the same stage of one more person. The core plans it, for every
# instrument, where the study file names it.
ANOTHER_PERSON = "another_person"


# Capabilities


@dataclass(frozen=True, eq=False)
class StreamedDraw:
    """n slots in random order, drawn from all candidates without listing them; one entry a slot in every array.

    `rows`: candidate rows. `stratum` indexes `strata`. `replicate` counts the slots of a candidate from 1.
    """

    rows: np.ndarray
    stratum: np.ndarray
    inclusion_probability: np.ndarray
    strata: "tuple[Stratum, ...]"
    replicate: np.ndarray


class Pairing(ABC):
    """Candidates are pairs of questions, too many to list: all of them are scored, and drawn without a list.

    Every candidate has a rank, a number from 0. `scores` below is the array that `score_all` makes; the core stores it
    as a file and does not look inside. `survey.instruments.question_pairs` does all of this for ordered pairs with an
    outcome.
    """

    @abstractmethod
    def ranks_of(self, keys: Collection[str], questions: Sequence["Question"]) -> np.ndarray:
        """The ranks of the candidates with these keys, int64, increasing. Keys of other items are ignored."""

    @abstractmethod
    def rows_at(self, ranks: np.ndarray, questions: Sequence["Question"]) -> np.ndarray:
        """The candidate rows with these ranks, in order."""

    @abstractmethod
    def score_all(
        self,
        *,
        folders: Sequence["Path"],
        score: Callable[[np.ndarray], np.ndarray],
        questions: Sequence["Question"],
        n_scored: int,
        rank: int,
        rng: np.random.Generator,
        fidelity_rng: np.random.Generator,
        progress: Callable[[int, int, str], bool | None],
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Scores of all candidates that rank them nearly as the predictor saved in `folders` does, and how nearly.

        Args:
            score: gives candidate rows (M,) the predictor's own chances (M,), with the help of other workers.
            n_scored: how many candidates the predictor itself scores, to learn from.
            rank: how many factors the scores have.
            fidelity_rng: draws the fresh candidates on which the ranking is compared.
        """

    @abstractmethod
    def scores_at(self, scores: np.ndarray, ranks: np.ndarray) -> np.ndarray:
        """The scores of the candidates with these ranks, in order."""

    @abstractmethod
    def shortlist(
        self,
        scores: np.ndarray,
        *,
        size: int,
        rng: np.random.Generator,
        progress: BlockProgress | None = None,
    ) -> np.ndarray:
        """The ranks of the `size` candidates with the highest scores, int64, increasing. `progress`: as in `draw`."""

    @abstractmethod
    def draw(
        self,
        scores: np.ndarray,
        *,
        design: "Design",
        n: int,
        questions: Sequence["Question"],
        rng: np.random.Generator,
        exclude: Collection[str] = (),
        shortlist: tuple[np.ndarray, np.ndarray] | None = None,
        responses_per_item: int = 1,
        progress: BlockProgress | None = None,
    ) -> StreamedDraw:
        """Draw n slots. The same arguments give the same slots on every machine, with any number of threads.

        Args:
            exclude: keys of items that may not be drawn.
            shortlist: ranks, and the predictor's own scores of them, which then decide what is at the top.
            progress: called every few seconds at least, in this thread; what it raises ends the draw.

        Raises:
            DesignError: the design does not fit the candidates.
        """


@dataclass(frozen=True)
class Metric:
    """A figure that judges predictors. `name` is its key in `Learning.evaluate`'s result.

    `head` stands over a column of it, the name in capitals unless another is given. `chance` says what a predictor that
    knows nothing has, such as "a coin toss has 0.5". `is_log_score`: it is in nats, and people see it in bits too.
    """

    name: str
    title: str
    highest_first: bool
    head: str = ""
    chance: str = ""
    is_log_score: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "head", self.head or self.name.upper())

    @property
    def hint(self) -> str:
        """How to read it, as a sentence."""
        better = f"{self.head}: {'higher' if self.highest_first else 'lower'} is better"
        return f"{better}, {self.chance}." if self.chance else f"{better}."


@dataclass(frozen=True)
class AnswerPart:
    """A part of the answers on which predictors are also judged separately, such as those after a correct answer. The
    first part of a list is all answers. `head` is the title where there is little room."""

    name: str
    title: str
    head: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "head", self.head or self.title)


@dataclass(frozen=True)
class Baseline:
    """A cheap predictor that is always trained in addition to the study's own. `name` is its name in `predictors`."""

    name: str
    params: Mapping[str, Any]


class AnswersRead(NamedTuple):
    """What a column next to the inputs was made of, where that can change between training and prediction: so many
    answers of so many models, and the SHA-256 of them."""

    answers: int
    models: int
    sha256: str


class Learning(ABC):
    """A label, what predictors learn it from, and how they are judged."""

    metrics: ClassVar[Sequence[Metric]]
    parts: ClassVar[Sequence[AnswerPart]]
    baselines: ClassVar[Sequence[Baseline]] = ()
    # What `inputs` and `examples` give: "pairs" (predictors.pairs.Pair) or "features" (predictors.features.Features).
    reads: ClassVar[str] = "features"
    # What `columns_of` knows in addition to them, for predictors that name columns (`predictors.hardness`).
    columns: ClassVar[Sequence[str]] = ()

    @abstractmethod
    def inputs(self, *, rows: np.ndarray, questions: Sequence["Question"]) -> Sequence[Any]:
        """Candidates as the plain data that predictors take."""

    @abstractmethod
    def examples(self, assignments: Sequence["Assignment"]) -> tuple[Sequence[Any], np.ndarray]:
        """Inputs for a predictor and their labels (n,), one for each complete assignment that is learnable."""

    def learnable(self, assignments: Sequence["Assignment"]) -> np.ndarray:
        """Which of the complete assignments `examples` can use: bool (n,)."""
        return np.ones(len(assignments), dtype=bool)

    def columns_of(self, assignments: Sequence["Assignment"], names: Collection[str]) -> Mapping[str, np.ndarray]:
        """The named columns next to `examples`, (n,) each: for each learnable assignment a number from 0 to 1, NaN
        where it is not known. `names` are of `columns`."""
        return {}

    def columns_and_sources(
        self, assignments: Sequence["Assignment"], names: Collection[str]
    ) -> tuple[Mapping[str, np.ndarray], Mapping[str, AnswersRead]]:
        """`columns_of`, and by column what it was made of, as it was in the same moment; columns that cannot change
        have no source."""
        return self.columns_of(assignments, names), {}

    def checked_inputs(self, *, rows: np.ndarray, questions: Sequence["Question"]) -> Sequence[Any]:
        """`inputs`, as the core takes them.

        Raises:
            PredictorError: they are not one for each row.
        """
        inputs = self.inputs(rows=rows, questions=questions)
        if len(inputs) != len(rows):
            raise PredictorError(f"{_place(self)}.inputs gives {len(inputs)} inputs for {len(rows)} rows; one a row.")
        return inputs

    def checked_examples(self, assignments: Sequence["Assignment"]) -> tuple[Sequence[Any], np.ndarray]:
        """`examples`, as the core takes them.

        Raises:
            PredictorError: they are not one input and one label, from 0 to 1, for each learnable assignment.
        """
        examples, labels = self.examples(assignments)
        count = int(np.count_nonzero(self.learnable(assignments)))
        if len(examples) != count or np.shape(labels) != (count,):
            raise PredictorError(
                f"{_place(self)}.examples gives {len(examples)} inputs and labels of the shape {np.shape(labels)} for "
                f"{count} assignments that are learnable; one input and one label for each."
            )
        if count and not ((labels >= 0) & (labels <= 1)).all():
            raise PredictorError(f"{_place(self)}.examples gives a label that is not from 0 to 1.")
        return examples, labels

    @abstractmethod
    def evaluate(
        self,
        assignments: Sequence["Assignment"],
        scores: np.ndarray,
        *,
        weights: np.ndarray | None,
        clusters: Sequence[np.ndarray],
        rng: np.random.Generator,
    ) -> dict[str, Any]:
        """Metrics of the scores (n,) that a predictor which has not seen them gives these n learnable assignments.

        Args:
            weights: the weight of each (n,); None counts each once.
            clusters: what makes answers depend on each other, each (n,): the respondents, and the items where an item
                has several answers. `rng` resamples whole clusters for the intervals.

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
        clusters: Sequence[np.ndarray],
        rng: np.random.Generator,
    ) -> dict[str, Any]:
        """The differences of those metrics between two predictors: those of `scores` minus those of `others`. By metric
        and part: `difference` and `interval`."""

    def evaluate_majorities(
        self, assignments: Sequence["Assignment"], labels: np.ndarray, scores: np.ndarray, *, rng: np.random.Generator
    ) -> dict[str, Any]:
        """As `evaluate`, on the majority labels of a test stage: one assignment of each item, and the item's label, 0
        or 1 (n,), instead of the assignment's own. The items are the clusters. Empty where the instrument has none."""
        return {}

    def compare_majorities(
        self,
        assignments: Sequence["Assignment"],
        labels: np.ndarray,
        scores: np.ndarray,
        others: np.ndarray,
        *,
        rng: np.random.Generator,
    ) -> dict[str, Any]:
        """As `compare`, on the majority labels of a test stage."""
        return {}


def _place(part: object) -> str:
    """The module and class of a part of an instrument, for the person who repairs it."""
    return f"{type(part).__module__}.{type(part).__qualname__}"


class Priority(ABC):
    """What a stage samples by instead of the predicted chance of a label: a number a candidate, higher ones first.

    Only the order counts, and its ties; `softmax` takes the numbers themselves. It may rest on the predictor's chances,
    on the answers so far, or on neither. It counts for pools, under every design but `uniform`; `uncertainty` is
    refused next to it, since that design draws by the chances.
    """

    name: ClassVar[str]
    # Stored with the candidates: raise it when equal inputs give different numbers.
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
            chances: the predictor's chance of the label for each row (M,), then for each of `further_rows`; None if the
                study has no predictor.
            answers: every frozen answer before the stage that may train, in order.
        """

    def further_rows(self, rows: np.ndarray) -> np.ndarray:
        """More rows that the predictor is to score for `of`, such as the parts of each item; none by default."""
        return rows[:0]

    def facts(self) -> dict[str, str]:
        """For manifests and hashes."""
        return {"name": self.name, "version": self.version}


class Practice(ABC):
    """The practice item: the instrument's usual screens with a researcher's example."""

    @abstractmethod
    def problems(self, example: Mapping[str, str]) -> Iterable[tuple[str, str]]:
        """What is wrong with the texts of an example: the text's name, and what to do."""

    @abstractmethod
    def screen(
        self, *, sitting: "Sitting", example: Mapping[str, str], given: Sequence[Mapping[str, Any]]
    ) -> Screen | None:
        """Its screen for the example after these accepted answers; None when the example is finished.

        Args:
            given: `{"screen": name, **fields}` of each answer so far to this example.
        """

    @abstractmethod
    def summary(self, given: Sequence[Mapping[str, Any]]) -> Sequence[str]:
        """What was entered, in sentences, without saying whether it was right."""


class Controls(ABC):
    """Control slots, which measure how noisy answers are."""

    # The instrument's own kinds, which `draw` draws, and REPEAT, which the core plans itself. ANOTHER_PERSON is not one
    # of them: a study asks for it by name.
    kinds: ClassVar[tuple[str, ...]]

    def draw(self, *, kind: str, count: int, questions: Sequence["Question"], rng: np.random.Generator) -> np.ndarray:
        """`count` different rows for control slots of one of its own kinds; DesignError if there are fewer."""
        raise LookupError(f"no control of the kind {kind!r} is drawn here")


class Estimates(ABC):
    """What a study's answers estimate."""

    # The unit of each outcome by its name: "share" if its values are 0 or 1, else words such as "points". It cannot be
    # read off the values: counts may be 0 and 1 by chance. An outcome without a unit is shown as a plain mean.
    units: ClassVar[Mapping[str, str]] = {}

    @abstractmethod
    def outcomes(self, assignments: Sequence["Assignment"]) -> dict[str, np.ndarray]:
        """Named 0/1 or numeric results, one for each complete assignment (n,), that tables by stratum show. The first
        one is what a predictor predicts."""

    def unit_of(self, outcome: str) -> str:
        return self.units.get(outcome, "mean")

    def estimand(self, *, universe_size: int, n_questions: int) -> str:
        """What an estimate is the mean over, in words."""
        return f"all {universe_size:,} items of the bank's {n_questions:,} questions"

    def estimands(self, assignments: Sequence["Assignment"], *, thresholds: Sequence[int] = ()) -> Estimands:
        """What is estimated from these n complete assignments. `thresholds`: how small a change counts as none, for an
        instrument that has changes; the first is the study's own."""
        return Estimands(
            measures=[
                Measure(name, name.replace("_", " "), self.unit_of(name), values)
                for name, values in self.outcomes(assignments).items()
            ]
        )

    def default_thresholds(self) -> tuple[int, ...]:
        """The thresholds that are used unless others are asked for; the first is the study's own."""
        return ()

    def divisions(self, items: Sequence["Item"]) -> dict[str, np.ndarray]:
        """How tables can divide items, by the division's name: the part of each of the n items, as text (n,)."""
        return {}

    def item_features(self, items: Sequence["Item"]) -> np.ndarray:
        """A few numbers that are known about each item before it is answered (n, k). The model that assists the first
        stage's estimate uses them; k is 0 if there are none."""
        return np.empty((len(items), 0))

    def candidate_features(self, *, rows: np.ndarray, questions: Sequence["Question"]) -> np.ndarray:
        """The same for candidates (M, k)."""
        return np.empty((len(rows), 0))


class Booklets:
    """What items may not be in one booklet, and how booklets share them out."""

    # Whether the candidates stay the same under every renaming of the conflict keys, as all pairs of questions do. Only
    # then may a holdout that cannot be dealt be drawn again; elsewhere that would change the chances of its items.
    keys_are_exchangeable: ClassVar[bool] = False

    def __init__(self, rows: ItemRows) -> None:
        self.rows = rows

    def conflict_keys(self, row: np.void) -> tuple[Any, ...]:
        """Keys of which each may appear only once in a booklet: by default the places of the candidate's questions."""
        return self.rows.conflict_keys(row)

    def conflict_keys_of(self, items: Sequence["Item"]) -> list[tuple[Any, ...]]:
        """The same for stored items, in order, where questions have other keys than among candidates."""
        return list(self.rows.conflict_keys_of(items))

    def balance_keys(self, row: np.void, questions: Sequence["Question"]) -> tuple[Hashable, ...]:
        """What booklets share out evenly, in addition to strata and roles; nothing by default."""
        return ()

    def latin_square_list(self, row: np.void, questions: Sequence["Question"]) -> Hashable | None:
        """The list that an item is on, where every booklet is to hold items of one list, as in a Latin square; None
        where booklets may mix all items. Sampled slots alone follow it."""
        return None


class BookletsByTask(Booklets):
    """Every booklet gets its share of each task of the bank, by the question that an item asks about."""

    def balance_keys(self, row: np.void, questions: Sequence["Question"]) -> tuple[Hashable, ...]:
        return (questions[row[self.rows.questions[0]]].task_id,)


class OutcomeRow(NamedTuple):
    """An outcome of one answer, with the keys of its stage and of its stratum (None: outside of all)."""

    stage: int
    stratum: int | None
    value: float


class LabelReading:
    """How labels, estimands and divisions get what they read of many answers: by default the rows of `ItemRows`.

    An instrument that needs less than these rows can read that, and be faster in large studies.
    """

    def __init__(self, rows: ItemRows) -> None:
        self.rows = rows

    def read(self, items: Sequence["Item"], answers: Sequence["Assignment"]) -> None:
        """Give many items, and complete answers to some of them, all that labels, estimands and divisions read."""
        paths = self.rows.label_paths
        of_items = [path.removeprefix(SLOT_ITEM) for path in paths if path.startswith(SLOT_ITEM)]
        read_relations(items, of_items)
        read_relations(answers, [path for path in paths if not path.startswith(SLOT_ITEM)])

    def read_outcomes(self, answers: Sequence["Assignment"]) -> None:
        """Give answers all that `Estimates.outcomes` reads."""
        read_relations(answers, ["responses", *self.rows.outcome_paths])

    def first_outcome(self, answers: "QuerySet[Assignment]") -> tuple[str, Iterable[OutcomeRow]] | None:
        """The name of the first of `Estimates.outcomes`, and its value for each of these answers, read by one statement
        without the answers' own rows. None where that cannot be: then `read_outcomes` reads them, which takes ten times
        as long. Both give the same numbers."""
        return None


@dataclass(frozen=True)
class ScoresAgain:
    """What reading stored scores again by the present rules, of the version `rules`, changes. `read`: scores that are
    read again. `left`: those that stay, since what is stored does not say them for certain. `differences`: a line for
    each score that changes."""

    rules: str
    read: int
    left: int
    differences: Sequence[str]


class StoredVerdicts:
    """What an instrument has to do with verdicts on language models' answers, which newer rules judge again."""

    def rests_on(self, language_model: str) -> bool:
        """Whether stored verdicts on this model's answers decide what the study draws, or are read by its predictors.
        Once a stage is planned, they are not judged again."""
        return False

    def read_scores_again(self, bank: "Bank", *, write: bool) -> ScoresAgain | None:
        """Read what language models said as scores of replies to this bank's questions again, where older rules read
        it, and store that with `write`; None if the instrument stores no such scores. Called in a transaction."""
        return None


class Signals:
    """What flags of careless sittings are computed from. The base class knows nothing."""

    # Answers that people give without thinking: the pilot report says how often each was given.
    round_values: ClassVar[Sequence[Hashable]] = ()

    def word_counts(self, items: Collection[int]) -> Mapping[int, int]:
        """How many words of the bank a person reads to answer an item, by the items' primary keys; empty if not
        known."""
        return {}

    def stated_values(self, sittings: Collection[int]) -> Iterable[tuple[int, str, Hashable]]:
        """(sitting, kind of question, answer) for each answer that is one of a few, of the sittings with these primary
        keys. A person who always gives the same one may not be reading."""
        return ()


@dataclass(frozen=True)
class Demonstration:
    """What `hunch demo --instrument NAME` runs.

    `study_file`: its name in `studies/`, or a path. `load_bank`: path of a function without arguments, as
    module.function, that returns the study's bank and imports it, with all that the study needs in addition to it,
    unless it is stored. `verdict`: path of a function (study, null) that returns a `DemonstrationVerdict`; without it
    the last stage must find more of the first outcome than the first stage. `bank`: the name of the bank that
    `load_bank` returns. Who may make studies sees the banks of these names, and a template that names one gets it.
    """

    study_file: str
    load_bank: str
    verdict: str = ""
    bank: str = ""


def verdict_word(*, near: bool, held: bool) -> str:
    """The word with which a demonstration's verdict begins.

    Args:
        near: every figure lies as near to its truth as a right one does, but for once in thousands of runs.
        held: every printed 95 % interval holds its truth too. Of right intervals one in twenty does not, so that a miss
            is no failure; but it is not passed over either.
    """
    return ("PASSED" if held else "UNCLEAR") if near else "FAILED"


@dataclass(frozen=True)
class DemonstrationVerdict:
    """Whether a demonstration found what it should, in a sentence. `figures`: for programs to read."""

    passed: bool
    sentence: str
    figures: Mapping[str, Any]


# The instrument itself


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


# Where they are found


class InstrumentMissing(HunchError):
    """A study's instrument is not installed or is broken, so the study can neither run nor be read."""

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
    """The instrument with that name, without a study.

    Raises:
        InstrumentMissing: there is none; lists the names that exist.
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
    """The study's instrument, with the study's options.

    Raises:
        InstrumentMissing: it is not installed, or is broken.
    """
    return kind(study.instrument)(study)


def names() -> list[str]:
    return sorted(_kinds)


def shipped_banks() -> frozenset[str]:
    """The names of the banks that instruments bring with them."""
    demonstrations = [kind.demonstration for kind in _kinds.values()]
    return frozenset(
        demonstration.bank for demonstration in demonstrations if demonstration is not None and demonstration.bank
    )


def demonstration_with(bank: str, *, instrument: str = "") -> Demonstration | None:
    """The demonstration that brings this bank; where several do, that of the named instrument, whose study may need
    more than the bank."""
    for name in sorted(_kinds, key=lambda name: (name != instrument, name)):
        demonstration = _kinds[name].demonstration
        if demonstration is not None and bank and demonstration.bank == bank:
            return demonstration
    return None


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
