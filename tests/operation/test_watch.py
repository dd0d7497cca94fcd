"""The watch finds what is wrong, tells people, and pauses each posting once in an outage."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core import mail
from django.db import DatabaseError
from django.utils import timezone

from survey.contracts import panels
from survey.models import Alert, AuditEntry, Booklet, JobStep, Posting, Sitting, WatchRecord
from survey.operation import alerting, causes, pausing, site_health, watch
from survey.operation.alerting import Cause
from survey.operation.watch import Watch
from survey.panels import postings
from survey.panels.postings import Move
from survey.panels.prolific.account import ProlificAccount
from survey.panels.prolific.fake import FakeProlific
from tests import cast
from tests.panels.world import PAY, posted, stored_posting, stored_submission

from .conftest import PING, Outside

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def minute(number: float) -> datetime:
    return timezone.now() + timedelta(minutes=number)


def looks(watch: Watch, first: int, last: int) -> None:
    for number in range(first, last + 1):
        watch.look(now=minute(number))


def open_causes() -> set[str]:
    return set(Alert.objects.filter(resolved_at__isnull=True).values_list("cause", flat=True))


def subjects() -> list[str]:
    return [letter.subject for letter in mail.outbox]


# Pausing


def test_a_posting_is_paused_once_when_the_site_has_failed_for_some_minutes(
    fake: FakeProlific, outside: Outside, broken: dict[str, str]
) -> None:
    posting = posted()
    at_panel = fake.studies[posting.external_id]
    broken["queue"] = "Redis does not answer."
    watch = Watch()
    looks(watch, 0, 4)
    assert at_panel["status"] == "ACTIVE"
    looks(watch, 5, 5)
    posting.refresh_from_db()
    assert at_panel["status"] == posting.state == "PAUSED"
    (entry,) = AuditEntry.objects.filter(action="pause_posting")
    assert entry.via == "watch" and "Redis does not answer." in entry.detail["why"]
    alert = Alert.objects.get(cause=Cause.POSTING_PAUSED)
    assert alert.study == posting.study and "hunch posting cast start" in alert.message
    assert any("posting paused" in subject for subject in subjects())


@pytest.mark.thorough
def test_it_is_not_started_again_and_the_alert_stays_until_a_person_starts_it(
    fake: FakeProlific, outside: Outside, broken: dict[str, str]
) -> None:
    posting = posted()
    watch = Watch()
    broken["disk"] = "full."
    looks(watch, 0, 6)
    broken.clear()
    looks(watch, 7, 20)
    assert fake.studies[posting.external_id]["status"] == "PAUSED"
    assert open_causes() == {"posting_paused"}
    postings.change(posting, Move.START)
    looks(watch, 21, 30)
    assert open_causes() == set() and "Hunch: over: posting paused: " in subjects()[-1]
    assert fake.studies[posting.external_id]["status"] == "ACTIVE"


@pytest.mark.thorough
def test_who_starts_it_during_the_outage_is_not_overruled(
    fake: FakeProlific, outside: Outside, broken: dict[str, str]
) -> None:
    posting = posted()
    watch = Watch()
    broken["queue"] = "gone."
    looks(watch, 0, 6)
    postings.change(Posting.objects.get(), Move.START)
    looks(watch, 7, 12)
    assert fake.studies[posting.external_id]["status"] == "ACTIVE"
    broken.clear()
    looks(watch, 13, 13)
    broken["queue"] = "gone again."
    looks(watch, 14, 19)
    assert fake.studies[posting.external_id]["status"] == "PAUSED"


def test_what_a_person_has_paused_at_the_panel_is_left_as_it_is(
    fake: FakeProlific, outside: Outside, broken: dict[str, str]
) -> None:
    posting = posted()
    fake.studies[posting.external_id]["status"] = "PAUSED"  # Our row still says that it is active.
    broken["queue"] = "gone."
    looks(Watch(), 0, 7)
    assert not AuditEntry.objects.filter(action="pause_posting").exists()
    assert "posting_paused" not in open_causes()


def test_postings_are_paused_while_the_database_is_away_and_that_is_stored_later(
    fake: FakeProlific, outside: Outside, broken: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    posting = posted()
    own_watch = Watch()
    looks(own_watch, 0, 0)
    broken["database"] = "No row can be written."

    def away(*_args: Any, **_kwargs: Any) -> Any:
        raise AssertionError("the database is away")

    with monkeypatch.context() as patch:
        patch.setattr(pausing, "under_way", away)
        patch.setattr(watch, "store_pause", away)
        patch.setattr(watch.WatchRecord.objects, "update_or_create", away)
        patch.setattr(watch.alerting, "store", away)
        patch.setattr(watch.alerting, "add", away)
        looks(own_watch, 1, 9)
    assert fake.studies[posting.external_id]["status"] == "PAUSED"
    posting.refresh_from_db()
    assert posting.state == "ACTIVE" and not Alert.objects.exists()
    paused = [subject for subject in subjects() if "posting paused" in subject]
    assert len(paused) == 1 and len(subjects()) == 2  # That the database is away, and what was paused.
    broken.clear()
    looks(own_watch, 10, 10)
    posting.refresh_from_db()
    assert posting.state == "PAUSED" and AuditEntry.objects.filter(action="pause_posting").count() == 1
    assert open_causes() == {"posting_paused"}


def test_a_pause_that_is_stored_late_does_not_hide_a_later_start(fake: FakeProlific) -> None:
    posting = posted()
    postings.change(posting, Move.PAUSE)
    postings.change(posting, Move.START)
    postings.store_pause(posting.pk, "PAUSED", at=timezone.now() - timedelta(hours=1), why="")
    assert Posting.objects.get().state == "ACTIVE"


def test_a_pause_whose_answer_was_lost_is_tried_again(
    fake: FakeProlific, outside: Outside, broken: dict[str, str]
) -> None:
    posting = posted()
    broken["queue"] = "gone."
    watch = Watch()
    looks(watch, 0, 4)
    fake.lose_next_answer("/transition/")
    looks(watch, 5, 5)
    assert fake.studies[posting.external_id]["status"] == "PAUSED" and "not_paused" in open_causes()
    looks(watch, 6, 6)
    assert "posting_paused" in open_causes() and Posting.objects.get().state == "PAUSED"


def test_where_the_panel_cannot_be_asked_people_are_told_and_nothing_breaks(
    fake: FakeProlific, outside: Outside, broken: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    posted()
    monkeypatch.setattr(ProlificAccount, "posting", lambda *_args: 1 / 0)
    broken["queue"] = "gone."
    looks(Watch(), 0, 6)
    alert = Alert.objects.get(cause=Cause.NOT_PAUSED)
    assert "ZeroDivisionError, which is no error of the panel" in alert.message
    assert WatchRecord.objects.get().unhealthy_since is not None


def test_a_panel_that_cannot_pause_is_told_of(outside: Outside, broken: dict[str, str]) -> None:
    study = cast.open_study(panel={"kind": "generic", "completion_url": "https://panel.example/{code}"})
    assert panels.of_study(study).client is None
    broken["queue"] = "gone."
    looks(Watch(), 0, 5)
    alert = Alert.objects.get(cause=Cause.NOT_PAUSED)
    assert alert.subject == "study cast" and "pause it on the panel's own pages" in alert.message


@pytest.mark.thorough
def test_nothing_is_paused_where_that_is_turned_off(
    fake: FakeProlific, outside: Outside, broken: dict[str, str], settings: Any
) -> None:
    settings.HUNCH_PAUSE_AFTER_MINUTES = 0
    posting = posted()
    broken["queue"] = "gone."
    watch = Watch()
    looks(watch, 0, 12)
    looks(watch, 59, 60)
    assert fake.studies[posting.external_id]["status"] == "ACTIVE" and "unhealthy" in open_causes()


def test_a_new_beat_takes_up_since_when_the_site_is_unhealthy(outside: Outside, broken: dict[str, str]) -> None:
    broken["queue"] = "gone."
    Watch().look(now=minute(0))
    since = WatchRecord.objects.get().unhealthy_since
    other = Watch()
    other.resume(now=minute(1))
    assert other.unhealthy_since == since
    late = Watch()
    late.resume(now=minute(30))
    assert late.unhealthy_since is None


# Telling


def test_a_restart_is_not_told(outside: Outside, broken: dict[str, str]) -> None:
    watch = Watch()
    broken["queue"] = "gone."
    looks(watch, 0, 1)
    broken.clear()
    looks(watch, 2, 3)
    assert mail.outbox == [] and not Alert.objects.exists()
    assert outside.pinged == [f"{PING}/fail", f"{PING}/fail", PING, PING]


def test_a_queue_without_a_worker_is_told_and_pauses_nothing(
    outside: Outside, broken: dict[str, str], fake: FakeProlific, monkeypatch: pytest.MonkeyPatch
) -> None:
    posting = posted()
    monkeypatch.setattr(site_health, "queues_with_a_worker", lambda: {"default", "train"})
    looks(Watch(), 0, 6)
    silent = Alert.objects.filter(cause=Cause.WORKER_SILENT).order_by("subject")
    assert list(silent.values_list("subject", flat=True)) == ["collect", "score"]
    assert fake.studies[posting.external_id]["status"] == "ACTIVE" and outside.pinged[0].endswith("/fail")


def test_one_cause_that_cannot_be_looked_at_silences_no_other(
    outside: Outside, broken: dict[str, str], monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    def fail(_now: datetime) -> Any:
        raise DatabaseError

    settings.HUNCH_DISK_ALERT_MB = 10**9
    monkeypatch.setitem(causes.LOOKS, Cause.STEP_FAILED, fail)
    looks(Watch(), 0, 0)
    assert open_causes() == {"disk_low"}


def test_a_worker_tells_that_the_watch_is_silent_and_the_watch_that_it_is_back(
    outside: Outside, broken: dict[str, str]
) -> None:
    assert watch.look_at_the_watch(running_since=minute(0), now=minute(4))
    assert not watch.look_at_the_watch(running_since=minute(0), now=minute(6))
    assert not watch.look_at_the_watch(running_since=minute(0), now=minute(7))
    assert subjects() == ["Hunch: beat silent: beat"]
    looks(Watch(), 20, 20)
    assert watch.look_at_the_watch(running_since=minute(0), now=minute(21))
    assert open_causes() == set()


# What is found


def test_failed_work_is_told_until_it_is_done_again_and_its_error_is_not_repeated(
    outside: Outside, broken: dict[str, str]
) -> None:
    stage = cast.open_study().stages.get(index=1)
    step = JobStep.objects.create(stage=stage, kind="freeze", input_sha256="0" * 64, state="failed", error="SECRET")
    watch = Watch()
    looks(watch, 0, 0)
    alert = Alert.objects.get()
    assert (alert.cause, alert.study) == ("step_failed", stage.study) and "SECRET" not in mail.outbox[0].body
    step.state = "queued"
    step.save()
    looks(watch, 10, 10)
    assert open_causes() == set()


def test_a_full_stage_a_quiet_posting_and_a_cap_that_is_near_are_told(
    fake: FakeProlific, outside: Outside, broken: dict[str, str], settings: Any
) -> None:
    posting = posted(spending_cap=700)  # 600 are committed.
    settings.HUNCH_CAP_ALERT_PERCENT = 86
    watch = Watch()
    looks(watch, 0, 0)
    assert open_causes() == set()
    settings.HUNCH_CAP_ALERT_PERCENT = 85
    looks(watch, 61, 61)
    assert open_causes() == {"cap_near", "no_arrivals"}
    assert "6.00 of 7.00 USD" in Alert.objects.get(cause=Cause.CAP_NEAR).message
    sitting = cast.begin(posting.study, None)
    Sitting.objects.filter(pk=sitting.pk).update(started_at=minute(61))
    looks(watch, 70, 70)
    assert open_causes() == {"cap_near"}
    Booklet.objects.update(claimed_at=timezone.now())
    looks(watch, 200, 200)
    assert open_causes() == {"cap_near", "stage_full"}


def test_looking_takes_few_statements_however_many_studies_there_are(
    broken: dict[str, str], django_assert_max_num_queries: Any
) -> None:
    for number in range(3):
        cast.open_study(slug=f"cast-{number}", panel=cast.PROLIFIC)
    with django_assert_max_num_queries(20):
        Watch().look()


def test_work_that_waits_for_its_files_is_an_alert_until_it_goes_on(outside: Outside, broken: dict[str, str]) -> None:
    stage = cast.closed_stage()
    step = JobStep.objects.filter(stage=stage).first() or JobStep.objects.create(stage=stage, kind="train")
    JobStep.objects.filter(pk=step.pk).update(
        state="queued", error="waits: HUNCH_STORAGE_URL: s3://files cannot be reached"
    )
    watch = Watch()
    looks(watch, 0, 1)
    assert not Alert.objects.exists()
    looks(watch, 2, 3)
    (alert,) = Alert.objects.filter(resolved_at__isnull=True)
    assert (alert.cause, alert.subject) == (Cause.UNHEALTHY, "work between stages")
    assert "waits" in alert.message and "hunch doctor" in alert.message
    JobStep.objects.filter(pk=step.pk).update(state="done", error="")
    looks(watch, 4, 20)
    assert not open_causes()


# Each cause by rows alone


def paid_study(**more: Any) -> Any:
    return cast.open_study(panel={**cast.PROLIFIC, **PAY}, stages=[{"sittings": 2}], **more)


@pytest.mark.parametrize(
    ("published", "changed", "state", "is_told"),
    [
        (-120, None, "ACTIVE", True),
        (-20, None, "ACTIVE", False),
        (-120, -20, "ACTIVE", False),
        (-120, -90, "ACTIVE", True),
        (-120, None, "PAUSED", False),
    ],
)
def test_a_posting_is_quiet_once_it_was_shown_for_so_long(
    db: None, settings: Any, published: int, changed: int | None, state: str, is_told: bool
) -> None:
    settings.HUNCH_NO_ARRIVALS_MINUTES = 60
    study = paid_study()
    changed_at = None if changed is None else minute(changed)
    posting = stored_posting(study, published_at=minute(published), changed_at=changed_at, state=state)
    told = list(causes.no_arrivals(timezone.now()))
    assert [trouble.subject for trouble in told] == ([f"posting {posting.pk} of cast"] if is_told else [])
    Booklet.objects.filter(stage__study=study).update(claimed_at=timezone.now())
    assert list(causes.no_arrivals(timezone.now())) == [], "nobody could begin"


@pytest.mark.parametrize(
    ("statuses", "is_told"),
    [
        (["APPROVED"] * 5 + ["RETURNED"] * 3 + ["TIMED-OUT"] * 2, True),
        (["APPROVED"] * 5 + ["RETURNED"] * 3 + ["TIMED-OUT"] * 2 + ["ACTIVE"] * 3, True),
        (["APPROVED"] * 6 + ["RETURNED"] * 3 + ["TIMED-OUT"] * 2, False),
        (["APPROVED"] * 4 + ["RETURNED"] * 5, False),  # Of nine a share says nothing.
        (["APPROVED"] * 4 + ["RETURNED"] * 5 + ["ACTIVE"], False),
    ],
)
def test_returns_are_a_share_of_those_whose_part_is_over(
    db: None, settings: Any, statuses: list[str], is_told: bool
) -> None:
    settings.HUNCH_RETURNS_ALERT_PERCENT = 50
    posting = stored_posting(paid_study())
    other = stored_posting(paid_study(slug="other"))
    for number, status in enumerate(statuses):
        stored_submission(posting, None, status)
        stored_submission(other, None, "APPROVED" if number else "RETURNED")
    assert [high_return.study_id for high_return in causes.high_returns(timezone.now())] == (
        [posting.study_id] if is_told else []
    )


def test_what_is_told_once_and_what_again(db: None, settings: Any) -> None:
    now = timezone.now()
    repeat = timedelta(hours=settings.HUNCH_ALERT_REPEAT_HOURS)
    sent_at = now - repeat - timedelta(minutes=1)
    for cause in Alert.Cause.values:
        facts = {"message": "m", "opened_at": sent_at, "seen_at": now, "sent_at": sent_at}
        Alert.objects.create(cause=cause, subject="s", **facts)
    again = {row.cause for row in alerting._due(now)}
    assert set(Alert.Cause.values) - again == {"stage_full", "cap_near"}
    assert not alerting._due(now - timedelta(minutes=2)).exists()


def test_what_may_be_published_is_paused_too(db: None) -> None:
    study = paid_study()
    active = stored_posting(study)
    perhaps = stored_posting(study, state="UNPUBLISHED", pending="publish", pending_at=timezone.now())
    for columns in ({"state": "UNPUBLISHED"}, {"state": "PAUSED"}, {"external_id": "", "state": ""}):
        stored_posting(study, **columns)
    stored_posting(study, state="UNPUBLISHED", pending="places", pending_at=timezone.now())
    assert [pause.posting for pause in pausing.under_way()] == [active.pk, perhaps.pk]


def test_a_worker_that_has_just_started_gives_the_watch_time(db: None, outside: Outside) -> None:
    WatchRecord.objects.create(pk=watch.ONLY_ROW, looked_at=minute(-60))
    now = timezone.now()
    assert watch.look_at_the_watch(running_since=now - timedelta(minutes=4), now=now)
    assert not Alert.objects.exists()
    assert not watch.look_at_the_watch(running_since=now - timedelta(minutes=5), now=now)
    assert open_causes() == {"watch_silent"}


def test_alerts_of_a_cause_that_cannot_be_looked_at_stay(
    outside: Outside, broken: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    old = minute(-30)
    for cause in ("cap_near", "stage_full"):
        Alert.objects.create(cause=cause, subject="s", message="m", opened_at=old, seen_at=old)

    def fails(_now: Any) -> Any:
        raise ValueError("x")

    monkeypatch.setitem(causes.LOOKS, Cause.CAP_NEAR, fails)
    Watch().look()
    assert open_causes() == {"cap_near"}
