"""What reads texts, as options of commands name it."""

from collections.abc import Sequence

from predictors.errors import PredictorError
from predictors.readings import Source, parse_source
from survey.exceptions import HunchError


def sources_of(texts: Sequence[str]) -> list[Source]:
    """
    Raises:
        HunchError: one names no source.
    """
    try:
        return [parse_source(text) for text in texts]
    except PredictorError as exc:
        raise HunchError(str(exc)) from exc
