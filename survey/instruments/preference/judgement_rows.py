"""Rows of the tables of judgements that people have: of two models' replies to a prompt, by a person or a judge."""

from typing import Annotated, ClassVar

from pydantic import ValidationInfo, field_validator

from survey.input_tables import cells
from survey.input_tables.rows import TableRow, column, declared

from .analysis.judgements import TIE, UNREADABLE, A, B

OUTCOMES = {"a": A, "b": B, "tie": TIE}
CODES = {**OUTCOMES, "unreadable": UNREADABLE}
LARGEST = 3.5

RATING = f"is {{}}: a number from -{LARGEST} to {LARGEST}, towards A above 0"
Rating = Annotated[float | None, cells.number(RATING, lambda rating: -LARGEST <= rating <= LARGEST, empty=None)]
First = Annotated[int, cells.choice({"a": 1, "b": -1, "": 0}, "is {}: write a, b, or nothing where it is not known")]
Chance = Annotated[
    float | None, cells.number("is {}: a number from 0 to 1", lambda chance: 0 <= chance <= 1, empty=None)
]
Drawn = Annotated[
    float, cells.number("is {}: a chance is above 0 and up to 1", lambda chance: 0 < chance <= 1, empty=1.0)
]
Required = Annotated[str, cells.text("give it")]


@declared
class PairRow(TableRow):
    """Two models' replies to a prompt, and how they compare."""

    words: ClassVar[tuple[str, ...]] = tuple(OUTCOMES)
    prompt: Required = column("The prompt: its id or its text.")
    model_a: Required = column("The model that wrote reply A.")
    model_b: Required = column("The model that wrote reply B, another one.")
    rating_a: Rating = column(f"In place of outcome: from -{LARGEST}, B, to {LARGEST}, A.", None)
    outcome: cells.Stripped = column("The better reply: a, b or tie.", "")
    first: First = column("Which reply stood first: a, b or empty.", 0)

    @field_validator("model_b")
    @classmethod
    def _is_another(cls, model: str, info: ValidationInfo) -> str:
        if model == info.data.get("model_a"):
            raise ValueError(f"is {model[:60]!r}, as model_a: two models are compared")
        return model

    @field_validator("outcome")
    @classmethod
    def _is_an_outcome(cls, outcome: str, info: ValidationInfo) -> str:
        """Where there is a rating, that says it."""
        outcome = outcome.lower()
        if outcome not in ("", *cls.words) and info.data.get("rating_a", 0) is None:
            raise ValueError(f"is {outcome[:40]!r}: write {cls._either()}")
        return outcome

    @field_validator("judge", "annotator", check_fields=False)
    @classmethod
    def _says_how(cls, name: str, info: ValidationInfo) -> str:
        if name and info.data.get("outcome") == "" and info.data.get("rating_a", 0) is None:
            raise ValueError(f"judged, and outcome does not say how: write {cls._either()}")
        return name

    @classmethod
    def _either(cls) -> str:
        return f"{', '.join(cls.words[:-1])} or {cls.words[-1]}, or a rating in rating_a"

    @property
    def models(self) -> tuple[str, str]:
        return self.model_a, self.model_b

    @property
    def code(self) -> int:
        """The outcome. Where there is a rating, its sign is, unless the row says that it is a tie."""
        rating = self.rating_a
        if rating is None or self.outcome == "tie":
            return CODES.get(self.outcome, TIE)
        return A if rating > 0 else B if rating < 0 else TIE

    @property
    def value(self) -> float:
        """How much better A is."""
        if self.rating_a is not None:
            return self.rating_a
        return 0.0 if self.code == UNREADABLE else float(self.code)


@declared
class VerdictRow(PairRow):
    """A judge's verdict on two replies of a study."""

    is_strict = True
    read_by = "`import_judgements FILE --study SLUG`"
    words = tuple(CODES)
    outcome: cells.Stripped = column("a, b, tie, or unreadable where the judge's reply could not be read.", "")
    judge: Annotated[str, cells.text("name the judge", longest=120)] = column("The judge's name.")
    chance_a: Chance = column("The judge's chance that A is the better one, 0 to 1.", None)
    template: Annotated[str, cells.text(longest=40)] = column("What the judge was asked; at most 40 characters.", "")
    template_version: Annotated[str, cells.text(longest=20)] = column("Its version; at most 20 characters.", "")


@declared
class ItemRow(PairRow):
    """The same of an item of a file of comparisons."""

    category: cells.Stripped = column("The prompt's category.", "")
    prompt_text: cells.Stripped = column("The prompt's text, where prompt is a name: lengths of prompts need it.", "")


@declared
class JudgementRow(ItemRow):
    """A judge's verdict on an item of a file of comparisons."""

    read_by = "`preferences --judgements FILE`"
    words = VerdictRow.words
    outcome: cells.Stripped = column("a, b, tie, or unreadable where the judge's reply could not be read.", "")
    judge: Required = column("The judge's name.")
    chance_a: Chance = column("The judge's chance that A is the better one, 0 to 1.", None)
    probability = 1.0


@declared
class ComparisonRow(ItemRow):
    """A person's comparison of two models' replies to a prompt. A row without annotator and outcome names an item that
    nobody judged."""

    read_by = "`preferences --comparisons FILE`"
    annotator: cells.Stripped = column("Who judged.", "")
    probability: Drawn = column("The chance with which the item was drawn, above 0 and up to 1; empty: 1.", 1.0)
    reply_a: cells.Stripped = column("The reply of model_a, for style and lengths.", "")
    reply_b: cells.Stripped = column("The reply of model_b.", "")
    chance_a = None

    @property
    def judge(self) -> str:
        return self.annotator

    @property
    def replies(self) -> tuple[str, str] | None:
        return (self.reply_a, self.reply_b) if self.reply_a and self.reply_b else None

    @property
    def is_judged(self) -> bool:
        return bool(self.outcome or self.annotator or self.rating_a is not None)
