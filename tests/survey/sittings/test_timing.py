"""The time of every step, and the browser's reports about screens that were left."""

from types import SimpleNamespace
from typing import Any

import pytest
from django.utils import timezone

from survey.models import ScreenTiming, Sitting, UnfinishedScreen
from survey.models.screen_timing import MAX_UNFINISHED
from survey.services.results.export import contents
from survey.services.sittings import timing
from survey.services.sittings.answering import advance
from survey.services.sittings.openings import record_opening
from survey.services.sittings.timing import client_facts, is_named_in, record_unfinished
from tests import cast

pytestmark = pytest.mark.django_db

BLOCKS: list[dict[str, Any]] = [
    {"kind": "consent", "text": "You may stop at any time."},
    {"kind": "instructions", "name": "how_to", "text": "Read this."},
    {"kind": "checks", "checks": [cast.CHECK]},
    {"kind": "items"},
    {"kind": "form", "name": "about", "fields": [{"name": "age", "label": "Your age", "kind": "number"}]},
    {"kind": "debriefing", "text": "It was about this."},
    {"kind": "end", "text": "Thank you."},
]


@pytest.fixture
def visitor() -> cast.Visitor:
    return cast.Visitor(cast.open_stage(blocks=BLOCKS, sitting={"items": 1}).study)


def test_every_step_but_the_items_has_a_row_with_its_times(visitor: cast.Visitor) -> None:
    visitor.post(client_shown_ms="12", client_copies="2", client_pastes="1", client_hidden_ms="nonsense")
    visitor.finish()
    rows = list(ScreenTiming.objects.order_by("step").values_list("step", "kind", "name"))
    assert rows == [
        (1, "instructions", "how_to"), (2, "checks", ""), (5, "form", "about"), (6, "debriefing", ""),
    ]  # fmt: skip
    first, second = ScreenTiming.objects.order_by("step")[:2]
    assert first.client == {"shown_ms": 12, "copies": 2, "pastes": 1} and second.client == {}
    assert second.server_ms == int((second.taken_at - first.taken_at).total_seconds() * 1000)


def test_a_refused_page_leaves_no_time_and_a_repeated_one_no_second(visitor: cast.Visitor) -> None:
    step = visitor.step
    visitor.post()
    with pytest.raises(Exception, match="ready"):
        visitor.post(ready="9")
    assert ScreenTiming.objects.count() == 1
    advance(sitting=visitor.sitting, step=step.number, data={})
    assert ScreenTiming.objects.count() == 1


@pytest.mark.parametrize("value", ["", "-1", "1.5", "x", "10000000000000", "١٢x", None, [1], "NaN"])
def test_what_is_no_number_in_its_limits_is_dropped(value: Any) -> None:
    assert client_facts({"client_shown_ms": value, "client_pastes": "3", "client_other": "1"}) == {"pastes": 3}


def test_a_screen_that_was_left_is_kept_a_few_times_and_moves_nothing(visitor: cast.Visitor) -> None:
    before = visitor.reload()
    seen = visitor.sitting.last_seen_at
    stored = [
        record_unfinished(sitting=visitor.sitting, step="1", data={"client_shown_ms": "7", "value": "50"})
        for _time in range(MAX_UNFINISHED + 3)
    ]
    assert stored == [True] * MAX_UNFINISHED + [False] * 3
    row = UnfinishedScreen.objects.order_by("number")[0]
    assert (row.kind, row.name, row.step, row.number, row.client) == ("instructions", "how_to", 1, 1, {"shown_ms": 7})
    assert visitor.reload() == before
    assert visitor.sitting.last_seen_at == seen


@pytest.mark.parametrize("step", ["0", "2", "", "x", "1.0", " 1", "9" * 40])
def test_nothing_is_kept_of_another_step_than_the_one_that_is_open(visitor: cast.Visitor, step: str) -> None:
    assert not record_unfinished(sitting=visitor.sitting, step=step, data={})
    assert not UnfinishedScreen.objects.exists()


def test_nothing_is_kept_of_a_sitting_that_is_over_and_an_expired_one_stays_expired(visitor: cast.Visitor) -> None:
    visitor.expire()
    assert record_unfinished(sitting=visitor.sitting, step="1", data={})
    assert visitor.reload().state == "expired"
    visitor.finish()
    visitor.reload()
    assert not record_unfinished(sitting=visitor.sitting, step=str(visitor.sitting.step), data={})


@pytest.mark.parametrize(
    ("language", "text", "named"),
    [
        ("en", "We measure how long each page is open.", True),
        ("en", "You may stop at any time.", False),
        ("de", "Wir messen, wie lange jede Seite offen ist.", True),
        ("de", "Sie können jederzeit aufhören.", False),
    ],
)
def test_a_consent_that_names_the_measuring_differs_from_one_that_does_not(
    language: str, text: str, named: bool
) -> None:
    assert is_named_in(text, language) == named


def test_the_export_has_the_steps_and_the_screens_that_were_left(visitor: cast.Visitor) -> None:
    record_unfinished(sitting=visitor.sitting, step="1", data={"client_hidden_ms": "5"})
    visitor.post(client_submitted_ms="900")
    files = {file.name: file for file in contents.extra_files(visitor.sitting.stage.study)}
    steps, left = (
        [dict(zip((c.name for c in files[name].columns), row, strict=True)) for row in files[name].rows]
        for name in ("steps.csv", "unfinished_screens.csv")
    )
    assert [(row["kind"], row["name"], row["submitted_ms"], row["pastes"]) for row in steps] == [
        ("instructions", "how_to", 900, None)
    ]
    assert [(row["step"], row["number"], row["hidden_ms"]) for row in left] == [(1, 1, 5)]
    assert steps[0]["respondent"] == visitor.sitting.respondent.pseudonym


def test_a_screen_is_begun_at_the_step_of_a_sitting_that_is_not_over() -> None:
    stage = cast.stage_of(cast.small_study())
    inside, over = cast.sitting(stage), cast.sitting(stage, state="complete", ended_at=timezone.now())

    def is_begun(sitting: Sitting, step: str = "0", nonce: str = "0" * 16) -> bool:
        return record_opening(sitting_key=sitting.pk, step=step, nonce=nonce)

    assert is_begun(inside) and not is_begun(over)
    assert not is_begun(inside, step="1") and not is_begun(inside, nonce="0" * 15)


@pytest.mark.parametrize(
    ("kind", "screen", "block", "name"),
    [
        ("item", "prior", "main", "prior"), ("item", "prior", None, "prior"), ("form", "", "about", "about"),
        ("instructions", "", None, ""), ("attention", "prior", "main", "first check"), ("form", "", "x" * 80, "x" * 60),
    ],
)  # fmt: skip
def test_a_step_is_called_by_its_screen_or_else_its_block(kind: str, screen: str, block: str | None, name: str) -> None:
    step: Any = SimpleNamespace(
        kind=kind,
        screen=SimpleNamespace(name=screen) if screen else None,
        block=SimpleNamespace(name=block),
        checks=[SimpleNamespace(name="first check"), SimpleNamespace(name="second")],
    )
    assert timing._name(step) == name
