"""3. A study is a file: what the page shows can be given back without a difference, and makes the same study again."""

import html
import re

import pytest
from django.test import Client

from survey.models import Study
from survey.services.studies.creating import create_study
from tests import cast

from .pages import read, send, study_page

pytestmark = [pytest.mark.django_db, pytest.mark.thorough]


def test_the_file_on_the_page_is_the_file_and_makes_the_same_study(browser_of: Client) -> None:
    study = cast.study(conditions=[{"factor": "framing", "levels": ["plain", "warm"]}])
    match = re.search(r'<pre class="hunch-text">(.*?)</pre>', read(browser_of, study_page(study)), re.S)
    assert match is not None
    text = html.unescape(match[1])
    assert text == study.source_text
    amend = f"/admin/survey/study/{study.pk}/amend/"
    assert "nothing changes" in send(browser_of, amend, text=text, reason="none", amend="1").lower()
    again = create_study(text=text.replace('slug = "cast"', 'slug = "again"'), source_name="again.toml")
    study = Study.objects.get(pk=study.pk)
    assert {**again.stored_config, "slug": "cast"} == study.stored_config
