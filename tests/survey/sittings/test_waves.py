"""Waves: who may come back and when, invited by links or by the panel's group; the change within people, and what else
knows of waves. One study for all who only look."""

import csv
import io
import json
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from django.contrib.auth.models import Permission, User
from django.core.management import call_command
from django.urls import reverse
from django.utils import timezone, translation

import bandit
from survey import study_file
from survey.contracts import panels
from survey.contracts.measures import Measure
from survey.contracts.panels import PanelCannot, PanelIds
from survey.exceptions import EntryRefused, FileErrors, StateRefused
from survey.models import (
    ApiToken,
    Assignment,
    AuditEntry,
    ConditionLevel,
    EntryLink,
    PanelIdentity,
    Posting,
    Respondent,
    Sitting,
    Stage,
    Study,
    Submission,
    WaveIdentity,
)
from survey.panels import inviting, purging
from survey.panels.owed_list import owed_list, rows_with_ids
from survey.services.results.estimates import study_estimates, wave_changes
from survey.services.results.estimates.weights import answer_weights
from survey.services.sittings import entry, identities, links, waves
from survey.services.sittings.enrolment import begin_sitting, find_sitting
from survey.services.sittings.identities import Visitor as Arrived
from survey.services.sittings.withdrawal import withdraw
from survey.services.stages import jobs, lifecycle
from survey.services.studies.checking import check_study
from survey.simulator.crowd import Crowd, returning_people
from survey.simulator.own_site import OwnSite
from survey.study_file import StudyFileError
from tests import cast
from tests.cast import stage_of
from tests.survey import filled

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
ROOT = "https://study.example.org"
LINKS = {"kind": "links", "currency": "USD", "reward": 100}
GENERIC = {"kind": "generic", "reward": 100, "parameters": {"person": "pid", "submission": "tic"}}
STAGES = [{"sittings": 4}, {"sittings": 4, "wave": 2}]
WAVES = [{"after_days": 14, "open_days": 7}]


def wavy(**overrides: Any) -> Study:
    return cast.small_study("waves", **{"panel": LINKS, "stages": STAGES, "waves": WAVES, **overrides})


def in_wave_2(made: Study) -> None:
    jobs.run_inline(lifecycle.close_stage(stage_of(made, 1), now=True))
    lifecycle.open_stage(stage_of(made, 2))


def finish(made: Study, ids: PanelIds) -> Sitting:
    visitor = cast.Visitor(made, ids=ids).finish()
    return visitor.reload()


def days_ago(sitting: Sitting, days: float) -> None:
    Sitting.objects.filter(pk=sitting.pk).update(ended_at=timezone.now() - timedelta(days=days))


def came_by(study: Study, address: str) -> PanelIds:
    return links.ids_of_link(study, address.rpartition("=")[2])


@cast.kept
def study_in_wave_2() -> Study:
    """By links. Three finished wave 1: two of them 15 days ago, one just now; the fourth left. Wave 2 is open."""
    made = wavy()
    cast.open_first_stage(made)
    people = [came_by(made, link.address) for link in links.make_links(made, count=4, root=ROOT)]
    for number, ids in enumerate(people[:3]):
        days_ago(finish(made, ids), 15 if number < 2 else 0)
    cast.Visitor(made, ids=people[3]).expire()
    in_wave_2(made)
    return made


@pytest.fixture
def study() -> Study:
    return Study.objects.get(pk=study_in_wave_2().pk)


def person_of(study: Study, number: int) -> PanelIds:
    first = EntryLink.objects.get(study=study, number=number, wave=1)
    return PanelIds("links", first.token_hash)


def refused(study: Study, ids: PanelIds) -> str:
    with pytest.raises(EntryRefused) as caught:
        begin_sitting(study=study, ids=ids)
    return str(caught.value.code)


# The study file


@pytest.mark.parametrize(
    ("overrides", "field", "words"),
    [
        ({"waves": []}, "stages.2.wave", "there is no wave 2"),
        ({"stages": [{"sittings": 4}]}, "waves.1", "no stage belongs to wave 2"),
        ({"stages": [{"sittings": 4, "wave": 2}, {"sittings": 4}]}, "stages.1.wave", "no stage of wave 1 comes before"),
        (
            {"stages": [{"sittings": 4, "pilot": True}, {"sittings": 4, "wave": 2}]},
            "stages.2.wave",
            "nobody could come back",
        ),
    ],
)
def test_misplaced_waves_are_refused(overrides: dict[str, Any], field: str, words: str) -> None:
    with pytest.raises(StudyFileError) as caught:
        cast.small_config(**{"stages": STAGES, "waves": WAVES, **overrides})
    assert [(problem.field, words in problem.message) for problem in caught.value.problems] == [(field, True)]


def test_a_study_in_which_nobody_is_known_again_has_no_waves() -> None:
    with pytest.raises(FileErrors, match="nobody is known again") as caught:
        wavy(panel={"kind": "open"})
    assert [problem.field for problem in caught.value.problems] == ["waves"]


def test_check_study_looks_at_days_and_places() -> None:
    cast.small_bank()
    text = cast.study_text(
        **{
            **cast.SMALL,
            "slug": "checked",
            "bank": "small",
            "panel": LINKS,
            "stages": [{"sittings": 4}, {"sittings": 2, "wave": 2, "opens": "automatically"}],
            "waves": [{"after_days": 400, "open_days": 1}],
            "data": {"retention_until": timezone.now().date() + timedelta(days=30)},
        }
    )
    check = check_study(text=text, source_name="x.toml")
    said = {
        finding.field: finding.message
        for finding in check.findings
        if "wave" in finding.message or "opens when" in finding.message
    }
    assert {"data.retention_until", "waves.1", "stages.2.opens"} <= set(said)
    assert "401 days" in said["data.retention_until"]


# At the door


def test_who_finished_comes_back_as_the_same_person(study: Study) -> None:
    before = Respondent.objects.filter(study=study).count()
    ids = person_of(study, 1)
    assert find_sitting(study, ids) is None
    sitting = begin_sitting(study=study, ids=ids)
    assert (sitting.wave, sitting.is_new, sitting.stage.index) == (2, True, 2)
    assert sitting.respondent.sittings.order_by("wave").values_list("wave", flat=True)[0] == 1
    assert Respondent.objects.filter(study=study).count() == before
    again = begin_sitting(study=study, ids=ids)
    assert (again.pk, again.is_new) == (sitting.pk, False)
    assert cast.walk(sitting).kind == "end"
    assert (
        entry.give_back(study, begin_sitting(study=study, ids=ids), Arrived(ids)).pk == sitting.pk
    )  # Twice: the same.


def test_others_are_told_why_they_may_not(study: Study) -> None:
    assert refused(study, person_of(study, 3)) == "too_early"
    stranger = came_by(study, links.make_links(study, count=1, root=ROOT)[0].address)
    assert refused(study, stranger) == "not_in_earlier_wave"
    with pytest.raises(EntryRefused, match="for people who finished"):
        entry.arrive(study, {"link": links.make_links(study, count=1, root=ROOT)[0].address[-22:]}, host="h")
    late = find_sitting(study, person_of(study, 2)) or Sitting.objects.get(
        respondent=PanelIdentity.objects.order_by("pk")[1].respondent_id
    )
    days_ago(late, 22)
    assert refused(study, person_of(study, 2)) == "too_late"
    days_ago(late, 15)
    # Who has not finished wave 1 goes on with it.
    unfinished = find_sitting(study, person_of(study, 4))
    assert unfinished is not None and unfinished.wave == 1


def test_they_are_told_in_german(study: Study) -> None:
    with translation.override("de"), pytest.raises(EntryRefused, match="ist es noch zu früh"):
        begin_sitting(study=study, ids=person_of(study, 3))


def test_a_panel_sends_another_submission_for_each_wave() -> None:
    made = wavy(panel=GENERIC)
    cast.open_first_stage(made)
    first, second = (PanelIds("generic", "anna", submission=name) for name in ("one", "two"))
    days_ago(finish(made, first), 15)
    in_wave_2(made)
    sitting = finish(made, second)
    assert (sitting.wave, WaveIdentity.objects.get().wave) == (2, 2)
    seen = find_sitting(made, second)
    assert seen is not None and seen.pk == sitting.pk
    with pytest.raises(EntryRefused, match="before"):
        find_sitting(made, PanelIds("generic", "anna", submission="three"))
    listed = [row[:2] for row in rows_with_ids(made, owed_list(made))]
    assert listed == [["anna", "one"], ["anna", "two"]]
    # Everything of every wave goes together.
    withdrawal = withdraw(respondent=sitting.respondent, now=timezone.now())
    assert [stage["stage"] for stage in withdrawal.stages] == [1, 2]
    assert not Sitting.objects.filter(withdrawn_at=None).exists()


def test_each_wave_is_known_by_the_browser_in_which_it_was_begun(study: Study) -> None:
    """And never by no browser at all, as of who came by a program."""
    person = Respondent.objects.create(study=study)
    ids = PanelIds("prolific", "p", "s", "x")
    first = identities.store_identity(respondent=person, ids=ids, browser="one")
    later = [
        identities.store_wave_identity(
            respondent=person, wave=wave, ids=PanelIds("prolific", "p", "s", f"x{wave}"), browser=browser
        )
        for wave, browser in ((2, "two"), (3, ""))
    ]
    assert [
        [browser for browser in ("one", "two", "") if identities.began_in(study, identity, browser)]
        for identity in (first, *later)
    ] == [["one"], ["two"], []]


def test_ids_stay_until_the_last_wave_is_over(study: Study) -> None:
    assert "wave 2 is still to come" in purging.payments_open(study)


# Inviting


def test_links_lead_to_the_same_person_and_are_shown_once(study: Study, tmp_path: Any, capsys: Any) -> None:
    out = tmp_path / "wave2.csv"
    call_command("invite", study.slug, wave=2, out=out, root=ROOT)
    assert "3 people invited to wave 2" in capsys.readouterr().out
    rows = list(csv.DictReader(out.open()))
    assert [row["first_number"] for row in rows] == ["1", "2", "3"]
    assert came_by(study, rows[0]["link"]) == person_of(study, 1)
    sitting = begin_sitting(study=study, ids=came_by(study, rows[0]["link"]))
    assert (sitting.wave, sitting.is_new) == (2, True)
    again = inviting.invite(study, 2, root=ROOT)
    assert (again.invited, again.links) == (0, ())
    entry_of_audit = AuditEntry.objects.filter(action="invite").earliest("pk")
    assert entry_of_audit.detail["invited"] == 3


def test_a_link_for_one_later_wave_is_none_for_the_next() -> None:
    made = wavy(stages=[*STAGES, {"sittings": 4, "wave": 3}], waves=WAVES * 2)
    cast.open_first_stage(made)
    firsts = [came_by(made, link.address).person for link in links.make_links(made, count=2, root=ROOT)]
    of_wave_2 = links.make_later_links(made, wave=2, firsts=firsts[:1], root=ROOT)
    assert [link.first for link in of_wave_2] == firsts[:1]
    assert [link.first for link in links.make_later_links(made, wave=2, firsts=firsts, root=ROOT)] == firsts[1:]
    of_wave_3 = links.make_later_links(made, wave=3, firsts=firsts, root=ROOT)
    assert [link.first for link in of_wave_3] == firsts
    assert [came_by(made, link.address).person for link in of_wave_3] == firsts
    assert links.make_later_links(made, wave=3, firsts=firsts, root=ROOT) == []


def test_who_returned_a_later_wave_has_still_finished_the_first(study: Study) -> None:
    people = [Respondent.objects.get(panel_identity__person_hash=h) for h in hashes_of(study)]
    for wave, respondent in ((2, people[0]), (1, people[1])):
        posting = Posting.objects.create(
            study=study,
            stage=stage_of(study, wave),
            wave=wave,
            panel="prolific",
            internal_name=f"wave {wave}",
            reward=100,
            currency="USD",
            places=4,
            expected_minutes=5,
        )
        Submission.objects.create(
            posting=posting, respondent=respondent, submission_hash=str(wave), status="RETURNED", read_at=timezone.now()
        )
    due = {entry.sitting.respondent_id for entry in waves.due_for(study, 2, now=timezone.now())}
    assert people[0].pk in due and people[1].pk not in due


def test_who_took_the_answers_back_is_neither_let_in_nor_invited(study: Study) -> None:
    respondent = Respondent.objects.get(panel_identity__person_hash=hashes_of(study)[0])
    withdraw(respondent=respondent, now=timezone.now())
    sitting = respondent.sittings.get()
    days_ago(sitting, 15)
    assert (sitting.state, sitting.withdrawn_at is None) == ("complete", False)
    assert refused(study, person_of(study, 1)) == "not_in_earlier_wave"
    due = {entry.sitting.respondent_id for entry in waves.due_for(study, 2, now=timezone.now())}
    assert respondent.pk not in due and len(due) == 2


def test_nobody_leaves_a_wave_out() -> None:
    made = wavy(stages=[*STAGES, {"sittings": 4, "wave": 3}], waves=WAVES * 2)
    cast.open_first_stage(made)
    (link,) = links.make_links(made, count=1, root=ROOT)
    first = finish(made, came_by(made, link.address))
    days_ago(first, 15)
    first.refresh_from_db()
    now = timezone.now()
    assert waves.refuse_who_is_not_due(made, 2, first, now=now) == first
    with pytest.raises(EntryRefused) as caught:
        waves.refuse_who_is_not_due(made, 3, first, now=now)
    assert caught.value.code == "not_in_earlier_wave"
    assert [entry.sitting for entry in waves.due_for(made, 2, now=now)] == [first]
    assert waves.due_for(made, 3, now=now) == []


def hashes_of(study: Study) -> list[str]:
    return [identities.person_hash(study, person_of(study, number)) for number in (1, 2)]


def test_real_people_and_simulated_ones_do_not_stand_in_for_each_other_in_a_later_wave(study: Study) -> None:
    ids = person_of(study, 1)
    respondent = Respondent.objects.filter(panel_identity__person_hash=hashes_of(study)[0])
    for is_simulated in (False, True):
        respondent.update(is_simulated=is_simulated)
        with pytest.raises(EntryRefused) as caught:
            begin_sitting(study=study, ids=ids, simulated=not is_simulated)
        assert caught.value.code == "not_for_simulated_people"
    assert begin_sitting(study=study, ids=ids, simulated=True).wave == 2


def test_an_invitation_needs_a_wave_that_can_be_begun(study: Study) -> None:
    for wave in (1, 3):
        with pytest.raises(StateRefused, match="its later waves are 2 to 2"):
            inviting.invite(study, wave, root=ROOT)
    Stage.objects.filter(study=study, index=2).update(state="closing")
    with pytest.raises(StateRefused, match="wave 2 of waves is over"):
        inviting.invite(study, 2, root=ROOT)


def test_where_the_panel_invites_those_are_invited_who_may_come_now_and_the_others_are_counted(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    panel, asked = type(panels.get("links")), []
    monkeypatch.setattr(panel, "invites_by_links", False)
    monkeypatch.setattr(panel, "refuse_invitations", lambda _panel, _study: None)

    def invite(_panel: Any, stage: Stage, people: Any, *, client: Any) -> Any:
        asked.append((stage.index, [(person.ids.person, person.opens, person.closes) for person in people], client))
        return SimpleNamespace(invited=len(people), links=())

    monkeypatch.setattr(panel, "invite", invite)
    client: Any = object()
    first, second, third = (
        Sitting.objects.get(
            respondent__panel_identity__person_hash=identities.person_hash(study, person_of(study, number))
        )
        for number in (1, 2, 3)
    )
    PanelIdentity.objects.filter(respondent=first.respondent).update(ids_encrypted=b"")
    result = inviting.invite(study, 2, client=client)
    due = second.ended_at + timedelta(days=14)
    assert asked == [(2, [(person_of(study, 2).person, due, due + timedelta(days=7))], client)]
    assert (result.invited, result.forgotten, result.later) == (1, 1, 1)
    assert result.next_at == third.ended_at + timedelta(days=14)
    entry = AuditEntry.objects.filter(action="invite").latest("pk")
    assert {name: entry.detail[name] for name in ("wave", "invited", "later")} == {"wave": 2, "invited": 1, "later": 1}


def test_a_panel_that_cannot_invite_says_what_to_do() -> None:
    made = wavy(panel=GENERIC)
    with pytest.raises(PanelCannot, match="--with-panel-ids lists who finished"):
        inviting.invite(made, 2)
    with pytest.raises(SystemExit):
        call_command("invite", made.slug, wave=2)


# What the answers say


def test_the_change_is_within_those_who_came_back(study: Study, tmp_path: Any) -> None:
    for number in (1, 2):
        finish(study, person_of(study, number))
    report = study_estimates.estimate(study)
    first = report.waves[0]
    assert (first.label, first.people, first.not_back) == ("wave 2 - wave 1", 2, 1)
    assert "1 who finished the wave before did not come back" in first.sentence
    assert first.estimate is not None and first.estimate.n_clusters == 2
    assert report.respondents == 3  # The figures are of wave 1.
    waves = set(Sitting.objects.filter(assignments__in=answer_weights(study, {})).values_list("wave", flat=True))
    assert waves == {1}
    assert json.loads(json.dumps(report.as_json()))["waves"][0]["people"] == 2
    out = io.StringIO()
    call_command("estimate", study.slug, out=tmp_path, stdout=out)
    assert "change within the people who answered in both" in out.getvalue()
    rows = list(csv.DictReader((tmp_path / "estimates.csv").open()))
    assert {row["label"] for row in rows if row["kind"] == "change within person"} == {"wave 2 - wave 1"}
    assert study_file.parse(study.source_text).waves[0].after_days == 14


def test_each_wave_is_compared_with_the_one_before_it_and_not_with_the_first() -> None:
    """Of four people three come back in wave 2 next to a new one, and two of these in wave 3 next to two others."""
    made = wavy(
        stages=[*STAGES, {"sittings": 4, "wave": 3}], waves=[*WAVES, *WAVES], roles={"holdout": 0, "controls": 0}
    )
    people: list[list[int]] = []
    for index in (1, 2, 3):
        stage = filled.answer(lifecycle.open_stage(stage_of(made, index)), seed=index)
        jobs.run_inline(lifecycle.close_stage(stage))
        people.append(list(stage.sittings.order_by("pk").values_list("respondent", flat=True)))
    (first, two, three, four), (*_same, new), others = people
    for index, back in ((2, (first, two, three, new)), (3, (two, three, four, others[3]))):
        for sitting, respondent in zip(stage_of(made, index).sittings.order_by("pk"), back, strict=True):
            Sitting.objects.filter(pk=sitting.pk).update(respondent=respondent, wave=index)
    by_hand = {}
    for answer in Assignment.objects.filter(state="counted").select_related("sitting"):
        beliefs = {response.screen: response.belief.value for response in answer.responses.all()}
        changed = float(beliefs["prior"] != beliefs["posterior"])
        by_hand.setdefault((answer.sitting.wave, answer.sitting.respondent_id), []).append(changed)

    def changes() -> list[Any]:
        report = study_estimates.estimate(Study.objects.get(pk=made.pk))
        return [line for line in report.waves if line.name == "changed_over_0"]

    second, third = changes()
    assert (second.label, second.people, second.not_back) == ("wave 2 - wave 1", 3, 1)
    assert (third.label, third.people, third.not_back) == ("wave 3 - wave 2", 2, 2)
    for line, both in ((second, (first, two, three)), (third, (two, three))):
        here, before = (
            [value for person in both for value in by_hand[wave, person]] for wave in (line.wave, line.wave - 1)
        )
        assert line.estimate.value == pytest.approx(sum(here) / len(here) - sum(before) / len(before))
    # Who has withdrawn, or is not through with wave 2, has not stayed away from wave 3.
    for respondent, gone in ((new, {"withdrawn_at": timezone.now()}), (first, {"state": "expired"})):
        Sitting.objects.filter(wave=2, respondent=respondent).update(**gone)
        third = changes()[1]
        assert (third.people, third.not_back) == (2, 1 if respondent == new else 0)


FRAMING = {"factor": "framing", "levels": ["gain", "loss"]}


@pytest.mark.parametrize("levels", ["kept", "drawn"])
def test_people_keep_their_levels_unless_the_file_has_them_drawn_anew(levels: str) -> None:
    made = wavy(panel=GENERIC, conditions=[FRAMING], waves=[{**WAVES[0], "levels": levels}])
    cast.open_first_stage(made)
    people = [PanelIds("generic", name, submission="1") for name in "abcd"]
    for ids in people:
        days_ago(finish(made, ids), 15)
    in_wave_2(made)
    for ids in people[:3]:
        finish(made, PanelIds("generic", ids.person, submission="2"))
    rows = {wave: {} for wave in (1, 2)}  # type: dict[int, dict[int, tuple[str, float, int]]]
    for row in ConditionLevel.objects.select_related("sitting"):
        rows[row.sitting.wave][row.sitting.respondent_id] = (row.level, row.probability, row.seed)
    first_wave = {key: rows[1][key] for key in rows[2]}
    assert {probability for _level, probability, _seed in rows[2].values()} == {0.5}
    assert (rows[2] == first_wave) == (levels == "kept")
    if levels == "drawn":
        assert not {seed for *_, seed in rows[2].values()} & {seed for *_, seed in first_wave.values()}
        return
    report = study_estimates.estimate(made, by=["framing"])
    name = report.waves[0].name
    lines = {line.label: line for line in report.waves if line.name == name}
    counts = Counter(level for level, *_ in first_wave.values())
    for level in ("gain", "loss"):
        at = lines[f"wave 2 - wave 1, framing={level}"]
        alone = study_estimates.estimate(made, condition=[f"framing={level}"]).waves[0]
        assert (at.people, at.not_back) == (alone.people, alone.not_back) == (counts[level], 2 - counts[level])
        assert at.estimate and alone.estimate and at.estimate.value == pytest.approx(alone.estimate.value)
    both = lines["wave 2 - wave 1, framing: loss - gain"]
    gain, loss = (lines[f"wave 2 - wave 1, framing={level}"].estimate for level in ("gain", "loss"))
    assert both.estimate and gain and loss and both.people == 3
    assert both.estimate.value == pytest.approx(loss.value - gain.value)
    assert lines["wave 2 - wave 1"].people == 3


def test_under_a_level_each_level_of_another_factor_is_of_who_had_both(monkeypatch: pytest.MonkeyPatch) -> None:
    """And of two levels the difference is named in the order of their names, whatever the file's order is."""
    asked: list[dict[str, str]] = []
    monkeypatch.setattr(wave_changes, "_finished", lambda study, wave, levels: asked.append(levels) or {1, 2, 3, 4})
    spans: list[tuple[float, float]] = []
    monkeypatch.setattr(bandit, "cut_to_span", lambda interval, span: spans.append(span) or interval)
    answers = [SimpleNamespace(sitting=SimpleNamespace(respondent_id=person)) for person in (1, 2, 3, 4)]
    levels = {"framing": np.array(["loss", "loss", "gain", "gain"])}

    def part(wave: int, values: list[float]) -> wave_changes.WavePart:
        measure = Measure("score", "mean score", "points", np.array(values), span=(0.0, 10.0))
        return wave_changes.WavePart(wave, SimpleNamespace(weighs=False), [measure], answers, levels)  # type: ignore[arg-type]

    study = SimpleNamespace(config=SimpleNamespace(waves=[None]))
    rows = wave_changes.changes_between_waves(
        study,  # type: ignore[arg-type]
        [part(1, [0, 0, 0, 0]), part(2, [5, 7, 1, 2])],
        under={"mood": "warm"},
        by={"framing": ["loss", "gain"]},
    )
    assert asked == [
        {"mood": "warm"}, {"mood": "warm", "framing": "loss"}, {"mood": "warm", "framing": "gain"},
    ]  # fmt: skip
    assert [(row.under, row.estimate and row.estimate.value, row.people, row.not_back) for row in rows] == [
        ("mood=warm", 3.75, 4, 0),
        ("framing=loss", 6, 2, 2),
        ("framing=gain", 1.5, 2, 2),
        ("framing: loss - gain", 4.5, 4, 0),
    ]
    # A figure between 0 and 10 changes by 10 at most, and two changes differ by 20 at most.
    assert spans == [(-10, 10)] * 3 + [(-20, 20)]
    # Of several measures each is compared with itself.
    two = [
        replace(
            wave_part, measures=[*wave_part.measures, replace(measure, name="other", values=10 - 3 * measure.values)]
        )
        for wave_part in (part(1, [0, 0, 0, 0]), part(2, [5, 7, 1, 2]))
        for measure in wave_part.measures
    ]
    rows = wave_changes.changes_between_waves(study, two, under={}, by={"framing": ["loss", "gain"]})  # type: ignore[arg-type]
    assert [(row.name, row.estimate and row.estimate.value) for row in rows if " - " in row.under] == [
        ("score", 4.5),
        ("other", -13.5),
    ]


# Where it is done


def test_editors_invite_on_a_page_and_by_the_api(study: Study, client: Any) -> None:
    user = User.objects.create_user("editor", is_staff=True)
    user.user_permissions.add(*Permission.objects.filter(codename__in=["make_links", "view_study"]))
    cast.join(user, study, "editor")
    client.force_login(user)
    page = client.get(reverse("admin:survey_study_wave", args=[study.pk, 2]))
    assert "Of these, may begin now" in page.content.decode()
    assert client.get(reverse("admin:survey_study_wave", args=[study.pk, 3])).status_code == 404
    home = client.get(reverse("admin:survey_study_change", args=[study.pk])).content.decode()
    assert "Invite to wave 2" in home
    sent = client.post(reverse("admin:survey_study_wave", args=[study.pk, 2]))
    assert sent["Content-Type"].startswith("text/csv") and len(sent.content.decode().splitlines()) == 4
    EntryLink.objects.filter(wave=2).delete()
    token = ApiToken.issue(user=user, scope=ApiToken.Scope.RUN)[1]
    address = reverse("api:wave-invite", args=[study.slug, 2])
    answer = client.post(address, headers={"Authorization": f"Token {token}"})
    assert answer.status_code == 200, answer.content
    assert [link["first_number"] for link in answer.json()["links"]] == [1, 2, 3]
    again = client.post(address, headers={"Authorization": f"Token {token}"})
    assert (again.json()["invited"], again.json()["links"]) == (0, [])
    cast.join(user, study, "viewer")
    assert client.post(reverse("admin:survey_study_wave", args=[study.pk, 2])).status_code == 403


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_simulated_people_come_back_with_a_chance() -> None:
    made = wavy(panel=GENERIC)
    cast.open_first_stage(made)
    Crowd(study=made, respondents=4, site=OwnSite(), concurrency=1).run()
    in_wave_2(made)
    stage = stage_of(made, 2)
    expected = returning_people(made, stage, chance=0.5, seed=made.seed)
    crowd = Crowd(study=made, respondents=4, site=OwnSite(), concurrency=1, return_chance=0.5)
    crowd.run()
    assert not crowd.report().differences
    came = set(Sitting.objects.filter(stage=stage).values_list("respondent", flat=True))
    assert came == {who.pk for who in expected}
    assert not Crowd(study=made, respondents=4, site=OwnSite(), return_chance=0).people
