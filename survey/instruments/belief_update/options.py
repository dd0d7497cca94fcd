"""The belief update's options in the study file. Imports only pydantic, the registry's base class, the study file's
errors, and from bandit how many evidence questions an item may have."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from bandit import MOST_STEPS
from survey.contracts.instruments import Options
from survey.study_file import WrongKey

AnswerMode = Literal["direction", "blank", "keep_button", "prefilled"]
SHARE = 'write "none", "all", or a share above 0 and up to 1, for example 0.25'

# The options of studies created before these options existed: their pages must stay as people saw them.
OLDER: Mapping[str, Any] = {"answer_mode": "blank", "models": "unsaid", "edition": 1}
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
    }
)
ORDER_WORDS = ("shuffled", "drawn")


def is_order(text: str, many: int) -> bool:
    """Whether the text is an order of so many evidence questions, such as 2-1."""
    return sorted(text.split("-")) == [str(number) for number in range(1, many + 1)]


class BeliefUpdateOptions(Options):
    threshold: int = Field(default=0, ge=0, le=99, description="A change counts where it exceeds this, in points.")
    answer_mode: AnswerMode = Field(default="direction", description="How the second number is asked for.")
    answerer: Literal["model", "ai_or_person"] = Field(
        default="model",
        description="Who answers, as the pages have it; a condition of the factor answerer says it for each sitting.",
    )
    models: Literal["different", "one", "unsaid"] = Field(
        default="different", description="Whether every item is about another model, as the pages have it."
    )
    evidence: Literal["hypothetical", "real"] = "hypothetical"
    language_model: str = Field(default="", max_length=120, description="Whose real answers are the evidence.")
    show_answer: bool = Field(default=False, description="Whether what the model really wrote is shown.")
    explanation: str | float = Field(default="none", description="After how many of the items reasons are asked for.")
    explanation_required: bool = False
    explanation_characters: int = Field(default=1000, ge=1, le=5000, description="The longest explanation.")
    own_answer: bool = Field(default=False, description="Whether people answer the target question themselves.")
    confidence: bool = Field(default=False, description="Whether they say how sure they are of their own answer.")
    evidence_questions: int = Field(
        default=1, ge=1, le=MOST_STEPS, description="How many evidence questions an item has, one after another."
    )
    evidence_order: str = Field(
        default="shuffled",
        max_length=11,
        description='In which order: "shuffled" for each person and item, "drawn", or numbers such as "2-1".',
    )
    priority: Literal["none", "gap", "additivity", "last_change"] = Field(
        default="none",
        description="What stages draw by in place of the predictor's chances; the last two need several questions.",
    )
    aid: Literal["none", "similar_questions"] = Field(
        default="none", description="What is shown beside the target: how the model did on similar questions."
    )
    aid_questions: int = Field(default=10, ge=2, le=50, description="How many similar questions the aid counts.")
    aid_similarity: Literal["words", "embeddings"] = Field(
        default="words", description="By what questions are similar: their words, or stored embeddings."
    )
    edition: Literal[1, 2] = Field(default=2, description="Which edition of the pages' own words and slider is shown.")

    @model_validator(mode="before")
    @classmethod
    def real_answers_are_those_of_one_model(cls, given: Any) -> Any:
        """The default if the file says nothing; pages must not say that one model's answers come from many."""
        if isinstance(given, dict) and given.get("evidence") == "real" and "models" not in given:
            return {**given, "models": "one"}
        return given

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
        if self.edition == 1:
            raise WrongKey(("edition",), "its pages show one evidence question: remove this key")
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
