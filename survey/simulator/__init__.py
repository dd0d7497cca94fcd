"""Simulated respondents. They take part over HTTP as real ones do, and know only what a page or the API shows.

The instrument decides how they answer an item (`simulated_person`). Imports services and below.
"""

from .crowd import Crowd, Visit
from .crowd_report import CrowdReport
from .habits import REALISTIC, Rates
from .loopback import loopback_url
from .visitors import SimulationError

__all__ = ["REALISTIC", "Crowd", "CrowdReport", "Rates", "SimulationError", "Visit", "loopback_url"]
