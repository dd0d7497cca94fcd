"""The panel's own side: an API in memory, with words that nobody else uses. Imports nothing of Hunch."""

import json
from dataclasses import dataclass, field
from itertools import count
from typing import Any

SECRET = "swing-and-slide"


class NoSuchThing(Exception):
    """The API's own way of saying 404."""


class LineBroke(Exception):
    """No answer came. Perhaps it was done."""


@dataclass
class ToyServer:
    """Jobs, the tickets of people at them, and a purse."""

    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    tickets: dict[str, dict[str, Any]] = field(default_factory=dict)
    paid: list[tuple[str, int]] = field(default_factory=list)
    loses_the_answer: bool = False  # Of the next payment, which it makes all the same.
    _numbers: Any = field(default_factory=lambda: count(1))
    _keys: set[str] = field(default_factory=set)

    # What the API can do

    def sketch(self, body: dict[str, Any]) -> dict[str, Any]:
        made = {**body, "job": f"job{next(self._numbers)}", "mood": "sketched"}
        self.jobs[made["job"]] = made
        return made

    def job(self, job: str) -> dict[str, Any]:
        if job not in self.jobs:
            raise NoSuchThing(job)
        return self.jobs[job]

    def set_mood(self, job: str, mood: str) -> str:
        self.job(job)["mood"] = mood
        return mood

    def tickets_of(self, job: str) -> list[dict[str, Any]]:
        return [ticket for ticket in self.tickets.values() if ticket["job"] == job]

    def ticket(self, ticket: str) -> dict[str, Any]:
        if ticket not in self.tickets:
            raise NoSuchThing(ticket)
        return self.tickets[ticket]

    def give(self, gifts: list[tuple[str, int]], key: str) -> None:
        if key in self._keys:
            raise AssertionError("the same payment was asked for twice")
        self._keys.add(key)
        self.paid += gifts
        if self.loses_the_answer:
            self.loses_the_answer = False
            raise LineBroke

    # What its people do

    def somebody_comes(self, job: str) -> dict[str, Any]:
        number = next(self._numbers)
        ticket = {"ticket": f"ticket{number}", "who": f"person{number}", "job": job, "mood": "playing", "word": ""}
        self.tickets[ticket["ticket"]] = ticket
        return ticket

    def address(self, ticket: dict[str, Any]) -> str:
        """Where the person is sent: the job's address with its placeholders filled in."""
        address: str = self.jobs[ticket["job"]]["door"]
        for name, value in (("toy_who", ticket["who"]), ("toy_job", ticket["job"]), ("toy_ticket", ticket["ticket"])):
            address = address.replace(f"~{name}~", value)
        return address

    def hand_in(self, ticket: dict[str, Any], word: str) -> None:
        ticket["mood"], ticket["word"] = "waiting", word

    def event(self, ticket: dict[str, Any]) -> tuple[dict[str, str], bytes]:
        """What it posts when a ticket changes: headers and body."""
        body = {"number": next(self._numbers), "what": "ticket", "id": ticket["ticket"], "who": ticket["who"]}
        return {"X-Toy-Secret": SECRET}, json.dumps(body).encode()


SERVER = ToyServer()
