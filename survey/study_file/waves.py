"""Waves: the same people come back after a while. Wave 1 is the study as it is; each later one says when it is due."""

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from .base import Strict, WrongKey
from .sampling import StageConfig

MAX_WAVES = 20


class WaveConfig(Strict):
    """A later wave. A person may begin `after_days` after they finished the wave before, for `open_days` days.

    `levels`: whether a person has the levels of the wave before in factors that are drawn for each sitting. Kept ones
    make a person's change one under the same conditions.
    """

    after_days: int = Field(ge=0, le=3650)
    """How many days after finishing the wave before a person may begin this one; 0 to 3650."""
    open_days: int = Field(ge=1, le=3650)
    """For how many days they may then begin; 1 to 3650."""
    invite: Literal["all_who_finished"] = "all_who_finished"
    """Who may come: everybody who finished the wave before. Not whom the panel lists as rejected, screened out or
    returned ([panels.md](panels.md#later-waves))."""
    levels: Literal["kept", "drawn"] = "kept"
    """Whether a person keeps the levels of `[[conditions]]` with `per = "sitting"` that they had in the wave before,
    with the chances of that draw, or has them drawn again. Levels of items are always drawn again."""


def refuse_misplaced_waves(stages: Sequence[StageConfig], waves: Sequence[WaveConfig]) -> None:
    """
    Raises:
        WrongKey: with the place in the file.
    """
    last = len(waves) + 1
    before = 1
    for index, stage in enumerate(stages):
        place = ("stages", index, "wave")
        if stage.wave > last:
            raise WrongKey(
                place, f"there is no wave {stage.wave}: the file has {len(waves)} [[waves]] after the first; add one"
            )
        if stage.wave > 1 and all(stage.pilot for stage in stages[:index]):
            raise WrongKey(place, "no stage of wave 1 comes before it but pilots: nobody could come back")
        if stage.wave not in (before, before + 1):
            raise WrongKey(place, f"{stage.wave} comes after {before}: the stages of a wave follow each other")
        if stage.pilot and stage.wave > 1:
            raise WrongKey(place, "a pilot is of wave 1: remove wave or pilot")
        before = stage.wave
    if before < last:
        raise WrongKey(("waves", before - 1), f"no stage belongs to wave {before + 1}: add wave = {before + 1} to one")
