"""The study file (TOML): its keys, their defaults and limits. Imports pydantic, bandit's designs, nothing of survey.

`parse` turns a file's text into a checked `StudyConfig` or raises `StudyFileError` with a line for every problem: a
study can be reviewed, versioned and preregistered as the file it is. docs/study-file.md lists every key.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from bandit.designs import Design, EpsilonGreedy, Softmax, TestSet, Uncertainty, Uniform
from bandit.errors import DesignError

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
# Fields of the pages' own in every form; a check or question of that name could not be told from them.
RESERVED = ("step", "screen", "csrfmiddlewaretoken", "consent")


def _not_reserved(name: str) -> str:
    if name in RESERVED or name.startswith("client_"):
        raise ValueError("this name is used by the pages themselves: choose another")
    return name


FieldName = Annotated[Name, AfterValidator(_not_reserved)]
Text = Annotated[str, Field(min_length=1, max_length=20_000)]
SEED_LIMIT = 2**53  # JSON keeps integers exactly up to here, and so do browsers.


class Strict(BaseModel):
    """Unknown keys are refused: a misspelt key would otherwise change a study in silence."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)


class QuestionsConfig(Strict):
    """Which questions of the bank the study draws from."""

    tasks: list[str] = []
    max_characters: int | None = Field(default=None, ge=1)
    max_words: int | None = Field(default=None, ge=1)


# Which keys of [candidates] belong to which kind.
CANDIDATES: dict[str, tuple[str, ...]] = {"pool": ("size",), "exhaustive": ("scored_pairs", "rank", "shortlist")}


class CandidatesConfig(Strict):
    kind: Literal["pool", "exhaustive"] = "pool"
    size: int = Field(default=3000, ge=1, le=5_000_000)
    scored_pairs: int = Field(default=12_000, ge=200, le=5_000_000)
    rank: int = Field(default=96, ge=1, le=512)
    shortlist: int = Field(default=0, ge=0, le=5_000_000)


DESIGNS: dict[str, type[Design]] = {
    "uniform": Uniform,
    "epsilon_greedy": EpsilonGreedy,
    "softmax": Softmax,
    "uncertainty": Uncertainty,
    "test_set": TestSet,
}
# Those that can be drawn from all items there are: the others ask for a number of every single one.
EXHAUSTIVE_DESIGNS = ("uniform", "epsilon_greedy", "test_set")


def design_defaults(kind: str) -> dict[str, Any]:
    """A design's own parameters with their defaults: `bandit` is where these are written down."""
    known: Any = DESIGNS[kind]
    return {field.name: field.default for field in fields(known) if field.default is not MISSING}


class DesignConfig(Strict):
    """A design and its own parameters; those of other designs are None."""

    kind: Literal["uniform", "epsilon_greedy", "softmax", "uncertainty", "test_set"] = "uniform"
    epsilon: float | None = Field(default=None, ge=0, le=1)
    top_fraction: float | None = Field(default=None, gt=0, lt=1)
    floor: float | None = Field(default=None, ge=0, le=1)
    temperature: float | None = Field(default=None, gt=0)
    by: Literal["closeness", "disagreement"] | None = None
    pairs: int | None = Field(default=None, ge=1, le=100_000)
    responses_per_pair: int | None = Field(default=None, ge=1, le=1000)
    bottom_fraction: float | None = Field(default=None, gt=0, lt=1)
    top_share: float | None = Field(default=None, ge=0, le=1)

    @model_validator(mode="before")
    @classmethod
    def fill_in_its_defaults(cls, given: Any) -> Any:
        """What is stored with a study says what was run, whatever the defaults are by then."""
        if not isinstance(given, Mapping) or given.get("kind") not in DESIGNS:
            return given
        return {**design_defaults(given["kind"]), **{key: value for key, value in given.items() if value is not None}}

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

    def build(self) -> Design:
        return DESIGNS[self.kind](**self.parameters)


class RolesConfig(Strict):
    """Slots beside the sampled ones. `control_kinds` are the instrument's; none given means all that it has."""

    holdout: float = Field(default=0.1, ge=0, lt=1)
    controls: float = Field(default=0.0667, ge=0, lt=1)
    control_kinds: list[Name] | None = Field(default=None, min_length=1)


class StageRolesConfig(Strict):
    """What differs from the study's roles in one stage."""

    holdout: float | None = Field(default=None, ge=0, lt=1)
    controls: float | None = Field(default=None, ge=0, lt=1)
    control_kinds: list[Name] | None = Field(default=None, min_length=1)


class StageConfig(Strict):
    sittings: int = Field(ge=1, le=100_000)
    design: DesignConfig = DesignConfig()
    roles: StageRolesConfig = StageRolesConfig()
    opens: Literal["by_hand", "automatically"] = "by_hand"
    train: bool = True


class SittingConfig(Strict):
    items: int = Field(default=15, ge=1, le=200)
    expires_after_minutes: int = Field(default=60, ge=1, le=24 * 60)


class PredictorChoice(Strict):
    """A predictor by its name. `params` are checked by the predictor itself."""

    name: str = "bert"
    params: dict[str, Any] = {}


class ComparedConfig(PredictorChoice):
    """One more predictor, trained on the same answers and judged beside the main one."""

    name: str


class PredictorConfig(PredictorChoice):
    """The predictor that scores the next stage's candidates, and others to compare with it."""

    compared: list[ComparedConfig] = Field(default=[], max_length=10)

    @model_validator(mode="after")
    def predictors_differ(self) -> "PredictorConfig":
        choices = [(choice.name, choice.params) for choice in (self, *self.compared)]
        if any(choice in choices[:place] for place, choice in enumerate(choices)):
            raise ValueError("two predictors are the same: change the name or a parameter of one")
        return self


class InstrumentConfig(Strict):
    """`options` are checked by the instrument itself."""

    kind: str = "belief_update"
    options: dict[str, Any] = {}


class CheckConfig(Strict):
    """One comprehension check. The first option is the right one in the file; they are shown in random order."""

    name: FieldName
    question: Text
    options: list[Text] = Field(min_length=2, max_length=6)
    hint: str = Field(default="", max_length=2000)

    @field_validator("options")
    @classmethod
    def options_differ(cls, options: list[str]) -> list[str]:
        if len(set(options)) != len(options):
            raise ValueError("two options are the same: make them differ")
        return options


class FieldConfig(Strict):
    """One question of a form block."""

    name: FieldName
    label: Text
    kind: Literal["choice", "text", "number"]
    options: list[Text] = []
    required: bool = False
    minimum: int | None = None
    maximum: int | None = None

    @model_validator(mode="after")
    def fits_its_kind(self) -> "FieldConfig":
        if self.kind == "choice" and len(self.options) < 2:
            raise ValueError("a choice needs at least two options")
        if self.kind != "choice" and self.options:
            raise ValueError('only kind = "choice" has options')
        if self.kind != "number" and (self.minimum is not None or self.maximum is not None):
            raise ValueError('only kind = "number" has minimum and maximum')
        return self


class BlockConfig(Strict):
    kind: Literal["consent", "instructions", "checks", "items", "form", "debriefing", "end"]
    name: Name | None = None
    title: str = Field(default="", max_length=200)
    text: str = Field(default="", max_length=20_000)
    version: str = Field(default="1", max_length=40)
    checks: list[CheckConfig] = []
    fields: list[FieldConfig] = []

    @model_validator(mode="after")
    def has_what_its_kind_needs(self) -> "BlockConfig":
        if self.kind in ("consent", "instructions", "debriefing") and not self.text:
            raise ValueError(f'a block of kind "{self.kind}" needs text')
        if self.kind == "checks" and not self.checks:
            raise ValueError('a block of kind "checks" needs at least one [[blocks.checks]]')
        if self.kind == "form" and not (self.fields and self.name):
            raise ValueError('a block of kind "form" needs a name and at least one [[blocks.fields]]')
        if self.kind != "checks" and self.checks:
            raise ValueError('only a block of kind "checks" has checks')
        if self.kind != "form" and self.fields:
            raise ValueError('only a block of kind "form" has fields')
        for entries in (self.checks, self.fields):
            names = [entry.name for entry in entries]
            if len(set(names)) != len(names):
                raise ValueError("two entries have the same name: make them differ")
        return self


class ConditionConfig(Strict):
    """A factor whose level is drawn for each sitting, in balanced random blocks. `texts` changes blocks' texts."""

    factor: Name
    levels: list[Name] = Field(min_length=2, max_length=12)
    texts: dict[Name, dict[str, str]] = {}

    @model_validator(mode="after")
    def levels_fit(self) -> "ConditionConfig":
        if len(set(self.levels)) != len(self.levels):
            raise ValueError("two levels have the same name: make them differ")
        strangers = sorted(set(self.texts) - set(self.levels))
        if strangers:
            raise ValueError(f"texts for {', '.join(strangers)}, which is not among the levels")
        return self


class RangeConfig(Strict):
    """From `lower` to `upper`, both included; one of them may be left out."""

    lower: float | None = None
    upper: float | None = None

    @model_validator(mode="after")
    def has_an_end(self) -> "RangeConfig":
        if self.lower is None and self.upper is None:
            raise ValueError("needs lower, upper or both")
        if self.lower is not None and self.upper is not None and self.lower > self.upper:
            raise ValueError("lower is above upper: swap them")
        return self


class FilterConfig(Strict):
    """One of the panel's filters by the panel's own id, with the panel's own values."""

    filter_id: str = Field(min_length=1, max_length=100)
    selected_values: list[str] = Field(default=[], max_length=500)
    selected_range: RangeConfig | None = None

    @model_validator(mode="after")
    def selects_something(self) -> "FilterConfig":
        if bool(self.selected_values) == (self.selected_range is not None):
            raise ValueError("needs either selected_values or selected_range")
        return self


class CodesConfig(Strict):
    """What the panel does on each completion code."""

    completed: Literal["manually_review", "automatically_approve"] = "manually_review"
    no_consent: Literal["manually_review", "request_return"] = "request_return"
    failed_checks: Literal["manually_review", "request_return"] = "request_return"
    study_full: Literal["manually_review", "request_return"] = "request_return"


# What only a panel with submissions has: an open study has nobody to pay and nobody to leave out.
PANEL_KEYS = (
    "reward",
    "places",
    "expected_minutes",
    "maximum_minutes",
    "spending_cap",
    "turned_away_pay",
    "bonus_per_point",
    "exclude_people_of",
    "signed_entry",
    "devices",
    "filters",
)
Slug = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=80)]
Cents = Annotated[int, Field(ge=0, le=100_000_000)]
# Loopback addresses are those of the fake panel.
COMPLETION_URL = r"^((https://|http://(127\.0\.0\.1|localhost)(?=[:/]))[^\s{}]*(\{code\})?[^\s{}]*)?$"


class PanelConfig(Strict):
    """Where respondents come from. `open`: anybody with the address. `prolific`: with Prolific's three parameters.

    Money is in whole cents or pence of `currency`, as the panel counts it.
    """

    kind: Literal["open", "prolific"] = "open"
    completion_url: str = Field(default="", max_length=500)
    currency: Literal["USD", "GBP"] = "USD"
    reward: int | None = Field(default=None, ge=1, le=100_000)
    places: int | None = Field(default=None, ge=1, le=100_000)
    expected_minutes: int | None = Field(default=None, ge=1, le=600)
    maximum_minutes: int | None = Field(default=None, ge=2, le=24 * 60 - 1)
    spending_cap: Cents | None = None
    turned_away_pay: Cents = 0
    bonus_per_point: Cents = 0
    exclude_people_of: list[Slug] = Field(default=[], max_length=100)
    signed_entry: bool = False
    devices: list[Literal["desktop", "tablet", "mobile"]] = []
    filters: list[FilterConfig] = Field(default=[], max_length=50)
    codes: CodesConfig = CodesConfig()

    @field_validator("completion_url")
    @classmethod
    def leads_back_to_the_panel(cls, address: str) -> str:
        if not re.fullmatch(COMPLETION_URL, address):
            raise ValueError("write https://..., with {code} at most once where the code belongs")
        return address

    @model_validator(mode="after")
    def fits_its_kind(self) -> "PanelConfig":
        given = [name for name in PANEL_KEYS if getattr(self, name)]
        if self.kind == "open" and given:
            raise ValueError(f"only a panel has {', '.join(given)}: set kind, or remove it")
        if self.reward is not None and self.turned_away_pay > self.reward:
            raise ValueError("turned_away_pay is above the reward of those who finish: lower it")
        return self


WELCOME = "You are invited to take part in a short study about language models."


class TextsConfig(Strict):
    """Texts outside the blocks, and the language that all texts of the file are in: the pages' own words follow it."""

    language: Literal["en", "de"] = "en"
    welcome: Text = WELCOME
    minutes: int = Field(default=12, ge=1, le=600, description="What the welcome page says a sitting takes.")
    contact: str = Field(default="", max_length=300)


class StudyConfig(Strict):
    slug: Slug
    title: Annotated[str, Field(min_length=1, max_length=200)]
    bank: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+(@[1-9][0-9]*)?$", max_length=100)]
    seed: int = Field(ge=0, lt=SEED_LIMIT)
    instrument: InstrumentConfig = InstrumentConfig()
    questions: QuestionsConfig = QuestionsConfig()
    candidates: CandidatesConfig = CandidatesConfig()
    roles: RolesConfig = RolesConfig()
    predictor: PredictorConfig | None = None
    sitting: SittingConfig = SittingConfig()
    stages: list[StageConfig] = Field(min_length=1, max_length=50)
    blocks: list[BlockConfig] = Field(min_length=1, max_length=60)
    conditions: list[ConditionConfig] = []
    panel: PanelConfig = PanelConfig()
    texts: TextsConfig = TextsConfig()

    @model_validator(mode="after")
    def blocks_make_a_sitting(self) -> "StudyConfig":
        kinds = [block.kind for block in self.blocks]
        for kind in ("consent", "items", "end"):
            if kinds.count(kind) != 1:
                raise ValueError(f'blocks: exactly one block of kind "{kind}" is needed, found {kinds.count(kind)}')
        if kinds[0] != "consent":
            raise ValueError("blocks: consent comes first")
        if kinds[-1] != "end":
            raise ValueError("blocks: end comes last")
        if kinds.count("checks") > 1:
            raise ValueError('blocks: at most one block of kind "checks"; put all checks into it')
        if "checks" in kinds and kinds.index("checks") > kinds.index("items"):
            raise ValueError("blocks: comprehension checks come before the items")
        names = [block.name for block in self.blocks if block.name]
        if len(set(names)) != len(names):
            raise ValueError("blocks: two blocks have the same name: make them differ")
        factors = [condition.factor for condition in self.conditions]
        if len(set(factors)) != len(factors):
            raise ValueError("conditions: two factors have the same name: make them differ")
        known = set(names) | {kind for kind in kinds if kinds.count(kind) == 1}
        for condition in self.conditions:
            for texts in condition.texts.values():
                strangers = sorted(set(texts) - known)
                if strangers:
                    raise ValueError(f"conditions: {condition.factor}: no block is called {', '.join(strangers)}")
        return self

    @model_validator(mode="after")
    def stages_follow_each_other(self) -> "StudyConfig":
        for number, stage in enumerate(self.stages, start=1):
            kind = stage.design.kind
            if kind == "uniform":
                continue
            if number == 1:
                raise ValueError("stages.1.design: the first stage has no predictor, so its design must be uniform")
            if self.predictor is None:
                raise ValueError(f"stages.{number}.design: {kind} needs a [predictor]")
            if not self.stages[number - 2].train:
                raise ValueError(f"stages.{number - 1}.train: stage {number} is {kind}, so this stage must train")
            if self.candidates.kind == "exhaustive" and kind not in EXHAUSTIVE_DESIGNS:
                raise ValueError(
                    f"stages.{number}.design: {kind} needs a number for every single candidate and cannot draw from "
                    'all there are: use [candidates] kind = "pool"'
                )
            if kind == "test_set" and stage.roles.holdout:
                raise ValueError(f"stages.{number}.roles: a test set is held out itself: remove holdout")
        return self

    @property
    def expected_minutes(self) -> int:
        """How long a sitting is expected to take, for the panel and for the pay by the hour."""
        return self.panel.expected_minutes or self.texts.minutes

    def roles_of(self, index: int) -> RolesConfig:
        """The roles of stage `index` (from 1). A test set needs no holdout beside it."""
        stage = self.stages[index - 1]
        own = {key: value for key, value in stage.roles.model_dump().items() if value is not None}
        if stage.design.kind == "test_set":
            own["holdout"] = 0.0
        return self.roles.model_copy(update=own)

    def block_text(self, block: BlockConfig, levels: Mapping[str, str]) -> str:
        """The block's text under a sitting's levels; the last condition that changes it wins."""
        text = block.text
        for condition in self.conditions:
            changed = condition.texts.get(levels.get(condition.factor, ""), {})
            text = changed.get(block.name or block.kind, text)
        return text


@dataclass(frozen=True)
class Problem:
    line: int
    field: str
    message: str


class StudyFileError(ValueError):
    """Everything that is wrong with a study file, each with its line."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = sorted(problems, key=lambda problem: problem.line)
        super().__init__("\n".join(f"{p.line}: {p.field}: {p.message}" for p in self.problems))


TABLE = re.compile(r"^\s*(\[\[?)\s*([A-Za-z0-9_.\-\"' ]+?)\s*\]\]?\s*(#.*)?$")
KEY = re.compile(r"^\s*([A-Za-z0-9_\-\"'.]+)\s*=")
Path = tuple[str | int, ...]


def _lines_of_keys(text: str) -> dict[Path, int]:
    """Where each key and table of a valid TOML text stands. tomllib keeps no positions, so it is walked once more."""
    lines: dict[Path, int] = {(): 1}
    counts: dict[Path, int] = {}
    table: Path = ()
    closing = ""  # Inside a multi-line string until this mark.
    for number, line in enumerate(text.splitlines(), start=1):
        if closing:
            if closing in line:
                closing = ""
            continue
        if found := TABLE.match(line):
            names = [part.strip().strip("\"'") for part in found[2].split(".")]
            path: Path = ()
            for name in names[:-1]:
                path = (*path, name)
                if path in counts:
                    path = (*path, counts[path])
            path = (*path, names[-1])
            if found[1] == "[[":
                counts[path] = counts.get(path, -1) + 1
                lines.setdefault(path, number)
                path = (*path, counts[path])
            table = path
            lines[table] = number
        elif found := KEY.match(line):
            path = table
            for name in found[1].split("."):
                path = (*path, name.strip("\"'"))
                lines.setdefault(path, number)
            value = line[found.end() :]
            for mark in ('"""', "'''"):
                if value.count(mark) % 2:
                    closing = mark
    return lines


def _line_of(path: Path, lines: Mapping[Path, int]) -> int:
    while path not in lines:
        path = path[:-1]
    return lines[path]


def _known_keys(location: Sequence[str | int]) -> str:
    model: Any = StudyConfig
    for part in location[:-1]:
        if isinstance(part, int) or model is None:
            continue
        info = model.model_fields.get(part)
        model = info and next((t for t in _models_in(info.annotation)), None)
    return ", ".join(sorted(model.model_fields)) if model else ""


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in getattr(annotation, "__args__", ()):
        yield from _models_in(inner)


def _problem(error: Mapping[str, Any], lines: Mapping[Path, int]) -> Problem:
    location = tuple(error["loc"])
    field = ".".join(str(part + 1) if isinstance(part, int) else part for part in location)
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] == "extra_forbidden":
        message = f"unknown key; the keys here are {_known_keys(location)}"
    elif error["type"] == "missing":
        message = "is missing: add it"
    elif not location and ": " in message:
        field, message = message.split(": ", 1)
        location = tuple(int(part) - 1 if part.isdigit() else part for part in field.split("."))
    elif "input" in error and not isinstance(error["input"], dict | list | BaseModel):
        message = f"{message} (it is {error['input']!r})"
    return Problem(line=_line_of(location, lines), field=field or "file", message=message)


def parse(text: str) -> StudyConfig:
    """Check a study file's text.

    Raises:
        StudyFileError: with every problem found, each with its line.
    """
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        found = re.search(r"\(at line (\d+), column \d+\)", str(exc))
        line = int(found[1]) if found else text.count("\n") + 1
        message = re.sub(r" \(at .*\)", "", str(exc))
        raise StudyFileError([Problem(line=line, field="file", message=f"not TOML: {message}")]) from exc
    lines = _lines_of_keys(text)
    foreign = list(_keys_of_another_kind(raw, lines))
    try:
        config = StudyConfig.model_validate(raw)
    except ValidationError as exc:
        problems = [_problem(error, lines) for error in exc.errors(include_url=False)]
        raise StudyFileError([*foreign, *problems]) from exc
    if foreign:
        raise StudyFileError(foreign)
    return config


def _keys_of_another_kind(raw: Mapping[str, Any], lines: Mapping[Path, int]) -> Iterator[Problem]:
    """Keys that are known, but say nothing for the kind that was chosen. In a stored study they do no harm."""
    designs = {kind: tuple(design_defaults(kind)) for kind in DESIGNS}
    stages = raw.get("stages")
    tables: list[tuple[Path, Any, dict[str, tuple[str, ...]], str]] = [
        (("stages", index, "design"), stage.get("design"), designs, "uniform")
        for index, stage in enumerate(stages if isinstance(stages, list) else [])
        if isinstance(stage, Mapping)
    ]
    tables.append((("candidates",), raw.get("candidates"), CANDIDATES, "pool"))
    for path, table, kinds, default in tables:
        if not isinstance(table, Mapping) or (kind := table.get("kind", default)) not in kinds:
            continue
        known = {key for keys in kinds.values() for key in keys}
        for key in table:
            if key in known and key not in kinds[kind]:
                field = ".".join(str(part + 1) if isinstance(part, int) else part for part in (*path, key))
                own = ", ".join(kinds[kind]) or "no parameters"
                yield Problem(_line_of((*path, key), lines), field, f'kind = "{kind}" has {own}: remove this key')


def problem_at(text: str, path: Path, message: str) -> StudyFileError:
    """An error found outside the schema (no such bank, an option the instrument refuses), at its line."""
    field = ".".join(str(part + 1) if isinstance(part, int) else part for part in path)
    return StudyFileError([Problem(line=_line_of(path, _lines_of_keys(text)), field=field, message=message)])
