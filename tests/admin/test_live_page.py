"""The part of the study page that refreshes by itself: one picture for all who look, and what stands in it."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from survey.live import people, snapshots, stage_sections
from survey.models import AttentionAnswer, CheckAttempt, LiveSnapshot, QuestionReport, Sitting, Study
from survey.services.answers.leaving import Leavers
from survey.services.sittings.withdrawal import withdraw
from tests import cast
from tests.statements import QueryCounts
from tests.survey.sittings.test_quotas import OFTEN, come, study_of

from .conftest import client_of, stage_of, take_part

pytestmark = pytest.mark.slow


def page(study: Study) -> str:
    return f"/admin/survey/study/{study.pk}/change/"


def part(study: Study) -> str:
    return f"/admin/survey/study/{study.pk}/live/"


def body_of(client: Client, address: str) -> str:
    return client.get(address).content.decode()


@pytest.fixture
def every_hour(settings: Any) -> None:
    """No picture grows old within a test."""
    settings.HUNCH_LIVE_SECONDS = 3600


@pytest.fixture
def makings(monkeypatch: pytest.MonkeyPatch) -> list[Study]:
    """The studies of which a quick half was made, one entry each time."""
    made: list[Study] = []
    quick = snapshots._quick

    def noted(study: Study, *arguments: Any) -> Any:
        made.append(study)
        return quick(study, *arguments)

    monkeypatch.setattr(snapshots, "_quick", noted)
    return made


# One picture for all


@pytest.mark.thorough
@pytest.mark.usefixtures("every_hour")
def test_ten_who_look_cost_one_making(study: Study, superuser: User, makings: list[Study]) -> None:
    clients = [client_of(superuser) for _one in range(10)]
    bodies = [body_of(client, address(study)) for client in clients for address in (page, part)]
    assert len(makings) == 1
    assert all("stage 2 is open" in body.lower() for body in bodies)


@pytest.mark.usefixtures("every_hour")
def test_it_is_made_anew_when_it_is_too_old(study: Study, as_superuser: Client, makings: list[Study]) -> None:
    body_of(as_superuser, part(study))
    LiveSnapshot.objects.update(quick_at=timezone.now() - timedelta(hours=2))
    body_of(as_superuser, part(study))
    assert len(makings) == 2


@pytest.mark.usefixtures("every_hour")
def test_who_looks_while_somebody_makes_it_gets_the_one_before(
    study: Study, as_superuser: Client, makings: list[Study]
) -> None:
    body_of(as_superuser, part(study))
    hour = timedelta(hours=1)
    LiveSnapshot.objects.update(
        quick_at=timezone.now() - 2 * hour, quick_claimed_until=timezone.now() + snapshots.CLAIM
    )
    assert "2 of 3" not in body_of(as_superuser, part(study)) and len(makings) == 1
    LiveSnapshot.objects.update(quick_claimed_until=timezone.now() - hour)  # It died, and its claim has run out.
    body_of(as_superuser, part(study))
    assert len(makings) == 2


@pytest.mark.usefixtures("every_hour")
def test_the_first_one_is_awaited_where_another_process_makes_it(study: Study, as_superuser: Client) -> None:
    LiveSnapshot.objects.create(study=study, quick_attempt=1, quick_claimed_until=timezone.now() + snapshots.CLAIM)
    for address in (page(study), part(study)):
        assert "The first picture of this study is being made" in body_of(as_superuser, address)


@pytest.mark.usefixtures("every_hour")
def test_the_page_waits_for_no_half_that_takes_long_and_its_part_does(
    study: Study, as_superuser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "FEW_ANSWERS", 0)
    for address, has_waited in ((page(study), False), (part(study), True)):
        LiveSnapshot.objects.all().delete()
        body_of(as_superuser, address)
        assert (LiveSnapshot.objects.get().slow_at is not None) == has_waited, address


@pytest.mark.usefixtures("every_hour")
def test_who_made_it_too_long_does_not_write(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    made = snapshots._quick

    def overtaken(*arguments: Any) -> Any:
        LiveSnapshot.objects.update(quick_attempt=7, quick={}, quick_claimed_until=None)
        return made(*arguments)

    monkeypatch.setattr(snapshots, "_quick", overtaken)
    snapshots.look(study)
    row = LiveSnapshot.objects.get()
    assert (row.quick_attempt, row.quick, row.quick_at) == (7, {}, None)


@pytest.mark.usefixtures("every_hour")
def test_what_fails_gives_it_back(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: Any) -> Any:
        raise ValueError

    with monkeypatch.context() as patched:
        patched.setattr(snapshots, "_quick", broken)
        with pytest.raises(ValueError):
            snapshots.look(study)
    assert LiveSnapshot.objects.get().quick_claimed_until is None
    assert snapshots.look(study) is not None


@pytest.mark.usefixtures("every_hour")
def test_an_action_is_seen_at_once(study: Study, as_researcher: Client) -> None:
    assert "Stage 2 is open" in body_of(as_researcher, page(study))
    as_researcher.post(f"/admin/survey/study/{study.pk}/stages/2/pause/")
    assert "Stage 2 is paused" in body_of(as_researcher, page(study))


@pytest.mark.usefixtures("every_hour")
def test_a_withdrawal_empties_it(study: Study) -> None:
    assert snapshots.look(study) is not None
    withdraw(respondent=Sitting.objects.filter(stage=stage_of(study)).first().respondent, now=timezone.now())  # type: ignore[union-attr]
    row = LiveSnapshot.objects.get()
    assert (row.quick, row.slow, row.quick_at) == ({}, {}, None)


def test_the_snapshot_comes_back_from_json_as_it_was(study: Study) -> None:
    slow = snapshots._slow(study)
    quick = snapshots._quick(study, slow, timezone.now())
    assert snapshots.rebuilt(snapshots.Slow, snapshots.plain(slow)) == slow
    again = snapshots.rebuilt(snapshots.Quick, snapshots.plain(quick))
    assert snapshots.plain(again) == snapshots.plain(quick)


# What stands in it


def test_the_part_is_a_part_and_says_so(study: Study, as_superuser: Client) -> None:
    answer = as_superuser.get(part(study))
    assert answer["X-Hunch-Live"] == "1"
    body = answer.content.decode()
    assert body.lstrip().startswith('<div id="live"') and "<html" not in body and "<script" not in body
    assert f'hx-get="{part(study)}"' in body_of(as_superuser, page(study))


def test_the_funnel_leads_from_arrival_to_the_end(study: Study) -> None:
    first, second = people.funnels(study, [stage_of(study, 1), stage_of(study, 2)])
    assert (first.arrived, first.finished, first.worst) == (2, 2, None)
    assert [line.name for line in second.lines] == [
        "instructions",
        "checks",
        *("item 1", "item 2", "item 3"),
        "form about_you",
        "debriefing",
        "finished",
    ]
    assert [line.reached for line in second.lines] == [2, 2, 2, 1, 1, 1, 1, 1]
    assert [line.here for line in second.lines] == [0, 0, 1, 0, 0, 0, 0, 0]


@pytest.mark.django_db
def test_the_funnel_counts_those_inside_those_who_left_and_those_beyond_the_file() -> None:
    """A file that was amended may have had more steps; who has done all items stands at the last one."""
    stage = cast.stage_of(cast.small_study())
    config = stage.study.config
    items = [block.kind for block in config.blocks].index("items")
    rows = [
        ("", "complete", 0, 0, 5),
        ("", "live", items, 0, 1),
        ("", "live", items, config.sitting.items, 2),
        ("", "expired", 1, 0, 3),
        ("", "expired", 99, 0, 1),
    ]
    leavers = Leavers(left=frozenset({1}), finished_late=frozenset({2, 3}))
    funnel = people._funnel(stage.study, stage, rows, 2, leavers)
    assert (funnel.arrived, funnel.finished, funnel.withdrawn) == (12, 5, 2)
    assert (funnel.left, funnel.finished_late) == (1, 2)
    first, *_others, end = funnel.lines
    of_items = [line for line in funnel.lines if line.is_item]
    assert (first.reached, first.left, first.share_left) == (12, 3, 0.25) and (end.name, end.reached) == ("finished", 5)
    assert [line.here for line in of_items] == [1, *[0] * (len(of_items) - 2), 2]
    assert funnel.lines[-2].left == 1 and funnel.worst == first
    assert people.FunnelLine("x", 0, 0, 0).share_left == 0


def test_checks_levels_and_arrivals_count_each_once(study: Study) -> None:
    stage = stage_of(study, 2)
    mine = Sitting.objects.filter(stage=stage).first()
    assert mine is not None
    mine.check_attempts.update(answers={"first_check": 1, "second_check": 0})
    CheckAttempt.objects.create(
        sitting=mine, attempt=2, answers={"first_check": 1, "second_check": 1}, passed=False, at=timezone.now()
    )
    for name, passed in (("look", True), ("look2", False)):
        AttentionAnswer.objects.create(
            sitting=mine, name=name, position=1, answer=0, shown=[0, 1], passed=passed, at=timezone.now()
        )
    counts = {check.name: (check.shown, check.failed, check.failed_again) for check in people.checks(study, [stage])}
    assert counts["first_check"] == (2, 1, 1) and counts["second_check"] == (2, 0, 1)
    assert (counts["look"], counts["look2"]) == ((1, 0, None), (1, 1, None))
    now = timezone.now()
    Sitting.objects.filter(stage=stage).update(started_at=now - timedelta(hours=people.HOURS))
    assert sum(hour.arrivals for hour in people.arrivals([stage], now)) == 2
    assert people.arrivals([stage], now + timedelta(seconds=1)) == ()


@pytest.mark.django_db
def test_levels_of_items_are_complete_where_the_answer_counts() -> None:
    factor = {"factor": "framing", "levels": ["plain", "warm"], "per": "item"}
    study = cast.open_stage(conditions=[factor], sitting={"items": 4}, stages=[{"sittings": 6}]).study
    visitor = cast.Visitor(study).to_items()
    visitor.answer()
    lines = people.balance(study, [cast.stage_of(study)])
    assert [(line.level, line.per) for line in lines] == [("plain", "item"), ("warm", "item")]
    assert sum(line.given for line in lines) == 4
    assert sum(line.complete for line in lines) == visitor.sitting.assignments.filter(state="counted").count() == 1


@pytest.mark.thorough
def test_it_says_where_people_leave(study: Study, as_superuser: Client) -> None:
    sitting = Sitting.objects.get(stage=stage_of(study, 2), state="live")
    Sitting.objects.filter(pk=sitting.pk).update(state="expired", expired_at=timezone.now())
    (_first, second) = people.funnels(study, [stage_of(study, 1), stage_of(study, 2)])
    assert second.worst is not None and (second.worst.name, second.worst.left, second.worst.reached) == ("item 1", 1, 2)
    assert "Most people leave at <strong>item 1</strong>: 1 of the 2" in body_of(as_superuser, page(study))


def test_times_of_screens_are_counted_in_every_stage(study: Study) -> None:
    times = people.screen_times(study, [stage_of(study, 1), stage_of(study, 2)])
    names = [(screen.kind, screen.name) for screen in times if screen.stage == 1]
    assert names == [
        ("instructions", ""),
        ("checks", ""),
        ("item", "prior"),
        ("item", "posterior"),
        ("form", "about_you"),
        ("debriefing", ""),
    ]
    assert {screen.times for screen in times if screen.stage == 1 and screen.kind == "item"} == {6}
    assert all(screen.lower <= screen.median <= screen.upper <= screen.ninetieth for screen in times)


@pytest.mark.django_db
def test_quantiles_are_those_of_the_times() -> None:
    study = cast.open_study()
    take_part(study, 301)
    rows = people.Response.objects.filter(screen="prior").order_by("pk")
    for row, ms in zip(rows, (1000, 2000, 10**9), strict=True):
        people.Response.objects.filter(pk=row.pk).update(server_ms=ms)
    (prior,) = (
        screen_time for screen_time in people.screen_times(study, [stage_of(study)]) if screen_time.name == "prior"
    )
    assert (prior.lower, prior.median) == (1.125, 2.125) and prior.upper > 600


def test_conditions_checks_and_arrivals_are_counted(study: Study) -> None:
    stages = [stage_of(study, 1), stage_of(study, 2)]
    levels = people.balance(study, stages)
    assert {(level.stage, level.level) for level in levels} == {(1, "plain"), (1, "warm"), (2, "plain"), (2, "warm")}
    assert [level.given for level in levels] == [1, 1, 1, 1] and sum(level.complete for level in levels) == 3
    checks = people.checks(study, stages)
    assert {(check.stage, check.name, check.shown, check.failed) for check in checks} == {
        (stage, name, 2, 0) for stage in (1, 2) for name in ("first_check", "second_check")
    }
    assert sum(hour.arrivals for hour in people.arrivals(stages, timezone.now())) == 4


def test_a_remark_stands_with_its_questions_and_only_for_who_may_read(
    study: Study, as_researcher: Client, django_user_model: Any
) -> None:
    answer = stage_of(study).slots.get(number=1).assignments.get()
    QuestionReport.objects.create(
        sitting=answer.sitting, assignment=answer, screen="prior", text="WORDS OF SOMEBODY", at=timezone.now()
    )
    body = body_of(as_researcher, page(study))
    assert "WORDS OF SOMEBODY" in body and answer.slot.item.pair.target.external_id in body
    assert "WORDS OF SOMEBODY" not in str(LiveSnapshot.objects.values())
    viewer = django_user_model.objects.create_user("viewer", is_staff=True)
    viewer.groups.add(*django_user_model.objects.get(username="researcher").groups.all())
    cast.join(viewer, study, "viewer", may_spend=False)
    assert "WORDS OF SOMEBODY" not in body_of(client_of(viewer), page(study))


def test_a_viewer_sees_no_money(study: Study, django_user_model: Any, as_researcher: Client) -> None:
    stage = stage_of(study, 2)
    stage.arrivals += 1
    stage.save(update_fields=["arrivals"])
    viewer = django_user_model.objects.create_user("viewer", is_staff=True)
    viewer.groups.add(*django_user_model.objects.get(username="researcher").groups.all())
    cast.join(viewer, study, "viewer", may_spend=False)
    assert "Counts differ. Stage 2 counted 3 arrivals and has 2 sittings" in body_of(as_researcher, page(study))
    assert "Counts differ" not in body_of(client_of(viewer), page(study))


@pytest.mark.query_counts("admin pages")
@pytest.mark.usefixtures("every_hour")
def test_looking_takes_at_most_ten_statements(study: Study, as_superuser: Client, query_counts: QueryCounts) -> None:
    snapshots.look(study)
    query_counts.count("GET study page", lambda: as_superuser.get(page(study)))
    query_counts.count("GET study page, its live part", lambda: as_superuser.get(part(study)))
    assert max(query_counts.rows.values()) <= 10


def test_making_it_takes_as_many_statements_for_many_people_as_for_few(study: Study) -> None:
    snapshots.look(study)
    with CaptureQueriesContext(connection) as few:
        snapshots.look(study)
    take_part(study, 203)
    with CaptureQueriesContext(connection) as many:
        snapshots.look(study)
    assert len(many) == len(few)


def test_the_places_of_quotas_are_shown_while_a_stage_runs(as_researcher: Client, superuser: User) -> None:
    made = cast.open_stage("quotas", **study_of(OFTEN)).study
    client = client_of(superuser)
    assert "Found it full" not in body_of(client, page(made)), "nobody has come"
    come(made, use="daily").finish()
    for use in ("daily", "daily", "never"):
        come(made, use=use)
    snapshots.forget(made)
    body = body_of(client, part(made))
    section = body[body.index('id="quotas"') : body.index("</section>", body.index('id="quotas"'))]
    cells = re.findall(r'(?:"row"|data-label="(?:Places|Inside|Done|Free|Found it full)")>([^<]*)<', section)
    assert cells == [
        "use: often",
        "2",
        "1",
        "1",
        "0",
        "1",
        "use: seldom",
        "2",
        "0",
        "0",
        "2",
        "0",
        "use: in none",
        "–",
        "0",
        "0",
        "–",
        "1",
    ]


def test_each_figure_of_a_metric_has_its_own_interval() -> None:
    metrics = {
        "n": 40,
        "auc": {"overall": 0.7, "same_task": 0.6, "all": None},
        "nll": {"overall": 0.5, "other_task": 0.25},
        "intervals": {"auc": {"overall": [0.65, 0.75], "same_task": [0.5, 0.7]}},
    }
    table = stage_sections.metric_table(metrics, None)
    assert table.parts == ("overall", "same task", "all", "other task")
    assert table.rows == (
        ("answers", ("40", "", "", "")),
        ("auc", ("0.700 [0.650, 0.750]", "0.600 [0.500, 0.700]", "–", "–")),
        ("nll", ("0.500", "–", "–", "0.250")),
    )
