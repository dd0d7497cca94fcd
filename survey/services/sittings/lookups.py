"""Looking a person up at the panel while they wait for a page. Imports contracts and services of the base.

Anybody can make up ids, and every look-up costs a call at the panel and a thread here. So look-ups have limits:

- What the panel said about a person is remembered for some minutes.
- Each address has a budget of look-ups that found nobody, and all addresses together have a budget of look-ups. All
  processes share them (`survey.services.base.rate_limits`).
- In each process few look-ups run at the same time, so that a slow panel leaves threads for everybody else.
- After several failures, or when the panel asks for a pause, nobody is asked for a while.

A person who cannot be looked up is not let in. They read that they did nothing wrong, and when to try again.
"""

from datetime import datetime, timedelta
from threading import BoundedSemaphore

from django.utils import timezone

from survey.contracts.panels import LookedUp, Panel, PanelError, PanelIds, Verdict
from survey.models import Study
from survey.services.base.hashing import keyed_digest
from survey.services.base.memory import recall, remember
from survey.services.base.rate_limits import Budget, close, closed_for, give_back, spend

from .refusals import not_checked, too_many_from_here

# A building may share an address: only look-ups that found nobody count.
OF_ADDRESS = Budget("look_up_address", most=20, seconds=600)
OF_ALL = Budget("look_up_all", most=120, seconds=60)
FAILURES = Budget("look_up_failed", most=4, seconds=60)
PAUSE = "look_up_paused"
PAUSE_SECONDS = 60
LONGEST_PAUSE = 600  # seconds that a panel's Retry-After may ask for
MAX_LOOKUPS_AT_ONCE = 2  # in each process
LONGEST_WAIT = 1.0  # seconds, for one of these
SOON = 5  # seconds
# Seconds that an answer is remembered. A submission may have been made a moment ago, so "nobody" is forgotten sooner.
KEPT = {Verdict.SENT: 300, Verdict.NOT_SENT: 60}

_running = BoundedSemaphore(MAX_LOOKUPS_AT_ONCE)


def look_up(panel: Panel, study: Study, ids: PanelIds, *, address: str) -> LookedUp:
    """What the panel says about a person, from memory or from its API.

    Args:
        address: the person's network address.

    Raises:
        EntryRefused: the panel could not be asked. `retry_after` says when to try again.
    """
    key = "survey.look_up:" + keyed_digest([study.pk, ids.panel, ids.person, ids.study, ids.submission], purpose="door")
    if cached := recall(key):
        verdict, part_of = cached
        return LookedUp(Verdict(verdict), part_of)
    now = timezone.now()
    if seconds := closed_for(PAUSE, panel.name, now=now):
        raise not_checked(seconds)
    if seconds := spend(OF_ADDRESS, who=address, now=now):
        raise too_many_from_here(seconds)
    looked_up = None
    try:
        if seconds := spend(OF_ALL, now=now):
            raise not_checked(seconds)
        looked_up = _ask(panel, study, ids, now)
    finally:
        if looked_up is None or looked_up.verdict != Verdict.NOT_SENT:
            give_back(OF_ADDRESS, who=address, now=now)
    if looked_up.verdict in KEPT:
        remember(key, (looked_up.verdict.value, looked_up.part_of), seconds=KEPT[looked_up.verdict])
    return looked_up


def _ask(panel: Panel, study: Study, ids: PanelIds, now: datetime) -> LookedUp:
    if not _running.acquire(timeout=LONGEST_WAIT):
        raise not_checked(SOON)
    try:
        verdict = panel.look_up(study, ids)
        return LookedUp(verdict) if isinstance(verdict, Verdict) else verdict
    except PanelError as exc:
        pause = min(exc.retry_after, LONGEST_PAUSE)
        if not pause and spend(FAILURES, who=panel.name, now=now):
            pause = PAUSE_SECONDS
        if pause:
            close(PAUSE, panel.name, until=timezone.now() + timedelta(seconds=pause))
        raise not_checked(pause or SOON) from exc
    finally:
        _running.release()
