"""The checked study files that a process keeps: by hash, so that none is out of date, and not without end."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from survey.models import Study
from survey.models.study import FILE_FIELDS
from survey.services.studies.amending import amend
from survey.study_file import kept
from tests import cast

pytestmark = pytest.mark.django_db


def as_a_page_reads_it(study: Study) -> Study:
    return Study.objects.defer(*FILE_FIELDS).get(pk=study.pk)


def test_a_file_is_read_and_checked_once() -> None:
    study = cast.small_study()
    first = as_a_page_reads_it(study).config
    assert first == study.config
    again = as_a_page_reads_it(study)
    with CaptureQueriesContext(connection) as queries:
        assert again.config is first
    assert len(queries) == 0


def test_an_amended_file_is_another_one_and_who_began_with_the_old_one_goes_on_with_it() -> None:
    study = cast.open_study()
    old = as_a_page_reads_it(study)
    assert old.config.texts.welcome == "Welcome to the cast."
    for words in ("Welcome.", "Hello."):
        text = cast.study_text(texts={**cast.BASE["texts"], "welcome": words})
        amend(Study.objects.get(pk=study.pk), text=text, source_name="cast.toml", reason="A better word.")
        new = as_a_page_reads_it(study)
        assert new.config.texts.welcome == words
        for _time in range(2):
            assert new.as_of(old.source_sha256).texts.welcome == "Welcome to the cast."
        kept.forget_files()
        assert as_a_page_reads_it(study).as_of(old.source_sha256).texts.welcome == "Welcome to the cast."


def test_the_file_that_was_not_used_for_the_longest_time_is_forgotten() -> None:
    config = cast.small_config()
    for number in range(kept.MAX_KEPT):
        kept.keep_file(number, "sha", config)
    assert kept.kept_file(0, "sha") is config  # Used again: now the second one is the oldest.
    kept.keep_file(kept.MAX_KEPT, "sha", config)
    assert kept.kept_file(0, "sha") is config
    assert kept.kept_file(1, "sha") is None
    assert kept.kept_file(kept.MAX_KEPT, "other sha") is None


def test_a_file_read_from_the_database_is_checked_once_and_one_with_another_text_again() -> None:
    """Somebody may have changed the row and not its hash."""
    study = cast.small_study()
    first = Study.objects.get(pk=study.pk)
    assert Study.objects.get(pk=study.pk).config is first.config
    Study.objects.filter(pk=study.pk).update(stored_config={**first.stored_config, "title": "Another title"})
    assert Study.objects.get(pk=study.pk).config.title == "Another title"
