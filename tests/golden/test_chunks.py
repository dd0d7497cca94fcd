"""What is kept of items and sittings between two chunks changes nothing in an export."""

from typing import Any

import pytest

from survey.contracts import instruments
from survey.models import Study
from survey.services.results.export import answers_file
from tests.golden.test_golden import INSTRUMENTS, STUDIES, golden, loaded, study_of

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
__all__ = ["golden", "loaded"]


@pytest.mark.parametrize("slug", [*STUDIES, *INSTRUMENTS])
def test_small_chunks_give_the_rows_of_large_ones(golden: None, slug: str) -> None:
    rows = in_any_chunks(study_of(slug))
    assert len(rows) > 25


def in_any_chunks(study: Study) -> list[Any]:
    """The rows of answers, which are the same in large and in small chunks; as are those of the instrument's files."""
    rows, own = [*answers_file.answer_rows(study)], _own_files(study)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answers_file, "CHUNK", 20)
        patch.setattr(answers_file, "KEPT", 25)  # What is kept of items and sittings has to go in between.
        assert [*answers_file.answer_rows(study)] == rows
        assert _own_files(study) == own and (not own or any(rows_of_file for _name, rows_of_file in own))
    return rows


def _own_files(study: Study) -> list[tuple[str, list[tuple[object, ...]]]]:
    files = instruments.of_study(study).export.extra_files(answers_file.CountedAnswers(study))
    return [(file.name, [tuple(row) for row in file.rows]) for file in files]
