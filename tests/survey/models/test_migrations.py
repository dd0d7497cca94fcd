"""What migrations write into rows that were there before them."""

from importlib import import_module

import pytest
from django.apps import apps

from survey.models import CompletionCode
from tests import cast

pytestmark = pytest.mark.django_db


def test_a_study_from_before_gets_a_code_for_those_screened_out_and_keeps_its_others() -> None:
    old, new = cast.small_study("old"), cast.small_study("new")
    CompletionCode.objects.filter(study=old, outcome="screened_out").delete()
    before = dict(old.codes.values_list("outcome", "code")), dict(new.codes.values_list("outcome", "code"))
    migration = import_module("survey.migrations.0006_blocks")
    for _twice in range(2):
        migration.give_each_study_a_code_for_those_screened_out(apps, None)
    made = old.completion_code("screened_out")
    assert len(made) == 10 and made not in before[0].values()
    assert dict(old.codes.exclude(outcome="screened_out").values_list("outcome", "code")) == before[0]
    assert dict(new.codes.values_list("outcome", "code")) == before[1]
