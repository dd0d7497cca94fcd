"""The belief update's options in the study file. Imports only pydantic, the registry's base class, the study file's
errors, and from bandit how many evidence questions an item may have."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from pydantic import Field, JsonValue, field_validator, model_validator

from bandit import MAX_STEPS
from survey.contracts.instruments import Options
from survey.study_file import WrongKey

from .wording import NEWEST_EDITION

AnswerMode = Literal["direction", "blank", "keep_button", "prefilled"]
SHARE = 'write "none", "all", or a share above 0 and up to 1, for example 0.25'

# What a condition may change. Not the threshold, since there is one label, and nothing that decides on the items.
BY_CONDITION = frozenset(
    {
        "aid",
        "answer_mode",
        "answerer",
        "models",
        "show_answer",
        "explanation",
        "explanation_required",
        "explanation_characters",
        "own_answer",
        "confidence",
        "evidence_order",
        "pay_for_accuracy",
    }
)
ORDER_WORDS = ("shuffled", "drawn")
# What the documents give as a default, so that they do not change with each edition.
THE_NEWEST: dict[str, JsonValue] = {"default_in_words": "the newest"}


def is_order(text: str, many: int) -> bool:
    """Whether the text is an order of so many evidence questions, such as 2-1."""
    return sorted(text.split("-")) == [str(number) for number in range(1, many + 1)]


class BeliefUpdateOptions(Options):
    by_condition = BY_CONDITION
    money: ClassVar[frozenset[str]] = frozenset({"pay_for_accuracy"})
    earlier_defaults: ClassVar[Mapping[str, Sequence[Any]]] = {"edition": range(1, NEWEST_EDITION)}

    threshold: int = Field(default=0, ge=0, le=99)
    """A belief counts as changed if posterior and prior differ by more points than this. 0 to 99."""
    answer_mode: AnswerMode = "direction"
    """How the second number is asked for: `"direction"` (lower, the same or higher, in an order drawn for each sitting,
    then a number if it changed), `"blank"` (an empty field for a number), `"keep_button"` (a number, or a button that
    keeps the first one), `"prefilled"` (a field that contains the first number). It affects how often beliefs change.
    May differ by condition."""
    answerer: Literal["model", "ai_or_person"] = "model"
    """Who answers according to the items: `"model"`, or `"ai_or_person"`, which leaves it open. A condition whose
    factor is called `answerer` and whose levels are these two sets it for each sitting or item. May differ by
    condition."""
    models: Literal["different", "one", "unsaid"] = "different"
    """What the pages say: `"different"`: every item is about another language model (or another AI system or person);
    `"one"`: all are about the same one; `"unsaid"`: nothing about this, nor whether answers are real or supposed. Real
    evidence comes from one model, so its default is `"one"`. May differ by condition."""
    evidence: Literal["hypothetical", "real"] = "hypothetical"
    """`"hypothetical"`: both outcomes are drawn and neither is a fact. `"real"`: only outcomes that `language_model`
    really had are drawn and shown."""
    language_model: str = Field(default="", max_length=120)
    """With real evidence: the model, by the name under which its answers were imported or collected."""
    show_answer: bool = False
    """With real evidence: what the model wrote is shown as well. May differ by condition."""
    explanation: str | float = "none"
    """After which items a page asks for reasons: `"none"`, `"all"`, or a share above 0 and up to 1, drawn for each item
    before it is answered, so that people who change are asked as often as those who do not. May differ by condition."""
    explanation_required: bool = False
    """Whether the reasons may be left empty. May differ by condition."""
    explanation_characters: int = Field(default=1000, ge=1, le=5000)
    """The longest explanation, 1 to 5000. May differ by condition."""
    own_answer: bool = False
    """Whether people answer the target question themselves on the last page of an item. May differ by condition."""
    confidence: bool = False
    """Whether they say there, from 0 to 100 percent, how sure they are of it. Needs `own_answer`. May differ by
    condition."""
    evidence_questions: int = Field(default=1, ge=1, le=MAX_STEPS)
    """How many evidence questions an item has, one after another, with a belief after each: 1 to 3
    ([belief-in-steps.md](belief-in-steps.md))."""
    evidence_order: str = Field(default="shuffled", max_length=11)
    """With several: `"shuffled"` for each person and item, `"drawn"` (the item's own order), or a fixed order such as
    `"2-1"`. May differ by condition."""
    priority: Literal["none", "gap", "additivity", "last_change"] = "none"
    """What stages other than uniform ones draw by. With one evidence question: `"none"`, the predictor's chances, or
    `"gap"`, how far people's belief is predicted to lie from what language models really do
    ([below](#sampling-where-people-and-models-part)). With several: `"additivity"` or `"last_change"`."""
    aid: Literal["none", "similar_questions"] = "none"
    """`"similar_questions"`: next to the target, in how many of the questions most like it the model was really right;
    see [An aid next to the target](#an-aid-next-to-the-target). Needs real evidence. May differ by condition."""
    aid_questions: int = Field(default=10, ge=2, le=50)
    """How many similar questions the aid counts, 2 to 50."""
    aid_similarity: Literal["words", "embeddings"] = "words"
    """By what questions are similar: `"words"`, or `"embeddings"` of their texts, which the job `prepare` or `hunch
    embed_questions BANK` stores first."""
    pay_for_accuracy: bool = False
    """Whether one belief of each sitting is drawn, and wins a point of `panel.bonus_per_point`, the more likely
    the nearer it is to what the model really did; see [Paying for being right](#paying-for-being-right). Needs real
    evidence. May differ by condition."""
    edition: int = Field(default=NEWEST_EDITION, ge=1, le=NEWEST_EDITION, json_schema_extra=THE_NEWEST)
    """Which edition of the pages' own sentences is shown. A new study gets the newest one and keeps it when a later
    version of Hunch has other sentences."""

    @model_validator(mode="before")
    @classmethod
    def real_answers_are_those_of_one_model(cls, value: Any) -> Any:
        """The default if the file says nothing; pages must not say that one model's answers come from many."""
        if isinstance(value, dict) and value.get("evidence") == "real" and "models" not in value:
            return {**value, "models": "one"}
        return value

    @field_validator("explanation", mode="before")
    @classmethod
    def is_a_share(cls, value: Any) -> Any:
        if value in ("none", "all"):
            return value
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
            raise ValueError(SHARE)
        return float(value)

    @model_validator(mode="after")
    def fits_together(self) -> "BeliefUpdateOptions":
        if self.evidence == "real" and self.models == "different":
            raise WrongKey(("models",), 'real answers are those of one model: set "one", or "unsaid" to say nothing')
        if self.aid != "none" and self.evidence != "real":
            raise WrongKey(
                ("aid",),
                'it says what a model really answered: set evidence = "real" and language_model = "..." as well',
            )
        if self.pay_for_accuracy and self.evidence != "real":
            raise WrongKey(
                ("pay_for_accuracy",),
                'nobody can be right about a supposed answer: set evidence = "real" and language_model = "..." as well',
            )
        if self.confidence and not self.own_answer:
            raise WrongKey(("confidence",), "it is that in the own answer: set own_answer = true as well")
        self._check_steps()
        return self

    def _check_steps(self) -> None:
        many = self.evidence_questions
        if many == 1:
            for name, alone in (("evidence_order", ("shuffled",)), ("priority", ("none", "gap"))):
                if getattr(self, name) not in alone:
                    raise WrongKey(
                        (name,), "only items with several evidence questions have it: set evidence_questions to 2 or 3"
                    )
            return
        if self.priority == "gap":
            raise WrongKey(
                ("priority",), "items with several evidence questions have no gap: use additivity or last_change"
            )
        if self.aid != "none":
            raise WrongKey(("aid",), "items with several evidence questions show no aid: remove one of the two")
        if self.evidence_order not in ORDER_WORDS and not is_order(self.evidence_order, many):
            example = "-".join(map(str, range(many, 0, -1)))
            raise WrongKey(
                ("evidence_order",),
                f'write "shuffled", "drawn", or each number from 1 to {many} once, such as "{example}"',
            )

    @property
    def explanation_share(self) -> float:
        """The share of items after which reasons are asked for."""
        if isinstance(self.explanation, float):
            return self.explanation
        return 1.0 if self.explanation == "all" else 0.0
