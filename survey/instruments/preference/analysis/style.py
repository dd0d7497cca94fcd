"""What two replies differ in apart from their content, and how long texts are. Standard library and numpy."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

STYLES = ("log length ratio", "markup", "lists")
"""Each towards A: ln of A's tokens over B's; whether A has markup, less whether B has; the same of lists."""
TOKEN = re.compile(r"\w+|[^\w\s]")
MARKUP = re.compile(r"\*\*\S|__\S|^#{1,6} |`|<[a-zA-Z][^>]*>|\[[^\]]+\]\([^)]+\)", re.MULTILINE)
LIST = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+\S", re.MULTILINE)


def tokens_of(text: str) -> int:
    """Words and marks: each run of letters or digits is one, and so is each other character that is no space. No
    model's tokens: these are the same for all."""
    return sum(1 for _found in TOKEN.finditer(text))


def style_of(a: str, b: str) -> tuple[float, float, float]:
    """The differences of `STYLES` between two replies."""
    ratio = math.log(max(tokens_of(a), 1) / max(tokens_of(b), 1))
    marked, listed = (bool(pattern.search(a)) - bool(pattern.search(b)) for pattern in (MARKUP, LIST))
    return ratio, float(marked), float(listed)


@dataclass(frozen=True)
class Lengths:
    """How long some texts are, in tokens as `tokens_of` counts them, or a model does."""

    what: str
    count: int
    mean: float
    deviation: float | None
    lower: float
    median: float
    upper: float
    shortest: float
    longest: float


def lengths(what: str, texts: Sequence[str], count: Callable[[str], int] = tokens_of) -> Lengths | None:
    """Count, mean, standard deviation (n - 1), quartiles and ends, in tokens as `count` has them; None of no text."""
    if not texts:
        return None
    counts = np.array([count(text) for text in texts], dtype=np.float64)
    lower, median, upper = np.quantile(counts, [0.25, 0.5, 0.75]).tolist()
    deviation = float(counts.std(ddof=1)) if len(counts) > 1 else None
    return Lengths(
        what,
        len(counts),
        float(counts.mean()),
        deviation,
        lower,
        median,
        upper,
        float(counts.min()),
        float(counts.max()),
    )


def lengths_of(
    prompts: Sequence[str],
    replies: Mapping[tuple[str, str], str],
    models: Sequence[str],
    count: Callable[[str], int] = tokens_of,
) -> list[Lengths]:
    """Of prompts, and of each model's replies, which come by prompt and model."""
    longs = [lengths("prompts", prompts, count)]
    for model in models:
        own = [text for (_prompt, name), text in replies.items() if name == model]
        longs.append(lengths(f"replies of {model}", own, count))
    return [long for long in longs if long is not None]
