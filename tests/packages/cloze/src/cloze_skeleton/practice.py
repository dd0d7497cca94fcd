"""Examples: a fragment that is in no bank."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from survey.contracts.instruments import Practice
from survey.contracts.screens import Screen

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
        if len(given) > 1 or (given and len(given[0]["word"].split()) == 1):
            return None
        return screen_of(example["fragment"], again=bool(given))

    def summary(self, given: Sequence[Mapping[str, Any]]) -> Sequence[str]:
        return [f"You wrote: {given[-1]['word'].split()[0]}"]
