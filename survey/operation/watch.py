"""The watch: a thread of beat that looks every minute whether all works, tells people, and pauses postings.

It is no task, since a task needs Redis and a worker, and both may be what is broken. What it remembers between two
looks is in memory, since the database may be broken too. A thread of each worker checks whether the watch still looks.
"""

import logging
import threading
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from django.conf import settings
from django.db import Error, connection, transaction
from django.utils import timezone

from survey.exceptions import HunchError
from survey.figures.words import date_and_time
from survey.models import WatchRecord
from survey.panels.asking import words_of
from survey.panels.postings import store_pause

from . import alerting, causes, channels, deliveries, pausing, site_health
from .alerting import Cause, Trouble
from .pausing import Recruitment

logger = logging.getLogger(__name__)

EVERY = timedelta(minutes=1)
SILENT_AFTER = timedelta(minutes=5)
# A restart takes less than this: no alert is sent for it.
PATIENCE = {Cause.UNHEALTHY: timedelta(minutes=2), Cause.WORKER_SILENT: timedelta(minutes=3)}
ONLY_ROW = 1


class Watch:
    """`look` is called once a minute, by one thread."""

    def __init__(self) -> None:
        self.unhealthy_since: datetime | None = None
        self.recruitment: list[Recruitment] = []
        # Of the present outage: what the panel was asked to pause, and what needs nothing any more.
        self._asked: set[Recruitment] = set()
        self._settled: set[Recruitment] = set()
        # Paused, and not stored yet: the panel's word, when, why.
        self._unstored: dict[Recruitment, tuple[str, datetime, str]] = {}
        self._first_found: dict[tuple[str, str], datetime] = {}
        self._sent_unstored: dict[tuple[str, str], datetime] = {}

    def resume(self, *, now: datetime) -> None:
        """Take up what an earlier process knew, if it looked lately."""
        row = WatchRecord.objects.filter(pk=ONLY_ROW, looked_at__gt=now - SILENT_AFTER).first()
        if row is not None:
            self.unhealthy_since = row.unhealthy_since

    def look(self, *, now: datetime | None = None) -> None:
        """Look at everything once."""
        now = now or timezone.now()
        problems = site_health.problems()
        silent = [] if "queue" in problems else sorted({*site_health.QUEUES} - site_health.queues_with_a_worker())
        channels.ping(is_well=not problems and not silent)
        self._take_in(problems, now)
        troubles = [*self._pause_where_due(problems, now), *_health_troubles(problems, silent)]
        if "database" in problems:
            self._tell_unstored(self._lasting(troubles, now), now)
            return
        self._sent_unstored.clear()
        troubles += self._store_pauses()
        unseen = set()
        for cause, look in causes.LOOKS.items():
            try:
                troubles += look(now)
            except Exception:  # One study that cannot be read must not silence all others.
                logger.exception("the watch cannot look for: %s", cause.label)
                unseen.add(cause.value)
        record = {"looked_at": now, "unhealthy_since": self.unhealthy_since}
        WatchRecord.objects.update_or_create(pk=ONLY_ROW, defaults=record)
        alerting.store(self._lasting(troubles, now), now=now, not_looked_at=unseen)
        alerting.tell(now=now)
        deliveries.queue_events(now=now)

    def _take_in(self, problems: dict[str, str], now: datetime) -> None:
        if not problems:
            self.unhealthy_since = None
            self._asked.clear()
            self._settled.clear()
        elif self.unhealthy_since is None:
            self.unhealthy_since = now
        if "database" not in problems or not self.recruitment:
            try:
                self.recruitment = pausing.under_way()
            except Error:  # The database is away: what was there at the last look is there still.
                connection.close()

    def _pause_where_due(self, problems: dict[str, str], now: datetime) -> list[Trouble]:
        """Pause everything that sends people, each once in an outage: who starts it again meanwhile means it."""
        minutes = settings.HUNCH_PAUSE_AFTER_MINUTES
        since = self.unhealthy_since
        if not minutes or since is None or now - since < timedelta(minutes=minutes):
            return []
        why = f"the site has not worked since {date_and_time(since)} ({'; '.join(problems.values())})"
        troubles = []
        for recruitment in [recruitment for recruitment in self.recruitment if recruitment not in self._settled]:
            try:
                state = pausing.pause(recruitment, was_asked=recruitment in self._asked)
            except Exception as exc:  # The others are paused all the same, and this one is tried again in a minute.
                if not isinstance(exc, HunchError):
                    logger.exception("%s could not be paused", recruitment.subject)
                troubles.append(pausing.could_not_be_paused(recruitment, f"{why}.", words_of(exc)))
                self._asked.add(recruitment)
                continue
            self._settled.add(recruitment)
            if state is not None:
                logger.warning("%s is paused: %s", recruitment.subject, why)
                self._unstored[recruitment] = (state, timezone.now(), f"{why}.")
        return troubles

    def _store_pauses(self) -> list[Trouble]:
        """Store what was paused. What cannot be stored is stored at a later look."""
        troubles = []
        for recruitment, (state, at, why) in list(self._unstored.items()):
            troubles.append(pausing.was_paused(recruitment, why))
            with transaction.atomic():
                store_pause(recruitment.posting or 0, state, at=at, why=why)
                alerting.add(troubles[-1:], now=at)
            del self._unstored[recruitment]
        return troubles

    def _tell_unstored(self, troubles: Iterable[Trouble], now: datetime) -> None:
        paused = [pausing.was_paused(recruitment, why) for recruitment, (_state, _at, why) in self._unstored.items()]
        repeat = timedelta(hours=settings.HUNCH_ALERT_REPEAT_HOURS)
        due = [
            trouble
            for trouble in [*troubles, *paused]
            if (sent_at := self._sent_unstored.get(trouble.key)) is None or now - sent_at >= repeat
        ]
        if alerting.tell_unstored(due):
            self._sent_unstored |= {trouble.key: now for trouble in due}

    def _lasting(self, troubles: list[Trouble], now: datetime) -> list[Trouble]:
        """Without what may be over in a moment."""
        keys = {trouble.key for trouble in troubles}
        self._first_found = {key: at for key, at in self._first_found.items() if key in keys}
        return [
            trouble
            for trouble in troubles
            if now - self._first_found.setdefault(trouble.key, now) >= PATIENCE.get(trouble.cause, timedelta(0))
        ]


def _health_troubles(problems: dict[str, str], silent: Iterable[str]) -> list[Trouble]:
    unhealthy = [Trouble(Cause.UNHEALTHY, part, problem) for part, problem in problems.items()]
    message = "No worker takes tasks from this queue: check whether it runs, and at its log."
    return unhealthy + [Trouble(Cause.WORKER_SILENT, queue, message) for queue in silent]


def look_at_the_watch(*, running_since: datetime, now: datetime | None = None) -> bool:
    """Tell people if the watch has not looked for some minutes. Called by workers; True if all is well.

    Args:
        running_since: when this worker started. It waits as long for the first look of all.
    """
    now = now or timezone.now()
    row = WatchRecord.objects.filter(pk=ONLY_ROW).first()
    last = max(row.looked_at, running_since) if row else running_since
    if now - last < SILENT_AFTER:
        return True
    message = (
        f"Beat has not looked after the site since {date_and_time(last)}: no work is given out, and no posting is "
        "paused if the site fails. Check whether beat runs, and at its log."
    )
    alerting.add([Trouble(Cause.WATCH_SILENT, "beat", message)], now=now)
    alerting.tell(now=now)
    return False


def start_in_beat() -> None:
    """Begin to look, in a thread that ends with the process."""
    watch = Watch()
    _every_minute("watch", watch.look, first=lambda: watch.resume(now=timezone.now()))


def start_in_worker() -> None:
    started = timezone.now()
    _every_minute("look-at-the-watch", lambda: look_at_the_watch(running_since=started))


def _every_minute(name: str, look: Callable[[], object], *, first: Callable[[], object] | None = None) -> None:
    pause = threading.Event()

    def keep_on() -> None:
        if first is not None:
            _carefully(name, first)
        while not pause.wait(EVERY.total_seconds()):
            _carefully(name, look)

    threading.Thread(target=keep_on, name=name, daemon=True).start()


def _carefully(name: str, look: Callable[[], object]) -> None:
    try:
        look()
    except Exception:
        logger.exception("%s: this look failed; the next one follows", name)
    finally:
        # Each thread has its own connection, and an idle one may be dead a minute later.
        connection.close()
