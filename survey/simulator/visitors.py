"""One simulated person: their answers outside the items, what they do, and their browser."""

import functools
import random
import ssl
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx

from survey.contracts import panels
from survey.contracts.screens import SimulatedPerson
from survey.exceptions import HunchError
from survey.models import Respondent, Study
from survey.services.base.seeds import derive
from survey.services.sittings import entry
from survey.services.sittings.identities import unseal
from survey.study_file import CellConfig, StudyConfig

from .habits import ORDINARY, Habit

MISREADS = 0.08  # The share of people who get a comprehension check wrong at first.
CARELESS = 0.04  # The share of people who answer attention checks without reading them.
REMARK = "No remarks. (This person is simulated.)"


class SimulationError(HunchError):
    """A page or the API did not do what it promises. The message has the address and the reply."""

    code = "simulation_failed"
    status = 500


# People of two runs must differ even if the runs share a seed. Otherwise the second run's people would be refused
# because they have taken part already.
_identity = random.SystemRandom()


def made_up_ids(config: StudyConfig) -> dict[str, str]:
    """What a panel's address carries for a new person; nothing in an open study."""
    names = panels.find(config.panel.kind).parameter_names(config).values()
    return {name: f"{_identity.getrandbits(96):024x}" for name in names}


def queries(study: Study, *, count: int, root: str) -> Sequence[Mapping[str, str]]:
    """What the addresses of so many simulated people carry.

    Args:
        root: scheme and host of the server.
    """
    queries = panels.of_study(study).simulated_queries(study, count=count, root=root)
    return queries if queries is not None else [made_up_ids(study.config) for _number in range(count)]


def queries_of_returning(study: Study, people: Sequence[Respondent], *, root: str) -> Sequence[Mapping[str, str]]:
    """What the addresses of simulated people carry who come back for a later wave."""
    opened = (unseal(bytes(who.panel_identity.ids_encrypted).decode()) for who in people)
    known = [ids for ids in opened if ids is not None]
    return panels.of_study(study).returning_queries(study, known, root=root)


@dataclass
class Diary:
    """What one person did, as they saw it. `tokens` are those of the sittings they were admitted to; there must be at
    most one."""

    tokens: set[str] = field(default_factory=set)
    item_answers: int = 0
    returned: int = 0
    refused_answers: int = 0
    repeats: Counter[str] = field(default_factory=Counter)
    outcome: str = ""
    code: str = ""


class Person:
    """A person's answers outside the items, to checks and forms. They depend on the seed only.

    `link` holds the parameters of the person's own link. They are made up if the study's panel sends ids. `cells` are
    those of the study's quotas in which the person belongs.
    """

    def __init__(
        self,
        *,
        config: StudyConfig,
        items: SimulatedPerson,
        seed: int,
        habit: Habit = ORDINARY,
        link: Mapping[str, str] | None = None,
        cells: Sequence[CellConfig] = (),
    ) -> None:
        self.items = items
        self.habit = habit
        self.diary = Diary()
        self.manners = random.Random(derive(seed, "habit"))  # noqa: S311 - reproducible on purpose
        self._chance = random.Random(seed)  # noqa: S311 - reproducible on purpose
        self._misreads = self._chance.random() < MISREADS
        # A separate generator: attention checks must not change the answers elsewhere.
        self._attention = random.Random(derive(seed, "attention"))  # noqa: S311
        self._careless = self._attention.random() < CARELESS or habit.kind == "speeder"
        # The words of every level: a person reads those of their own.
        configs = [config, *(config.naming(name) for name in config.answerers)]
        self._attention_checks = {
            check.name: {
                text for config in configs for text in config.sitting.attention_checks[place].options[: check.right]
            }
            for place, check in enumerate(config.sitting.attention_checks)
        }
        self._right = {
            check.name: {config.blocks[block].checks[place].options[0] for config in configs}
            for block, of_block in enumerate(config.blocks)
            for place, check in enumerate(of_block.checks)
        }
        self._fields = {field.name: field for block in config.blocks for field in block.fields}
        self._cells = cells
        self.panel_ids = made_up_ids(config) if link is None else link
        # What their browser and their front end keep from a first visit. Both are empty before it.
        self.cookies: httpx.Cookies | None = None
        self.kept: Mapping[str, str] = {}

    def answer_checks(self, checks: Mapping[str, Sequence[tuple[str, str]]]) -> dict[str, str]:
        """The value of the right option of each check. People who misread choose one wrong option at first."""
        answers = {}
        for name, options in checks.items():
            right = next((value for value, text in options if text in self._right.get(name, ())), None)
            if right is None:
                raise SimulationError(f"the check {name!r} does not show its right option")
            answers[name] = right
        if self._misreads:
            self._misreads = False
            name, right = next(iter(answers.items()))
            answers[name] = next(value for value, _text in checks[name] if value != right)
        return answers

    def answer_attention(self, checks: Mapping[str, Sequence[tuple[str, str]]]) -> dict[str, str]:
        """A right option of the attention check, or any option for people who do not read it."""
        answers = {}
        for name, options in checks.items():
            right = [value for value, text in options if text in self._attention_checks.get(name, ())]
            if not right:
                raise SimulationError(f"the check {name!r} does not show its right option")
            answers[name] = self._attention.choice([value for value, _text in options] if self._careless else right)
        return answers

    def answer_fields(self, names: Sequence[str]) -> dict[str, Any]:
        answers: dict[str, Any] = {}
        for name in names:
            field = self._fields[name]
            if (belonging := self._belonging(name)) is not None:
                answers[name] = belonging
            elif field.kind == "choice":
                answers[name] = self._chance.choice([code for code in field.codes if code not in field.screen_out])
            elif field.kind == "multiple":
                together = [code for code in field.codes if code not in field.exclusive]
                answers[name] = self._chance.sample(together, self._chance.randint(1, len(together)))
            elif field.kind == "likert":
                answers[name] = str(self._chance.randint(1, field.points or 1))
            elif field.kind == "number":
                low = 18 if field.minimum is None else field.minimum
                high = max(low, 80) if field.maximum is None else field.maximum
                answers[name] = str(self._chance.randint(low, high))
            else:
                answers[name] = REMARK[: field.max_characters]
        return answers

    def _belonging(self, name: str) -> str | None:
        """An answer of somebody who belongs in the person's cells; None where these do not ask for it."""
        for cell in self._cells:
            if name in cell.answers:
                return self._chance.choice(cell.answers[name])
            if name in cell.between:
                return str(self._chance.randint(*cell.between[name]))
        return None


@functools.cache
def _certificates() -> ssl.SSLContext:
    """All clients share them: reading them takes longer than a page does."""
    return httpx.create_ssl_context(trust_env=False)


def open_client(
    base_url: str, cookies: httpx.Cookies | None = None, *, transport: httpx.BaseTransport | None = None
) -> httpx.Client:
    """One browser with its own cookies, or with those of a closed one. It uses no proxy and visits only this host.

    Args:
        transport: what answers in place of a server.
    """
    home = urlsplit(base_url).netloc

    def stay_at_home(request: httpx.Request) -> None:
        if request.url.netloc.decode() != home:
            raise SimulationError(f"led away from {base_url} to {request.url}")

    return httpx.Client(
        base_url=base_url,
        cookies=cookies,
        headers={entry.SIMULATED_HEADER: entry.simulated_mark(), "Referer": f"{base_url}/"},
        transport=transport,
        follow_redirects=True,
        trust_env=False,
        verify=_certificates(),
        timeout=60.0,  # A laptop that also trains may answer slowly.
        event_hooks={"request": [stay_at_home]},
    )
