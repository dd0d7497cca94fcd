"""Practice: the usual screen with a fragment that is in no bank."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _

from survey.contracts.instruments import Practice
from survey.contracts.screens import Screen

from .labels import first_word, is_several
from .screens import screen_of

if TYPE_CHECKING:
    from survey.models import Sitting


class ClozePractice(Practice):
    def problems(self, example: Mapping[str, str]) -> Iterable[tuple[str, str]]:
        if not example.get("fragment", "").strip():
            yield "fragment", "is missing: the practice item shows it"
        for name in sorted(set(example) - {"fragment"}):
            yield name, "unknown; the practice item has fragment"

    def screen(
        self, *, sitting: "Sitting", example: Mapping[str, str], given: Sequence[Mapping[str, Any]]
    ) -> Screen | None:
        if len(given) > 1 or (given and not is_several(given[0]["word"])):
            return None
        return screen_of(" ".join(example["fragment"].split()), again=bool(given))

    def summary(self, given: Sequence[Mapping[str, Any]]) -> Sequence[str]:
        return [_("You wrote: %(word)s") % {"word": first_word(given[-1]["word"])}]
