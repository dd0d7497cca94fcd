"""The client: what it repeats and what it never repeats, whole lists, and nothing that reveals a secret."""

import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from django.test import override_settings

from survey.contracts.panels import (
    Bonus,
    PanelBusy,
    PanelError,
    PanelMissing,
    PanelRefused,
    PanelRehearsal,
    PanelUnreachable,
    PayAdvice,
    PostingCost,
    PreparedBonuses,
    SubmissionAtPanel,
)
from survey.exceptions import HunchError
from survey.panels.prolific import account
from survey.panels.prolific.client import ProlificClient, open_client
from survey.panels.prolific.fake import FakeProlific

TOKEN = "secret-token-of-the-account"
PERSON = "60d9aadeb86739de712faee0"
STUDY = {
    "name": "A study",
    "description": "About models",
    "external_study_url": "http://testserver/s/cast/?PROLIFIC_PID={{%PROLIFIC_PID%}}",
    "reward": 250,
    "total_available_places": 10,
    "estimated_completion_time": 12,
    "completion_codes": [{"code": "ABC", "code_type": "COMPLETED", "actions": [{"action": "MANUALLY_REVIEW"}]}],
}
Answer = httpx.Response | Exception


class Line:
    """A client whose calls are answered in turn; `sent` has what arrived and `waits` how long it paused."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.sent: list[httpx.Request] = []
        self.waits: list[float] = []
        self.client = ProlificClient(
            url="https://panel.example",
            token=TOKEN,
            sleep=self.waits.append,
            transport=httpx.MockTransport(self._answer),
        )

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.sent.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def ok(body: Any = None, **headers: str) -> httpx.Response:
    return httpx.Response(200, json=body or {}, headers=headers)


def failing(status: int, **headers: str) -> httpx.Response:
    error = {"status": status, "error_code": 140100, "title": "No", "detail": f"{PERSON} is not possible"}
    return httpx.Response(status, json={"error": error}, headers=headers)


READ: Callable[[ProlificClient], Any] = lambda client: client.submission(PERSON)  # noqa: E731
APPROVE: Callable[[ProlificClient], Any] = lambda client: client.approve(PERSON)  # noqa: E731
PUBLISH: Callable[[ProlificClient], Any] = lambda client: client.transition("s", "PUBLISH")  # noqa: E731
PAY: Callable[[ProlificClient], Any] = lambda client: client.pay_bonuses("b")  # noqa: E731
CUT = httpx.ReadTimeout("cut")


@pytest.mark.parametrize("call", [READ, APPROVE])
@pytest.mark.parametrize("trouble", [CUT, failing(502), httpx.ConnectError("no")])
def test_it_asks_again_where_that_does_no_harm(call: Callable[[ProlificClient], Any], trouble: Answer) -> None:
    line = Line(trouble, ok({"id": "x"}))
    assert call(line.client) == {"id": "x"}
    assert len(line.sent) == 2 and len(line.waits) == 1


@pytest.mark.parametrize("trouble", [CUT, failing(502), httpx.RemoteProtocolError("half an answer")])
def test_it_does_not_ask_again_what_may_have_been_done(trouble: Answer) -> None:
    line = Line(trouble, ok())
    with pytest.raises(PanelUnreachable) as caught:
        PUBLISH(line.client)
    assert len(line.sent) == 1 and not caught.value.outcome_is_known


@pytest.mark.parametrize(
    ("trouble", "known"),
    [
        (CUT, False),
        (failing(502), False),
        (failing(500), False),
        (httpx.RemoteProtocolError("half an answer"), False),
        (httpx.ConnectError("no"), True),
        (httpx.ConnectTimeout("no"), True),
        (failing(429), True),
        (failing(400), True),
        (failing(404), True),
        (failing(408), False),
        (failing(409), False),
        (httpx.Response(302, headers={"Location": "/done/"}), False),
        (httpx.Response(303, headers={"Location": "/done/"}), False),
        (httpx.Response(308, headers={"Location": "/api/v2/pay/"}), True),
        (httpx.Response(304), False),
    ],
)
def test_it_sends_a_payment_once_whatever_comes_back(trouble: Answer, known: bool) -> None:
    line = Line(trouble, ok())
    with pytest.raises(PanelError) as caught:
        PAY(line.client)
    assert len(line.sent) == 1 and caught.value.outcome_is_known is known


@pytest.mark.parametrize("status", [408, 409])
def test_what_may_be_asked_again_is_refused_like_anything_else(status: int) -> None:
    with pytest.raises(PanelRefused) as caught:
        APPROVE(Line(failing(status), ok()).client)
    assert caught.value.outcome_is_known


def test_it_waits_as_long_as_the_panel_asks() -> None:
    line = Line(failing(429, **{"Retry-After": "7"}), ok({"id": "x"}))
    assert PUBLISH(line.client) == {"id": "x"}
    assert 7 <= line.waits[0] < 8


@pytest.mark.parametrize("until", ["3600", "Fri, 31 Dec 2100 23:59:59 GMT"])
def test_it_does_not_wait_for_hours(until: str) -> None:
    line = Line(failing(429, **{"Retry-After": until}), ok())
    with pytest.raises(PanelBusy) as caught:
        READ(line.client)
    assert line.waits == [] and len(line.sent) == 1 and caught.value.retry_after >= 3600


@pytest.mark.parametrize("until", ["Fri, 31 Dec 1999 23:59:59 GMT", "nan", "soon", "-5"])
def test_a_time_that_is_over_or_none_is_not_waited_for(until: str) -> None:
    line = Line(failing(429, **{"Retry-After": until}), ok({"id": "x"}))
    assert READ(line.client) == {"id": "x"} and line.waits[0] < 1


def test_a_name_that_an_answer_lacks_is_said_and_leaves_open_what_was_done() -> None:
    with pytest.raises(PanelUnreachable, match="Prolific: to publish the study: its answer has no 'status'") as caught:
        PUBLISH(Line(ok({"id": "x"})).client)["status"]
    assert not caught.value.outcome_is_known
    with pytest.raises(PanelUnreachable, match="holds no list"):
        list(Line(ok({"results": ["x"]})).client.studies())


def test_it_gives_up_in_the_end() -> None:
    line = Line(*[failing(503)] * 9)
    with pytest.raises(PanelUnreachable):
        READ(line.client)
    assert len(line.sent) == 4


@pytest.mark.parametrize(("status", "kind"), [(404, PanelMissing), (400, PanelRefused), (401, PanelRefused)])
def test_a_no_differs_from_silence(status: int, kind: type[PanelError]) -> None:
    with pytest.raises(kind) as caught:
        READ(Line(failing(status)).client)
    assert caught.value.answered == status
    assert type(caught.value) is kind


@pytest.mark.parametrize(
    "answer", [CUT, failing(400), failing(401), failing(404), failing(500), httpx.Response(200, text=PERSON)]
)
def test_neither_the_token_nor_a_person_is_in_an_error(answer: Answer) -> None:
    line = Line(*[answer] * 4)
    with pytest.raises(PanelError) as caught:
        READ(line.client)
    printed = f"{caught.value!r} {caught.value} {line.client!r} {vars(caught.value)}"
    printed += "".join(traceback.format_exception(caught.value))
    assert TOKEN not in printed and PERSON not in printed


def test_the_panels_own_words_help_with_a_study() -> None:
    with pytest.raises(PanelRefused, match="is not possible"):
        PUBLISH(Line(failing(400)).client)


def test_paths_end_with_a_slash_and_ids_stay_inside_their_part() -> None:
    line = Line(*[ok() for _ in range(6)])
    line.client.study("../users/me")
    line.client.create_study({})
    line.client.approve("a?b")
    line.client.set_places("s", 5)
    line.client.request_return("x", ["why"])
    line.client.pay_bonuses("b")
    paths = [request.url.raw_path.decode() for request in line.sent]
    assert all(path.endswith("/") for path in paths)
    assert paths[0] == "/api/v1/studies/..%2Fusers%2Fme/" and "a%3Fb" in paths[2]
    assert {request.headers["Authorization"] for request in line.sent} == {f"Token {TOKEN}"}


def test_the_token_does_not_follow_a_list_to_another_host() -> None:
    page = {"results": [{"id": 1}], "_links": {"next": {"href": "https://elsewhere.example/api/v1/x/?page=2"}}}
    line = Line(ok(page), ok({"results": [], "_links": {"next": {"href": None}}}))
    assert list(line.client.submissions("s")) == [{"id": 1}]
    assert {request.url.host for request in line.sent} == {"panel.example"}


@pytest.mark.parametrize("people", [0, 1, 4, 5, 8])
def test_a_list_is_read_to_its_end_and_not_past_it(fake: FakeProlific, people: int) -> None:
    fake.page_size = 4
    with open_client() as client:
        study = client.create_study({**STUDY, "total_available_places": 9})["id"]
        client.transition(study, "PUBLISH")
        ids = [taken["id"] for _ in range(people) if (taken := fake.take_place(study))]
        fake.calls.clear()
        assert [submission["id"] for submission in client.submissions(study)] == ids
    assert len(fake.calls) == max(1, -(-people // 4))


def test_a_busy_panel_is_asked_until_it_answers(fake: FakeProlific) -> None:
    fake.busy_every = 2
    with open_client() as client:
        study = client.create_study(STUDY)["id"]
        assert client.transition(study, "PUBLISH")["status"] == "ACTIVE"
        assert client.set_places(study, 12)["total_available_places"] == 12
        with pytest.raises(PanelRefused, match="only be increased"):
            client.set_places(study, 3)


def test_a_bonus_that_is_paid_twice_is_paid_twice(fake: FakeProlific) -> None:
    """What the rest of the code must never do."""
    with open_client() as client:
        study = client.create_study(STUDY)["id"]
        client.transition(study, "PUBLISH")
        taken = fake.take_place(study)
        assert taken
        batch = client.set_up_bonuses(study, [(taken["id"], "1.50")])["id"]
        assert fake.paid == []
        client.pay_bonuses(batch)
        client.pay_bonuses(batch)
    assert [str(amount) for _who, amount in fake.paid] == ["1.50", "1.50"]


def test_without_a_token_nothing_is_asked(settings: Any) -> None:
    settings.HUNCH_PROLIFIC_TOKEN = ""
    with pytest.raises(HunchError, match="HUNCH_PROLIFIC_TOKEN"):
        open_client()


# What an answer says in money


@pytest.mark.parametrize(
    ("said", "cents"),
    [
        (0.5, 1), (1.5, 2), ("2.5", 3), ("2.4999", 2), (7, 7), ({"amount": "12.5", "currency": "USD"}, 13),
        (True, 0), (None, 0), ("much", 0), ({"amount": None}, 0), ([1], 0), (-0.5, -1),
    ],
)  # fmt: skip
def test_half_a_cent_counts_as_a_whole_one(said: Any, cents: int) -> None:
    assert account._cents(said) == cents


@pytest.mark.parametrize(
    ("part", "whole", "hundredths"), [(333, 1000, 3330), (1, 20_000, 1), (1, 20_001, 0), (5, 0, 0), (2, 3, 6667)]
)
def test_a_rate_is_rounded_to_hundredths_of_a_percent(part: int, whole: int, hundredths: int) -> None:
    assert account._hundredths(part, whole) == hundredths


def test_all_places_for_screen_outs_may_be_paid() -> None:
    pays = {"action": "FIXED_SCREEN_OUT_PAYMENT", "fixed_screen_out_reward": 20, "slots": 5}
    codes = [{"actions": [{"action": "AUTOMATICALLY_APPROVE"}, pays]}, {"actions": [{**pays, "slots": 2}]}]
    assert account._screen_outs(codes) == 100 + 40
    assert account._screen_outs([{"actions": [{**pays, "slots": None}]}]) == 0
    assert account._screen_outs([{"actions": [{"action": "x"}]}, "odd", {}]) is None


class Said:
    """An API that answers each call with what the test names, and notes what it was asked."""

    def __init__(self, **answers: Any) -> None:
        self.answers, self.asked = answers, []  # type: dict[str, Any], list[tuple[Any, ...]]

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any, **more: Any) -> Any:
            self.asked.append((name, *args))
            return self.answers[name]

        return call


def test_what_a_posting_has_cost_is_told_apart() -> None:
    def amount(cents: int) -> dict[str, Any]:
        return {"amount": cents, "currency": "USD"}

    rewards = {"rewards": amount(300), "fees": amount(100), "tax": amount(20), "rep_sample_fees": None}
    bonuses = {"rewards": amount(50), "fees": amount(17), "tax": amount(3)}
    of_both = account.ProlificAccount(Said(study_cost={"rewards": rewards, "bonuses": bonuses}))  # type: ignore[arg-type]
    assert of_both.spent("s") == PostingCost(300, 50, 140, "USD")
    of_one = account.ProlificAccount(Said(study_cost={"bonuses": bonuses}))  # type: ignore[arg-type]
    assert of_one.spent("s") == PostingCost(0, 50, 20, "USD")


@pytest.mark.parametrize(
    ("answer", "fees"),
    [
        ({"id": "b", "amount": 130, "total_amount": 180}, 50),
        ({"id": "b", "amount": 130, "total_amount": 130}, 0),
        ({"id": "b", "total_amount": {"amount": 129.5, "currency": "USD"}}, 0),
        ({"id": "b", "amount": 130}, None),
        ({"id": "b"}, None),
    ],
)
def test_what_bonuses_cost_beside_themselves_is_in_the_answer(answer: dict[str, Any], fees: int | None) -> None:
    api = Said(set_up_bonuses=answer)
    prepared = account.ProlificAccount(api).prepare_bonuses("s", [Bonus("x", "p", 105), Bonus("y", "q", 25)])  # type: ignore[arg-type]
    assert prepared == PreparedBonuses("b", fees)
    assert api.asked == [("set_up_bonuses", "s", [("x", "1.05"), ("y", "0.25")])]


@pytest.mark.parametrize(
    "answer", [{"id": "b", "amount": 129}, {"id": "b", "amount": 131}, {"id": "b", "total_amount": 129}]
)
def test_another_sum_than_was_asked_for_is_not_paid(answer: dict[str, Any]) -> None:
    with pytest.raises(PanelRefused, match="130 cents were asked for"):
        account.ProlificAccount(Said(set_up_bonuses=answer)).prepare_bonuses("s", [Bonus("x", "p", 130)])  # type: ignore[arg-type]


def test_what_people_are_paid_in_is_what_counts() -> None:
    row = {"id": "s", "currency_code": "GBP", "presentment_currency_code": "USD", "total_available_places": 4}
    posting = account.ProlificAccount(Said(study=row)).posting("s")  # type: ignore[arg-type]
    assert (posting.currency, posting.places, posting.reward) == ("USD", 4, None)
    del row["presentment_currency_code"]
    assert account.ProlificAccount(Said(study=row)).posting("s").currency == "GBP"  # type: ignore[arg-type]


def test_what_is_read_of_a_submission() -> None:
    row = {
        "id": "x", "participant": "single", "participant_id": "p", "study_id": "own", "study_code": "C",
        "status": "TIMED_OUT", "entered_code": "D", "parent_study_id": "whole", "time_taken": 61.7,
        "return_requested": "2026-11-01T10:00:00Z", "started_at": "2026-11-01T09:00:00+01:00",
        "completed_at": "2026-11-01T09:05:00",
    }  # fmt: skip
    at = [datetime(2026, 11, 1, hour, minute, tzinfo=UTC) for hour, minute in ((10, 0), (8, 0), (9, 5))]
    read = SubmissionAtPanel("x", "p", "asked", "TIMED-OUT", "C", "whole", *at, 61)
    (listed,) = account.ProlificAccount(Said(submissions=[row, {"status": "ACTIVE"}])).submissions("asked")  # type: ignore[arg-type]
    assert listed == read
    del row["participant_id"], row["study_code"], row["id"], row["parent_study_id"]
    row |= {"started_at": "yesterday", "completed_at": None, "time_taken": -1, "return_requested": 7}
    alone = account.ProlificAccount(Said(submission=row)).submission("y")  # type: ignore[arg-type]
    assert alone == SubmissionAtPanel("y", "single", "own", "TIMED-OUT", "D")


def test_a_group_is_found_by_its_name_in_its_project_or_the_workspace(settings: Any) -> None:
    settings.HUNCH_PROLIFIC_WORKSPACE = "w"
    rows = [{"name": "other", "id": "o"}, {"name": "mine"}, {"name": "mine", "id": "m"}]
    api = Said(groups=rows, create_group={"id": "new"})
    asked = account.ProlificAccount(api)  # type: ignore[arg-type]
    assert [asked.group("mine", project="q"), asked.group("mine"), asked.group("none", project="q")] == [
        "m",
        "m",
        "new",
    ]
    in_project, in_workspace = {"project_id": "q"}, {"workspace_id": "w"}
    assert [call[1] for call in api.asked if call[0] == "groups"] == [in_project, in_workspace, in_project]
    settings.HUNCH_PROLIFIC_WORKSPACE = ""
    assert asked.group("mine", project="q") == "m"
    with pytest.raises(PanelRefused, match="name the project"):
        asked.group("mine")


def test_an_hours_pay_is_what_the_newest_row_says() -> None:
    api = Said(reward_recommendations=[])
    with override_settings(HUNCH_PROLIFIC_WORKSPACE="w"):
        with pytest.raises(PanelUnreachable, match="holds none"):
            account.ProlificAccount(api).pay_advice("GBP")  # type: ignore[arg-type]
        api = Said(
            reward_recommendations=[
                {"min_reward_per_hour": 600, "recommended_reward_per_hour": "900", "currency": "USD"},
                {"min_reward_per_hour": 1, "recommended_reward_per_hour": 2},
            ]
        )
        assert account.ProlificAccount(api).pay_advice("GBP") == PayAdvice(600, 900, "USD")  # type: ignore[arg-type]


def test_a_test_study_draws_no_sample_and_filters_nobody() -> None:
    api = Said(create_study={"id": "draft"}, test_study={"study_id": "t", "study_url": "u"})
    sent = {"name": "n", "filters": [1], "filter_set_id": "f", "study_type": "US_REP_SAMPLE", "reward": 100}
    assert account.ProlificAccount(api).rehearse(sent) == PanelRehearsal("t", "u")  # type: ignore[arg-type]
    assert api.asked == [("create_study", {"name": "n", "reward": 100}), ("test_study", "draft")]
