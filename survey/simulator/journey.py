"""One person's way from the link to the last page, with their habits, by either route. Uses no database.

A page that is sent twice, from two tabs or again after a lost reply, must lead to the same place both times.
"""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from .routes import Route, Shown
from .visitors import Person, SimulationError

MAX_STEPS = 2000  # A study has far fewer; a page that never changes must end in an error and not in a loop.
REPEATS = 0.4  # The chance that a page is sent twice, for people with that habit.
REPEATING = ("double click", "lost reply", "second tab", "tab left behind")
LEFT, STOPPED = "left", "stopped"
SECONDS, SPEEDERS_SECONDS = 12.0, 0.8  # the median time that the browser reports for a page


class Journey:
    """
    Args:
        route: how this browser talks to the server.
        pace: seconds that people look at a page on average; speeders do not wait.
    """

    def __init__(self, *, route: Route, person: Person, go_on: Callable[[], bool], pace: float = 0.0) -> None:
        self.route = route
        self.person = person
        self.go_on = go_on
        self.pace = pace
        self._chance = person.manners
        self._pages = 0
        self._left_behind: Shown | None = None

    def run(self, *, leaves_before: int | None = None) -> str:
        """Take part. Returns the outcome of the end page, why the person was not admitted, "left" or "stopped".

        Raises:
            SimulationError: a page or the API does not do what it promises.
        """
        diary = self.person.diary
        current = self.route.arrive()
        for _step in range(MAX_STEPS):
            if current.refused:
                return current.refused
            if current.kind == "end":
                diary.code = current.code
                return current.outcome
            if self._pages == leaves_before:
                self.route.leave(current, self._seen())
                return LEFT
            if not self.go_on():
                return STOPPED
            current = self._next(current)
            self._pages += 1
            if token := self.route.token:
                diary.tokens.add(token)
        raise SimulationError(f"{current.address}: no end after {MAX_STEPS} steps")

    def _next(self, current: Shown) -> Shown:
        self._look()
        if current.kind == "welcome":
            return self.route.go_in()
        self.route.open(current, self.person)
        after = self._answer(current, self._answers(current))
        if after.errors and after.number == current.number:
            if self.person.habit.kind != "speeder":
                raise SimulationError(f"{current.address or current.kind}: a right answer is refused: {after.errors}")
            self.person.diary.refused_answers += 1
            self.route.open(after, self.person)
            after = self.route.send(after, self._with_times(after, self.route.answers(after, self.person)))
        if current.kind == "item" and after.number != current.number:
            self.person.diary.item_answers += 1
        if self._left_behind is None and current.number is not None:
            self._left_behind = current
        return after

    def _answers(self, current: Shown) -> dict[str, Any]:
        hurried = self.person.habit.kind == "speeder" and current.kind == "item"
        if not hurried:
            return self._with_times(current, self.route.answers(current, self.person))
        return self._with_times(current, self.route.careless(current, self._chance))

    def _with_times(self, current: Shown, answers: Mapping[str, Any]) -> dict[str, Any]:
        return {**answers, **self._seen()} if current.number is not None else dict(answers)

    def _seen(self) -> dict[str, int]:
        """The times that a browser reports for the page."""
        middle = SPEEDERS_SECONDS if self.person.habit.kind == "speeder" else SECONDS
        ready = self._chance.randint(60, 400)
        looked = int(1000 * middle * self._chance.lognormvariate(0, 0.5))
        return {
            "client_shown_ms": ready,
            "client_first_touch_ms": ready + int(looked * self._chance.uniform(0.3, 0.9)),
            "client_submitted_ms": ready + looked,
            "client_hidden_ms": 0,
        }

    def _look(self) -> None:
        if self.pace > 0 and self.person.habit.kind != "speeder":
            time.sleep(self.pace * self._chance.lognormvariate(-0.125, 0.5))

    # Pages that are sent twice

    def _answer(self, current: Shown, answers: Mapping[str, Any]) -> Shown:
        if self.person.habit.kind != "double_tabs" or self._chance.random() >= REPEATS:
            return self.route.send(current, answers)
        how = self._chance.choice(REPEATING)
        if how == "double click":
            first, second = self._twice_at_once(current, answers)
        else:
            first = self.route.send(current, answers)
            if how == "lost reply":
                second = self.route.send(current, answers)
            else:
                stale = self._left_behind if how == "tab left behind" else current
                if stale is None or current.number is None:
                    return first
                second = self.route.send(stale, self._with_times(stale, self.route.careless(stale, self._chance)))
        self.person.diary.repeats[how] += 1
        # After a second consent the server knows the person and asks whether to go on.
        if second.place != first.place and not (current.kind == "consent" and "back" in (first.kind, second.kind)):
            raise SimulationError(
                f"{current.address or current.kind}: {how}: the first led to {first.place}, the second to "
                f"{second.place}"
            )
        return second if how == "lost reply" else first

    def _twice_at_once(self, current: Shown, answers: Mapping[str, Any]) -> tuple[Shown, Shown]:
        replies: list[Shown | Exception] = []

        def click() -> None:
            try:
                replies.append(self.route.send(current, answers))
            except Exception as exc:  # Raised below, in the person's own thread.
                replies.append(exc)

        other = threading.Thread(target=click, name="second click")
        other.start()
        try:
            first = self.route.send(current, answers)
        finally:
            other.join()
        second = replies[0]
        if isinstance(second, Exception):
            raise second
        return first, second
