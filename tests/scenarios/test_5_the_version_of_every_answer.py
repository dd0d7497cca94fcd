"""5. Each answer keeps the version of the study file and of the question it was given to; removed questions are
exported all the same."""

import csv
import io

import pytest
from django.core.management import call_command
from django.test import Client

from survey.models import Study
from tests import cast

from .pages import download, send

pytestmark = [pytest.mark.django_db, pytest.mark.thorough]


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_answers_before_and_after_an_amendment_name_their_files(browser_of: Client) -> None:
    study = cast.open_study()
    cast.walk(cast.begin(study))
    before = study.source_sha256
    amend = f"/admin/survey/study/{study.pk}/amend/"
    text = study.source_text.replace("Welcome to the cast.", "Welcome, all of you.")
    assert "texts.welcome" in send(browser_of, amend, text=text, reason="A kinder word.")
    assert "1 keys" in send(browser_of, amend, text=text, reason="A kinder word.", amend="1")
    study = Study.objects.get(pk=study.pk)
    cast.walk(cast.begin(study))
    export = f"/admin/survey/study/{study.pk}/export"
    hashes = [
        row["study_sha256"] for row in rows_of(download(browser_of, f"{export}/answers.csv")) if row["study_sha256"]
    ]
    assert set(hashes) == {before, study.source_sha256}
    (change,) = rows_of(download(browser_of, f"{export}/amendments.csv"))
    assert (change["old_sha256"], change["new_sha256"], change["key"]) == (before, study.source_sha256, "texts.welcome")


def test_a_question_that_is_removed_keeps_its_answers_in_the_export(browser_of: Client) -> None:
    study = cast.open_study()
    sitting = cast.begin(study)
    cast.walk(sitting)
    target = sitting.assignments.get(position=1).slot.item.pair.target
    flag = (target.external_id, "--bank", study.bank.name, "--kind", "broken", "--reason", "no right answer")
    call_command("flag_questions", *flag, stdout=io.StringIO())
    rows = rows_of(download(browser_of, f"/admin/survey/study/{study.pk}/export/answers.csv"))
    assert sum(target.external_id in row.values() for row in rows) >= 1
