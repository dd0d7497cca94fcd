"""What a report of reading times is made from, of a study or of files."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from predictors.evaluation.reading_times import PreparedWords, SingleTimes, TimedWords, prepared
from survey.instruments.self_paced_reading.analysis.cleaning import Cleaned, CleaningRules, ReadTimes, cleaned
from survey.services.results.people_and_models.model_comparison import ModelFacts


@dataclass(frozen=True, eq=False)
class ReadingMaterial:
    """W words of passages, T times, and the surprisals (W,) of each model, NaN where it says nothing.

    frequencies_known: whether log frequencies were asked for; without them there is no delta log-likelihood. fixated:
    (T,) whether the previous word was fixated, for times of eye-tracking that say so. smooth: whether length, frequency
    and position enter fits as curves.
    """

    passage_names: tuple[str, ...]
    words: TimedWords
    times: ReadTimes
    has_people: bool
    models: Mapping[str, np.ndarray]
    rules: CleaningRules
    previous: int = 2
    frequencies_known: bool = True
    keeps_punctuation: bool = False
    fixated: np.ndarray | None = None
    smooth: bool = False
    facts: Mapping[str, ModelFacts] = field(default_factory=dict)
    """What is known of each model."""
    unknown: np.ndarray | None = None
    """(W,) which words any of the models read as one class of everything unknown."""

    @cached_property
    def cleaning(self) -> Cleaned:
        return cleaned(self.times, self.rules)

    @cached_property
    def kept(self) -> ReadTimes:
        """The times that count."""
        keep, all_times = self.cleaning.keep, self.times
        return ReadTimes(
            all_times.word[keep],
            all_times.passage[keep],
            all_times.person[keep],
            all_times.time[keep],
            all_times.right[keep],
            all_times.marked[keep],
        )

    @property
    def enters_fixated(self) -> bool:
        """Whether fits hold whether the previous word was fixated."""
        return self.has_people and self.fixated is not None

    @cached_property
    def kept_singles(self) -> SingleTimes:
        """The times that count, as fits take them."""
        times = self.kept
        fixated = None if self.fixated is None else self.fixated[self.cleaning.keep]
        return SingleTimes(times.word, times.person, times.passage, times.time, fixated)

    @cached_property
    def prepared(self) -> PreparedWords:
        return prepared(
            self.words, keeps_punctuation=self.keeps_punctuation, previous=self.previous, smooth=self.smooth
        )
