"""Who may begin, what is stored then, and when a booklet is given."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from django.utils import timezone

from survey.contracts import panels
from survey.contracts.panels import PanelIds
from survey.exceptions import EntryRefused, NotFound
from survey.models import Booklet, ChosenLevels, ConditionLevel, PanelIdentity, Respondent, Sitting, Stage, Study
from survey.services.base.hashing import digest
from survey.services.sittings import enrolment
from survey.services.sittings.capacity import free_booklets, free_capacity
from survey.services.sittings.enrolment import begin_sitting, find_sitting
from survey.services.sittings.identities import person_hash, seal, submission_hash, unseal
from survey.services.stages import lifecycle
from tests import cast

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

PROLIFIC = {"kind": "prolific"}
GENERIC = {"kind": "generic"}
WHO = {"PROLIFIC_PID": "5f1", "STUDY_ID": "s1", "SESSION_ID": "x1"}


def refused(study: Study, ids: PanelIds) -> EntryRefused:
    with pytest.raises(EntryRefused) as caught:
        begin_sitting(study=study, ids=ids)
    return caught.value


def test_consent_is_stored_in_its_very_words() -> None:
    stage = cast.open_stage()
    sitting = begin_sitting(study=stage.study, ids=cast.person(), language="de")
    assert (sitting.consent.version, sitting.consent.language) == ("3", "de")
    assert sitting.consent.text_sha256 == digest("You may stop at any time.")


def test_a_booklet_is_claimed_only_after_the_checks() -> None:
    stage = cast.open_stage()
    visitor = cast.Visitor(stage.study)
    assert visitor.sitting.booklet is None and free_booklets(stage).count() == 4
    visitor.check(right=False)
    assert visitor.reload().booklet is None
    visitor.check()
    assert visitor.reload().booklet is not None
    assert free_booklets(stage).count() == 3
    assert visitor.states() == ["live"] * 3


def test_a_study_without_checks_gives_the_booklet_with_consent() -> None:
    blocks = [block for block in cast.BLOCKS if block["kind"] != "checks"]
    stage = cast.open_stage(blocks=blocks)
    visitor = cast.Visitor(stage.study)
    assert visitor.step.kind == "item"
    assert visitor.states() == ["live"] * 3
    assert visitor.finish().step.outcome == "completed"


def test_a_booklet_is_given_whole_and_in_its_order() -> None:
    visitor = cast.Visitor(cast.open_stage().study).to_items()
    booklet = visitor.reload().booklet
    assert visitor.slots() == list(booklet.slots.order_by("position").values_list("pk", flat=True))


def test_nobody_is_admitted_beyond_the_places_there_are() -> None:
    stage = cast.open_stage(panel=GENERIC)
    for _place in range(4):
        cast.Visitor(stage.study)
    assert free_capacity(stage) == 0
    assert refused(stage.study, cast.person()).code == "full"


def test_a_full_stage_refuses_before_consent_and_stores_nothing() -> None:
    stage = cast.open_stage()
    cast.fill(stage)
    late = cast.person()
    with pytest.raises(EntryRefused, match="All places"):
        enrolment.stage_to_join(stage.study)
    assert refused(stage.study, late).code == "full"
    assert Respondent.objects.count() == PanelIdentity.objects.count() == 4


@pytest.mark.parametrize("state", ["draft", "planned", "paused", "closing"])
def test_only_an_open_stage_admits(state: str) -> None:
    stage = cast.stage_of(cast.small_study()) if state == "draft" else cast.planned_stage()
    if state in ("paused", "closing"):
        stage = lifecycle.open_stage(stage)
        (lifecycle.pause_stage if state == "paused" else lifecycle.close_stage)(stage)
    assert refused(stage.study, cast.person()).code == "closed"
    assert not Respondent.objects.exists()


@pytest.mark.parametrize("refusal", ["full", "already_taken_part"])
def test_who_is_refused_is_not_counted_as_an_arrival(refusal: str) -> None:
    stage, ids = cast.open_stage(panel=PROLIFIC), PanelIds("prolific", "5f1", "s1", "x1")
    begin_sitting(study=stage.study, ids=ids)
    other = PanelIds("prolific", "5f1", "s1", "x2")
    if refusal == "full":
        Booklet.objects.update(claimed_at=timezone.now())
        other = cast.person()
    assert refused(stage.study, other).code == refusal
    assert Stage.objects.get().arrivals == Respondent.objects.count() == 1


def test_failed_checks_free_the_place() -> None:
    stage = cast.open_stage(panel=GENERIC, stages=[{"sittings": 1}])
    visitor = cast.Visitor(stage.study)
    assert free_capacity(stage) == 0
    visitor.check(right=False)
    visitor.check(right=False)
    assert free_capacity(stage) == 1


def test_beginning_again_gives_the_same_sitting() -> None:
    stage = cast.open_stage()
    ids = cast.person()
    first = begin_sitting(study=stage.study, ids=ids)
    assert begin_sitting(study=stage.study, ids=ids) == first
    assert Sitting.objects.count() == Respondent.objects.count() == 1
    stage.refresh_from_db()
    assert stage.arrivals == 1


def test_one_who_took_part_in_an_earlier_stage_comes_back_to_its_end_and_gets_no_second_sitting() -> None:
    stage = cast.open_stage(stages=[{"sittings": 2, "train": False}, {"sittings": 2}])
    visitors = cast.fill(stage)
    lifecycle.close_stage(stage)
    cast.run_until(stage, "plan")
    cast.jobs.run_inline(stage)
    lifecycle.open_stage(cast.stage_of(stage.study, 2))
    again = begin_sitting(study=stage.study, ids=visitors[0].ids)
    assert again == visitors[0].sitting
    assert again.stage == stage


def test_another_submission_of_the_same_person_is_refused() -> None:
    stage = cast.open_stage(panel=PROLIFIC)
    begin_sitting(study=stage.study, ids=PanelIds("prolific", "5f1", "s1", "x1"))
    assert refused(stage.study, PanelIds("prolific", "5f1", "s1", "x2")).code == "already_taken_part"
    assert Sitting.objects.count() == 1


def test_who_came_without_a_submission_is_known_by_the_person_alone() -> None:
    study = cast.open_stage(panel=GENERIC).study
    bare, named = (begin_sitting(study=study, ids=PanelIds("generic", *who)) for who in (("anna",), ("eve", "", "one")))
    assert find_sitting(study, PanelIds("generic", "anna", submission="two")) == bare
    assert find_sitting(study, PanelIds("generic", "eve", submission="one")) == named
    with pytest.raises(EntryRefused):
        find_sitting(study, PanelIds("generic", "eve"))


def test_two_studies_do_not_know_a_person_of_each_other() -> None:
    first, second = cast.open_stage("first"), cast.open_stage("second")
    ids = cast.person()
    begin_sitting(study=first.study, ids=ids)
    begin_sitting(study=second.study, ids=ids)
    hashes = set(PanelIdentity.objects.values_list("person_hash", flat=True))
    assert len(hashes) == 2


def test_a_hash_is_of_all_that_makes_somebody_the_same() -> None:
    """Two panels may have one name for two people, and two of their studies one for two participations."""
    first, second = cast.study(slug="first"), cast.study(slug="second")
    ids = PanelIds("prolific", "p", "s", "x")
    of_other_panel, of_other_study = replace(ids, panel="generic"), replace(ids, study="s2")
    people = [(first, ids), (second, ids), (first, of_other_panel), (first, replace(ids, person="q"))]
    assert len({person_hash(*person) for person in people}) == 4
    assert person_hash(first, of_other_study) == person_hash(first, replace(ids, submission="y"))
    came = [(first, ids), (second, ids), (first, of_other_panel), (first, of_other_study)]
    assert len({submission_hash(*arguments) for arguments in [*came, (first, replace(ids, submission="y"))]}) == 5
    assert submission_hash(first, replace(ids, submission="")) == ""


def test_panel_ids_lie_encrypted_and_apart() -> None:
    stage = cast.open_stage()
    begin_sitting(study=stage.study, ids=PanelIds("prolific", "secret-person", "s", "x"))
    stored = PanelIdentity.objects.get()
    assert b"secret-person" not in bytes(stored.ids_encrypted)
    assert "secret-person" not in stored.respondent.pseudonym + stored.person_hash + stored.submission_hash
    opened = unseal(bytes(stored.ids_encrypted).decode())
    assert opened is not None and opened.person == "secret-person"


def test_a_changed_seal_opens_nothing() -> None:
    sealed = seal(PanelIds("open", "somebody"))
    assert unseal(sealed) == PanelIds("open", "somebody")
    assert unseal(sealed[:-4] + "AAAA") is None
    assert unseal("nonsense") is None


@pytest.mark.parametrize(
    "query",
    [
        {**WHO, "SESSION_ID": ""},
        {**WHO, "PROLIFIC_PID": "{{%PROLIFIC_PID%}}"},
        {**WHO, "STUDY_ID": "a" * 65},
        {"PROLIFIC_PID": "5f1"},
    ],
)
def test_a_broken_panel_link_is_refused(query: dict[str, str]) -> None:
    study = cast.small_study(panel=PROLIFIC)
    with pytest.raises(EntryRefused) as caught:
        panels.of_study(study).recognise(study, query)
    assert (caught.value.code, caught.value.status) == ("bad_panel_ids", 400)


def test_panel_ids_are_read_where_the_study_has_a_panel() -> None:
    named, nameless = cast.small_study("a", panel=PROLIFIC), cast.small_study("b", panel=PROLIFIC)
    open_to_all = cast.small_study("c")
    assert panels.of_study(named).recognise(named, WHO) == PanelIds("prolific", "5f1", "s1", "x1")
    assert panels.of_study(nameless).recognise(nameless, {}) is None
    assert panels.of_study(open_to_all).recognise(open_to_all, WHO) is None


def test_an_unknown_study_is_not_found() -> None:
    with pytest.raises(NotFound):
        enrolment.study_of("nowhere")


CONDITIONS: list[dict[str, Any]] = [
    {"factor": "wording", "levels": ["short", "long"], "texts": {"long": {"notes": "Much to read."}}},
    {"factor": "framing", "levels": ["model", "person", "none"]},
]
WITH_NOTES = [
    cast.BLOCKS[0],
    {"kind": "instructions", "name": "notes", "text": "Little to read."},
    *cast.BLOCKS[1:],
]


def test_conditions_are_balanced_in_blocks_and_stored_with_their_chance() -> None:
    stage = cast.open_stage(conditions=CONDITIONS, blocks=WITH_NOTES, stages=[{"sittings": 12}])
    sittings = [cast.Visitor(stage.study).sitting for _person in range(12)]
    for factor, levels in (("wording", 2), ("framing", 3)):
        drawn = [ConditionLevel.objects.get(sitting=sitting, factor=factor) for sitting in sittings]
        blocks = [[row.level for row in drawn[start : start + levels]] for start in range(0, 12, levels)]
        assert all(len(set(block)) == levels for block in blocks)
        assert len({tuple(block) for block in blocks}) > 1, "every block has the same order"
        assert {row.probability for row in drawn} == {1 / levels}
        assert Counter(row.seed for row in drawn) == {row.seed: levels for row in drawn}


def test_nobody_chooses_a_level_in_a_study_itself() -> None:
    stage = cast.open_stage(conditions=CONDITIONS, blocks=WITH_NOTES, stages=[{"sittings": 12}])
    people = [begin_sitting(study=stage.study, ids=cast.person(), levels={"wording": "long"}) for _ in range(2)]
    assert {sitting.levels()["wording"] for sitting in people} == {"short", "long"}, "a block holds each level once"
    assert not ChosenLevels.objects.exists()


def test_a_level_changes_the_text_that_it_names() -> None:
    stage = cast.open_stage(conditions=CONDITIONS, blocks=WITH_NOTES)
    texts = {}
    for _person in range(2):
        visitor = cast.Visitor(stage.study)
        texts[visitor.sitting.levels()["wording"]] = visitor.step.text
    assert texts == {"short": "Little to read.", "long": "Much to read."}


def test_the_consent_may_say_until_when_data_is_kept() -> None:
    words = [{**cast.BLOCKS[0], "text": "We keep it until {retention_until}."}, *cast.BLOCKS[1:]]
    study = cast.open_stage(blocks=words).study
    assert enrolment.consent_text(study, "en") == "We keep it until 2099-12-31."
