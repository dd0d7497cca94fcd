"""A form changes a study file's text, and nothing else in it: comments stay, and what it wrote is read again."""

from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import call_command

from survey.exceptions import StateRefused
from survey.models import AuditEntry, Stage, Study
from survey.services.studies import file_texts
from survey.services.studies.archiving import archive, bring_back
from survey.services.studies.creating import create_study
from survey.study_file import parse
from tests import cast

TEXT = Path(settings.BASE_DIR, "studies", "demo.toml").read_text(encoding="utf-8")


def removed_and_added(old: str, new: str) -> tuple[list[str], list[str]]:
    lines = file_texts.diff_lines(old, new, context=0)
    return [line for mark, line in lines if mark == "-"], [line for mark, line in lines if mark == "+"]


def test_one_value_is_one_line_and_its_comment_stays() -> None:
    new = file_texts.changed(TEXT, {"sitting.items": 20, "title": "Another", "stages.1.sittings": 7})
    removed, added = removed_and_added(TEXT, new)
    assert removed == ['title = "What do you expect of a language model?"', "items = 15", "sittings = 32"]
    assert added == ['title = "Another"', "items = 20", "sittings = 7"]
    assert "# short questions, so that the predictor trains quickly" in new
    assert [stage.sittings for stage in parse(new).stages] == [32, 7, 32]


def test_tables_that_are_missing_are_made_and_values_that_are_emptied_go() -> None:
    text = file_texts.changed(TEXT, {"panel.kind": "prolific", "panel.reward": 250, "texts.contact": "a@example.org"})
    config = parse(text)
    assert (config.panel.kind, config.panel.reward, config.texts.contact) == ("prolific", 250, "a@example.org")
    assert parse(file_texts.changed(text, {"panel.reward": None})).panel.reward is None


def test_a_broken_text_is_left_to_its_writer() -> None:
    for broken in ("slug = ", "stages = 5\nslug = 'a'\n"):
        with pytest.raises(file_texts.NotWritable):
            file_texts.changed(broken, {"stages.0.sittings": 5, "slug": "b"})


@pytest.mark.django_db
def test_templates_of_a_lab_and_with_a_pilot_have_their_stages() -> None:
    lab, pilot = (parse(file_texts.starting_text(name)) for name in ("lab", "pilot"))
    assert [stage.sittings for stage in lab.stages] == [30] and lab.panel.kind == "links"
    assert [(stage.sittings, stage.pilot) for stage in pilot.stages] == [(10, True), *[(32, False)] * 3]
    size = next(template.size for template in file_texts.STARTING_FILES if template.name == "lab")
    assert "30 people in 1 stage" in size


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.parametrize("name", [starting_file.name for starting_file in file_texts.STARTING_FILES])
def test_every_template_is_a_sound_file_with_a_seed_of_its_own(name: str) -> None:
    first, second = file_texts.starting_text(name), file_texts.starting_text(name)
    assert parse(first).seed != parse(second).seed
    assert parse(first).slug == parse(second).slug


@pytest.mark.django_db
def test_a_duplicate_is_another_study_with_another_seed(capsys: pytest.CaptureFixture[str]) -> None:
    made = cast.study()
    call_command("duplicate_study", "cast")
    text = capsys.readouterr().out
    config = parse(text)
    assert config.slug == "cast-2" and config.seed != made.seed
    create_study(text=text, source_name="copy.toml")
    assert file_texts.free_slug("cast") == "cast-3" and file_texts.free_slug("cast-2") == "cast-3"
    assert file_texts.free_slug("free") == "free"


@pytest.mark.django_db
def test_an_archived_study_opens_no_stage_until_it_is_brought_back(capsys: pytest.CaptureFixture[str]) -> None:
    made = cast.study()
    call_command("archive_study", "cast")
    with pytest.raises(SystemExit):
        call_command("open_stage", "cast")
    assert "cast is archived: bring it back first" in capsys.readouterr().err
    call_command("archive_study", "cast", "--undo")
    call_command("open_stage", "cast")
    with pytest.raises(SystemExit):
        call_command("archive_study", "cast")
    assert "stage 1 is open: close it" in capsys.readouterr().err
    assert Study.objects.get(pk=made.pk).archived_at is None
    Stage.objects.filter(study=made, index=1).update(state="planned")
    assert archive(made).archived_at is not None


@pytest.mark.slow
@pytest.mark.django_db
def test_a_seed_that_does_not_fill_the_booklets_is_replaced_and_other_problems_are_left() -> None:
    cast.small_bank(24)
    tight = {"bank": "small", "sitting": {"items": 4}, "stages": [{"sittings": 6}], "candidates": {"size": 300}}
    texts = [cast.study_text(**tight, seed=seed) for seed in range(40)]
    fitted_texts = [file_texts.with_fitting_seed(text) for text in texts]
    assert any(new != text for text, new in zip(texts, fitted_texts, strict=True)), "some of these seeds do not fit"
    changed = next(new for text, new in zip(texts, fitted_texts, strict=True) if new != text)
    create_study(text=changed, source_name="new.toml")
    broken = cast.study_text(bank="lost")
    assert file_texts.with_fitting_seed(broken) == broken


@pytest.mark.django_db
@pytest.mark.parametrize("state", ["planned", "open", "paused", "closing"])
def test_a_study_is_archived_once_unless_a_stage_runs(state: str) -> None:
    study = cast.planned_stage().study
    Stage.objects.filter(study=study, index=1).update(state=state)
    if state in ("open", "paused", "closing"):
        with pytest.raises(StateRefused, match=f"stage 1 is {state}: close it"):
            archive(study)
        return
    first = archive(study).archived_at
    assert archive(study).archived_at == first is not None
    assert bring_back(study).archived_at is None and bring_back(study).archived_at is None
    said = AuditEntry.objects.filter(action__in=("archive_study", "bring_back_study")).order_by("pk")
    assert [entry.action for entry in said] == ["archive_study", "bring_back_study"]
