"""The whole study file, and the rules between its parts."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field, ModelWrapValidatorHandler, PrivateAttr, ValidationError, model_validator

from . import attention
from .answerer import FORMS, AnswererConfig, placeholders_in
from .base import (
    LANGUAGES,
    SEED_LIMIT,
    Contact,
    Language,
    Slug,
    Strict,
    StudyTitle,
    Text,
    TitleText,
    WrongKey,
    WrongKeys,
    words_in,
    words_of,
)
from .blocks import BlockConfig, ConditionConfig, InstrumentConfig, SittingConfig, refuse_misplaced
from .constructing import as_far_as_possible
from .data import DataConfig
from .language_models import MAX_MODELS, LanguageModelConfig, refuse_same_names
from .panel import PanelConfig
from .quotas import QuotaConfig, refuse_what_is_not_asked
from .rules import ExclusionsConfig, FlagsConfig, refuse_what_does_not_fit
from .sampling import (
    CandidatesConfig,
    DesignConfig,
    EstimatesConfig,
    PredictorConfig,
    QuestionsConfig,
    RolesConfig,
    StageConfig,
    refuse_misplaced_pilots,
    scouts_of,
)
from .values import ITEMS, MINUTES, REWARD, UNTIL, money_for_people, with_values
from .waves import MAX_WAVES, WaveConfig, refuse_misplaced_waves
from .weighting import WeightingConfig, grouping_questions, refuse_unknown_groups

LANGUAGE_CODE = r"^([a-z]{2,3}(-[A-Za-z0-9]{2,8})*)?$"
WELCOME = "You are invited to take part in a short study about language models."


class TextsConfig(Strict):
    """Texts outside the blocks, and the languages of all the file's texts. The pages' own words follow the language.

    `languages` is given where there are several; `language` is the first one.
    """

    language: Language = "en"
    """The language that the file's texts are in; the pages' own words follow it."""
    languages: list[Language] = Field(default=[], max_length=2)
    """Instead of `language`, for a study in several: the one that the browser asks for is shown until the respondent
    chooses another, or the first one where it asks for none of them."""
    bank_language: str = Field(default="", pattern=LANGUAGE_CODE, max_length=20)
    """The language of the bank's questions, such as `"en"`, if it is not that of the pages: screen readers then
    pronounce them correctly."""
    text_language: str = Field(default="", pattern=LANGUAGE_CODE, max_length=20)
    """The language of the file's own texts, such as `"ar"`, where the pages have no words of their own in it. The
    pages' words then stay in `language`, and both are marked, with their directions. Not with `languages`."""
    welcome: Text = Field(default=WELCOME, validate_default=True)
    """The first page. It may name values of the file, as the blocks' texts may: `{items}`, `{minutes}`, `{reward}`."""
    minutes: int = Field(default=12, ge=1, le=600)
    """How long a sitting takes, as the first page says; 1 to 600."""
    contact: Contact = ""
    """Whom to ask, up to 300 characters: an address, or a sentence that ends with a full stop. It stands at the foot of
    every page, after "Questions or problems?"."""
    institution: TitleText = ""
    """Who does the study, such as a university's name, up to 200 characters: it stands on top of every page."""
    logo: str = Field(default="", pattern=r"^([a-z0-9][a-z0-9-]{0,59})?$")
    """The name of a stored logo, which stands before `institution`: `hunch store_logo` stores one, and so does the
    admin's page of logos."""
    answerer: AnswererConfig | None = None
    """What the pages call the one who answers the questions; see `[texts.answerer]`. Without it "a large language
    model"."""

    @model_validator(mode="before")
    @classmethod
    def first_language_is_the_language(cls, data: Any) -> Any:
        if isinstance(data, Mapping) and isinstance(data.get("languages"), list) and data["languages"]:
            return {"language": data["languages"][0], **data}
        return data

    @model_validator(mode="after")
    def languages_fit(self) -> "TextsConfig":
        if len(set(self.languages)) != len(self.languages):
            raise ValueError("languages: one is named twice")
        if self.languages and self.language != self.languages[0]:
            raise ValueError(f'languages begin with "{self.languages[0]}": remove language')
        return self

    @model_validator(mode="after")
    def text_language_is_another_one(self) -> "TextsConfig":
        code = self.text_language.partition("-")[0]
        if code and self.languages:
            raise ValueError("text_language: is for a file in one language; remove it or languages")
        if code in LANGUAGES:
            raise ValueError(f'text_language: the pages have words in this language: write language = "{code}" instead')
        return self

    @model_validator(mode="after")
    def a_logo_has_words(self) -> "TextsConfig":
        if self.logo and not self.institution:
            raise ValueError("logo: needs institution, the words for who does not see it")
        return self


def languages_of(data: Any) -> tuple[str, ...]:
    """The languages that a file declares, read before the file is checked."""
    texts = data.get("texts") if isinstance(data, Mapping) else None
    if not isinstance(texts, Mapping):
        return ("en",)
    several = texts.get("languages")
    named = [code for code in several if isinstance(code, str)] if isinstance(several, list) else []
    return tuple(named) or (str(texts.get("language", "en")),)


def _refuse_placeholders(data: Any, *, named: bool) -> None:
    """
    Raises:
        WrongKey: a text names the answerer in a form that there is not, or the file does not say what to call it.
    """
    for place, form in placeholders_in(data):
        if form not in FORMS:
            known = ", ".join(f"{{answerer.{form}}}" for form in FORMS)
            raise WrongKey(place, f"there is no {{answerer.{form}}}; there are {known}")
        if not named:
            raise WrongKey(place, f"{{answerer.{form}}} needs [texts.answerer], which says what to call it")


class StudyConfig(Strict):
    slug: Slug
    """The study's name in addresses and commands: small letters, digits and hyphens, up to 80."""
    title: StudyTitle
    """What respondents read at the top of the first page; up to 200 characters."""
    bank: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+(@[1-9][0-9]*)?$", max_length=100)]
    """The question bank: `NAME` for its newest version, or `NAME@VERSION`."""
    seed: int = Field(ge=0, lt=SEED_LIMIT)
    """Every random draw of the study descends from it; 0 to 2^53 - 1."""
    instrument: InstrumentConfig = InstrumentConfig()
    """What an item is; see `[instrument]`."""
    questions: QuestionsConfig = QuestionsConfig()
    """Which questions of the bank take part; see `[questions]`."""
    candidates: CandidatesConfig = CandidatesConfig()
    """Which items a stage may draw from; see `[candidates]`."""
    roles: RolesConfig = RolesConfig()
    """Slots in addition to the sampled ones; see `[roles]`."""
    predictor: PredictorConfig | None = None
    """What learns from the answers; see `[predictor]`. Without it every stage draws uniformly."""
    estimates: EstimatesConfig = EstimatesConfig()
    """How estimates are made; see `[estimates]`."""
    sitting: SittingConfig = SittingConfig()
    """The size of a sitting; see `[sitting]`."""
    stages: list[StageConfig] = Field(min_length=1, max_length=50)
    """The rounds of collection in their order; see `[[stages]]`. 1 to 50."""
    waves: list[WaveConfig] = Field(default=[], max_length=MAX_WAVES)
    """When the same people come back; see `[[waves]]`. Up to 20."""
    blocks: list[BlockConfig] = Field(min_length=1, max_length=60)
    """What a respondent walks through; see `[[blocks]]`. 1 to 60."""
    conditions: list[ConditionConfig] = []
    """Factors that differ between sittings or items; see `[[conditions]]`."""
    quotas: list[QuotaConfig] = Field(default=[], max_length=20)
    """How many people with certain answers a stage takes; see `[[quotas]]`. Up to 20."""
    blind: bool = False
    """Hides who had which level of `[[conditions]]` until an owner unblinds the study; see [Blind
    studies](#blind-studies)."""
    panel: PanelConfig = PanelConfig()
    """Where respondents come from; see `[panel]`."""
    data: DataConfig = DataConfig()
    """How long personal data is kept; see `[data]`."""
    flags: FlagsConfig = FlagsConfig()
    """Rules that flag sittings; see `[flags]`."""
    exclusions: ExclusionsConfig = ExclusionsConfig()
    """Which flags leave answers out; see `[exclusions]`."""
    weighting: WeightingConfig | None = None
    """A population that the figures are weighted to as well; see `[weighting]`."""
    models: list[LanguageModelConfig] = Field(default=[], max_length=MAX_MODELS)
    """Language models that read the study's items; see `[[models]]`."""
    texts: TextsConfig = TextsConfig()
    """Texts outside the blocks; see `[texts]`."""

    _in_language: dict[str, "StudyConfig"] = PrivateAttr(default_factory=dict)
    _problems: tuple[str, ...] = PrivateAttr(default=())
    _named: dict[AnswererConfig, "StudyConfig"] = PrivateAttr(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def its_first_stage_scouts(cls, data: Any) -> Any:
        """A design that learns from earlier answers has none in the first stage, which is stored as it is drawn."""
        place = scouts_of(data.get("stages")) if isinstance(data, Mapping) else None
        if place is None:
            return data
        try:
            DesignConfig.model_validate(data["stages"][place]["design"])
        except ValidationError:
            return data  # Its own rules say what is wrong, with the place.
        stages = [
            {**stage, "design": {"kind": "uniform"}} if index == place else stage
            for index, stage in enumerate(data["stages"])
        ]
        return {**data, "stages": stages}

    @model_validator(mode="wrap")
    @classmethod
    def texts_are_in_its_languages(cls, data: Any, handler: ModelWrapValidatorHandler["StudyConfig"]) -> "StudyConfig":
        with words_of(languages_of(data)):
            made = handler(data)
        _refuse_placeholders(data, named=made.texts.answerer is not None)
        return made

    @property
    def problems(self) -> tuple[str, ...]:
        """What this version of Hunch would refuse of a file that an earlier one accepted. Such a file is read as far as
        it can be (`older.py`)."""
        return self._problems

    def with_problems(self, problems: Sequence[str]) -> "StudyConfig":
        self._problems = tuple(problems)
        return self

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages that a respondent can choose from, the file's first one first."""
        return tuple(self.texts.languages) or (self.texts.language,)

    def in_language(self, code: str) -> "StudyConfig":
        """A copy with every text as a plain string in that language, or in the first one if the file lacks it."""
        if code not in self.languages:
            code = self.languages[0]
        if len(self.languages) == 1:
            return self
        if code not in self._in_language:
            data = self.model_dump(mode="json", warnings=not self._problems)
            data["texts"] |= {"language": code, "languages": []}
            with words_in(code):
                self._in_language[code] = self._copy_of(data)
        return self._in_language[code]

    def _copy_of(self, data: Mapping[str, Any]) -> "StudyConfig":
        """Of the same file: where this version refuses something of it, as far as it can be read."""
        if not self._problems:
            return StudyConfig.model_validate(data)
        return as_far_as_possible(StudyConfig, data).with_problems(self._problems)

    def answerer_under(self, levels: Mapping[str, str]) -> AnswererConfig | None:
        """What the pages call the one who answers, under a sitting's levels; the last condition that names it wins.
        None if the file names nobody."""
        answerer = self.texts.answerer
        for condition in self.conditions:
            answerer = condition.answerer.get(levels.get(condition.factor, ""), answerer)
        return answerer

    @property
    def answerers(self) -> Sequence[AnswererConfig]:
        """All names that the file has for the one who answers."""
        own = [name for condition in self.conditions for name in condition.answerer.values()]
        return [*filter(None, [self.texts.answerer]), *own]

    def under(self, levels: Mapping[str, str]) -> "StudyConfig":
        """A copy whose texts name the answerer as sittings with these levels read it. For a config in one language."""
        name = self.answerer_under(levels)
        return self if name is None else self.naming(name)

    def naming(self, name: AnswererConfig) -> "StudyConfig":
        """A copy that calls the answerer so, also in its texts."""
        if name not in self._named:
            data = self.model_dump(mode="json", warnings=not self._problems)
            named = name.named_in(data)
            named["texts"]["answerer"] = name.model_dump(mode="json")
            self._named[name] = self if named == data else self._copy_of(named)
        return self._named[name]

    def _names_of_the_answerer_fit(self) -> None:
        named = self.texts.answerer is not None
        for index, condition in enumerate(self.conditions):
            if condition.answerer and not named:
                raise WrongKey(
                    ("conditions", index, "answerer"),
                    "[texts.answerer] is missing, which names it before a level is drawn",
                )

    @model_validator(mode="after")
    def its_parts_fit(self) -> "StudyConfig":
        """All rules between the parts; what breaks several of them is reported at once."""
        wrong_keys: list[WrongKey] = []
        for rule in (
            self._names_of_the_answerer_fit,
            self._blocks_make_a_sitting,
            self._stops_look_at_a_factor,
            self._blind_hides_something,
            self._attention_is_asked_in_its_place,
            self._blocks_stand_in_their_place,
            self._rules_fit,
            self._weighting_fits,
            self._quotas_fit,
            self._stages_follow_each_other,
            self._models_differ,
        ):
            try:
                rule()
            except WrongKey as exc:
                wrong_keys.append(exc)
        if len(wrong_keys) == 1:
            raise wrong_keys[0]
        if wrong_keys:
            raise WrongKeys(wrong_keys)
        return self

    def _blocks_make_a_sitting(self) -> None:
        kinds = [block.kind for block in self.blocks]
        for kind in ("consent", "items", "end"):
            if kinds.count(kind) != 1:
                raise WrongKey(("blocks",), f'exactly one block of kind "{kind}" is needed, found {kinds.count(kind)}')
        if kinds[0] != "consent":
            raise WrongKey(("blocks",), "consent comes first")
        if kinds[-1] != "end":
            raise WrongKey(("blocks",), "end comes last")
        if kinds.count("checks") > 1:
            raise WrongKey(("blocks",), 'at most one block of kind "checks"; put all checks into it')
        if "checks" in kinds and kinds.index("checks") > kinds.index("items"):
            raise WrongKey(("blocks",), "comprehension checks come before the items")
        names = [block.name for block in self.blocks if block.name]
        if len(set(names)) != len(names):
            raise WrongKey(("blocks",), "two blocks have the same name: make them differ")
        factors = [condition.factor for condition in self.conditions]
        if len(set(factors)) != len(factors):
            raise WrongKey(("conditions",), "two factors have the same name: make them differ")
        known = set(names) | {kind for kind in kinds if kinds.count(kind) == 1}
        for condition in self.conditions:
            for texts in condition.texts.values():
                strangers = sorted(set(texts) - known)
                if strangers:
                    raise WrongKey(("conditions",), f"{condition.factor}: no block is called {', '.join(strangers)}")

    def _stops_look_at_a_factor(self) -> None:
        factors = {condition.factor: condition for condition in self.conditions}
        for index, stage in enumerate(self.stages):
            if stage.stop is None or stage.stop.factor is None:
                continue
            stop_condition = factors.get(stage.stop.factor)
            if stop_condition is None:
                known = ", ".join(factors) or "none"
                raise WrongKey(
                    ("stages", index, "stop", "factor"), f"{stage.stop.factor} is no factor of [[conditions]] ({known})"
                )
            if len(stop_condition.levels) != 2:
                raise WrongKey(
                    ("stages", index, "stop", "factor"),
                    f"{stage.stop.factor} has {len(stop_condition.levels)} levels, and a difference needs two",
                )

    def _blind_hides_something(self) -> None:
        if not self.blind:
            return
        if not self.conditions:
            raise WrongKey(("blind",), "the study has no [[conditions]]: there is nothing to hide")
        for index, stage in enumerate(self.stages):
            if stage.stop is not None and stage.stop.factor is not None:
                place = ("stages", index, "stop", "factor")
                raise WrongKey(place, "its looks would show the difference of a blind study: remove it or blind")

    def _attention_is_asked_in_its_place(self) -> None:
        attention.refuse_misplaced(self.sitting.attention_checks, items=self.sitting.items)

    def _blocks_stand_in_their_place(self) -> None:
        if any(block.kind == "items" for block in self.blocks):  # Else another rule says that there is none.
            refuse_misplaced(self.blocks)

    @property
    def screens_out(self) -> bool:
        """Whether an answer before the items can screen somebody out, also by a quota."""
        by_answer = any(field.screen_out for block in self.blocks for field in block.fields)
        return by_answer or any(quota.screens_out for quota in self.quotas)

    def _rules_fit(self) -> None:
        refuse_what_does_not_fit(self.flags, self.exclusions, self.blocks, self.sitting)

    def _weighting_fits(self) -> None:
        if self.weighting is not None:
            refuse_unknown_groups(self.weighting, grouping_questions(self.blocks))

    def _quotas_fit(self) -> None:
        if any(block.kind == "items" for block in self.blocks):
            refuse_what_is_not_asked(self.quotas, self.blocks)

    def _stages_follow_each_other(self) -> None:
        refuse_misplaced_pilots(self.stages)
        refuse_misplaced_waves(self.stages, self.waves)
        for index, stage in enumerate(self.stages):
            kind = stage.design.kind
            if kind == "uniform":
                continue
            if index == self.pilots:
                raise WrongKey(
                    ("stages", index, "design"), "the first stage has no predictor, so its design must be uniform"
                )
            # Whether it needs a predictor is the instrument's to say, which may have a priority of its own.
            if self.predictor is not None and not self.stages[index - 1].train:
                raise WrongKey(("stages", index - 1, "train"), f"stage {index + 1} is {kind}, so this stage must train")
            if self.candidates.kind == "exhaustive" and stage.design.build().needs_list:
                raise WrongKey(
                    ("stages", index, "design"),
                    f"{kind} needs a number for every single candidate and cannot draw from "
                    'all pairs: use [candidates] kind = "pool"',
                )
            if self.candidates.kind == "exhaustive" and (stage.design.rest_strata or 1) > 1:
                raise WrongKey(
                    ("stages", index, "design", "rest_strata"),
                    'all pairs are cut in two: remove it, or use [candidates] kind = "pool"',
                )
            if kind == "test_set" and stage.roles.holdout:
                raise WrongKey(("stages", index, "roles"), "a test set is held out itself: remove holdout")

    def _models_differ(self) -> None:
        refuse_same_names(self.models)

    @property
    def pilots(self) -> int:
        """How many pilots there are; they come first."""
        return sum(stage.pilot for stage in self.stages)

    @property
    def wave_days(self) -> int:
        """How many days after the last person of wave 1 has finished somebody may still begin the last wave."""
        return sum(wave.after_days + wave.open_days for wave in self.waves)

    @property
    def expected_minutes(self) -> int:
        """How long a sitting is expected to take, for the panel and for the pay by the hour."""
        return self.panel.expected_minutes or self.texts.minutes

    def roles_of(self, index: int) -> RolesConfig:
        """The roles of stage `index` (from 1). A test set needs no holdout next to it."""
        stage = self.stages[index - 1]
        own = {key: value for key, value in stage.roles.model_dump().items() if value is not None}
        if stage.design.kind == "test_set":
            own["holdout"] = 0.0
        return self.roles.model_copy(update=own)

    @property
    def consent(self) -> BlockConfig:
        """The block that people agree to, as they read it."""
        block = self.blocks[0]
        return block.model_copy(update={"text": self.with_values(block.text)})

    @property
    def welcome(self) -> str:
        """The words of the first page, as people read them."""
        return self.with_values(self.texts.welcome)

    @property
    def values_in_texts(self) -> dict[str, str]:
        """What texts may name in braces, and what stands there instead. Without those that the file does not have."""
        values = {ITEMS: str(self.sitting.items), MINUTES: str(self.texts.minutes)}
        if self.panel.reward is not None:
            values[REWARD] = money_for_people(self.panel.reward, self.panel.currency, self.texts.language)
        if self.data.retention_until is not None:
            values[UNTIL] = self.data.retention_until.isoformat()
        return values

    def with_values(self, text: str) -> str:
        """A text as people read it. For a config in one language."""
        return with_values(text, self.values_in_texts) if "{" in text or "}" in text else text

    def block_text(self, block: BlockConfig, levels: Mapping[str, str]) -> str:
        """The block's text under a sitting's levels; the last condition that changes it wins."""
        text = block.text
        for condition in self.conditions:
            changed = condition.texts.get(levels.get(condition.factor, ""), {})
            text = changed.get(block.name or block.kind, text)
        return self.with_values(text)
