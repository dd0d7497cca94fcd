"""The practice item: the instrument's usual screen with the researcher's example, which is in no bank."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

from survey.contracts.instruments import Practice
from survey.contracts.screens import Screen
from survey.models import Sitting

from .forms import question_of
from .screens import screen_of

TEXTS = ("prompt", "reply_1", "reply_2")


class PreferencePractice(Practice):
    """`options_of`: a sitting's options under its levels."""

    def __init__(self, options_of: Any) -> None:
        self._options_of = options_of

    def problems(self, example: Mapping[str, str]) -> Iterable[tuple[str, str]]:
        for name in TEXTS:
            if not example.get(name, "").strip():
                yield name, "is missing: the practice item shows it"
        for name in sorted(set(example) - set(TEXTS)):
            yield name, f"unknown; the practice item has {', '.join(TEXTS)}"

    def screen(
        self, *, sitting: Sitting, example: Mapping[str, str], given: Sequence[Mapping[str, Any]]
    ) -> Screen | None:
        if given:
            return None
        options = self._options_of(sitting)
        return screen_of(
            prompt=example["prompt"],
            replies=[example["reply_1"], example["reply_2"]],
            options=options,
            reason=options.reason_share > 0,
        )

    def summary(self, answers: Sequence[Mapping[str, Any]]) -> Sequence[str]:
        """What was chosen, without saying whether it was right."""
        answer = answers[0]
        if answer.get("cannot_judge"):
            return [_("You said that you cannot judge this.")]
        return [
            _("%(question)s You chose %(place)s of 8.") % {"question": question_of(name), "place": place}
            for name, place in answer.items()
            if str(place).isdigit() and name not in ("screen", "cannot_judge", "reason")
        ]
