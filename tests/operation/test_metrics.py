"""Figures for Prometheus: from the database, with a token, in few statements, and without a name."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import settings as django_settings
from django.core.cache import cache
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from survey.models import JobStep, WatchRecord, WebhookEvent
from survey.operation import metrics
from survey.panels.prolific.fake import FakeProlific
from tests.panels.world import arrives, begins, posted

pytestmark = pytest.mark.django_db
TOKEN = "t" * 40


@pytest.fixture
def token(settings: Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    settings.HUNCH_METRICS_TOKEN = TOKEN
    monkeypatch.setattr(metrics, "_queue_lengths", lambda: [("default", 3), ("score", 0)])
    return {"Authorization": f"Bearer {TOKEN}"}


def figures(client: Client, headers: dict[str, str]) -> dict[tuple[str, tuple[str, ...]], float]:
    cache.clear()
    answer = client.get("/metrics", headers=headers)
    assert answer.status_code == 200
    return {
        (sample.name, tuple(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(answer.content.decode())
        for sample in family.samples
    }


def test_there_is_no_such_page_without_a_token(client: Client) -> None:
    assert client.get("/metrics", headers={"Authorization": "Bearer "}).status_code == 404


@pytest.mark.parametrize("given", ["", "Bearer", f"Bearer {TOKEN[:-1]}", f"Basic {TOKEN}", "Bearer ü"])
def test_a_wrong_token_reads_nothing(client: Client, token: dict[str, str], given: str) -> None:
    answer = client.get("/metrics", headers={"Authorization": given})
    assert answer.status_code == 401 and b"hunch_" not in answer.content


def test_it_counts_what_there_is(client: Client, token: dict[str, str], fake: FakeProlific) -> None:
    posting = posted()
    begins(posting.study, arrives(fake, posting))
    begins(posting.study, arrives(fake, posting), until="item")
    now = timezone.now()
    stage = posting.stage
    JobStep.objects.create(stage=stage, kind="train", input_sha256="0", state="failed")
    WebhookEvent.objects.create(panel="prolific", event_id="1", event_type="x", body_encrypted=b"", due_at=now)
    over = {
        "state": WebhookEvent.State.DONE,
        "panel": "prolific",
        "event_type": "x",
        "body_encrypted": b"",
        "due_at": now,
    }
    WebhookEvent.objects.update(received_at=now - timedelta(minutes=10))
    for event, minutes in (("2", 20), ("3", 5)):
        WebhookEvent.objects.create(event_id=event, **over)
        WebhookEvent.objects.filter(event_id=event).update(received_at=now - timedelta(minutes=minutes))
    WatchRecord.objects.create(looked_at=now - timedelta(minutes=3))
    metrics = figures(client, token)
    assert metrics["hunch_sittings", ("complete",)] == metrics["hunch_sittings", ("live",)] == 1
    assert metrics["hunch_assignments", ("counted",)] == metrics["hunch_assignments", ("live",)] == 1
    assert metrics["hunch_open_slots", ()] == stage.slots.count() - 2
    assert metrics["hunch_postings", ("prolific", "ACTIVE")] == 1
    assert metrics["hunch_steps", ("train", "failed")] == 1
    assert metrics["hunch_actions_total", ("publish_posting",)] == 1
    assert metrics["hunch_queue_length", ("default",)] == 3
    assert 600 <= metrics["hunch_oldest_webhook_seconds", ()] < 700
    assert 300 <= metrics["hunch_last_webhook_seconds", ()] < 400
    assert metrics["hunch_webhook_events", ("prolific", "done")] == 2
    assert 180 <= metrics["hunch_watch_age_seconds", ()] < 280
    assert metrics["hunch_unhealthy_seconds", ()] == 0 and metrics["hunch_disk_free_bytes", ()] > 0


@pytest.mark.slow
def test_it_names_nobody_and_no_study_unless_that_is_wanted(
    client: Client, token: dict[str, str], fake: FakeProlific, settings: Any
) -> None:
    posting = posted()
    place = arrives(fake, posting)
    sitting = begins(posting.study, place)
    text = client.get("/metrics", headers=token).content.decode()
    ids = [place["participant_id"], place["id"], posting.external_id, sitting.respondent.pseudonym, "cast"]
    assert not any(study_id in text for study_id in ids)
    settings.HUNCH_METRICS_STUDIES = True
    assert figures(client, token)["hunch_sittings", ("complete", "cast")] == 1


def test_it_takes_a_bounded_number_of_statements_and_keeps_them(
    client: Client, token: dict[str, str], django_assert_num_queries: Any, django_assert_max_num_queries: Any
) -> None:
    with django_assert_max_num_queries(20):
        client.get("/metrics", headers=token)
    with django_assert_num_queries(0):
        client.get("/metrics", headers=token)


def test_the_rules_in_the_documents_name_figures_that_there_are(client: Client, token: dict[str, str]) -> None:
    page = Path(django_settings.BASE_DIR, "docs/operation.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"(?s)```yaml\n(# hunch.rules.yml.*?)```", page)
    (group,) = yaml.safe_load(text)["groups"]
    cache.clear()
    exposed = client.get("/metrics", headers=token).content.decode()
    known = set(re.findall(r"(?m)^# TYPE (\w+) ", exposed))
    named = {name for rule in group["rules"] for name in re.findall(r"hunch_\w+", rule["expr"])}
    assert len(named) > 6 and named <= known
