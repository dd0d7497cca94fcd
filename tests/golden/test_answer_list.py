"""The page of answers says of each golden study what its export says."""

import pytest
from django.contrib.auth.models import User

from survey.contracts import instruments
from survey.services.results.export.answers_file import answer_rows
from survey.services.results.export.columns import columns_of
from tests.admin.conftest import client_of
from tests.admin.test_answers import address, listed
from tests.statements import counted
from tests.survey.results.test_every_report import STUDIES

from .test_golden import golden, loaded, study_of

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
__all__ = ["golden", "loaded"]


@pytest.mark.thorough
@pytest.mark.parametrize("name", STUDIES)
def test_the_answers_of_every_instrument_are_those_of_its_export(name: str, golden: None) -> None:
    study = study_of(STUDIES[name])
    client = client_of(User.objects.create_superuser("reader"))
    columns = [column.name for column in columns_of(study)]
    exported = [dict(zip(columns, row, strict=True)) for row in answer_rows(study)]
    by_place = {(row["respondent"], row["position"]): row for row in exported if row["respondent"]}
    export = instruments.of_study(study).export
    rows = listed(study)
    assert len(rows) == len(by_place) > 0
    for row in rows:
        own = by_place[row["respondent"], row["position"]]
        assert {column: row[column] for column in export.first_look} == {
            column: own[column] for column in export.first_look
        }
    assert any(row["question"] for row in rows)
    client.get(address(study))
    answer, statements = counted(lambda: client.get(address(study)))
    assert answer.status_code == 200 and len(statements) <= 10
