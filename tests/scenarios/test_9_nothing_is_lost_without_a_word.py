"""9. Where something goes, a sentence says so: sittings that expire, answers that are withdrawn."""

import csv
import io
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from survey.models import Sitting
from survey.services.sittings.expiry import expire_sitting
from tests import cast

from .pages import download, read, send, study_page

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


def test_every_arrival_is_accounted_for_on_the_page_and_in_the_export(browser_of: Client) -> None:
    study = cast.open_study()
    done, gone, inside = cast.begin(study), cast.begin(study), cast.begin(study)
    cast.walk(done)
    for sitting in (gone, inside):
        cast.walk(sitting, until="item")
    Sitting.objects.filter(pk=gone.pk).update(last_seen_at=timezone.now() - timedelta(hours=3))
    assert expire_sitting(gone.pk, now=timezone.now())
    body = read(browser_of, study_page(study))
    assert "3 arrived, 1 finished" in body and "1 expired" in body and "1 live" in body
    assert "was silent for too long" in read(browser_of, f"/admin/survey/sitting/{gone.pk}/replay/")
    text = download(browser_of, f"/admin/survey/study/{study.pk}/export/answers.csv")
    people = {row["respondent"] for row in csv.DictReader(io.StringIO(text)) if row["respondent"]}
    assert people == {sitting.respondent.pseudonym for sitting in (done, gone, inside)}


def test_a_withdrawal_deletes_the_words_and_says_that_it_did(browser_of: Client) -> None:
    study = cast.open_study()
    sitting = cast.begin(study)
    cast.walk(sitting)
    withdraw = f"/admin/survey/respondent/{sitting.respondent_id}/withdraw/"
    assert "3" in read(browser_of, withdraw)
    assert "3 answers of" in send(browser_of, withdraw, reason="A letter of 3 May")
    body = read(browser_of, study_page(study))
    assert "1 withdrew their answers" in body and "Withdrew their answers" in body
    assert "withdrew all answers, which are deleted" in read(browser_of, f"/admin/survey/sitting/{sitting.pk}/replay/")
