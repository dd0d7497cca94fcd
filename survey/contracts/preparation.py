"""What is computed of a study's texts and stored, before a plan or a report takes it from there. No Django."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

Progress = Callable[[int, int, str], None]
"""progress(done, total, words). It ends the work with `predictors.errors.Stopped`."""


@dataclass(frozen=True)
class Preparation:
    """What takes too long for a request.

    `texts`: what is read, in the plural, such as "sentences". `prepare`: does what is left to do, and returns how many
    texts each reader has read now. It can be called again: what is stored is passed over. `outside`: what it asks
    behind a server, or reads by its path on this one; whoever has it done needs the permission to ask language models.
    """

    texts: str
    prepare: Callable[[Progress], Mapping[str, int]]
    outside: Sequence[str] = ()
