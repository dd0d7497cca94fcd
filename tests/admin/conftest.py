"""A study in its second stage with people from a panel, and the people who look at it."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.cache import cache
from django.test import Client

from survey.contracts.panels import PanelIds
from survey.models import Stage, Study
from survey.services.base.groups import ensure_researchers_group
from survey.services.sittings.answering import advance
from survey.services.sittings.flow import current_step
from survey.services.stages import jobs, lifecycle
from tests import cast
from tests.kept import kept

# What the panel calls its people; no page but one may show any of it.
PERSON, SUBMISSION = "PANELPERSON", "PANELSUBMISSION"


def panel_ids(number: int) -> PanelIds:
    return PanelIds("prolific", f"{PERSON}{number}", "PANELSTUDY", f"{SUBMISSION}{number}")


@pytest.fixture(autouse=True)
def _empty_cache() -> None:
    # Keys of rows come again in the next test's database.
    cache.clear()


def take_part(study: Study, number: int, *, until: str = "end") -> None:
    """Answer steps until one of that kind. The third answer of everybody keeps its belief, all others change theirs."""
    sitting = cast.begin(study, panel_ids(number))
    step = current_step(sitting)
    while step.kind not in ("end", until):
        keeps = step.screen and step.screen.name == "posterior" and step.position == 3
        data = cast.answers_for(step, **({"value": "60"} if keeps else {}))
        step = advance(sitting=sitting, step=step.number, data=data)


def stage_of(study: Study, index: int = 1) -> Stage:
    return Stage.objects.select_related("study__bank").get(study=study, index=index)


@pytest.fixture
def study(db: None) -> Study:
    return study_in_its_second_stage()


@kept
def study_in_its_second_stage() -> Study:
    """Stage 1 is frozen and has trained a predictor, stage 2 is open with one person done and one inside."""
    made = cast.open_study(
        panel=cast.PROLIFIC,
        predictor={"name": "same_task"},
        stages=[{"sittings": 2}, {"sittings": 3, "design": {"kind": "epsilon_greedy"}}],
        conditions=[{"factor": "framing", "levels": ["plain", "warm"]}],
    )
    for number in range(101, 103):
        take_part(made, number)
    jobs.run_inline(lifecycle.close_stage(stage_of(made)))
    lifecycle.open_stage(stage_of(made, 2))
    take_part(made, 201)
    take_part(made, 202, until="item")
    return made


def client_of(user: Any) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def study_first(request: pytest.FixtureRequest, db: None) -> None:
    """Accounts are made after the study of their test, which is put back only into an empty database."""
    for name in ("busy", "study"):
        if name in request.fixturenames:
            request.getfixturevalue(name)


@pytest.fixture
def superuser(study_first: None) -> Any:
    users = get_user_model().objects
    return users.filter(username="super").first() or users.create_superuser("super")


@pytest.fixture
def as_superuser(superuser: Any) -> Client:
    return client_of(superuser)


@pytest.fixture
def researcher(study_first: None) -> Iterator[Any]:
    """Owns every study of the test, and may spend in it."""
    user = get_user_model().objects.create_user("researcher", is_staff=True)
    user.groups.add(ensure_researchers_group())
    with cast.owner_of_every_study(user):
        yield user


@pytest.fixture
def as_researcher(researcher: Any) -> Client:
    return client_of(researcher)


@pytest.fixture
def onlooker(study_first: None) -> Any:
    """Staff without any permission."""
    return get_user_model().objects.create_user("onlooker", is_staff=True)
