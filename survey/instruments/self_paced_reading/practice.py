"""Practice: the usual screens with a text that is in no bank."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _

from survey.contracts.instruments import Practice
from survey.contracts.screens import Screen

from .screens import passage_screen, question_screen

if TYPE_CHECKING:
    from survey.models import Sitting

NEEDED, POSSIBLE = ("text",), ("text", "question")


class ReadingPractice(Practice):
    def problems(self, example: Mapping[str, str]) -> Iterable[tuple[str, str]]:
        if len(example.get("text", "").split()) < 2:
            yield "text", "has fewer than two words: the practice item shows it word by word"
        for name in sorted(set(example) - set(POSSIBLE)):
            yield name, "unknown; the practice item has text and perhaps question"

    def screen(
        self, *, sitting: "Sitting", example: Mapping[str, str], given: Sequence[Mapping[str, Any]]
    ) -> Screen | None:
        if not given:
            return passage_screen(example["text"].split())
        if len(given) == 1 and example.get("question", "").strip():
            return question_screen(example["question"])
        return None

    def summary(self, answers: Sequence[Mapping[str, Any]]) -> Sequence[str]:
        times = answers[0]["times"]
        count = len(times) if isinstance(times, list) else len(str(times).split())
        return [_("You have read %(words)s words.") % {"words": count}]
