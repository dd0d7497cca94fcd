"""The exceptions of this library. Imports nothing, so that every caller may name them."""

from __future__ import annotations


class PredictorError(ValueError):
    """The caller's data or settings cannot be used; the message names the field and the fix."""


class CheckpointError(PredictorError):
    """A pretrained checkpoint or a saved predictor cannot be read: missing, altered, or its hub is out of reach."""


class Stopped(Exception):
    """A progress callback returned False, so the work ended before it was done."""
