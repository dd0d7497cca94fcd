"""Relations of one row are joined, those of many rows are read next to it."""

import pytest
from django.db.models import prefetch_related_objects

from survey.models import Assignment, Slot
from survey.services.answers.joining import is_single, joined
from tests import cast
from tests.statements import counted

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


@pytest.mark.parametrize(
    ("path", "single"),
    [
        ("item", True),
        ("item__pair__evidence__task", True),
        ("booklet__sitting", True),
        ("assignments", False),
        ("item__slots", False),
        ("item__nothing", False),
        ("nothing", False),
    ],
)
def test_a_path_is_single_if_each_part_of_it_is(path: str, single: bool) -> None:
    assert is_single(Slot, path) is single


def test_what_follows_on_many_rows_is_read_with_them() -> None:
    cast.Visitor(cast.open_stage().study).finish()
    relations = ["responses__score", "responses__belief", "responses__explanation", "slot__item__pair"]
    answers = list(Assignment.objects.order_by("pk"))

    def read() -> list[int]:
        prefetch_related_objects(answers, *joined(Assignment, relations))
        return [response.belief.value for answer in answers for response in answer.responses.all()]

    values, statements = counted(read)
    assert len(values) == 6 and len(statements) == 4  # Responses with all three; slots, items and pairs.
    assert not any(hasattr(response, "score") for answer in answers for response in answer.responses.all())
