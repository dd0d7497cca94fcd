"""Practice: the usual screens with a text that is in no bank, and its tokens as the example parts them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from django.utils.translation import gettext as _

from survey.contracts.instruments import Practice
from survey.contracts.screens import Screen
from survey.exceptions import StateRefused
from survey.services.banks.passages import registered, vocabulary_of

from .screens import GuessMade, Play, ShownToken, screen_of
from .wording import shown_token, typed_token

if TYPE_CHECKING:
    from survey.models import Sitting

BETWEEN = "|"


class _Attempt(NamedTuple):
    """A guess of the example: the place of its token, its text, and whether it is right."""

    place: int
    text: str
    right: bool


class NextTokenPractice(Practice):
    """`tokenizer`: the source of the study's tokenizer, None without a study. An example has `text`, and `next`: the
    tokens that follow, with bars between them and raised dots for the spaces that they begin with."""

    def __init__(self, tokenizer: str | None, *, reveal: bool, until_right: bool = False) -> None:
        self._tokenizer, self._reveal, self._until_right = tokenizer, reveal, until_right

    def problems(self, example: Mapping[str, str]) -> Iterable[tuple[str, str]]:
        for name in ("text", "next"):
            if not example.get(name, "").strip():
                yield name, "is missing: the practice item shows text, and asks for each token of next"
        for name in sorted(set(example) - {"text", "next"}):
            yield name, "unknown; the practice item has text and next"
        if self._tokenizer is None or not example.get("next", "").strip():
            return
        try:
            words = vocabulary_of(registered(self._tokenizer))
        except StateRefused:
            return  # The study's own check says so.
        for token in _tokens(example):
            if words.id_of(token) is None:
                yield (
                    "next",
                    f"{shown_token(token)!r} is no token of {self._tokenizer}: part it otherwise, as in ·the|·cat",
                )

    def screen(
        self, *, sitting: "Sitting", example: Mapping[str, str], given: Sequence[Mapping[str, Any]]
    ) -> Screen | None:
        pieces = [ShownToken(token, asked=True) for token in _tokens(example)]
        if any("text" not in entry for entry in given):
            return None  # The page behind the last guess.
        attempts: list[_Attempt] = []
        play = Play.of(attempts, until_right=self._until_right)
        for entry in given:
            place = len(play.done)
            truth, text = pieces[place].text, entry["text"]
            is_right = text.casefold() == truth.casefold() if self._until_right else text == truth
            attempts.append(_Attempt(place, text, is_right))
            play = Play.of(attempts, until_right=self._until_right)
        made = [
            GuessMade(guesses[0].text, piece.text, guesses[0].right, len(guesses))
            for guesses, piece in zip(play.done, pieces, strict=False)
        ]
        return screen_of(
            example["text"],
            pieces,
            made,
            tokenizer=registered(self._tokenizer or ""),
            reveal=self._reveal,
            tried=[guess.text for guess in play.tried],
        )

    def summary(self, given: Sequence[Mapping[str, Any]]) -> Sequence[str]:
        return [_("You made %(number)s guesses.") % {"number": sum("text" in entry for entry in given)}]


def _tokens(example: Mapping[str, str]) -> list[str]:
    return [typed_token(token) for token in example["next"].split(BETWEEN)]
