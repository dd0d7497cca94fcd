"""What ensembles of networks have in common: devices, both classes' columns, progress of a part, JSON files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from predictors.errors import PredictorError
from predictors.pairs import Progress


def device_of(name: str) -> torch.device:
    """The device that a setting names; "auto" is a GPU where there is one.

    Raises:
        PredictorError: it is not available here.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as exc:
        raise PredictorError(f"device: {name!r} is not available here; use 'auto' or 'cpu'.") from exc
    return device


def both_classes(changed: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probabilities of change, (n,), as columns (n, 2): belief kept, belief changed."""
    return np.column_stack([1 - changed, changed])


def part_of_progress(progress: Progress | None, index: int, count: int, text: str) -> Progress | None:
    """Progress of part `index` of `count` equal parts, told as progress of the whole."""
    if progress is None or count == 1:
        return progress

    def told(done: int, total: int, inner: str) -> bool | None:
        return progress(index * total + done, count * total, f"{text}: {inner}")

    return told


def write_json(path: Path, value: Any) -> None:
    """Write `value` so that equal content gives equal bytes."""
    path.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n", encoding="utf-8")
