"""Instruments that make their columns from tuples give what they give from objects."""

from typing import Any

import pytest

from survey.contracts import instruments
from survey.models import Study
from survey.services.results.export import answers_file, contents, files
from tests.golden.test_golden import golden, loaded, study_of

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
__all__ = ["golden", "loaded"]


@pytest.mark.parametrize("slug", ["beliefs", "real", "answers"])
def test_tuples_give_the_rows_that_objects_give(golden: None, slug: str) -> None:
    own, quick = both_ways(study_of(slug))
    assert len(quick) > 40 and all(rows for _name, rows in own)


def both_ways(study: Study) -> tuple[list[Any], list[Any]]:
    """The instrument's files and the rows of answers, which are the same from tuples and from objects."""
    export = instruments.of_study(study).export
    assert export.quick is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answers_file, "CHUNK", 20)
        patch.setattr(answers_file, "KEPT", 25)  # What is kept of items and sittings has to go in between.
        quick, own = [*answers_file.answer_rows(study)], [*map(_read, answers_file.CountedAnswers(study).files())]
        patch.setattr(type(export), "quick", None)
        assert list(files.answers_table(study).rows) == quick
        assert [*map(_read, answers_file.CountedAnswers(study).files())] == own
    return own, quick


def _read(file: contents.ExtraFile) -> tuple[str, list[tuple[object, ...]]]:
    return file.name, [tuple(row) for row in file.rows]


def test_an_instrument_that_gives_too_few_values_is_named(golden: None, monkeypatch: pytest.MonkeyPatch) -> None:
    study = study_of("beliefs")
    kind = type(instruments.of_study(study).export)
    monkeypatch.setattr(kind, "quick", None)
    monkeypatch.setattr(kind, "values", lambda *_given: [None])
    with pytest.raises(answers_file.HunchError, match=r"belief_update: gives 1 values for \d+ columns"):
        list(answers_file.answer_rows(study))
