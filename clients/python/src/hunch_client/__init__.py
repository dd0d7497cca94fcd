"""Create, run and read the studies of a Hunch server. See README.md."""

from .client import Hunch, Job, Overview, Stage, Step, Study
from .errors import HunchAway, HunchError
from .events import EventRefused, event_of

__all__ = [
    "EventRefused",
    "Hunch",
    "HunchAway",
    "HunchError",
    "Job",
    "Overview",
    "Stage",
    "Step",
    "Study",
    "event_of",
]
