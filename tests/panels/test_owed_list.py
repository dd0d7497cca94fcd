"""Who is owed what at panels that cannot be asked, and in a lab; and the command that makes links."""

import csv
import stat
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone

from survey.contracts.panels import PanelIds
from survey.exceptions import HunchError, StateRefused
from survey.models import AuditEntry, EntryLink, PanelIdentity, Score, Sitting, Study, Withdrawal
from survey.panels import purging
from survey.panels.owed_list import LISTED, owed_for, owed_list, rows_of, waiting_for_list
from survey.services.base.auditing import record
from survey.services.sittings import links
from survey.services.sittings.answering import advance
from survey.services.sittings.enrolment import begin_sitting
from survey.services.sittings.withdrawal import withdraw
from survey.services.studies import amending
from tests import cast

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
PAID = {"reward": 250, "turned_away_pay": 30}


def study_at(kind: str, **more: Any) -> Study:
    return cast.open_study(panel={"kind": kind, **PAID, **more.pop("panel", {})}, sitting={"items": 1}, **more)


def comes(study: Study, name: str, *, until: str = "end", fails: bool = False) -> Sitting:
    sitting = begin_sitting(study=study, ids=PanelIds("generic", name, "s1", f"tic-{name}"))
    if fails:
        step = cast.walk(sitting, until="checks")
        for _attempt in range(2):
            step = advance(sitting=sitting, step=step.number, data=cast.wrong_answers_for(step))
    else:
        cast.walk(sitting, until=until)
    sitting.refresh_from_db()
    return sitting


@pytest.fixture
def study() -> Study:
    """One person has finished, one has failed the checks, one is inside, and one was turned away."""
    made = study_at("generic", flags={"hidden": {}, "speeder": {}})
    comes(made, "PERSON-done")
    comes(made, "PERSON-failed", fails=True)
    comes(made, "PERSON-inside", until="item")
    away = comes(made, "PERSON-away", until="checks")
    Sitting.objects.filter(pk=away.pk).update(state="turned_away", ended_at=away.started_at)
    return made


def amended(study: Study, panel: dict[str, Any]) -> None:
    text = cast.study_text(panel=panel, sitting={"items": 1}, flags={"hidden": {}, "speeder": {}})
    amending.amend(study, text=text, source_name="new.toml", reason="another pay")


def run(*args: str, capsys: pytest.CaptureFixture[str]) -> str:
    call_command(*args)
    return capsys.readouterr().out


def refused(*args: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit):
        call_command(*args)
    return capsys.readouterr().err


def table_in(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_everybody_is_listed_with_what_they_are_owed_and_their_flags(study: Study) -> None:
    lines = {line.sitting.state: line for line in owed_list(study)}
    assert {state: line.amount for state, line in lines.items()} == {
        "complete": 250, "failed_checks": 0, "live": 0, "turned_away": 30,
    }  # fmt: skip
    assert lines["complete"].code == study.completion_code("completed")
    assert lines["turned_away"].code == study.completion_code("study_full")
    assert lines["live"].code == ""
    assert lines["complete"].flags == ("speeder",)


def comes_again(study: Study, submission: str) -> Sitting:
    """The same person with another submission, who finds the only place taken."""
    sitting = begin_sitting(study=study, ids=PanelIds("generic", "PERSON", "s1", submission))
    Sitting.objects.filter(pk=sitting.pk).update(state="turned_away", ended_at=timezone.now())
    return sitting


def test_who_finds_no_place_again_and_again_is_paid_once() -> None:
    """At an unsigned panel anybody writes the submission into the address."""
    study = study_at("generic", flags={"speeder": {}})
    first, *later = [comes_again(study, f"tic-{number}") for number in range(4)]
    lines = {line.sitting.pk: line for line in owed_list(study)}
    assert [lines[submission.pk].amount for submission in (first, *later)] == [30, 0, 0, 0]
    assert [lines[submission.pk].flags for submission in (first, *later)] == [(), *[("came_before",)] * 3]
    assert waiting_for_list(study) == {first.respondent_id}
    done = begin_sitting(study=study, ids=PanelIds("generic", "PERSON", "s1", "tic-done"))
    cast.walk(done)
    lines = {line.sitting.pk: line for line in owed_list(study)}
    assert (lines[done.pk].amount, "came_before" in lines[done.pk].flags) == (250, False), "who finishes is paid"


def test_who_withdraws_takes_back_every_visit() -> None:
    study = study_at("generic")
    visits = [comes_again(study, f"tic-{number}") for number in range(3)]
    other = comes(study, "PERSON-other")
    withdraw(respondent=visits[1].respondent, now=timezone.now())
    assert set(Withdrawal.objects.values_list("respondent", flat=True)) == {visit.respondent_id for visit in visits}
    other.refresh_from_db()
    assert other.withdrawn_at is None


def test_simulated_people_are_owed_nothing_and_are_not_listed(study: Study) -> None:
    study.respondents.update(is_simulated=True)
    assert owed_list(study) == [] and waiting_for_list(study) == set()


def test_the_list_is_by_stage_and_arrival_with_every_flag() -> None:
    study = cast.study(panel={"kind": "generic", **PAID, "currency": "GBP"}, stages=[{"sittings": 4}] * 2)
    first, second = cast.stage_of(study), cast.stage_of(study, 2)
    now = timezone.now()
    came = [(second, 0), (first, 9), (first, 5), (first, 1)]
    people = [cast.sitting(stage, started_at=now + timedelta(minutes=minutes)) for stage, minutes in came]
    lines = owed_list(study)
    assert [line.sitting for line in lines] == people[::-1]
    flagged = [replace(lines[0], flags=("speeder", "hidden"), code="done"), lines[3]]
    assert [row[1:] for row in rows_of(study, flagged)] == [
        [1, "live", None, "done", 0, "GBP", "speeder hidden"],
        [2, "live", None, None, 0, "GBP", None],
    ]


def test_points_are_paid_beside_the_reward() -> None:
    study = study_at("generic", panel={"bonus_per_point": 7})
    sitting = comes(study, "PERSON-scored")
    response = sitting.assignments.get().responses.first()
    assert response is not None
    Score.objects.create(response=response, value="3.5", rule="test", version="1")
    assert owed_list(study)[0].amount == 250 + 25


def test_a_list_by_pseudonym_names_nobody(study: Study, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "owed.csv"
    output = run("reconcile", "cast", "--out", str(out), capsys=capsys)
    assert "2.80 USD owed to 4 people" in output and f"wrote {out} (4 rows)" in output
    rows = table_in(out)
    assert {row["respondent"] for row in rows} == set(study.respondents.values_list("pseudonym", flat=True))
    assert "PERSON" not in out.read_text(encoding="utf-8") + output
    assert not AuditEntry.objects.filter(action="see_panel_identities").exists()


def test_the_panels_ids_come_when_they_are_asked_for_and_that_is_written_down(
    study: Study, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "owed.csv"
    output = run("reconcile", "cast", "--out", str(out), "--with-panel-ids", capsys=capsys)
    rows = {row["person"]: row for row in table_in(out)}
    assert rows["PERSON-done"]["owed"] == "250" and rows["PERSON-done"]["submission"] == "tic-PERSON-done"
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert "PERSON" not in output
    assert AuditEntry.objects.get(action="see_panel_identities").detail["people"] == 4


def test_a_file_that_is_there_is_not_written_over(
    study: Study, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "owed.csv"
    out.write_text("mine")
    assert "name a new file" in refused("reconcile", "cast", "--out", str(out), capsys=capsys)
    assert out.read_text() == "mine"


def test_there_is_nobody_to_approve_at_a_panel_that_cannot_be_asked(
    study: Study, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "has no panel that can be asked for this" in refused("reconcile", "cast", "--approve", capsys=capsys)


def test_who_withdrew_keeps_the_ids_until_a_list_to_pay_from_was_made(
    study: Study, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = Sitting.objects.get(state="complete")
    withdraw(respondent=done.respondent, now=timezone.now())
    study.stages.update(state="frozen", plan_sha256="p", snapshot_sha256="s")
    assert purging.purge_withdrawn() == 0
    out = tmp_path / "owed.csv"
    run("reconcile", "cast", "--out", str(out), "--with-panel-ids", capsys=capsys)
    assert {row["person"]: row["owed"] for row in table_in(out)}["PERSON-done"] == "250"
    assert purging.purge_withdrawn() == 1
    assert bytes(done.respondent.panel_identity.ids_encrypted) == b""


def test_nobodys_ids_go_while_somebody_waits_for_a_list_to_be_paid_from(study: Study, tmp_path: Path) -> None:
    study.stages.update(state="frozen", plan_sha256="p", snapshot_sha256="s")
    soon = timezone.now() + timedelta(days=1)
    assert "2 people are owed money, and no list with their ids was made" in purging.payments_open(study)
    with pytest.raises(HunchError, match=r"reconcile cast --out FILE.csv --with-panel-ids makes it; nothing was"):
        purging.purge(study, before=soon, with_hashes=False)
    assert not PanelIdentity.objects.filter(ids_encrypted=b"").exists()
    call_command("reconcile", "cast", "--out", str(tmp_path / "names.csv"))
    assert purging.payments_open(study), "by a list of pseudonyms nobody is paid"
    call_command("reconcile", "cast", "--out", str(tmp_path / "ids.csv"), "--with-panel-ids")
    assert purging.payments_open(study) == ""
    assert purging.purge(study, before=soon, with_hashes=False).identities == 4


def test_who_ended_after_the_list_waits_for_the_next_one(study: Study, tmp_path: Path) -> None:
    call_command("reconcile", "cast", "--out", str(tmp_path / "first.csv"), "--with-panel-ids")
    late = comes(study, "PERSON-late")
    study.stages.update(state="frozen", plan_sha256="p", snapshot_sha256="s")
    assert waiting_for_list(study) == {late.respondent_id}
    assert "1 people are owed money" in purging.payments_open(study)


def test_nobody_waits_for_a_list_where_links_are_their_names() -> None:
    study = study_at("links")
    (link,) = links.make_links(study, count=1, root="http://testserver")
    token = link.address.partition("=")[2]
    cast.walk(begin_sitting(study=study, ids=links.ids_of_link(study, token)))
    study.stages.update(state="frozen", plan_sha256="p", snapshot_sha256="s")
    assert waiting_for_list(study) and purging.payments_open(study) == ""


def test_who_withdrew_without_anything_to_be_paid_is_forgotten_at_once(study: Study) -> None:
    inside = Sitting.objects.get(state="live")
    withdraw(respondent=inside.respondent, now=timezone.now())
    study.stages.update(state="frozen", plan_sha256="p", snapshot_sha256="s")
    assert purging.purge_withdrawn() == 1


@pytest.mark.parametrize(("seconds", "waits"), [(-1, False), (0, True), (1, True)])
def test_who_ended_when_the_list_was_made_still_waits(study: Study, seconds: int, waits: bool) -> None:
    at = AuditEntry.objects.create(at=timezone.now(), action="see_panel_identities", subject=str(study), detail={}).at
    AuditEntry.objects.create(at=at + timedelta(hours=1), action="see_panel_identities", subject="other", detail={})
    done = Sitting.objects.get(state="complete")
    Sitting.objects.filter(pk=done.pk).update(ended_at=at + timedelta(seconds=seconds))
    assert (done.respondent_id in waiting_for_list(study)) is waits


def test_a_list_of_another_study_pays_nobody_here(study: Study) -> None:
    waiting = waiting_for_list(study)
    record(LISTED, cast.study(slug="other"))
    assert waiting_for_list(study) == waiting != set()
    record(LISTED, study)
    assert waiting_for_list(study) == set()


def test_an_amendment_lowers_nobodys_pay(study: Study) -> None:
    amended(study, {"kind": "generic", "reward": 100, "turned_away_pay": 50})
    study = Study.objects.get(pk=study.pk)
    lines = {line.sitting.state: line.amount for line in owed_list(study)}
    assert (lines["complete"], lines["turned_away"]) == (250, 50)
    assert owed_for(study, comes(study, "PERSON-later"), Decimal(0)) == 100


def test_links_have_no_panels_ids(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study_at("links")
    out = tmp_path / "owed.csv"
    output = refused("reconcile", "cast", "--out", str(out), "--with-panel-ids", capsys=capsys)
    assert "no panel has a name for them" in output and not out.exists()


def test_an_open_study_owes_nobody_by_list() -> None:
    with pytest.raises(StateRefused, match="open"):
        owed_list(cast.open_study())


# manage.py links


def test_the_command_writes_links_that_let_people_in(
    client: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study_at("links")
    out = tmp_path / "links.csv"
    output = run("links", "cast", "--count", "3", "--out", str(out), "--root", "https://lab.example", capsys=capsys)
    assert "3 links, numbers 1 to 3" in output
    rows = table_in(out)
    assert [row["number"] for row in rows] == ["1", "2", "3"]
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    for row in rows:
        assert row["link"].startswith("https://lab.example/s/cast/?link=") and row["link"] not in output
        assert client.get(row["link"].removeprefix("https://lab.example")).status_code == 302
    assert len({row["link"] for row in rows}) == 3
    more = tmp_path / "more.csv"
    assert "numbers 4 to 5" in run("links", "cast", "--count", "2", "--out", str(more), capsys=capsys)
    assert AuditEntry.objects.filter(action="make_links").count() == 2


@pytest.mark.parametrize(
    ("kind", "more", "message"),
    [
        ("open", ["--count", "1"], 'only a study of the kind "links" has links'),
        ("links", ["--count", "0"], "1 to 5000 links at once"),
        ("links", ["--count", "1", "--root", "lab.example"], "write where people reach this server"),
    ],
)
def test_links_that_cannot_be_made_leave_no_file(
    kind: str, more: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cast.open_study(panel={"kind": kind})
    out = tmp_path / "links.csv"
    assert message in refused("links", "cast", "--out", str(out), *more, capsys=capsys)
    assert not out.exists() and not EntryLink.objects.exists()


def test_links_are_not_made_where_they_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study_at("links")
    out = tmp_path / "nowhere" / "links.csv"
    assert "name a new file" in refused("links", "cast", "--count", "1", "--out", str(out), capsys=capsys)
    assert not EntryLink.objects.exists()
