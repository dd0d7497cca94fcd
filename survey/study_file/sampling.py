"""What is drawn and how: questions, candidates, designs, roles, stages, predictors. Imports bandit's designs."""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any, Literal

from pydantic import Field, model_validator

from bandit.designs import (
    MAX_STRATA,
    MIN_TRADE_OFF,
    Design,
    EpsilonGreedy,
    Proportional,
    Softmax,
    TestSet,
    Uncertainty,
    Uniform,
)
from bandit.dropout import ODDS_RATIO
from bandit.errors import DesignError
from bandit.robust import Robust
from survey.figures.words import short

from .base import Name, Strict, WrongKey


class QuestionsConfig(Strict):
    """Which questions of the bank the study draws from."""

    tasks: list[str] = []
    """Only questions of these tasks; empty for all."""
    max_characters: int | None = Field(default=None, ge=1)
    """Only questions that have at most this many characters, markup not counted."""
    max_words: int | None = Field(default=None, ge=1)
    """Only questions that have at most this many words, options included."""


# Which keys of [candidates] belong to which kind.
CANDIDATES: dict[str, tuple[str, ...]] = {"pool": ("size",), "exhaustive": ("scored_pairs", "rank", "shortlist")}


class CandidatesConfig(Strict):
    kind: Literal["pool", "exhaustive"] = "pool"
    """`"pool"`: each stage has a uniform random pool of all items there are, scored before it is drawn from.
    `"exhaustive"`: each stage draws from all items there are."""
    size: int = Field(default=3000, ge=1, le=5_000_000)
    """`pool`: items in the pool, up to 5,000,000; if there are fewer items, all of them."""
    scored_pairs: int = Field(default=12_000, ge=200, le=5_000_000)
    """`exhaustive`: pairs that the predictor scores, from which the fast scorer of all pairs learns; 200 to
    5,000,000."""
    rank: int = Field(default=96, ge=1, le=512)
    """`exhaustive`: the size of the fast scorer; 1 to 512."""
    shortlist: int = Field(default=0, ge=0, le=5_000_000)
    """`exhaustive`, in epsilon-greedy stages: how many pairs, the best by the fast scorer, are scored again by the
    predictor itself; 0 for none."""


DESIGNS: dict[str, type[Design]] = {
    "uniform": Uniform,
    "epsilon_greedy": EpsilonGreedy,
    "proportional": Proportional,
    "robust": Robust,
    "softmax": Softmax,
    "uncertainty": Uncertainty,
    "test_set": TestSet,
}


# A file's key for a parameter that Python cannot name so.
KEYS = {"figures": "for"}
# What a design learns before a draw is no parameter of a file; it stands in the stage's manifest.
LEARNED = "learned"


def design_defaults(kind: str) -> dict[str, Any]:
    """A design's own parameters with their defaults, which are written in `bandit`."""
    known: Any = DESIGNS[kind]
    return {
        KEYS.get(field.name, field.name): [*field.default] if isinstance(field.default, tuple) else field.default
        for field in fields(known)
        if field.default is not MISSING and field.name != LEARNED
    }


def scouts_of(stages: Any) -> int | None:
    """The place of the first main stage in a file's raw list, if its design learns from earlier answers: there are
    none yet, so that it scouts uniformly. None otherwise."""
    for index, stage in enumerate(stages if isinstance(stages, list | tuple) else ()):
        if not isinstance(stage, Mapping):
            return None
        if stage.get("pilot"):
            continue
        design = stage.get("design")
        kind = design.get("kind") if isinstance(design, Mapping) else None
        return index if kind in DESIGNS and DESIGNS[kind].learns else None
    return None


class DesignConfig(Strict):
    """A design and its own parameters; those of other designs are None."""

    kind: Literal["uniform", "epsilon_greedy", "proportional", "robust", "softmax", "uncertainty", "test_set"] = (
        "uniform"
    )
    """`"uniform"`, `"epsilon_greedy"`, `"proportional"`, `"robust"`, `"softmax"`, `"uncertainty"` or `"test_set"`. The
    first stage must be uniform, and the stage before one of another kind must train."""
    epsilon: float | None = Field(default=None, ge=0, le=1)
    """`epsilon_greedy`, `uncertainty`: the share of slots drawn from the rest of the candidates; 0 to 1, 0.1 by
    default."""
    top_fraction: float | None = Field(default=None, gt=0, lt=1)
    """`epsilon_greedy`, `uncertainty`, `test_set`: the share of candidates that is the top; above 0 and below 1; 0.1 by
    default, 0.01 in a test set."""
    floor: float | None = Field(default=None, ge=0, le=1)
    """`epsilon_greedy`, `uncertainty`, `softmax`: no candidate's chance is under this share of the uniform one; 0 by
    default, 0.1 for softmax."""
    rest_strata: int | None = Field(default=None, ge=1, le=MAX_STRATA)
    """`epsilon_greedy`: into how many strata of equal size the rest is cut by score, 1 to 20; 1 by default. 9 with a
    `top_fraction` of 0.1 are deciles. Nine made a stage's interval 2 to 3 % narrower in simulation. Each needs answers:
    with few slots for the rest, keep 1. Only from a pool."""
    trade_off: float | None = Field(default=None, ge=MIN_TRADE_OFF, le=1)
    """`proportional`: between finding and estimating, 0.02 to 1. The share of the slots that all candidates get alike:
    near 0 most changes are found, at 1 the stage is uniform and the interval is narrowest; 0.2 by default."""
    power: float | None = Field(default=None, gt=0, le=100)
    """`proportional`: the other slots go to candidates in proportion to this power of their predicted chance; above 0
    to 100, 16 by default."""
    find: float | None = Field(default=None, ge=0, le=1)
    """`robust`: between estimating and finding, 0 to 1. 0 is drawn for the narrowest intervals alone, 1 for the most
    changes found; 0 by default."""
    # A word of Python's own, so that a class cannot write it down as the other keys.
    __annotations__["for"] = list[str] | None
    vars()["for"] = Field(
        default=None,
        max_length=10,
        description="`robust`: the figures whose intervals shall be narrow, by the names of `estimate` without a "
        'threshold, or their titles: `["changed", "mean change"]`. The study\'s first figure by default.',
    )
    temperature: float | None = Field(default=None, gt=0)
    """`softmax`: chances are proportional to exp(score / temperature); 0.1 by default."""
    by: Literal["closeness", "disagreement"] | None = None
    """`uncertainty`: `"closeness"` of the prediction to 1/2 (the default), or `"disagreement"` of the predictor's
    members."""
    pairs: int | None = Field(default=None, ge=1, le=100_000)
    """`test_set`: items that are drawn; 492 by default."""
    responses_per_pair: int | None = Field(default=None, ge=1, le=1000)
    """`test_set`: different people who answer each item; 9 by default."""
    bottom_fraction: float | None = Field(default=None, gt=0, lt=1)
    """`test_set`: the share of candidates, by score, that is the bottom; 0.01 by default."""
    top_share: float | None = Field(default=None, ge=0, le=1)
    """`test_set`: the share of items from the top, the others are from the bottom; 2/3 by default."""

    @model_validator(mode="before")
    @classmethod
    def fill_in_its_defaults(cls, data: Any) -> Any:
        """The study stores the values it runs with, so that later changes of the defaults do not change it."""
        if not isinstance(data, Mapping) or data.get("kind") not in DESIGNS:
            return data
        return {**design_defaults(data["kind"]), **{key: value for key, value in data.items() if value is not None}}

    @model_validator(mode="after")
    def fits_its_kind(self) -> "DesignConfig":
        try:
            self.build()
        except DesignError as exc:
            raise ValueError(str(exc)) from exc
        return self

    @property
    def parameters(self) -> dict[str, Any]:
        """The design's own parameters."""
        return {name: getattr(self, name) for name in design_defaults(self.kind)}

    @property
    def learns(self) -> bool:
        """Whether answers of earlier stages decide its chances."""
        return DESIGNS[self.kind].learns

    @property
    def needs_disagreement(self) -> bool:
        """Whether it draws by how much the members of the predictor disagree."""
        return self.build().needs_disagreement

    def build(self) -> Design:
        names = {key: name for name, key in KEYS.items()}
        return DESIGNS[self.kind](**{names.get(key, key): value for key, value in self.parameters.items()})


class RolesConfig(Strict):
    """Slots in addition to the sampled ones. `control_kinds`: some of the instrument's kinds; empty means all."""

    holdout: float = Field(default=0.1, ge=0, lt=1)
    """The share of each stage's sittings that is a uniform holdout: drawn from all items, never trained on; 0 to 1."""
    controls: float = Field(default=0.0667, ge=0, lt=1)
    """The share of slots that are controls; 0 to 1."""
    control_kinds: list[Name] | None = Field(default=None, min_length=1)
    """Which controls the instrument asks; by default all that it has."""


class StageRolesConfig(Strict):
    """What differs from the study's roles in one stage."""

    holdout: float | None = Field(default=None, ge=0, lt=1)
    """As in `[roles]`, for this stage."""
    controls: float | None = Field(default=None, ge=0, lt=1)
    """As in `[roles]`, for this stage."""
    control_kinds: list[Name] | None = Field(default=None, min_length=1)
    """As in `[roles]`, for this stage."""


class StopConfig(Strict):
    """Ends a stage before all its places are used: as soon as an interval that holds at any time is narrower than
    `width`, in the units of the instrument's first measure. `factor`: the interval of the difference between the two
    levels of that factor instead. `after`: nobody looks before so many people have answered."""

    width: float = Field(gt=0)
    """Above 0. The stage ends as soon as the interval of the instrument's first figure is narrower than this, in the
    figure's unit: 0.04 are 4 points of a share."""
    factor: Name | None = None
    """The interval is that of the difference between the two levels of this factor of `[[conditions]]`, instead of the
    mean."""
    after: int = Field(default=30, ge=30, le=100_000)
    """Nobody looks before so many people have answered; 30 or more."""

    def in_words(self, most: int) -> str:
        """The rule of a stage with so many sittings."""
        of = f"of the difference by {self.factor} " if self.factor else ""
        return f"ends once its interval {of}is narrower than {short(self.width)}, with {self.after} to {most:,} people"


Ties = Literal["label_0", "label_1", "left_out"]
# As in the paper: a majority is more than half of the answers.
DEFAULT_TIES: Ties = "label_0"


class StageConfig(Strict):
    """`responses_per_item`: how many different people answer each sampled item. A test set's `responses_per_pair` is
    the same number. `ties`: the majority label of a test set's item of which just half of the answers have label 1."""

    sittings: int = Field(ge=1, le=100_000)
    """Places in the stage; the plan has this many booklets of `items` slots."""
    responses_per_item: int = Field(default=1, ge=1, le=1000)
    """How many different people answer each sampled item: so many times fewer items are drawn, and the slots must
    divide. In a test set the same as `responses_per_pair`. A holdout's items have one answer each."""
    design: DesignConfig = DesignConfig()
    """How slots are drawn; see `[stages.design]`."""
    roles: StageRolesConfig = StageRolesConfig()
    """What differs from the study's roles in this stage; see `[stages.roles]`."""
    opens: Literal["by_hand", "automatically"] = "by_hand"
    """`"automatically"`: the stage opens as soon as it is planned."""
    train: bool = True
    """Whether a predictor is trained when the stage closes. False saves time after the last stage."""
    pilot: bool = False
    """A trial with real people before the first main stage; see below."""
    wave: int = Field(default=1, ge=1, le=21)
    """The wave that the stage belongs to; see `[[waves]]`."""
    ties: Ties | None = None
    """`test_set`: the majority label of an item of which just half of the answers have label 1 (for beliefs: changed):
    `"label_0"` (the default, as in the paper), `"label_1"`, or `"left_out"`: such items have no label."""
    stop: StopConfig | None = None
    """Ends the stage before all places are used, once an interval is narrow enough; see `[stages.stop]`."""

    @model_validator(mode="after")
    def stop_fits(self) -> "StageConfig":
        if self.stop is None:
            return self
        if self.pilot or self.design.kind == "test_set":
            what = "a pilot's answers are not estimated" if self.pilot else "a test set has no mean over all candidates"
            raise WrongKey(("stop",), f"{what}: remove it")
        if self.responses_per_item > 1:
            raise WrongKey(
                ("stop",),
                "answers of different people to one item hang together, and the interval needs people who do not: "
                "remove it, or use responses_per_item = 1",
            )
        if self.stop.after > self.sittings:
            raise WrongKey(
                ("stop", "after"), f"{self.stop.after} people, and the stage has {self.sittings} sittings: lower it"
            )
        return self

    @model_validator(mode="before")
    @classmethod
    def ties_in_a_test_set(cls, data: Any) -> Any:
        """A test set stores what it runs with; no other stage has majority labels."""
        design = data.get("design") if isinstance(data, Mapping) else None
        is_test = isinstance(design, Mapping) and design.get("kind") == "test_set"
        if isinstance(data, Mapping) and is_test and data.get("ties") is None:
            return {**data, "ties": DEFAULT_TIES}
        if isinstance(data, Mapping) and not is_test and data.get("ties") is not None:
            raise WrongKey(("ties",), "only a test set has majority labels: remove it")
        return data

    @model_validator(mode="before")
    @classmethod
    def one_number_in_a_test_set(cls, data: Any) -> Any:
        """Either name of the number is read, and both are stored."""
        design = data.get("design") if isinstance(data, Mapping) else None
        if not isinstance(design, Mapping) or design.get("kind") != "test_set":
            return data
        answers, of_pairs = data.get("responses_per_item"), design.get("responses_per_pair")
        if answers is not None and of_pairs is not None and answers != of_pairs:
            raise WrongKey(
                ("responses_per_item",),
                f"{answers} answers to each item, and the design says responses_per_pair = {of_pairs}: keep one of "
                "them",
            )
        number = answers if answers is not None else of_pairs
        if number is None:
            number = design_defaults("test_set")["responses_per_pair"]
        return {**data, "responses_per_item": number, "design": {**design, "responses_per_pair": number}}

    @property
    def slots_per_item(self) -> int:
        """What the recipe multiplies the draw by: in a test set the design does it."""
        return 1 if self.design.kind == "test_set" else self.responses_per_item

    @property
    def teaches(self) -> bool:
        """Whether its answers are among those that predictors learn from."""
        return not self.pilot and self.design.kind != "test_set"


def refuse_misplaced_pilots(stages: Sequence[StageConfig]) -> None:
    """
    Raises:
        WrongKey: with the stage's place in the file.
    """
    for index, stage in enumerate(stages):
        before = stages[index - 1] if index else None
        if stage.pilot:
            if before is not None and not before.pilot:
                raise WrongKey(("stages", index, "pilot"), "a pilot comes before the first main stage: move it up")
            if index == len(stages) - 1:
                raise WrongKey(("stages", index, "pilot"), "no main stage follows: add one, or remove pilot")
            if stage.design.kind != "uniform":
                raise WrongKey(("stages", index, "design"), "a pilot draws uniformly: remove its design")
        elif before is not None and before.pilot and stage.opens == "automatically":
            raise WrongKey(
                ("stages", index, "opens"),
                "a person looks at the pilot and opens what follows by hand: remove opens",
            )


class EstimatesConfig(Strict):
    """How estimates are made. `odds_ratio`: between unanswered and answered items, for the bounds that stand next to
    every figure where people left."""

    odds_ratio: float = Field(default=ODDS_RATIO, ge=1, le=100)
    """Where people leave: how much the odds of an answer may differ, at most, between items that were answered and
    items that were given to somebody and not answered; 1 to 100. The bounds next to each figure rest on it."""


class PredictorChoice(Strict):
    """A predictor by its name. `params` are checked by the predictor itself."""

    name: str = "bert"
    """`"bert"`, `"hybrid"`, `"embedding_xgboost"`, `"causal_lm"`, `"llm_prompt"`, `"logistic"`, or a baseline:
    `"previous_correct"`, `"same_task"`."""
    params: dict[str, Any] = {}
    """The predictor's own parameters; they replace its defaults."""


class ComparedConfig(PredictorChoice):
    """One more predictor, trained on the same answers and evaluated next to the main one."""

    name: str
    """A further predictor, trained on the same answers once the next stage is planned."""


class PredictorConfig(PredictorChoice):
    """The predictor that scores the next stage's candidates, and others to compare with it."""

    compared: list[ComparedConfig] = Field(default=[], max_length=10)
    """Other predictors to compare with it; see `[[predictor.compared]]`. Up to 10."""

    @model_validator(mode="after")
    def predictors_differ(self) -> "PredictorConfig":
        choices = [(choice.name, choice.params) for choice in (self, *self.compared)]
        if any(choice in choices[:place] for place, choice in enumerate(choices)):
            raise ValueError("two predictors are the same: change the name or a parameter of one")
        return self
