"""Reading texts with language models: how probable each token was, given all before it.

A reader knows no estimator and nothing of the survey. Importing this package loads nothing heavier than numpy: torch
and transformers are imported by `predictors.readings.causal`, on first use.
"""

from predictors.readings.sources import SCHEMES, Source, parse_source
from predictors.readings.text_reading import NO_DETAIL, READING_VERSION, Detail, Text, TextReader, TextReading

__all__ = [
    "NO_DETAIL",
    "READING_VERSION",
    "SCHEMES",
    "Detail",
    "Source",
    "Text",
    "TextReader",
    "TextReading",
    "parse_source",
]
