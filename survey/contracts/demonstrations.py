"""The study that `hunch demo --instrument NAME` runs, and whether it found what it should."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Demonstration:
    """What `hunch demo --instrument NAME` runs.

    `study_file`: its name in `studies/`, or a path. `load_bank`: path of a function without arguments, as
    module.function, that returns the study's bank and imports it, with all that the study needs in addition to it,
    unless it is stored. `verdict`: path of a function (study, null) that returns a `DemonstrationVerdict`; without it
    the last stage must find more of the first outcome than the first stage. `bank`: the name of the bank that
    `load_bank` returns. Who may make studies sees the banks of these names, and a template that names one gets it.
    `predictor`: used in place of the file's. `pool`: the same of the size of a stage's candidates. `reversal`: what
    `--reversal` runs in its place.
    """

    study_file: str
    load_bank: str
    verdict: str = ""
    bank: str = ""
    predictor: str = ""
    pool: int | None = None
    reversal: "Demonstration | None" = None


@dataclass(frozen=True)
class DemonstrationVerdict:
    """Whether a demonstration found what it should, in a sentence. `figures`: for programs to read."""

    passed: bool
    sentence: str
    figures: Mapping[str, Any]


def verdict_word(*, near: bool, held: bool) -> str:
    """The word with which a demonstration's verdict begins.

    Args:
        near: every figure lies as near to its truth as a right one does, but for once in thousands of runs.
        held: every printed 95 % interval holds its truth too. Of right intervals one in twenty does not, so that a miss
            is no failure; but it is not passed over either.
    """
    return ("PASSED" if held else "UNCLEAR") if near else "FAILED"
