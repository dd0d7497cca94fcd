"""Coders' files sent by the page of the report `reasons`, in a real browser: on a phone, refused, stored."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from survey.instruments.belief_update.models import Explanation, ReasonCode
from survey.models import Assignment, Response, Study
from survey.services.results import reports
from tests import cast
from tests.browser.visitor import AXE, Visitor, only, use_axe

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True), pytest.mark.thorough]
PHONE, DESK = {"width": 390, "height": 844}, {"width": 1280, "height": 900}
WIDER = "document.documentElement.scrollWidth > innerWidth"
# The form and the tables that it fills; the admin's own frame is not ours.
CONTENT = only("color-contrast", "label", "button-name", "aria-valid-attr-value", "heading-order", "target-size")


@pytest.fixture
def researcher(browser: Any, live_server: Any, admin_user: User) -> Iterator[Visitor]:
    client = Client()
    client.force_login(admin_user)
    visitor = Visitor(browser, live_server.url)
    visitor.page.set_viewport_size(PHONE)
    name = settings.SESSION_COOKIE_NAME
    visitor.context.add_cookies([{"name": name, "value": client.cookies[name].value, "url": live_server.url}])
    yield visitor
    visitor.close()


def explained() -> Study:
    """Three people's answers, each with a reason."""
    asking = {"kind": "belief_update", "options": {**cast.PLAIN, "explanation": "all"}}
    stage = cast.full_of_answers(cast.open_stage(instrument=asking, stages=[{"sittings": 3}]))
    now = timezone.now()
    rows = Response.objects.bulk_create(
        Response(
            assignment=assignment, number=3, screen="explanation", screen_sha256="0" * 64, answered_at=now, server_ms=9
        )
        for assignment in Assignment.objects.filter(slot__stage=stage).order_by("slot__number")
    )
    words = ("They are about the same topic.", "The model was wrong about something easier before.")
    Explanation.objects.bulk_create(Explanation(response=row, text=words[place % 2]) for place, row in enumerate(rows))
    return cast.stage_of(stage.study).study


def coders_file(study: Study, path: Path, codes: tuple[str, ...]) -> Path:
    """`to_code.csv` with these codes in turn."""
    (file,) = reports.make(study, "reasons").files
    rows = list(csv.DictReader(io.StringIO(file.content().decode(), newline="")))
    with path.open("w", newline="") as out:
        writer = csv.DictWriter(out, list(rows[0]))
        writer.writeheader()
        writer.writerows({**row, "code": codes[place % len(codes)]} for place, row in enumerate(rows))
    return path


def look(visitor: Visitor, state: str) -> None:
    """Nothing is wider than the screen and axe finds nothing, on a phone and on a desk."""
    page = visitor.page
    use_axe(page)
    for size in (DESK, PHONE):
        page.set_viewport_size(size)
        if page.evaluate(WIDER):
            visitor.problems.append(f"{state}: wider than {size['width']} px")
        visitor.problems += [f"{state}, {size['width']} px: {problem}" for problem in page.evaluate(AXE, CONTENT)]


def test_coders_files_are_refused_with_a_reason_and_stored_with_their_agreement(
    researcher: Visitor, tmp_path: Path
) -> None:
    study = explained()
    page = researcher.page
    page.goto(f"{researcher.root}/admin/survey/study/{study.pk}/reports/reasons/")
    look(researcher, "before")
    form = page.locator("form[enctype]")
    assert form.get_by_label("Files").get_attribute("required") is not None
    wrong = tmp_path / "ann.csv"
    wrong.write_text("answer,code\ns9n9,alike\n")
    form.get_by_label("Files").set_input_files([wrong])
    form.get_by_role("button", name="Store").click()
    assert "ann.csv:2: answer: 's9n9' is no answer" in page.get_by_role("alert").inner_text()
    assert "Nothing was stored." in page.get_by_role("alert").inner_text() and not ReasonCode.objects.exists()
    look(researcher, "refused")
    codes = {"ann": ("topic", "easier"), "bob": ("topic", "easier", "topic"), "cy": ("topic", "", "easier", "easier")}
    files = [coders_file(study, tmp_path / f"{name}.csv", answer_codes) for name, answer_codes in codes.items()]
    page.get_by_label("Files").set_input_files(files)
    page.get_by_role("button", name="Store").click()
    page.get_by_text("by ann,").wait_for()
    assert ReasonCode.objects.filter(coder="bob").count() == 9
    together = page.locator("section", has=page.get_by_role("heading", name="Agreement of all coders together"))
    assert together.locator("tbody tr").count() == 1 and "Krippendorff's alpha" in together.inner_text()
    look(researcher, "stored")
    assert researcher.problems == []
