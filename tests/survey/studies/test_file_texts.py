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

SHIPPED = sorted(path for path in Path(settings.BASE_DIR, "studies").rglob("*.toml") if "budget" not in path.name)
TEXT = Path(settings.BASE_DIR, "studies", "demo.toml").read_text(encoding="utf-8")


def removed_and_added(old: str, new: str) -> tuple[list[str], list[str]]:
    lines = file_texts.diff_lines(old, new, context=0)
    return [line for mark, line in lines if mark == "-"], [line for mark, line in lines if mark == "+"]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_a_form_that_changes_nothing_leaves_every_byte(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert file_texts.changed(text, file_texts.values_of(text)) == text


def test_one_value_is_one_line_and_its_comment_stays() -> None:
    new = file_texts.changed(TEXT, {"items": 20, "title": "Another"})
    removed, added = removed_and_added(TEXT, new)
    assert removed == ['title = "What do you expect of a language model?"', "items = 15"]
    assert added == ['title = "Another"', "items = 20"]
    assert "# short questions, so that the predictor trains quickly" in new


def test_stages_grow_like_the_last_one_and_shrink_from_the_end() -> None:
    more = parse(file_texts.changed(TEXT, {"stages": "10, 20, 30, 40, 50"}))
    assert [stage.sittings for stage in more.stages] == [10, 20, 30, 40, 50]
    assert [stage.design.kind for stage in more.stages] == ["uniform", *["epsilon_greedy"] * 4]
    assert [stage.sittings for stage in parse(file_texts.changed(TEXT, {"stages": "7"})).stages] == [7]


def test_a_pilot_comes_first_and_goes_again() -> None:
    piloted = file_texts.changed(TEXT, {"pilot": 9})
    config = parse(piloted)
    assert (config.pilots, config.stages[0].sittings, len(config.stages)) == (1, 9, 4)
    assert file_texts.values_of(piloted)["pilot"] == 9
    assert parse(file_texts.changed(piloted, {"pilot": 12})).stages[0].sittings == 12
    assert parse(file_texts.changed(piloted, {"pilot": None})).pilots == 0


def test_tables_that_are_missing_are_made_and_values_that_are_emptied_go() -> None:
    values = {"panel_kind": "prolific", "reward": 250, "retention_until": "2031-05-01", "contact": "a@example.org"}
    text = file_texts.changed(TEXT, values)
    config = parse(text)
    assert (config.panel.kind, config.panel.reward, config.texts.contact) == ("prolific", 250, "a@example.org")
    assert config.data.retention_until is not None and config.data.retention_until.isoformat() == "2031-05-01"
    assert parse(file_texts.changed(text, {"reward": None})).panel.reward is None


def test_conditions_are_added_changed_and_removed() -> None:
    text = file_texts.changed(TEXT, {"conditions": "framing: plain, warm\nlength: short, long, longer"})
    assert [(condition.factor, condition.levels) for condition in parse(text).conditions] == [
        ("framing", ["plain", "warm"]),
        ("length", ["short", "long", "longer"]),
    ]
    fewer = file_texts.changed(text, {"conditions": "length: short, long"})
    assert [(condition.factor, condition.levels) for condition in parse(fewer).conditions] == [
        ("length", ["short", "long"])
    ]
    assert parse(file_texts.changed(fewer, {"conditions": ""})).conditions == []


def test_a_text_in_two_languages_is_changed_in_the_first() -> None:
    path = Path(settings.BASE_DIR, "studies", "example-belief.toml")
    config = parse(file_texts.changed(path.read_text(encoding="utf-8"), {"title": "New words"}))
    assert config.title == "New words" and config.in_language("de").title == "Was erwarten Sie von Sprachmodellen?"


def test_a_broken_text_is_left_to_its_writer() -> None:
    for broken in ("slug = ", "stages = 5\nslug = 'a'\n"):
        with pytest.raises(file_texts.NotWritable):
            file_texts.changed(broken, {"stages": "5", "slug": "b"})


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


@pytest.mark.parametrize(
    ("stages", "sizes"),
    [
        ("20, 60, 60", [20, 60, 60]),
        (" 1;2\n3 ", [1, 2, 3]),
        ("", None),
        ("0", None),
        ("5, 0", None),
        ("-1", None),
        ("a", None),
    ],
)
def test_stages_are_numbers_from_1(stages: str, sizes: list[int] | None) -> None:
    if sizes is None:
        with pytest.raises(ValueError, match=r"write a number|invalid literal"):
            file_texts.sizes_of(stages)
    else:
        assert file_texts.sizes_of(stages) == sizes
