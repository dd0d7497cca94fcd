"""The test copy of a study: real people never see it, it pays nobody, and it goes without a trace."""

import re
import zipfile
from collections import Counter
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import Permission, User
from django.core.management import call_command
from django.db import IntegrityError, transaction
from django.test import Client
from django.utils import timezone

from survey.contracts import panels
from survey.contracts.panels import PanelIds
from survey.exceptions import EntryRefused, FileErrors, HunchError, NotFound, StateRefused
from survey.models import Assignment, AuditEntry, ChosenLevels, Job, JobStep, Posting, Respondent, Sitting, Study
from survey.models.study import TEST_ENDING
from survey.operation import causes
from survey.operation.metrics import _Figures
from survey.panels import owed_list, postings
from survey.services.base import jobs as asked
from survey.services.base import rights
from survey.services.base.rights import Right
from survey.services.results import reports
from survey.services.results.export.columns import columns_of
from survey.services.results.export.files import write_export
from survey.services.sittings import previews
from survey.services.sittings.capacity import free_capacity
from survey.services.sittings.enrolment import begin_sitting
from survey.services.stages import jobs, lifecycle, test_stages
from survey.services.studies import amending, creating, members, test_copies
from survey.simulator import Crowd
from tests import cast
from tests.frontend import pages
from tests.survey import filled

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
MOOD = {"factor": "mood", "levels": ["calm", "hurried"]}


@pytest.fixture
def posting() -> Posting:
    """An open study whose posting is active."""
    study = cast.open_study(panel={**cast.PROLIFIC, "reward": 100, "spending_cap": 10_000})
    return Posting.objects.create(
        study=study,
        stage=cast.stage_of(study),
        panel="prolific",
        internal_name="cast stage 1 posting 1",
        external_id="posted",
        state="ACTIVE",
        reward=100,
        currency="GBP",
        places=4,
        expected_minutes=3,
        published_at=timezone.now(),
    )


def filled_copy(study: Study) -> Study:
    """A copy whose two stages were answered, trained on, planned and frozen."""
    copy = test_copies.make_copy(study)
    for index in (1, 2):
        stage = filled.answer(lifecycle.open_stage(cast.stage_of(copy, index)))
        jobs.run_inline(lifecycle.close_stage(stage))
    return copy


def rows_of_all() -> dict[str, int]:
    """How many rows there are in every table but the audit, which keeps everything."""
    models = apps.get_models(include_auto_created=True)
    audit_names = ("AuditEntry", "AuditSeal")
    return {model.__name__: model._base_manager.count() for model in models if model.__name__ not in audit_names}


def test_a_copy_is_a_study_of_its_own_with_the_same_file() -> None:
    study = cast.study()
    copy = test_copies.make_copy(study)
    assert (copy.slug, copy.test_of, copy.is_test, study.is_test) == ("cast_test", study, True, False)
    assert copy.config == study.config and copy.source_sha256 == study.source_sha256
    assert [stage.seed for stage in copy.stages.all()] == [stage.seed for stage in study.stages.all()]
    assert not {code.code for code in copy.codes.all()} & {code.code for code in study.codes.all()}
    assert test_copies.make_copy(study) == copy


def test_a_study_has_one_copy_and_a_copy_none() -> None:
    study = cast.study()
    copy = test_copies.make_copy(study)
    with pytest.raises(StateRefused, match="is the test copy of a study and cannot be copied"):
        test_copies.make_copy(copy)
    with pytest.raises(IntegrityError), transaction.atomic():
        Study.objects.create(slug=f"x{TEST_ENDING}", bank=study.bank, seed=1, stored_config={}, test_of=study)
    with pytest.raises(IntegrityError), transaction.atomic():
        Study.objects.create(slug=f"x{TEST_ENDING}", bank=study.bank, seed=1, stored_config={})


def test_a_long_short_name_is_cut_and_stays_its_own() -> None:
    long = ["a" * 79 + end for end in "xy"]
    made = [test_copies.slug_of_copy(slug) for slug in long]
    assert len(set(made)) == 2 and all(len(slug) <= test_copies.LONGEST_SLUG for slug in made)


def test_a_change_of_the_file_makes_it_anew_and_nothing_else_does() -> None:
    study = cast.study()
    before = test_copies.make_copy(study)
    cast.begin(test_stages.open_copy(study).study)
    text = study.source_text.replace("A study of the cast", "Another title")
    amending.amend(study, text=text, source_name="x.toml", reason="A better title.")
    study = Study.objects.get(pk=study.pk)
    assert not test_copies.is_current(test_copies.find_copy(study))
    after = test_copies.make_copy(study)
    assert after.pk != before.pk and after.config.title == "Another title" and after.respondents.count() == 0


@pytest.mark.every_database
def test_deleting_it_deletes_every_row_and_none_of_the_study() -> None:
    study = cast.small_study(stages=[{"sittings": 4}, {"sittings": 4}], predictor={"name": "logistic"})
    filled.answer(cast.open_first_stage(study))
    before, of_study = rows_of_all(), list(Assignment.objects.order_by("pk").values())
    copy = filled_copy(study)
    assert copy.respondents.exists() and rows_of_all() != before
    test_copies.delete_copy(study)
    assert rows_of_all() == before
    assert list(Assignment.objects.order_by("pk").values()) == of_study
    assert AuditEntry.objects.filter(action="delete_test_copy", study=study.slug).count() == 1
    with pytest.raises(NotFound, match="has no test copy"):
        test_copies.delete_copy(study)


def test_the_next_stage_of_a_copy_opens_unless_the_one_before_is_being_closed() -> None:
    study = cast.small_study(stages=[{"sittings": 4}, {"sittings": 4}])
    copy = test_copies.make_copy(study)
    lifecycle.plan_stage(cast.stage_of(copy))
    first = test_stages.open_copy(study)
    assert (first.index, first.state) == (1, "open")
    copy.stages.filter(index=1).update(state="closing")
    with pytest.raises(StateRefused, match=r"stage 1 of .* is being closed.*`hunch test_copy small renew`"):
        test_stages.open_copy(study)
    copy.stages.update(state="frozen", plan_sha256="p", snapshot_sha256="s")
    with pytest.raises(StateRefused, match=r"every stage of .* is over: renew it .`hunch test_copy small renew`"):
        test_stages.open_copy(study)


def test_it_is_not_deleted_while_a_worker_is_at_work() -> None:
    study = cast.small_study(predictor={"name": "logistic"}, stages=[{"sittings": 4}, {"sittings": 4}])
    stage = filled.answer(test_stages.open_copy(study))
    lifecycle.close_stage(stage)
    held = jobs.claim(stage.job_steps.get(kind="freeze").pk)
    assert held is not None
    with pytest.raises(StateRefused, match="a worker is at work"):
        test_copies.delete_copy(study)
    JobStep.objects.filter(pk=held.step.pk).update(lease_until=timezone.now())  # The worker has died.
    test_copies.delete_copy(study)


# Nobody real gets in


@pytest.mark.thorough
@pytest.mark.parametrize("page", ["", "consent", "resume", "sitting", "?PROLIFIC_PID=a&STUDY_ID=b&SESSION_ID=c"])
def test_strangers_see_no_page_of_an_open_copy(page: str) -> None:
    test_stages.open_copy(cast.study(panel=cast.PROLIFIC))
    said = Client().get(f"/s/cast_test/{page}")
    assert said.status_code == 404
    begun = Client().post("/api/v1/studies/cast_test/sittings/", {"consent": True}, content_type="application/json")
    assert begun.status_code == 404 and not Respondent.objects.exists()


@pytest.mark.parametrize("panel", [None, cast.PROLIFIC, {"kind": "links"}, {"kind": "generic"}])
def test_the_address_of_a_preview_leads_through_all_pages_in_the_chosen_language(panel: Any) -> None:
    study = cast.study(conditions=[MOOD], **({"panel": panel} if panel else {}))
    copy = test_stages.open_copy(study).study
    address = previews.address_of(copy, root="http://testserver", levels={"mood": "hurried"})
    visitor = Client()
    assert visitor.get(address, follow=True).status_code == 200
    pages.go_to(visitor, "end", slug=copy.slug)
    sitting = Sitting.objects.get()
    assert (sitting.stage.study, sitting.state, sitting.levels()) == (copy, "complete", {"mood": "hurried"})
    assert sitting.conditions.get().probability == 1.0
    # A code is shown where a panel asks for it.
    end_text = "TEST-COMPLETED" if panels.of_study(copy).has_submissions else 'data-outcome="completed"'
    assert end_text in visitor.get(f"/s/{copy.slug}/sitting").content.decode()
    # The same address once more is another walk.
    visitor.get(address, follow=True)
    pages.go_to(visitor, "item", slug=copy.slug)
    assert Sitting.objects.count() == 2
    assert not Sitting.objects.filter(stage__study=study).exists()


def test_a_front_end_walks_through_by_the_api_with_the_secret_of_a_preview() -> None:
    copy = test_stages.open_copy(cast.study(panel=cast.PROLIFIC, conditions=[MOOD])).study
    show = {"X-Hunch-Preview": previews.secret_of(copy, levels={"mood": "calm"})}
    here = f"/api/v1/studies/{copy.slug}/"
    assert Client().get(here).status_code == 404
    assert Client().get(here, headers=show).json()["open"] is True
    begun = Client().post(f"{here}sittings/", {"consent": True}, content_type="application/json", headers=show)
    assert begun.status_code == 201
    (sitting,) = Sitting.objects.all()
    assert sitting.stage.study == copy and sitting.levels() == {"mood": "calm"}
    refused = Client().post(f"{here}sittings/", {"consent": False}, content_type="application/json", headers=show)
    assert refused.json()["error"]["completion_url"] == ""


def test_levels_of_items_are_the_chosen_ones() -> None:
    tone = {"factor": "tone", "levels": ["plain", "formal"], "per": "item"}
    copy = test_stages.open_copy(cast.study(conditions=[MOOD, tone])).study
    visitor = Client()
    visitor.get(previews.address_of(copy, root="http://testserver", levels={"tone": "formal"}), follow=True)
    pages.go_to(visitor, "end", slug=copy.slug)
    answers = Assignment.objects.filter(sitting__stage__study=copy)
    assert {answer.conditions.get().level for answer in answers} == {"formal"}
    assert ChosenLevels.objects.get().levels == {"tone": "formal"}


def test_who_opens_another_preview_is_nobody_of_the_walk_before() -> None:
    copy = test_stages.open_copy(cast.study(conditions=[MOOD])).study
    visitor = Client()
    for number in (1, 2):
        visitor.get(previews.address_of(copy, root="http://testserver"), follow=True)
        assert number == 1 or not visitor.cookies["hunch_sitting"].value
        pages.arrive(visitor, slug=copy.slug)
        assert Sitting.objects.count() == number


@pytest.mark.parametrize("change", ["other copy", "renewed", "broken"])
def test_an_address_of_another_copy_or_an_old_one_leads_nowhere(change: str) -> None:
    study = cast.study()
    copy = test_stages.open_copy(study).study
    secret = previews.secret_of(copy)
    if change == "other copy":
        secret = previews.secret_of(test_stages.open_copy(cast.study(slug="other")).study)
    elif change == "renewed":
        test_copies.renew_copy(study)
        test_stages.open_copy(study)
    else:
        secret = secret[:-1]
    assert Client().get("/s/cast_test/", {"preview": secret}).status_code == 404
    assert Client().get("/s/cast_test/consent", headers={"Cookie": f"hunch_preview={secret}"}).status_code == 404


def test_a_preview_of_what_the_study_does_not_have_is_refused_by_name() -> None:
    copy = test_copies.make_copy(cast.study(conditions=[MOOD]))
    with pytest.raises(Exception, match="language: 'fr' is not one of"):
        previews.secret_of(copy, language="fr")
    with pytest.raises(Exception, match="mood: 'angry' is no level of it; there are: calm, hurried"):
        previews.secret_of(copy, levels={"mood": "angry"})
    with pytest.raises(StateRefused, match="is no test copy"):
        previews.secret_of(copy.test_of)


def test_members_walk_through_it_and_others_see_nothing() -> None:
    study = cast.study()
    copy = test_stages.open_copy(study).study
    viewer, other = (User.objects.create_user(name, is_staff=True) for name in ("viewer", "other"))
    cast.join(viewer, study, "viewer", may_spend=False)
    browser = Client()
    browser.force_login(viewer)
    assert browser.get(f"/s/{copy.slug}/").status_code == 200
    browser.force_login(other)
    assert browser.get(f"/s/{copy.slug}/").status_code == 404


def test_a_role_has_in_the_copy_no_right_over_money_people_or_the_file() -> None:
    study = cast.study()
    copy = test_copies.make_copy(study)
    owner = User.objects.create_user("owner")
    owner.user_permissions.set(Permission.objects.all())
    cast.join(owner, study, may_spend=True)
    assert all(rights.may(owner, right, study.pk) for right in Right)
    left = {right for right in Right if rights.may(owner, right, copy.pk)}
    assert left == {Right.SEE, Right.READ_ANSWERS, Right.EXPORT, Right.RUN}
    with pytest.raises(StateRefused, match="its members are those of the study itself"):
        members.set_member(copy, user=owner, role="viewer", may_spend=False)


# No posting, no pay, no other study's other study


def test_a_copy_is_never_posted_and_owes_nobody(posting: Posting) -> None:
    copy = test_stages.open_copy(posting.study).study
    stage = cast.stage_of(copy)
    for call in (lambda: postings.draft(stage), lambda: postings.adopt(stage, "x")):
        with pytest.raises(StateRefused, match="is a test copy and is never posted"):
            call()
    with pytest.raises(StateRefused, match="is a test copy and is never posted"):
        Posting.objects.create(study=copy, stage=stage, internal_name="x", panel="prolific", reward=1, places=1)
    with pytest.raises(StateRefused, match="nobody in it is paid"):
        owed_list.owed_list(copy)


def test_a_file_can_neither_take_its_name_nor_leave_its_people_out() -> None:
    copy = test_copies.make_copy(cast.study())
    for change in (
        {"slug": copy.slug},
        {"slug": "other", "panel": {**cast.PROLIFIC, "exclude_people_of": [copy.slug]}},
    ):
        with pytest.raises(FileErrors):
            creating.create_study(text=cast.study_text(**change), source_name="x.toml")


def test_its_file_is_that_of_the_study() -> None:
    copy = test_copies.make_copy(cast.study())
    with pytest.raises(StateRefused, match="amend the study itself"):
        amending.propose(copy, text=copy.source_text + "\n", source_name="x.toml")


def test_no_report_takes_it_for_another_study() -> None:
    own = cast.small_study(slug="own", instrument={"kind": "own_answers"})
    beliefs = cast.small_study(slug="beliefs", on=own.bank)
    copy = test_copies.make_copy(own)
    entry, report = reports.load(beliefs, "human_calibration")
    (argument,) = [argument for argument in report.arguments if argument.names_studies]
    assert reports.choices_of(beliefs, entry, argument) == ["own"]
    assert reports._seen([copy.slug, "own"], None) == ["own"]


def test_it_is_in_no_list_no_alert_and_no_figure_of_the_site() -> None:
    study = cast.study(stages=[{"sittings": 2}])
    stage = test_stages.open_copy(study)
    for _person in range(2):
        cast.walk(cast.begin(stage.study))
    assert free_capacity(stage) == 0
    assert list(causes.full_stages(stage.opened_at)) == []
    counts = {metric.name: sum(sample.value for sample in metric.samples) for metric in _Figures().collect()}
    assert counts["hunch_sittings"] == counts["hunch_assignments"] == counts["hunch_open_slots"] == 0
    Study.objects.filter(pk=stage.study_id).update(test_of=None, slug="now-real")
    assert [trouble.subject for trouble in causes.full_stages(stage.opened_at)] == ["now-real stage 1"]


def test_its_export_says_so_in_every_table_and_the_studys_does_not(tmp_path: Any) -> None:
    study = cast.small_study()
    copy = filled.answer(test_stages.open_copy(study)).study
    for own_study, ending in ((study, False), (copy, True)):
        for written in write_export(own_study, tmp_path / own_study.slug):
            if written.path.suffix == ".csv" and written.path.name != "codebook.csv":
                head, *rows = written.path.read_text().splitlines()
                assert head.endswith(",is_test") == ending, written.path
                assert not ending or all(row.endswith(",1") for row in rows)
    assert [column.name for column in columns_of(copy)][:-1] == [column.name for column in columns_of(study)]
    assert "export of a test copy" in (tmp_path / copy.slug / "codebook.md").read_text()


def test_a_package_of_it_is_never_public_and_the_internal_one_says_what_it_is() -> None:
    copy = filled.answer(test_stages.open_copy(cast.small_study())).study
    with pytest.raises(HunchError, match="audience: small_test is a test copy, in which nothing was measured"):
        asked.ask(copy, "package", {})
    job, _is_new = asked.ask(copy, "package", {"audience": ["internal"]})
    assert asked.run(job.pk), Job.objects.get().error
    job.refresh_from_db()
    with asked.opened(job, job.files[0]["name"]) as file, zipfile.ZipFile(file) as archive:
        (answers,) = [name for name in archive.namelist() if re.search(r"answers[^/]*\.csv$", name)]
        assert archive.read(answers).decode().splitlines()[0].endswith(",is_test")


# Simulated people


def ids() -> PanelIds:
    return PanelIds("prolific", "robot", "study", "submission")


def test_no_simulated_person_takes_a_real_ones_place(posting: Posting) -> None:
    """Not even one that was sent before the study was posted: the place is refused where a person begins."""
    study, stage = posting.study, posting.stage
    free = free_capacity(stage)
    with pytest.raises(StateRefused, match=r"has a posting.*simulate cast --test"):
        Crowd(study=study, respondents=1, base_url="http://127.0.0.1:1")
    with pytest.raises(EntryRefused, match="has a posting"):
        begin_sitting(study=study, ids=ids(), simulated=True)
    assert free_capacity(stage) == free and not Respondent.objects.exists()
    assert cast.stage_of(study).arrivals == 0


def test_nor_do_their_answers_stand_beside_those_of_real_people() -> None:
    study = cast.open_study()
    cast.begin(study)
    with pytest.raises(StateRefused, match="real people have taken part in cast"):
        Crowd(study=study, respondents=1, base_url="http://127.0.0.1:1")
    with pytest.raises(EntryRefused, match="real people have taken part"):
        begin_sitting(study=study, ids=PanelIds("open", "robot"), simulated=True)


def test_where_they_took_part_nobody_is_posted() -> None:
    study = cast.open_study(panel={**cast.PROLIFIC, "reward": 100})
    begin_sitting(study=study, ids=ids(), simulated=True)
    for call in (lambda: postings.draft(cast.stage_of(study)), lambda: postings.adopt(cast.stage_of(study), "x")):
        with pytest.raises(StateRefused, match="simulated people have taken part"):
            call()


@pytest.mark.every_database
def test_simulated_people_fill_the_copy_while_the_posting_is_active(live_server: Any, posting: Posting) -> None:
    """What they answer trains the copy's predictor, and the study has as many free places as before."""
    study = posting.study
    before = free_capacity(posting.stage)
    call_command("simulate", study.slug, test=True, respondents=2, base_url=live_server.url, dropouts=0, returners=0)
    copy = test_copies.find_copy(study)
    assert Counter(copy.respondents.values_list("is_simulated", flat=True)) == {True: 2}
    assert free_capacity(posting.stage) == before and not study.respondents.exists()
    assert not Assignment.objects.filter(slot__stage__study=study).exists()


def test_the_command_shows_makes_and_deletes_it(capsys: pytest.CaptureFixture[str]) -> None:
    study = cast.study(conditions=[MOOD])
    call_command("test_copy", study.slug, "make")
    call_command("test_copy", study.slug, "preview", "--level", "mood=calm")
    call_command("test_copy", study.slug, "show")
    call_command("test_copy", study.slug, "delete")
    said = capsys.readouterr().out
    assert "cast_test: 0 people; stages 1 draft, 2 draft; the study's present file" in said
    assert "/s/cast_test/?preview=" in said and "stages 1 open, 2 draft" in said
    assert not Study.objects.filter(test_of=study).exists()
