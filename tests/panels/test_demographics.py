"""What the panel knows of people, by pseudonym: never with the panel's ids, and not of who withdrew."""

import csv
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone

from survey.admin.jobs import kinds_for
from survey.contracts.panels import Demographics, PanelIds, PanelUnreachable
from survey.exceptions import StateRefused
from survey.models import AuditEntry, Job, Posting
from survey.panels import demographics
from survey.panels.prolific.fake import Breakage, FakeProlific
from survey.services.base import jobs
from survey.services.base.auditing import actor_of
from survey.services.sittings.enrolment import begin_sitting
from survey.services.sittings.identities import store_wave_identity
from survey.services.sittings.withdrawal import withdraw
from tests import cast

from .world import PAY, arrives, begins, posted, stored_posting

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
FACTS = {"Age": "34", "Sex": "Female", "Country of residence": "Kenya"}


@pytest.fixture
def posting(fake: FakeProlific) -> Posting:
    """One person who finished, one who withdrew, and one who never began here."""
    posting = posted()
    for number in range(3):
        place = arrives(fake, posting)
        fake.demographics[place["participant_id"]] = {**FACTS, "Age": str(34 + number), "Panel alias": place["id"]}
        if number == 2:
            continue
        sitting = begins(posting.study, place)
        if number == 1:
            withdraw(respondent=sitting.respondent, now=timezone.now())
    return posting


def test_facts_are_joined_by_pseudonym_and_no_id_is_written(
    fake: FakeProlific, posting: Posting, tmp_path: Path
) -> None:
    call_command("demographics", posting.study.slug, "--out", str(tmp_path / "people.csv"))
    text = (tmp_path / "people.csv").read_text()
    (row,) = csv.DictReader(text.splitlines())
    stayed = posting.study.respondents.order_by("pk").first()
    assert stayed is not None and row == {"pseudonym": stayed.pseudonym, **FACTS}
    for submission in fake.submissions.values():
        assert submission["id"] not in text and submission["participant_id"] not in text
    entry = AuditEntry.objects.get(action=demographics.EXPORTED)
    assert entry.detail["people"] == 1 and set(entry.detail["facts"]) == set(FACTS)
    assert (tmp_path / "people.csv").stat().st_mode & 0o077 == 0


def test_people_of_parts_are_found_too(fake: FakeProlific) -> None:
    posting = posted()
    place = fake.take_place(posting.external_id, part="5f0000000000000000000001")
    assert place is not None
    begins(posting.study, {**place, "study_id": posting.external_id})
    fake.demographics[place["participant_id"]] = FACTS
    table = demographics.read_demographics(posting.study)
    assert len(table.rows) == 1 and table.columns == ("pseudonym", *sorted(FACTS)) and table.unknown == 0


def test_of_two_postings_the_newer_ones_facts_count_and_all_names_have_a_column(db: None) -> None:
    study = cast.open_study(
        panel={**cast.PROLIFIC, **PAY},
        stages=[{"sittings": 4}, {"sittings": 4, "wave": 2}],
        waves=[{"after_days": 1, "open_days": 7}],
    )
    older, newer, draft = (stored_posting(study), stored_posting(study), stored_posting(study, external_id=""))
    for person in ("came", "again"):
        begin_sitting(study=study, ids=PanelIds("prolific", person, older.external_id, f"of {person}"))
    came, again = study.respondents.order_by("pk")
    ids = PanelIds("prolific", "came", newer.external_id, "of came")
    store_wave_identity(respondent=came, wave=2, ids=ids, browser="")
    received = {
        older.external_id: [("came", {"Age": "34", "Sex": "Female"}), ("again", {"Age": "50"}), ("stranger", {})],
        newer.external_id: [("came", {"Age": "35"}), ("stranger", {"Age": "9"})],
    }

    def asked(posting: str) -> list[Demographics]:
        return [Demographics(f"of {person}", person, facts) for person, facts in received[posting]]

    client: Any = SimpleNamespace(can=lambda what: what == "demographics", demographics=asked)
    table = demographics.read_demographics(study, client=client)
    assert draft.pk and table.columns == ("pseudonym", "Age") and table.unknown == 2
    assert dict(table.rows) == {came.pseudonym: "35", again.pseudonym: "50"}


def test_it_is_a_job_for_who_may_see_identities(
    fake: FakeProlific, posting: Posting, admin_user: Any, django_user_model: Any
) -> None:
    nobody = django_user_model.objects.create(username="nobody", is_staff=True)
    with pytest.raises(jobs.NotAllowed):
        jobs.ask(posting.study, "demographics", {}, by=nobody)
    job, _is_new = jobs.ask(posting.study, "demographics", {}, by=admin_user, via="admin")
    assert jobs.run(job.pk)
    job = Job.objects.get(pk=job.pk)
    assert job.state == Job.State.DONE, job.error
    assert (job.result["people"], job.result["not_listed"]) == (1, 2)
    entry = AuditEntry.objects.get(action=demographics.EXPORTED)
    assert (entry.via, entry.actor) == ("job", actor_of(admin_user))


@pytest.mark.thorough
def test_it_is_offered_where_the_panel_can_be_asked(posting: Posting, admin_user: Any) -> None:
    lab = cast.study(slug="lab", panel={"kind": "generic"})
    names = [[kind.name for kind in kinds_for(study, admin_user)] for study in (posting.study, lab)]
    assert "demographics" in names[0] and set(names[0]) - set(names[1]) == {"demographics"}


def test_what_cannot_be_asked_says_why(fake: FakeProlific, posting: Posting) -> None:
    fake.break_next("demographic-export", Breakage.GARBAGE)
    fake.keeper.faults = []  # type: ignore[attr-defined]
    with pytest.raises(PanelUnreachable, match="is not a table"):
        demographics.read_demographics(posting.study)
    fake.keeper.faults.clear()  # type: ignore[attr-defined] - Prolific never answers so.
    lab = cast.open_study(slug="lab")
    stored_posting(lab, external_id="")  # Its draft's answer got lost.
    with pytest.raises(StateRefused, match="has no posting"):
        demographics.read_demographics(lab)
    assert not AuditEntry.objects.filter(action=demographics.EXPORTED).exists()
