"""The contract of an instrument under one name, and where instruments are found. Imports no model and no service.

An instrument is a Django app whose `InstrumentApp` (contracts/apps) registers it; core and pages know it only by name.
What to implement is in the files next to this one:

    instrument      `Instrument` and `ListedInstrument`, with `Options`, `Needs` and the version of the contract
    drawing         `Candidates`, and the capabilities `Pairing` and `Priority`
    booklets        the capabilities `Booklets`, `Practice` and `Controls`
    learning        the capability `Learning`; `binary_learning` does it for a label that is yes or no
    answers         the capabilities `Estimates`, `LabelReading`, `Signals` and `StoredVerdicts`
    demonstrations  what `hunch demo` runs
"""

import logging
from typing import TYPE_CHECKING

from survey.exceptions import HunchError, StateRefused

from .answers import Estimates, LabelReading, OutcomeRow, ScoresAgain, Signals, StoredVerdicts
from .booklets import ANOTHER_PERSON, REPEAT, Booklets, BookletsByTask, Controls, Practice
from .demonstrations import Demonstration, DemonstrationVerdict, verdict_word
from .drawing import BlockProgress, Candidates, Pairing, Priority, StreamedDraw
from .instrument import CONTRACT, FieldPath, Instrument, ListedInstrument, Needs, Options
from .learning import AnswerPart, AnswersRead, Baseline, Learning, Metric

if TYPE_CHECKING:
    from survey.models import Study

__all__ = [
    "ANOTHER_PERSON",
    "CONTRACT",
    "REPEAT",
    "AnswerPart",
    "AnswersRead",
    "Baseline",
    "BlockProgress",
    "Booklets",
    "BookletsByTask",
    "Candidates",
    "Controls",
    "Demonstration",
    "DemonstrationVerdict",
    "Estimates",
    "FieldPath",
    "Instrument",
    "InstrumentMissing",
    "LabelReading",
    "Learning",
    "ListedInstrument",
    "Metric",
    "Needs",
    "Options",
    "OutcomeRow",
    "Pairing",
    "Practice",
    "Priority",
    "ScoresAgain",
    "Signals",
    "StoredVerdicts",
    "StreamedDraw",
    "demonstration_with",
    "estimates_of",
    "is_known",
    "kind",
    "learning_of",
    "names",
    "of_study",
    "pairing_of",
    "problem_with",
    "register",
    "report_broken",
    "shipped_banks",
    "verdict_word",
]

logger = logging.getLogger(__name__)


class InstrumentMissing(HunchError):
    """A study's instrument is not installed or is broken, so the study can neither run nor be read."""

    code = "instrument_missing"
    status = 503


_kinds: dict[str, type[Instrument]] = {}
_broken: dict[str, str] = {}


def register(kind: type[Instrument]) -> None:
    """Make an instrument known by its name. One that was written for another contract, or that lacks a method of this
    one, is refused with a warning, so that the rest goes on."""
    written_for = getattr(kind, "contract", None)
    if written_for != CONTRACT:
        report_broken(kind.name, f"it is written for contract {written_for}, and this is contract {CONTRACT}")
        return
    if lacking := sorted(getattr(kind, "__abstractmethods__", ())):
        report_broken(kind.name, f"it lacks {', '.join(lacking)}")
        return
    _broken.pop(kind.name, None)
    _kinds[kind.name] = kind


def report_broken(name: str, reason: str) -> None:
    """Remember and log that an instrument cannot be used."""
    _broken[name] = reason
    logger.warning("the instrument %s cannot be used: %s", name, reason)


def kind(name: str) -> type[Instrument]:
    """The instrument with that name, without a study.

    Raises:
        InstrumentMissing: there is none; lists the names that exist.
    """
    if name in _kinds:
        return _kinds[name]
    if name in _broken:
        raise InstrumentMissing(f"the instrument {name!r} cannot be used: {_broken[name]}")
    raise InstrumentMissing(f"no instrument is called {name!r}; there are: {', '.join(names())}")


def is_known(name: str) -> bool:
    """Whether an instrument of that name can be used."""
    return name in _kinds


def problem_with(name: str) -> str:
    """Why the instrument of that name cannot be used, in a sentence; empty where it can."""
    try:
        kind(name)
    except InstrumentMissing as exc:
        return exc.message
    return ""


def of_study(study: "Study") -> Instrument:
    """The study's instrument, with the study's options.

    Raises:
        InstrumentMissing: it is not installed, or is broken.
    """
    return kind(study.instrument)(study)


def names() -> list[str]:
    return sorted(_kinds)


def shipped_banks() -> frozenset[str]:
    """The names of the banks that instruments bring with them."""
    demonstrations = [kind.demonstration for kind in _kinds.values()]
    return frozenset(
        demonstration.bank for demonstration in demonstrations if demonstration is not None and demonstration.bank
    )


def demonstration_with(bank: str, *, instrument: str = "") -> Demonstration | None:
    """The demonstration that brings this bank; where several do, that of the named instrument, whose study may need
    more than the bank."""
    for name in sorted(_kinds, key=lambda name: (name != instrument, name)):
        demonstration = _kinds[name].demonstration
        if demonstration is not None and bank and demonstration.bank == bank:
            return demonstration
    return None


def pairing_of(instrument: Instrument) -> Pairing:
    """
    Raises:
        StateRefused: the instrument has no such capability.
    """
    if instrument.pairing is None:
        raise StateRefused(f"{instrument.name} does not pair questions")
    return instrument.pairing


def learning_of(instrument: Instrument) -> Learning:
    """
    Raises:
        StateRefused: the instrument has no such capability.
    """
    if instrument.learning is None:
        raise StateRefused(f"{instrument.name} has no label that a predictor could learn")
    return instrument.learning


def estimates_of(instrument: Instrument) -> Estimates:
    """
    Raises:
        StateRefused: the instrument has no such capability.
    """
    if instrument.estimates is None:
        raise StateRefused(f"{instrument.name} names nothing to estimate")
    return instrument.estimates
