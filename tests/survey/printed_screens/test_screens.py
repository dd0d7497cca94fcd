"""Every screen as files: which there are, that they say what people are shown, and that nothing is left behind."""

import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.core.management import call_command

from survey.models import EntryLink
from survey.printed_screens import copying, walking
from survey.printed_screens.walking import MAX_COMBINATIONS, chosen_combinations, undone
from survey.services.base import keys
from survey.services.studies import test_copies
from survey.study_file import StudyConfig
from tests import cast

pytestmark = [pytest.mark.django_db, pytest.mark.any_database, pytest.mark.slow]


def both(en: str, de: str) -> dict[str, str]:
    return {"en": en, "de": de}


TWO_LANGUAGES: dict[str, Any] = {
    "title": both("A study in two", "Eine Studie in zweien"),
    "texts": {"languages": ["en", "de"], "welcome": both("Welcome, all.", "Willkommen, alle."), "minutes": 3},
    "sitting": {"items": 3},
    "roles": {"holdout": 0, "controls": 0.34, "control_kinds": ["no_evidence"]},
    "conditions": [
        {
            "factor": "framing",
            "levels": ["machine", "anybody"],
            "per": "item",
            "options": {"anybody": {"answerer": "ai_or_person"}},
        },
        {
            "factor": "tone",
            "levels": ["cool", "warm"],
            "texts": {"warm": {"instructions": both("Dear reader.", "Liebe Leserin, lieber Leser.")}},
        },
    ],
    "blocks": [
        {"kind": "consent", "text": both("Do you agree?", "Sind Sie einverstanden?"), "version": "2"},
        {"kind": "instructions", "text": both("Read this.", "Lesen Sie dies.")},
        {
            "kind": "checks",
            "checks": [
                {
                    "name": "first_check",
                    "question": both("Which one?", "Welche?"),
                    "options": [both("right one", "richtige"), both("wrong one", "falsche")],
                    "hint": both("Think again.", "Denken Sie noch einmal nach."),
                }
            ],
        },
        {"kind": "items"},
        {
            "kind": "form",
            "name": "about_you",
            "title": both("About you", "Über Sie"),
            "fields": [
                {"name": "age", "label": both("Your age", "Ihr Alter"), "kind": "number", "required": True},
                {
                    "name": "use",
                    "label": both("Do you use models?", "Nutzen Sie Modelle?"),
                    "kind": "choice",
                    "options": [both("often", "oft"), both("never", "nie")],
                },
            ],
        },
        {"kind": "debriefing", "text": both("It was about expectations.", "Es ging um Erwartungen.")},
        {"kind": "end", "text": both("Thanks.", "Danke.")},
    ],
}
# What is printed does not matter, so there is little of it.
SHORT: dict[str, Any] = {
    "blocks": [cast.BASE["blocks"][0], {"kind": "items"}, cast.BASE["blocks"][-1]],
    "sitting": {"items": 1},
    "texts": {},
}


def counts() -> dict[str, int]:
    return {model._meta.label: model._default_manager.count() for model in apps.get_models()}


@pytest.fixture(autouse=True)
def _few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walking, "SILENT_DRAWS", 1)


@dataclass(frozen=True)
class Written:
    folder: Path
    source_sha256: str
    codes: tuple[str, ...]
    before: dict[str, int]
    after: dict[str, int]

    def __truediv__(self, name: str) -> Path:
        return self.folder / name


@pytest.fixture(scope="module")
def written(django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory) -> Written:
    """Written once for all tests that only look at the files."""
    folder = tmp_path_factory.mktemp("screens")
    with django_db_blocker.unblock(), undone(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(walking, "SILENT_DRAWS", 1)
        study = cast.study(**TWO_LANGUAGES, panel=cast.WITH_CODE)
        keys.check()  # The first command of all leaves the keys' fingerprints.
        before = counts()
        call_command("screens", "cast", out=folder)
        codes = tuple(study.codes.values_list("code", flat=True))
        return Written(folder, study.source_sha256, codes, before, counts())


@pytest.mark.thorough
def test_nothing_is_left_in_the_database(written: Written) -> None:
    assert written.after == written.before and written.before["survey.Study"] == 1


def names(folder: Path) -> list[str]:
    return sorted(re.sub(r"^\d+-", "", path.stem) for path in folder.glob("*.html") if path.stem != "all")


def page(folder: Path, name: str) -> str:
    (path,) = folder.glob(f"[0-9]*-{name}.html")
    return path.read_text()


def test_it_writes_every_screen_of_every_language_and_nothing_else(written: Written) -> None:
    assert names(written / "en") == names(written / "de")
    actual = set(names(written / "en"))
    expected = {
        *("welcome", "welcome-back", "welcome-after-the-end", "consent", "consent-unanswered"),
        *("instructions-tone-cool", "instructions-tone-warm"),
        *("checks", "checks-unanswered", "checks-second-attempt"),
        *("form-about-you", "form-about-you-unanswered", "debriefing"),
        *("end-completed", "end-failed-checks", "end-no-consent", "end-study-full", "door-full", "door-closed"),
    }
    assert expected <= actual, expected - actual
    kinds, framings = ("correct", "incorrect", "no-evidence"), ("machine", "anybody")
    for framing in framings:
        assert {f"item-prior-framing-{framing}", f"item-prior-unanswered-framing-{framing}"} <= actual, sorted(actual)
        for kind in kinds:
            for name in (f"item-posterior-{kind}", f"item-posterior-unanswered-{kind}"):
                assert f"{name}-framing-{framing}" in actual, (name, sorted(actual))
    assert [name for name in actual if name.startswith("item-remark-sent")]


def test_screens_say_what_people_are_shown_in_their_language(written: Written) -> None:
    assert "Liebe Leserin" in page(written / "de", "instructions-tone-warm")
    assert "Denken Sie noch einmal nach." in page(written / "de", "checks-second-attempt")
    assert "Think again." in page(written / "en", "checks-second-attempt")
    assert "Welcome, all." in page(written / "en", "welcome") and '<html lang="en">' in page(written / "en", "welcome")
    assert "Wählen Sie eine der Antworten." in page(written / "de", "checks-unanswered")


def test_pages_open_from_a_disk_lead_nowhere_and_have_no_scripts(written: Written) -> None:
    assert (written / "hunch.css").read_text().startswith("/* One calm column.")
    for file in written.folder.glob("*/*.html"):
        html = file.read_text()
        assert "<script" not in html and "csrfmiddlewaretoken" not in html and "/s/screens-" not in html
        assert 'href="../hunch.css"' in html and "/static/" not in html
        assert not re.search(r' (?:form)?(?:action|href)="(?!#|\.\./hunch\.css)', html), file


def test_the_track_is_on_the_pages_of_items(written: Written) -> None:
    """On the live page a script shows it."""
    html = "".join(file.read_text() for file in written.folder.glob("en/*-item-prior*.html"))
    assert 'class="ticks"' in html and "data-track>" in html and "data-track hidden" not in html


def test_the_index_names_the_file_the_date_and_every_page(written: Written) -> None:
    index = (written / "index.html").read_text()
    assert written.source_sha256 in index and re.search(r"Made \d{1,2} \w+ \d{4}, \d\d:\d\d UTC", index)
    links = set(re.findall(r'href="((?:en|de)/[^"]+)"', index))
    assert links == {f"{file.parent.name}/{file.name}" for file in written.folder.glob("*/*.html")}
    assert "(tone: warm)" in index


@pytest.mark.slow
def test_no_real_completion_code_is_written(written: Written) -> None:
    everything = "".join(file.read_text() for file in written.folder.glob("*/*.html"))
    assert not any(code in everything for code in written.codes) and "CODE-COMPLETED" in everything


@pytest.mark.thorough
@pytest.mark.slow
def test_two_runs_write_the_same_pages(tmp_path: Path) -> None:
    cast.study(sitting={"items": 1})
    for name in ("one", "two"):
        call_command("screens", "cast", out=tmp_path / name)
    first, two = (
        {file.name: file.read_text() for file in (tmp_path / name / "en").iterdir()} for name in ("one", "two")
    )
    assert first == two


def test_a_study_of_another_instrument_and_a_panel_is_walked_through_as_well(tmp_path: Path) -> None:
    cast.study(
        **SHORT, instrument={"kind": "own_answers"}, panel={**cast.PROLIFIC}, roles={"holdout": 0, "controls": 0}
    )
    call_command("screens", "cast", out=tmp_path)
    file_names = names(tmp_path / "en")
    assert any(name.startswith("item-") for name in file_names) and "end-completed" in file_names


def test_a_bank_of_one_question_is_enough_where_the_instrument_asks_about_one() -> None:
    on = cast.small_bank(1, name="single", tasks=1)
    study = cast.stored_study("single", on=on, instrument={"kind": "own_answers"}, sitting={"items": 1})
    stage, _kinds = copying.open_copy(study)
    assert stage.slots.count() == 1


def test_a_study_entered_by_links_is_walked_through_and_keeps_none_of_them(tmp_path: Path) -> None:
    cast.study(**SHORT, panel={"kind": "links"})
    call_command("screens", "cast", out=tmp_path)
    assert "end-completed" in names(tmp_path / "en")
    assert not EntryLink.objects.exists()


def test_it_refuses_a_language_that_the_study_is_not_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cast.study()
    with pytest.raises(SystemExit):
        call_command("screens", "cast", out=tmp_path, language=["de"])
    assert "--language: cast is not in de; it is in en" in capsys.readouterr().err


def test_it_says_where_there_is_no_browser_before_it_begins(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cast.study()
    with pytest.raises(SystemExit):
        call_command("screens", "cast", out=tmp_path / "out", pdf=True, browser="/nowhere/chromium")
    assert "--pdf: found no browser that can print" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.thorough
@pytest.mark.slow
def test_it_prints_with_the_browser_that_it_is_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    browser = tmp_path / "browser"
    browser.write_text('#!/bin/sh\nfor one; do case $one in --print-to-pdf=*) echo "$@" > "${one#*=}";; esac; done\n')
    browser.chmod(browser.stat().st_mode | stat.S_IXUSR)
    cast.study(**SHORT)
    call_command("screens", "cast", out=tmp_path / "out", pdf=True, browser=str(browser))
    assert "--headless" in (tmp_path / "out" / "screens-en.pdf").read_text()
    browser.write_text("#!/bin/sh\necho broken >&2\nexit 3\n")
    with pytest.raises(SystemExit):
        call_command("screens", "cast", out=tmp_path / "out", pdf=True, browser=str(browser))
    assert "(status 3): broken" in capsys.readouterr().err


def test_very_many_combinations_are_shown_one_factor_at_a_time() -> None:
    factors = [{"factor": f"factor_{number}", "levels": ["one", "two", "three"]} for number in range(6)]
    config = StudyConfig.model_validate({**cast.BASE, "conditions": factors})
    chosen = chosen_combinations(config)
    assert MAX_COMBINATIONS < 3**6 and len(chosen) == 1 + 6 * 2
    assert len(chosen_combinations(config.model_copy(update={"conditions": config.conditions[:2]}))) == 9


def test_the_slider_is_printed_although_a_script_shows_it(written: Written) -> None:
    tracks = [
        tag
        for path in (written / "en").glob("*.html")
        for tag in re.findall(r"<\w+[^>]*data-track[^>]*>", path.read_text())
    ]
    assert tracks and not [track for track in tracks if "hidden" in track]


def test_the_screens_of_a_test_copy_are_those_of_the_study(tmp_path: Path) -> None:
    copy = test_copies.make_copy(cast.study(**SHORT))
    call_command("screens", copy.slug, out=tmp_path)
    assert (tmp_path / "index.html").exists()
