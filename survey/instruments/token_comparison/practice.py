"""Practice: the usual screens with a researcher's examples, with their rewards."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from survey.contracts.instruments import Practice
from survey.contracts.screens import Screen
from survey.services.banks.passages import RAISED_DOT
from survey.services.base.seeds import derive

from .analysis.rewards import points
from .screens import choice_in_words, comparison_screen, revealed_screen

if TYPE_CHECKING:
    from survey.models import Sitting

TEXTS = ("context", "true", "other", "g_true")


class ComparisonPractice(Practice):
    def __init__(self, ratios: Sequence[int]) -> None:
        self._ratios = ratios

    def problems(self, example: Mapping[str, str]) -> Iterable[tuple[str, str]]:
        for name in TEXTS:
            if not example.get(name, "").strip():
                yield name, "is missing: the practice comparison has context, true, other and g_true"
        for name in sorted(set(example) - set(TEXTS)):
            yield name, f"unknown; the practice comparison has {', '.join(TEXTS)}"
        if example.get("true") and example.get("true") == example.get("other"):
            yield "other", "is the true token: name another one"
        if example.get("g_true", "").strip() and chance_of(example) is None:
            yield "g_true", f"{example['g_true'][:20]!r} is no chance: write a number above 0 and up to 1, such as 0.3"

    def screen(
        self, *, sitting: "Sitting", example: Mapping[str, str], given: Sequence[Mapping[str, Any]]
    ) -> Screen | None:
        left = bool(derive(sitting.stage.seed, "practice side", sitting.public_id.hex, example["context"]) % 2)
        context, true = example["context"], token_of(example["true"])
        if not given:
            tokens = (true, token_of(example["other"]))
            return comparison_screen(context=context, tokens=tokens if left else tokens[::-1], ratios=self._ratios)
        if len(given) > 1:
            return None
        stated = int(given[0]["percent_left"])
        return revealed_screen(
            context=context,
            true=true,
            true_is_left=left,
            percent_left=stated,
            reward=points(stated if left else 100 - stated, g_true=chance_of(example) or 0.0),
            total=None,
        )

    def summary(self, answers: Sequence[Mapping[str, Any]]) -> Sequence[str]:
        return [choice_in_words(int(answers[0]["percent_left"]))]


def token_of(written: str) -> str:
    """A token as an example has it, with raised dots for its spaces: a file keeps no space at the end of a text."""
    return written.replace(RAISED_DOT, " ")


def chance_of(example: Mapping[str, str]) -> float | None:
    """The generator's chance of the true token in an example; None where it is none."""
    try:
        value = float(example["g_true"])
    except ValueError:
        return None
    return value if 0 < value <= 1 else None
