"""1. Who is where, while it runs; and a warning where our counts and the panel's differ."""

import pytest
from django.test import Client

from survey.panels.prolific.fake import FakeProlific
from survey.panels.submissions import read_posting
from tests.panels.world import arrives, begins, posted

from .pages import read, study_page

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


def test_the_page_says_who_came_how_far_and_where_they_leave(fake: FakeProlific, browser_of: Client) -> None:
    posting = posted()
    study = posting.study
    assert "Stage 1 is open, 0 of 6 people are done" in read(browser_of, study_page(study))
    begins(study, arrives(fake, posting))
    begins(study, arrives(fake, posting), until="item")
    begins(study, arrives(fake, posting), fails=True)
    body = read(browser_of, study_page(study))
    assert "3 arrived, 1 finished" in body
    assert "Most people leave at <strong>checks</strong>: 1 of the 3 who came to it" in body


def test_it_warns_where_the_panel_counts_other_people(fake: FakeProlific, browser_of: Client) -> None:
    posting = posted()
    study, places = posting.study, [arrives(fake, posting) for _ in range(3)]
    begins(study, places[0])
    fake.submit(places[0]["id"], study.completion_code("completed"))
    read_posting(posting)
    assert "Counts differ" not in read(browser_of, study_page(study))
    begins(study, places[1])  # Finishes here and does not hand in there.
    fake.submit(places[2]["id"], study.completion_code("completed"))  # Hands in there and never was here.
    read_posting(posting)
    body = read(browser_of, study_page(study))
    assert "1 of the 2 people who finished here have not handed in at the panel" in body
    assert "the panel has 1 people as handed in or paid who did not finish here" in body


@pytest.mark.thorough
def test_the_page_says_what_to_do_next_and_leads_there(fake: FakeProlific, browser_of: Client) -> None:
    posting = posted()
    place = arrives(fake, posting)
    begins(posting.study, place)
    fake.submit(place["id"], posting.study.completion_code("completed"))
    read_posting(posting)
    body = read(browser_of, study_page(posting.study))
    assert "1 person waits to be approved at the panel" in body
    assert f'id="do-next" href="/admin/survey/posting/{posting.pk}/change/"' in body
