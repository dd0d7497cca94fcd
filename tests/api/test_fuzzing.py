"""Whatever is sent, the API answers as its OpenAPI document says: generated requests, in process, always the same.

Each run of the tests takes some of each kind. 10,000 of them, in some minutes:

    python -m tests.run tests/api/test_fuzzing.py --generated 210
"""

import itertools
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test import Client
from hypothesis import HealthCheck, Phase, given, settings

from survey.api import running
from survey.models import ApiToken, Study
from tests import cast
from tests.api.documented import connection_kept, generated, operations, validate
from tests.api.test_researchers import token_of
from tests.api.test_respondents import Person
from tests.kept import kept

pytestmark = [pytest.mark.django_db, pytest.mark.slow, pytest.mark.every_database, pytest.mark.thorough]
EXAMPLES = 12  # As --generated says.
RESPONDENTS = {"study_info", "sitting_begin", "sitting_step", "sitting_answer", "sitting_left", "sitting_report"}
RESEARCHERS = {
    *("studies", "stages", "answers", "answers_csv"),
    *("reports", "report", "leaderboard", "estimates"),
    *("overview", "study_file", "stage", "steps", "runs"),
    *("jobs", "job_kinds", "job", "job_file", "readings"),
}
RUNNERS = {"stage_move", "stage_action", "study_create", "postings", "job_ask", "job_cancel", "report_files"}
RUNNERS |= {"receivers", "receiver", "receiver_add", "receiver_switch", "receiver_remove", "receiver_test"}
RUNNERS |= {"wave_invite"}
ANYBODY = {"index"}
MODES = ("positive", "negative")  # Requests that fit the document, and such that do not.
ANSWERED_AT = ("checks", "item", "form")


@pytest.fixture(autouse=True)
def examples(pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.EXAMPLES", pytestconfig.getoption("--generated"))


@contextmanager
def undone() -> Iterator[None]:
    """What a request writes is taken back, so that each begins alike."""
    with connection_kept(), transaction.atomic():
        yield
        transaction.set_rollback(True)


def send_generated(operation: Any, mode: str, headers: dict[str, str], *, requests: int | None = None) -> Counter[int]:
    """Send generated requests about the cast's study, check every response, and count them by status."""
    seen: Counter[int] = Counter()
    actions, indices = itertools.cycle(running.ACTIONS), itertools.cycle([1, 2, 3])
    # The first one can be made; the others say why they cannot.
    names = itertools.cycle(["budget", "arms", "composition"])

    @settings(
        max_examples=requests or EXAMPLES,
        derandomize=True,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=generated(operation, mode))
    def each(case: Any) -> None:
        if "number" in case.path_parameters and mode == "positive":
            case.path_parameters = {**case.path_parameters, "number": 1}
        if "slug" in case.path_parameters:
            named = {"name": next(names)} if "name" in case.path_parameters else {}
            if "index" in case.path_parameters:
                named["index"] = next(indices)
            if "wave" in case.path_parameters:
                named["wave"] = 2
            if "receiver" in case.path_parameters:
                named["receiver"] = 1
            if "action" in case.path_parameters:
                named["action"] = next(actions)
            case.path_parameters = {"slug": "cast", **named}
        with undone():
            response = case.call(headers=headers)
        seen[response.status_code] += 1
        validate(case, response)

    each()
    return seen


def test_every_operation_is_tried() -> None:
    assert set(operations()) == RESPONDENTS | RESEARCHERS | RUNNERS | ANYBODY


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", sorted(RESPONDENTS - {"sitting_answer", "sitting_step"}))
def test_respondents_are_answered_as_documented(name: str, mode: str) -> None:
    cast.open_study()
    person = Person(Client()).go_to("item")
    seen = send_generated(operations()[name], mode, {"X-Sitting-Token": person.token})
    # A generated address can be wrong in only one thing: it asks for a language that does not exist.
    fits = mode == "positive" or name == "study_info"
    assert any(status < 300 or status == 409 for status in seen) == fits, seen


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ANSWERED_AT)
def test_steps_are_answered_as_documented(kind: str, mode: str) -> None:
    cast.open_study()
    person = Person(Client()).go_to(kind)
    seen = send_generated(operations()["sitting_answer"], mode, {"X-Sitting-Token": person.token})
    assert set(seen) <= ({200, 409, 422} if mode == "positive" else {400}), seen


@kept
def study_with_answers() -> Study:
    study = cast.open_study()
    cast.walk(cast.begin(study))
    return study


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", sorted(RESEARCHERS))
def test_researchers_are_answered_as_documented(name: str, mode: str) -> None:
    operation = operations()[name]
    if mode == "negative" and not operation.query:
        return  # nothing in its address can be wrong
    study_with_answers()
    # PostgreSQL gets half of them: how an address is read is the same there.
    requests = EXAMPLES // 2 if connection.vendor == "postgresql" else EXAMPLES
    headers = {"Authorization": f"Token {token_of('reader', may_export=True)}"}
    assert not set(send_generated(operation, mode, headers, requests=requests)) & {401, 403}


@pytest.mark.parametrize("mode", MODES)
def test_a_stage_is_acted_on_as_documented(mode: str) -> None:
    cast.open_study()
    seen = send_generated(operations()["stage_action"], mode, {"Authorization": f"Token {runner()}"})
    assert set(seen) <= {200, 400, 404, 409, 422}, seen
    # A generated address may be wrong where its body is right, and `send_generated` puts an action that exists there.
    assert 200 in seen if mode == "positive" else 400 in seen, seen


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["job_ask", "job_cancel", "report_files"])
def test_workers_are_asked_as_documented(name: str, mode: str) -> None:
    operation = operations()[name]
    if mode == "negative" and name == "job_cancel":
        return  # nothing in its address can be wrong
    cast.open_study()
    seen = send_generated(operation, mode, {"Authorization": f"Token {runner()}"})
    assert not set(seen) & {401, 403} and max(seen) < 500, seen


def test_postings_are_listed_as_documented() -> None:
    cast.open_study()
    headers = {"Authorization": f"Token {runner()}"}
    assert set(send_generated(operations()["postings"], "positive", headers)) == {200}


@pytest.mark.parametrize("mode", MODES)
def test_a_study_is_created_as_documented(mode: str) -> None:
    seen = send_generated(operations()["study_create"], mode, {"Authorization": f"Token {runner()}"})
    assert set(seen) <= {400, 413, 422}, seen  # No generated text is a study file.


def test_the_list_of_addresses_is_as_documented() -> None:
    assert set(send_generated(operations()["index"], "positive", {})) == {200}


@pytest.mark.parametrize("mode", MODES)
def test_a_stage_is_moved_as_documented(mode: str) -> None:
    cast.open_study()
    seen = send_generated(operations()["stage_move"], mode, {"Authorization": f"Token {runner()}"})
    assert set(seen) <= ({200, 404, 409} if mode == "positive" else {400}), seen


def runner() -> str:
    user = User.objects.create_superuser("runner")
    return ApiToken.issue(user=user, scope=ApiToken.Scope.RUN)[1]


@pytest.mark.parametrize("name", sorted(RESEARCHERS | RUNNERS))
def test_researchers_without_a_good_token_learn_that(name: str) -> None:
    """A sixth of the requests: who asks is looked at before anything that was generated."""
    cast.open_study()
    forged = {"Authorization": "Token forged"}
    may_not = {"Authorization": f"Token {token_of('other', may_export=False)}"}
    for headers, status in ((forged, 401), (may_not, 403)):
        seen = send_generated(operations()[name], "positive", headers, requests=max(1, EXAMPLES // 6))
        assert set(seen) == {status}
