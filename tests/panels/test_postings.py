"""A study at the panel: what the draft says, and what is refused before anybody sees it."""

import json
from datetime import timedelta
from decimal import Decimal
from io import StringIO
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone

from survey.contracts import panels
from survey.contracts.panels import PanelIds, PanelRefused, PanelUnreachable, PostingAtPanel
from survey.exceptions import FileErrors, PayTooLow, StateRefused
from survey.models import AuditEntry, Posting, Respondent, Sitting
from survey.panels import posting_checks, postings, submissions
from survey.panels.postings import Move
from survey.panels.prolific import drafts
from survey.panels.prolific.fake import Breakage, FakeProlific
from survey.panels.submissions import read_posting
from survey.services.results.export.proof_files import proof_files
from survey.services.sittings.enrolment import begin_sitting
from survey.services.sittings.hourly_pay import hourly_pay, hourly_pay_by_pilot, minutes_taken, refuse_low_pay
from survey.services.stages import jobs, lifecycle
from tests import cast

from .world import PAY, arrives, begins, posted, sits, stored_posting, stored_submission

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


def first_stage(**panel: Any) -> Any:
    study = cast.open_study(panel={**cast.PROLIFIC, **PAY, **panel}, sitting={"items": 1}, stages=[{"sittings": 6}])
    return study.stages.select_related("study__bank").get(index=1)


def test_the_draft_says_what_the_study_file_says(fake: FakeProlific) -> None:
    filters = [
        {"filter_id": "fluent-languages", "selected_values": ["19"]},
        {"filter_id": "age", "selected_range": {"lower": 18}},
    ]
    posting = posted(publish=False, filters=filters, devices=["desktop"], maximum_minutes=40, expected_minutes=5)
    sent = fake.studies[posting.external_id]
    assert sent["filters"] == filters
    assert (sent["reward"], sent["total_available_places"], sent["estimated_completion_time"]) == (100, 6, 5)
    assert (sent["device_compatibility"], sent["maximum_allowed_time"]) == (["desktop"], 40)
    assert sent["external_study_url"] == (
        "http://testserver/s/cast/?PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}"
    )
    assert (sent["status"], posting.state, posting.published_at) == ("UNPUBLISHED", "UNPUBLISHED", None)
    assert {key: value for key, value in sent.items() if key not in ("id", "status", "currency_code")} == posting.draft


def test_the_stages_manifest_names_whom_the_panel_may_send_and_for_what(fake: FakeProlific) -> None:
    filters = [{"filter_id": "fluent-languages", "selected_values": ["19"]}]
    posting = posted(publish=False, filters=filters, devices=["desktop"], expected_minutes=5)
    stage = posting.study.stages.get(index=1)
    assert stage.manifest["plan_sha256"] == stage.plan_sha256
    (recorded,) = stage.manifest["postings"]
    assert recorded == {
        "internal_name": posting.internal_name, "filters": filters, "device_compatibility": ["desktop"],
        "total_available_places": 6, "estimated_completion_time": 5, "reward": 100,
    }  # fmt: skip
    fake.studies["elsewhere"] = {**fake.studies[posting.external_id], "id": "elsewhere", "filters": []}
    postings.adopt(stage, "elsewhere")
    stage.refresh_from_db()
    assert [entry["filters"] for entry in stage.manifest["postings"]] == [filters, []]


def test_an_export_has_nothing_of_the_postings_in_the_manifest(fake: FakeProlific) -> None:
    """Whom the panel may send and for what pay is between the researchers and the panel."""
    study = posted().study
    (stage,) = study.stages.all()
    assert "postings" in stage.manifest
    stages = next(file for file in proof_files(study) if file.name == "stages.csv")
    ((*_others, manifest),) = stages.rows
    assert set(json.loads(manifest)) == set(stage.manifest) - {"postings"}


def test_people_of_earlier_postings_and_excluded_studies_are_not_sent_again(fake: FakeProlific) -> None:
    other = cast.open_study(slug="other", panel={**cast.PROLIFIC, **PAY}, sitting={"items": 1})
    elsewhere = postings.publish(postings.draft(other.stages.get(index=1), root="http://testserver"))
    own = {"filter_id": "previous_studies_blocklist", "selected_values": ["by-hand"]}
    first = posted(exclude_people_of=["other"], filters=[own])
    second = postings.draft(first.stage, root="http://testserver")
    blocked = {
        posting: fake.studies[posting.external_id]["filters"][-1]["selected_values"] for posting in (first, second)
    }
    assert blocked == {
        first: ["by-hand", elsewhere.external_id],
        second: ["by-hand", elsewhere.external_id, first.external_id],
    }
    assert fake.studies[elsewhere.external_id]["filters"] == []


def test_of_paused_postings_the_panel_paused_those_of_open_stages_that_nobody_paused_here(db: None) -> None:
    study = cast.open_study(panel={**cast.PROLIFIC, **PAY})
    closed = cast.open_study(slug="closed", panel={**cast.PROLIFIC, **PAY})
    lifecycle.pause_stage(closed.stages.get(index=1))
    stored_posting(closed, state="PAUSED")
    stored_posting(study, state="PAUSED", paused_at=timezone.now())
    stored_posting(study, state="ACTIVE")
    paused = stored_posting(study, state="PAUSED")
    assert list(postings.paused_by_the_panel()) == [paused]


def test_whom_a_posting_keeps_away(db: None) -> None:
    """By the group who has begun here, by the list whom postings without that group sent; nobody of a draft."""
    excluding = {**cast.PROLIFIC, **PAY, "exclude_people_of": ["other"]}
    other = cast.open_study(slug="other", panel={**cast.PROLIFIC, **PAY})
    third = cast.open_study(slug="third", panel={**cast.PROLIFIC, **PAY})
    study = cast.open_study(
        panel=excluding,
        stages=[{"sittings": 4}, {"sittings": 4, "wave": 2}],
        waves=[{"after_days": 1, "open_days": 7}],
    )
    plain, grouped, drafted, theirs, _unrelated, of_before, shared = (
        stored_posting(of, **columns)
        for of, columns in (
            (study, {}), (study, {"group": "g"}), (study, {"published_at": None}), (other, {}), (third, {}),
            (study, {"group": "of before"}), (other, {"group": "g"}),
        )
    )  # fmt: skip
    wave_2 = stored_posting(study, index=2)

    def kept_away(posting: Posting) -> dict[str, list[str]]:
        return {entry["filter_id"]: entry["selected_values"] for entry in drafts._filters(posting)}

    earlier = [posting.external_id for posting in (plain, grouped, theirs, of_before, shared, wave_2)]
    assert kept_away(Posting(study=study, wave=1, panel="prolific")) == {drafts.EARLIER_STUDIES: earlier}
    assert kept_away(Posting(study=study, wave=1, panel="prolific", group="g")) == {
        drafts.BLOCKED_GROUPS: ["g"],
        drafts.EARLIER_STUDIES: [posting.external_id for posting in (plain, theirs, wave_2)],
    }
    assert kept_away(Posting(study=study, wave=2, panel="prolific", invited_group="i")) == {
        drafts.INVITED_GROUPS: ["i"],
        drafts.EARLIER_STUDIES: [theirs.external_id, shared.external_id, wave_2.external_id],
    }
    assert drafted.external_id and drafted.external_id not in earlier


def test_each_outcome_has_its_code_and_what_the_panel_does_on_it(fake: FakeProlific) -> None:
    posting = posted(publish=False, codes={"completed": "automatically_approve", "study_full": "manually_review"})
    codes = {entry["code"]: entry for entry in fake.studies[posting.external_id]["completion_codes"]}
    outcomes = {code.code: code.outcome for code in posting.study.codes.all()}
    actions = {outcomes[code]: entry["actions"][0]["action"] for code, entry in codes.items()}
    assert actions == {
        "completed": "AUTOMATICALLY_APPROVE",
        "no_consent": "REQUEST_RETURN",
        "failed_checks": "REQUEST_RETURN",
        "study_full": "MANUALLY_REVIEW",
    }
    asked = [entry["actions"][0] for entry in codes.values() if entry["actions"][0]["action"] == "REQUEST_RETURN"]
    assert all(action["return_reason"] for action in asked)


def test_a_draft_says_all_that_the_file_says_and_nothing_else(db: None) -> None:
    """Every key that Prolific is sent, of a plain study and of an unusual one."""
    age = {"name": "adult", "label": "Adult?", "kind": "choice", "options": ["Yes", "No"]}
    screener = {"kind": "form", "name": "screener", "fields": [{**age, "required": True, "screen_out": ["No"]}]}
    weighted = {"filter_id": "sex", "selected_values": ["0", "1"], "weightings": {"0": 1, "1": 2}}
    adults = {"filter_id": "age", "selected_range": {"lower": 18.0, "upper": 30.5}}
    unusual = cast.open_study(
        slug="unusual",
        panel={
            **cast.PROLIFIC, **PAY, "filters": [weighted, {"filter_id": "or", "selected_filters": [adults]}],
            "signed_entry": True, "project": "p1", "maximum_minutes": 40, "devices": ["mobile"],
            "content_warning": "sensitive", "content_warning_details": "Illness.", "screen_out_pay": 20,
            "screen_out_places": 3, "codes": {"completed": "automatically_approve"},
        },
        blocks=[*cast.BASE["blocks"][:2], screener, *cast.BASE["blocks"][2:]],
    )  # fmt: skip
    plain = cast.open_study(panel={**cast.PROLIFIC, **PAY})
    sampled = cast.open_study(slug="sampled", panel={**cast.PROLIFIC, **PAY, "filter_set": "f1"})
    body = drafts.draft_body(
        stored_posting(plain, places=5, expected_minutes=4, published_at=None), address="https://a.example"
    )
    codes = {code["code_type"]: code for code in body.pop("completion_codes")}
    name = Posting.objects.get(study=plain).internal_name
    assert body == {
        "name": plain.title, "internal_name": name, "description": drafts.as_html(plain.config.texts.welcome),
        "external_study_url": "https://a.example", "is_external_study_url_secure": False,
        "prolific_id_option": "url_parameters", "metadata": drafts.mark_of(Posting.objects.get(study=plain)),
        "total_available_places": 5, "estimated_completion_time": 4, "reward": 100, "filters": [],
        "device_compatibility": ["desktop", "tablet", "mobile"],
        "submissions_config": {"max_submissions_per_participant": 1},
    }  # fmt: skip
    assert set(codes) == {"COMPLETED", "NO_CONSENT", "FAILED_COMPREHENSION_CHECK", "STUDY_FULL"}
    other = drafts.draft_body(stored_posting(unusual, group="g", published_at=None), address="https://a.example")
    sent = {name: value for name, value in other.items() if name not in body or body[name] != value}
    codes = {code["code_type"]: code for code in sent.pop("completion_codes")}
    ages = {"filter_id": "age", "selected_range": {"lower": 18, "upper": 30.5}}
    assert {key: sent[key] for key in sent if key not in ("internal_name", "metadata")} == {
        "is_external_study_url_secure": True, "study_type": "QUOTA", "project": "p1", "maximum_allowed_time": 40,
        "total_available_places": 6, "estimated_completion_time": 3, "device_compatibility": ["mobile"],
        "content_warnings": ["sensitive"], "content_warning_details": "Illness.",
        "filters": [
            weighted, {"filter_id": "or", "selected_filters": [ages]},
            {"filter_id": drafts.BLOCKED_GROUPS, "selected_values": ["g"]},
        ],
    }  # fmt: skip
    put = {"action": "ADD_TO_PARTICIPANT_GROUP", "participant_group": "g"}
    pays = {"action": "FIXED_SCREEN_OUT_PAYMENT", "fixed_screen_out_reward": 20, "slots": 3}
    assert codes["COMPLETED"]["actions"] == [{"action": "AUTOMATICALLY_APPROVE"}, put]
    assert codes["FIXED_SCREENOUT"]["actions"] == [pays, put]
    assert [kind for kind, code in codes.items() if put not in code["actions"]] == ["NO_CONSENT", "STUDY_FULL"]
    assert {code["actor"] for code in codes.values()} == {"participant"}
    of_set = drafts.draft_body(stored_posting(sampled, published_at=None), address="https://a.example")
    assert of_set["filter_set_id"] == "f1" and "filters" not in of_set and "study_type" not in of_set


def test_people_are_asked_back_in_the_studys_language(db: None) -> None:
    study = cast.open_study(panel={**cast.PROLIFIC, **PAY}, texts={**cast.BASE["texts"], "language": "de"})
    codes = drafts.draft_body(stored_posting(study), address="https://study.example")["completion_codes"]
    assert {code["code_type"]: code["actions"][0].get("return_reason") for code in codes} == {
        "COMPLETED": None,
        "NO_CONSENT": "Sie haben sich gegen die Teilnahme entschieden.",
        "FAILED_COMPREHENSION_CHECK": "Die Fragen zur Anleitung wurden nicht richtig beantwortet.",
        "STUDY_FULL": "Alle Plätze der Studie waren vergeben.",
    }


def test_an_answer_without_a_state_leaves_it_and_a_long_one_is_cut(db: None) -> None:
    posting = stored_posting(cast.open_study(panel={**cast.PROLIFIC, **PAY}))
    answers = iter(("", "P" * 50))
    client: Any = SimpleNamespace(pause=lambda _external_id: next(answers), start=None, stop=None)
    assert postings.change(posting, Move.PAUSE, client=client).state == "ACTIVE" and posting.paused_at
    assert postings.change(posting, Move.PAUSE, client=client).state == "P" * 40
    postings.store_pause(posting.pk, "", at=timezone.now(), why="w")
    posting.refresh_from_db()
    assert posting.state == "P" * 40


def test_a_study_that_screens_out_declares_one_more_code(fake: FakeProlific) -> None:
    age = {"name": "adult", "label": "Adult?", "kind": "choice", "options": ["Yes", "No"]}
    screener = {"kind": "form", "name": "screener", "fields": [{**age, "required": True, "screen_out": ["No"]}]}
    blocks = cast.BASE["blocks"]
    study = cast.open_study(panel={**cast.PROLIFIC, **PAY}, blocks=[*blocks[:2], screener, *blocks[2:]])
    posting = postings.draft(study.stages.get(index=1), root="http://testserver")
    codes = {entry["code"]: entry for entry in fake.studies[posting.external_id]["completion_codes"]}
    assert set(codes) == set(study.codes.values_list("code", flat=True))
    declared = codes[study.completion_code("screened_out")]
    assert declared["code_type"] == "SCREENED_OUT" and declared["actions"][0]["action"] == "REQUEST_RETURN"
    assert declared["actions"][0]["return_reason"]


def test_a_draft_whose_answer_got_lost_is_found_again_and_not_made_twice(fake: FakeProlific) -> None:
    stage = first_stage()
    fake.break_next("/studies/", Breakage.ANSWER_LOST, method="POST")
    with pytest.raises(PanelUnreachable):
        postings.draft(stage, root="http://testserver")
    assert len(fake.studies) == 1
    posting = postings.draft(stage, root="http://testserver")
    assert len(fake.studies) == 1 and posting.external_id in fake.studies
    assert Posting.objects.get().state == "UNPUBLISHED"


@pytest.mark.parametrize("mark", ["theirs", None])
def test_a_study_of_the_same_name_from_another_installation_is_not_taken_for_the_lost_draft(
    fake: FakeProlific, mark: str | None
) -> None:
    """By the mark that it bears; by its codes where it was drafted before there were marks."""
    stage = first_stage()
    theirs = postings.draft(stage, root="http://testserver").external_id
    fake.studies[theirs]["completion_codes"] = [
        {"code": "THEIRS", "code_type": "COMPLETED", "actor": "participant", "actions": []}
    ]
    fake.studies[theirs]["metadata"] = mark
    Posting.objects.update(external_id="")
    posting = postings.draft(stage, root="http://testserver")
    assert posting.external_id in fake.studies and posting.external_id != theirs


@pytest.mark.parametrize(("panel", "field"), [({"reward": None}, "reward"), ({"kind": "open"}, "kind")])
def test_a_study_without_panel_or_reward_is_not_drafted(fake: FakeProlific, panel: dict[str, Any], field: str) -> None:
    study = cast.open_study(panel={"kind": "open"} if "kind" in panel else cast.PROLIFIC)
    with pytest.raises(StateRefused, match=rf"panel\.{field}"):
        postings.draft(study.stages.get(index=1))
    assert fake.studies == {}


def test_nothing_is_published_without_a_cap_or_over_it(fake: FakeProlific) -> None:
    posting = posted(publish=False, spending_cap=599)
    with pytest.raises(StateRefused, match=r"600 more would make 600 of 599"):
        postings.publish(posting)
    posting.study.stored_config["panel"]["spending_cap"] = None
    posting.study.save()
    with pytest.raises(StateRefused, match="names none"):
        postings.publish(Posting.objects.get())
    assert fake.studies[posting.external_id]["status"] == "UNPUBLISHED"
    assert Posting.objects.get().published_at is None


def test_the_cap_itself_may_be_spent(fake: FakeProlific) -> None:
    posting = posted(spending_cap=600)
    assert posting.committed == 600
    with pytest.raises(StateRefused, match=r"100 more would make 700 of 600"):
        postings.add_places(posting, 1)


def test_people_are_not_sent_to_a_closed_door(fake: FakeProlific) -> None:
    posting = posted(publish=False)
    lifecycle.pause_stage(posting.stage)
    with pytest.raises(StateRefused, match="open it first"):
        postings.publish(posting)


def test_it_is_published_once_then_paused_started_and_given_places(fake: FakeProlific) -> None:
    posting = posted(places=2)
    at_panel = fake.studies[posting.external_id]
    assert (posting.state, at_panel["status"]) == ("ACTIVE", "ACTIVE")
    with pytest.raises(StateRefused, match="published before"):
        postings.publish(posting)
    postings.change(posting, Move.PAUSE)
    assert at_panel["status"] == posting.state == "PAUSED"
    with pytest.raises(PanelRefused, match="cannot PAUSE"):
        postings.change(posting, Move.PAUSE)
    assert Posting.objects.get().paused_at is not None
    postings.change(posting, Move.START)
    assert Posting.objects.get().paused_at is None, "should the panel pause it by itself now, somebody is to know"
    for _ in range(2):
        place = arrives(fake, posting)
        begins(posting.study, place)
        fake.submit(place["id"], posting.study.completion_code("completed"))
    assert at_panel["status"] == "AWAITING REVIEW"
    postings.add_places(posting, 1)
    assert (posting.places, at_panel["total_available_places"], at_panel["status"]) == (3, 3, "ACTIVE")
    with pytest.raises(StateRefused, match="positive"):
        postings.add_places(posting, 0)
    with pytest.raises(StateRefused, match="spending_cap"):
        postings.add_places(posting, 1000)
    assert Posting.objects.get().places == 3
    actions = AuditEntry.objects.filter(action__endswith="_posting").values_list("action", flat=True)
    assert {"draft_posting", "publish_posting", "pause_posting", "start_posting"} <= set(actions)


def test_publishing_that_may_have_happened_keeps_its_money_committed(fake: FakeProlific) -> None:
    posting = posted(publish=False)
    fake.lose_next_answer("/transition/")
    with pytest.raises(PanelUnreachable):
        postings.publish(posting)
    stored = Posting.objects.get()
    assert stored.published_at is not None and stored.committed == 600
    read_posting(stored)
    assert stored.state == "ACTIVE"


def test_publishing_that_was_refused_commits_nothing(fake: FakeProlific) -> None:
    posting = posted(publish=False)
    fake.break_next("/transition/", Breakage.REFUSED)
    with pytest.raises(PanelRefused, match="reward: is too low"):
        postings.publish(posting)
    assert Posting.objects.get().committed == 0


def test_what_the_panel_refuses_to_publish_since_it_is_published_counts(fake: FakeProlific) -> None:
    posting = posted(publish=False)
    fake.studies[posting.external_id]["status"] = "ACTIVE"
    with pytest.raises(PanelRefused):
        postings.publish(posting)
    assert Posting.objects.get().committed == 600


def test_places_added_on_the_panels_pages_are_counted(fake: FakeProlific) -> None:
    posting = posted(places=2)
    fake.studies[posting.external_id]["total_available_places"] = 9
    read_posting(posting)
    assert Posting.objects.get().committed == 900


def test_what_was_published_on_the_panels_pages_is_counted(fake: FakeProlific) -> None:
    posting = posted(publish=False)
    fake.studies[posting.external_id]["status"] = "ACTIVE"
    read_posting(posting)
    assert Posting.objects.get().committed == 600


def test_a_study_made_on_the_panels_pages_is_taken_up(fake: FakeProlific) -> None:
    posting = posted()
    place = arrives(fake, posting)
    stage = posting.stage
    with pytest.raises(StateRefused, match="already"):
        postings.adopt(stage, posting.external_id)
    Posting.objects.all().delete()
    adopted = postings.adopt(stage, posting.external_id)
    assert (adopted.state, adopted.reward, adopted.places) == ("ACTIVE", 100, 6)
    assert read_posting(adopted) == 1 and adopted.submissions.count() == 1 and place


# The second case


def test_more_places_cost_their_rewards_and_fees_and_no_fixed_fee_again(fake: FakeProlific) -> None:
    elsewhere = cast.open_study(slug="elsewhere", panel={**cast.PROLIFIC, **PAY}, sitting={"items": 1})
    posting = stored_posting(elsewhere, reward=100, places=6, fee_rate=3330, vat_rate=2000, fixed_fee=3000)
    assert posting.cost == 600 + 200 + 40 + 3000
    assert postings.cost_of_more(posting, 1) == 980 - 840
    # The study may spend exactly one place more.
    posting = posted(spending_cap=3700, representative_sample="US_REP_SAMPLE")
    assert (posting.fixed_fee, posting.committed) == (2500, 3100)
    assert postings.cost_of_more(posting, 6) == 600
    with pytest.raises(StateRefused, match=r"700 more would make 3800 of 3700"):
        postings.add_places(posting, 7)
    assert postings.add_places(posting, 6).committed == 3700


def test_a_reading_that_says_less_frees_nothing(db: None) -> None:
    posting = stored_posting(first_stage().study, screen_outs=300, reward=100, places=6)
    said = PostingAtPanel(posting.external_id, "ACTIVE", places=2, reward=50, screen_outs=20)
    postings.take_over(posting, said, read_at=timezone.now(), patience=timedelta(minutes=10))
    assert (posting.places, posting.reward, posting.screen_outs, posting.committed) == (6, 100, 300, 900)
    said = PostingAtPanel(posting.external_id, "ACTIVE", places=7, reward=110, screen_outs=330)
    postings.take_over(posting, said, read_at=timezone.now(), patience=timedelta(minutes=10))
    assert (posting.places, posting.reward, posting.screen_outs, posting.committed) == (7, 110, 330, 1100)


def test_an_older_reading_changes_nothing(db: None) -> None:
    now = timezone.now()
    posting = stored_posting(first_stage().study, read_at=now)
    older = PostingAtPanel(posting.external_id, "COMPLETED", places=9)
    postings.take_over(posting, older, read_at=now - timedelta(seconds=1), patience=timedelta(minutes=10))
    assert (posting.state, posting.places, posting.read_at) == ("ACTIVE", 6, now)


def test_what_is_taken_up_costs_its_screen_outs_and_its_fees_too(fake: FakeProlific) -> None:
    fake.fee, fake.vat = Decimal("0.333"), Decimal("0.2")
    posting = posted(publish=False, screen_out_pay=20, screen_out_places=10)
    at_panel = fake.studies[posting.external_id]
    pays = {"action": "FIXED_SCREEN_OUT_PAYMENT", "fixed_screen_out_reward": 20, "slots": 10}
    entry = {"code": "OUT", "code_type": "FIXED_SCREENOUT", "actor": "participant", "actions": [pays]}
    made = {**at_panel, "id": "5f00000000000000000000bb", "completion_codes": [entry], "reward": 150}
    fake.studies[made["id"]] = {**made, "total_available_places": 3, "estimated_completion_time": 7, "status": "ACTIVE"}
    adopted = postings.adopt(posting.stage, made["id"])
    assert (adopted.screen_outs, adopted.reward, adopted.places, adopted.expected_minutes) == (200, 150, 3, 7)
    assert adopted.cost == adopted.committed == 650 + 216 + 43
    assert (adopted.currency, adopted.wave, adopted.published_at is None) == ("USD", 1, False)


def test_a_draft_of_the_panels_pages_commits_nothing_until_it_is_published(fake: FakeProlific) -> None:
    posting = posted(publish=False)
    fake.studies["5f00000000000000000000bb"] = {**fake.studies[posting.external_id], "id": "5f00000000000000000000bb"}
    assert postings.adopt(posting.stage, "5f00000000000000000000bb").committed == 0


@pytest.mark.parametrize(
    ("changed", "state"), [(None, "PAUSED"), (timedelta(hours=-1), "PAUSED"), (timedelta(hours=1), "ACTIVE")]
)
def test_what_the_watch_paused_is_stored_unless_the_panel_answered_later(
    db: None, changed: timedelta | None, state: str
) -> None:
    at = timezone.now()
    posting = stored_posting(first_stage().study, changed_at=None if changed is None else at + changed)
    postings.store_pause(posting.pk, "PAUSED", at=at, why="no database")
    posting.refresh_from_db()
    assert (posting.state, posting.paused_at == at) == (state, state == "PAUSED")


@pytest.mark.parametrize(
    ("state", "status", "ago", "is_settled"),
    [
        ("COMPLETED", "APPROVED", timedelta(hours=1), True),
        ("COMPLETED", "AWAITING REVIEW", timedelta(hours=1), False),
        ("COMPLETED", "ACTIVE", timedelta(hours=1), False),
        ("COMPLETED", "APPROVED", timedelta(hours=25), False),  # Once a day.
        ("PAUSED", "APPROVED", timedelta(hours=1), False),
        ("AWAITING REVIEW", "APPROVED", timedelta(hours=1), False),
    ],
)
def test_a_posting_is_read_again_until_it_is_over_and_nobody_waits(
    fake: FakeProlific,
    monkeypatch: pytest.MonkeyPatch,
    state: str,
    status: str,
    ago: timedelta,
    is_settled: bool,
) -> None:
    posting = stored_posting(first_stage().study, state=state, read_at=timezone.now() - ago)
    stored_submission(posting, None, status)
    assert submissions._is_settled(posting) is is_settled
    monkeypatch.setattr(submissions, "read_posting", lambda posting: None)
    assert submissions.read_all() == (0 if is_settled else 1)


@pytest.mark.parametrize(("days", "is_settled"), [(29, False), (31, True)])
def test_a_posting_that_is_over_is_read_once_a_day_for_a_month(db: None, days: int, is_settled: bool) -> None:
    long_ago = timezone.now() - timedelta(days=days)
    posting = stored_posting(first_stage().study, state="COMPLETED", read_at=timezone.now() - timedelta(days=2))
    Posting.objects.filter(pk=posting.pk).update(created_at=long_ago, published_at=long_ago, changed_at=long_ago)
    posting.refresh_from_db()
    assert submissions._is_settled(posting) is is_settled


@pytest.mark.parametrize(("minutes", "enough"), [(7, 94), (3, 40), (15, 200), (11, 147)])
def test_the_reward_that_is_named_as_enough_is_enough_and_a_cent_less_is_not(
    db: None, minutes: int, enough: int
) -> None:
    """8.00 USD an hour: 93.33, 40, 200 and 146.67 cents."""
    study = cast.study(panel={**cast.PROLIFIC, "reward": 10, "expected_minutes": minutes})
    with pytest.raises(PayTooLow, match=rf"make the reward {enough} or more"):
        refuse_low_pay(study)
    refuse_low_pay(study, reward=enough)
    with pytest.raises(PayTooLow):
        refuse_low_pay(study, reward=enough - 1)


# Pay by the hour


def test_a_stage_does_not_open_below_the_panels_minimum(db: None) -> None:
    study = cast.study(panel={**cast.PROLIFIC, "reward": 39}, texts={"minutes": 3})
    with pytest.raises(PayTooLow, match=r"7\.80 USD an hour by the expected 3 minutes.* 8\.00; make the reward 40 or"):
        cast.open_first_stage(study)
    enough = cast.study(slug="b", panel={**cast.PROLIFIC, "reward": 40}, texts={"minutes": 3})
    assert cast.open_first_stage(enough).state == "open"


def test_in_pounds_the_minimum_is_another(db: None) -> None:
    study = cast.study(panel={**cast.PROLIFIC, "reward": 30, "currency": "GBP"}, texts={"minutes": 3})
    pay = hourly_pay(study)
    assert pay and (pay.minimum, pay.cents, pay.is_too_low) == (600, 600, False)


def test_once_enough_have_finished_their_median_counts(fake: FakeProlific, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("survey.services.sittings.hourly_pay.ENOUGH", 3)
    posting = posted(publish=False)
    for minutes in (10, 12, 50):
        place = {"participant_id": f"p{minutes}", "study_id": posting.external_id, "id": f"x{minutes}"}
        sitting = begins(posting.study, place)
        assert sitting.ended_at is not None
        started_at = sitting.ended_at - timedelta(minutes=minutes)
        Sitting.objects.filter(pk=sitting.pk).update(started_at=started_at)
    pay = hourly_pay(posting.study)
    assert pay and pay.is_measured and pay.is_too_low and round(pay.cents) == 500
    with pytest.raises(PayTooLow, match=r"the median of 3 finished sittings, 12\.0 minutes"):
        postings.publish(posting)
    with pytest.raises(PayTooLow):
        postings.draft(posting.stage, root="http://testserver")
    Posting.objects.all().delete()
    better = postings.draft(posting.stage, reward=170, root="http://testserver")
    assert postings.publish(better).state == "ACTIVE"
    pay = hourly_pay(posting.study)
    assert pay and not pay.is_too_low, "the newest posting's reward counts"


def test_what_a_posting_would_cost_is_said_with_screen_outs_and_fees_before_it_is_drafted(db: None) -> None:
    pay = {**PAY, "screen_out_pay": 20, "screen_out_places": 5, "spending_cap": 650}
    study = cast.open_study(panel={**cast.PROLIFIC, **pay}, sitting={"items": 1}, stages=[{"sittings": 4}])
    stage = study.stages.get(index=1)
    stored_posting(study, fee_rate=2500, vat_rate=2000, published_at=None)
    assert posting_checks.cost_of(study, 4, 100) == 400 + 100 + 125 + 25

    def problems(**asked: int) -> set[str]:
        return {check.title for check in posting_checks.checks(stage, **asked) if check.problem}

    before = problems(places=4, reward=100)
    assert "The cost fits under the cap" not in before and "The stage has a place for everybody" not in before
    assert problems(places=4, reward=101) - before == {"The cost fits under the cap"}
    assert problems(places=5, reward=79) - before >= {"The stage has a place for everybody"}


def test_times_are_of_real_people_who_finished_in_one_go(db: None) -> None:
    study = cast.open_study(
        panel={**cast.PROLIFIC, **PAY}, stages=[{"sittings": 8, "pilot": True}, {"sittings": 6}], sitting={"items": 1}
    )
    now = timezone.now()

    def finished(minutes: int, **columns: Any) -> Sitting:
        return sits(study, started_at=now - timedelta(minutes=minutes), ended_at=now, **columns)

    finished(7)
    finished(8, expired_at=now)
    finished(9, withdrawn_at=now)
    finished(11, state="turned_away")
    simulated = finished(10)
    Respondent.objects.filter(pk=simulated.respondent_id).update(is_simulated=True)
    assert minutes_taken(study) == [7]
    Sitting.objects.filter(pk=finished(5).pk).update(stage=study.stages.get(index=2))
    assert minutes_taken(study) == [5], "once somebody has finished a main stage, the pilot's times do not count"
    finished(9)
    assert hourly_pay_by_pilot(study) is None, "two are too few"
    finished(8)
    pilots = hourly_pay_by_pilot(study)
    assert pilots is not None and (pilots.finished, pilots.minutes) == (3, 8), "of the pilot alone"


def test_the_panels_minimum_is_the_newest_postings_in_the_files_currency(db: None) -> None:
    study = cast.open_study(panel={**cast.PROLIFIC, **PAY})
    general = hourly_pay(study).minimum  # type: ignore[union-attr]
    stored_posting(study, panel_facts={"minimum": 901})
    stored_posting(study, panel_facts={"minimum": 902}, reward=150)
    newest = hourly_pay(study)
    assert newest is not None and (newest.minimum, newest.cents * newest.minutes / 60) == (902, 150)
    asked, expected = hourly_pay(study, reward=170), hourly_pay(study, as_expected=True)
    assert asked is not None and (asked.minimum, asked.cents * asked.minutes / 60) == (902, 170)
    assert expected is not None and expected.cents * expected.minutes / 60 == PAY["reward"]
    stored_posting(study, panel_facts={"minimum": 903}, currency="GBP")
    assert hourly_pay(study).minimum == general != 902  # type: ignore[union-attr]
    assert hourly_pay(study, as_expected=True).minimum == general  # type: ignore[union-attr]


def test_what_was_measured_never_shuts_a_stage_whose_next_posting_may_pay_more(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("survey.services.sittings.hourly_pay.ENOUGH", 1)
    study = cast.open_study(panel={**cast.PROLIFIC, **PAY}, sitting={"items": 1}, stages=[{"sittings": 2}] * 2)
    begins(study, {"participant_id": "p", "study_id": "s", "id": "x"})
    Sitting.objects.update(started_at=timezone.now() - timedelta(minutes=59))
    jobs.run_inline(lifecycle.close_stage(study.stages.get(index=1), now=True))
    pay = hourly_pay(study)
    assert pay and pay.is_too_low
    assert lifecycle.open_stage(study.stages.get(index=2)).state == "open"


def test_an_open_study_or_one_without_a_reward_is_not_judged(db: None) -> None:
    assert hourly_pay(cast.study()) is None
    assert hourly_pay(cast.study(slug="b", panel=cast.PROLIFIC)) is None


# The study file


@pytest.mark.parametrize(
    ("panel", "field"),
    [
        ({"kind": "open", "reward": 5}, "panel"),
        ({**cast.PROLIFIC, "reward": 5, "turned_away_pay": 6}, "panel"),
        ({**cast.PROLIFIC, "completion_url": "http://panel.example/"}, "completion_url"),
        ({**cast.PROLIFIC, "completion_url": "http://127.0.0.1.example.org/"}, "completion_url"),
        ({**cast.PROLIFIC, "exclude_people_of": ["unheard-of"]}, "exclude_people_of"),
        ({**cast.PROLIFIC, "filters": [{"filter_id": "age"}]}, "filters"),
        ({**cast.PROLIFIC, "filters": [{"filter_id": "a", "selected_range": {"lower": 2, "upper": 1}}]}, "filters"),
    ],
)
def test_a_panel_that_cannot_be_meant_is_refused(panel: dict[str, Any], field: str, db: None) -> None:
    with pytest.raises(FileErrors, match=field):
        cast.study(panel=panel)


def test_the_fakes_own_address_may_be_the_completion_url(db: None) -> None:
    address = "http://127.0.0.1:8100/submissions/complete?cc={code}"
    assert cast.study(panel={**cast.PROLIFIC, "completion_url": address})


# Commands


def run(name: str, *args: str) -> str:
    out = StringIO()
    call_command(name, *args, stdout=out, stderr=out)
    return out.getvalue()


def test_the_commands_do_a_whole_round(fake: FakeProlific) -> None:
    stage = first_stage()
    assert "is UNPUBLISHED with 6 places at 1.00 USD" in run("posting", "cast", "draft", "--root", "http://testserver")
    assert "is ACTIVE" in run("posting", "cast", "publish")
    assert "with 8 places" in run("posting", "cast", "add-places", "2")
    posting = stage.postings.get()
    finished, late = arrives(fake, posting), arrives(fake, posting)
    for place in (finished, late):
        begins(stage.study, place)
    fake.submit(finished["id"], stage.study.completion_code("completed"))
    fake.time_out(late["id"])
    assert "2 to settle, 1.00 USD owed on top of rewards" in run("reconcile", "cast")
    assert "approved: 1" in run("reconcile", "cast", "--approve", "--ask-back")
    assert "finished after the panel's time was over" in run("pay_bonuses", "cast")
    assert "1.00 USD paid\nnothing is owed\ncommitted: 9.00 of 100.00" in run("pay_bonuses", "cast", "--pay")
    output = run("reconcile", "cast") + run("posting", "cast", "show") + run("pay_bonuses", "cast")
    assert "0 to settle, 0.00 USD owed" in output
    for row in fake.submissions.values():
        assert row["id"] not in output and row["participant_id"] not in output


def test_a_command_says_what_to_do(fake: FakeProlific) -> None:
    first_stage()
    for args in (("posting", "cast", "publish"), ("reconcile", "cast")):
        out = StringIO()
        with pytest.raises(SystemExit):
            call_command(*args, stdout=out, stderr=out)
        assert "draft" in out.getvalue()


def test_a_draft_of_the_same_name_is_ours_by_its_mark_or_else_by_our_codes() -> None:
    """What says neither, a panel that keeps no codes, is taken for ours: its name is."""
    study = cast.small_study("mine", panel=cast.PROLIFIC)
    posting = stored_posting(study)
    ours, theirs = frozenset([study.completion_code("completed"), "THEIRS"]), frozenset(["THEIRS"])
    mark = panels.get("prolific").mark(posting)
    for said, is_ours in (
        ({"codes": ours}, True),
        ({"codes": theirs}, False),
        ({}, True),
        ({"mark": mark, "codes": theirs}, True),
        ({"mark": f"{mark}-other", "codes": ours}, False),
    ):
        at_panel = PostingAtPanel(external_id="x", state="UNPUBLISHED", **said)  # type: ignore[arg-type]
        assert postings._is_our_own(at_panel, posting) is is_ours, said


def test_a_simulated_person_who_begins_meanwhile_stops_the_draft(
    fake: FakeProlific, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the first look at the study, and before the panel is asked to make anything."""
    stage = first_stage()
    ids = PanelIds("prolific", "simulated", "s", "x")

    def somebody_begins(*_arguments: Any) -> None:
        begin_sitting(study=stage.study, ids=ids, simulated=True)

    monkeypatch.setattr(postings, "refuse_other_currency", somebody_begins)
    with pytest.raises(StateRefused, match="simulated people have taken part"):
        postings.draft(stage, root="http://testserver")
    assert not Posting.objects.exists() and fake.studies == {}


def test_the_wallet_is_asked_for_all_the_places_that_are_added(
    fake: FakeProlific, monkeypatch: pytest.MonkeyPatch
) -> None:
    posting, needed = posted(), []
    monkeypatch.setattr(postings, "refuse_over_wallet", lambda _posting, cents, _client: needed.append(cents))
    postings.add_places(posting, 3)
    assert needed == [300]
