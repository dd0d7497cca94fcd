"""The builder: a study file as cards. What comes in goes out byte for byte, what is entered is written where it
belongs, and what is wrong is said beside its field."""

import contextlib
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.http import QueryDict
from django.test import Client

from survey.admin.builder_form import BuilderForm
from survey.models import Amendment, Respondent, Study
from survey.services.base.groups import ensure_researchers_group
from survey.services.studies import amending, file_texts
from survey.storage.paths import STUDIES_DIR
from survey.study_file import PanelConfig, StageConfig, StudyConfig, missing_texts, parse
from survey.study_file.editing import EditableFile
from survey.study_file.meanings import in_plain_words, meanings_of
from tests import cast
from tests.admin.conftest import client_of

ADD = "/admin/survey/study/add/"
FILES = sorted(path for path in STUDIES_DIR.rglob("*.toml") if "budget" not in path.name)
DEMO = (STUDIES_DIR / "demo.toml").read_text()


def entered(form: BuilderForm, **changes: str) -> dict[str, Any]:
    """What a browser sends of the page, with these boxes filled in otherwise."""
    sent: dict[str, Any] = {"built": "1"}
    for field in form.fields():
        for box in field.boxes:
            chosen = [value for value, _words, is_chosen in field.options if is_chosen] if field.kind == "many" else []
            if field.kind != "fixed":
                sent[box.name] = ["", *chosen] if field.kind == "many" else box.value.replace("\n", "\r\n")
    return {**sent, **changes}


def applied(text: str, changes: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    """The text with these boxes filled in otherwise, and by field what was refused."""
    form, sent = BuilderForm(EditableFile(text)), QueryDict(mutable=True)
    for name, value in {**entered(form), **changes}.items():
        sent.setlist(name, value if isinstance(value, list) else [value])
    refused = form.apply(sent)
    return form.file.text, {name: words for name, (words, _typed) in refused.items()}


def lines_changed(old: str, new: str) -> list[str]:
    return [mark + line for mark, line in file_texts.diff_lines(old, new, context=0) if mark in "+-"]


# The form


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_example_opens_and_comes_back_byte_for_byte(path: Path) -> None:
    text = path.read_text()
    assert applied(text, {}) == (text, {})


def test_every_key_of_every_example_has_a_field() -> None:
    for path in FILES:
        text = path.read_text()
        names = {field.name for field in BuilderForm(EditableFile(text)).fields()}
        for place in _keys(tomllib.loads(text), ""):
            is_known = any(place == name or place.startswith(f"{name}.") for name in names)
            assert is_known or re.search(r"^blocks\.\d+\.kind$|^texts\.language", place), f"{path.name}: {place}"


def _keys(value: Any, place: str) -> list[str]:
    if isinstance(value, dict):
        return [inner for key, entry in value.items() for inner in _keys(entry, f"{place}.{key}".lstrip("."))]
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return [inner for number, entry in enumerate(value, 1) for inner in _keys(entry, f"{place}.{number}")]
    return [place]


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        ({"title": "Another"}, ['-title = "What do you expect of a language model?"', '+title = "Another"']),
        ({"sitting.items": "12"}, ["-items = 15", "+items = 12"]),
        ({"sitting.attention_checks.2.shuffle": ""}, ["-shuffle = false         # a scale keeps its order"]),
        ({"texts.contact": "me@x.org"}, ['+contact = "me@x.org"']),
        ({"predictor.params.members": "3"}, ["-members = 2", "+members = 3"]),
        ({"instrument.options.own_answer": "true"}, ["+[instrument.options]", "+own_answer = true"]),
        ({"data.retention_until": "2040-01-31"}, ["-retention_until = 2099-12-31   # until when personal data is kept; "
          "without it no stage opens", "+retention_until = 2040-01-31   # until when personal data is kept; without it "
          "no stage opens"]),
        ({"sitting.attention_checks.1.options": "Sometimes\r\nNever\r\nOften"},
         ['-options = ["Sometimes", "Never", "Often", "Always"]', '+options = ["Sometimes", "Never", "Often"]']),
    ],
)  # fmt: skip
def test_what_is_entered_changes_its_own_lines_alone(changes: Mapping[str, str], lines: list[str]) -> None:
    text, refused = applied(DEMO, {"panel.kind": "open", **changes})
    assert not refused and lines_changed(DEMO, text) == lines


def test_money_is_entered_in_whole_units_and_written_in_cents() -> None:
    prolific = (STUDIES_DIR / "example-prolific.toml").read_text()
    text, refused = applied(prolific, {"panel.reward": "3,10"})
    rest = "            # cents; 12.50 USD an hour at the 12 minutes below"
    assert not refused and lines_changed(prolific, text) == [f"-reward = 250{rest}", f"+reward = 310{rest}"]


def test_a_language_is_added_with_a_box_beside_each_text() -> None:
    both, refused = applied(DEMO, {"texts.languages": ["", "en", "de"]})
    assert not refused and 'languages = ["en", "de"]' in both
    form = BuilderForm(EditableFile(both))
    texts = {name: value for name, value in entered(form).items() if name.endswith(".de") and not value}
    german = {
        name: "\r\n".join(["Ja.", "Nein.", "Doch."]) if "checks" in name and "options" in name else "Deutsch."
        for name in texts
    }
    german |= {name: "A\r\nB\r\nC\r\nD" for name in texts if "attention_checks" in name and "options" in name}
    german["sitting.attention_checks.1.text.de"] = "Bitte A wählen."
    text, refused = applied(both, german)
    assert not refused
    config = parse(text)
    assert config.languages == ("en", "de") and config.in_language("de").blocks[1].text == "Deutsch."
    assert text.startswith("# The demo") and "# a scale keeps its order" in text


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("sitting.items", "many", "Write a number"),
        ("sitting.items", "nan", "Write a number"),
        ("data.retention_until", "31.1.2040", "YEAR-MONTH-DAY"),
        ("panel.reward", "2.505", "at most two digits"),
        ("panel.reward", "Infinity", "at most two digits"),
        ("panel.reward", "much", "such as 2.50"),
    ],
)
def test_what_cannot_be_read_is_refused_in_words(name: str, value: str, words: str) -> None:
    prolific = (STUDIES_DIR / "example-prolific.toml").read_text()
    text, refused = applied(prolific, {name: value, "title": "Another"})
    assert list(refused) == [name] and words in refused[name]
    assert 'title = "Another"' in text


def test_options_of_two_languages_need_as_many_lines() -> None:
    belief = (STUDIES_DIR / "example-belief.toml").read_text()
    name = "sitting.attention_checks.1.options"
    text, refused = applied(belief, {f"{name}.de": "Manchmal\r\nNie"})
    assert text == belief and "same number of lines" in refused[name]


def test_options_may_wait_for_their_second_language_and_the_page_says_which_text_is_missing() -> None:
    both, _refused = applied(DEMO, {"texts.languages": ["", "en", "de"]})
    again, refused = applied(both, {})
    assert again == both and not refused, "a page that comes back as it went changes nothing and refuses nothing"
    form = BuilderForm(EditableFile(both))
    form.show_errors({}, [("title", 'has no text in "de": write a table such as { en = "...", de = "..." }')])
    assert next(field for field in form.fields() if field.name == "title").errors == ["There is no German text yet."]


def test_a_table_of_another_kind_loses_the_keys_that_it_no_longer_has() -> None:
    form = BuilderForm(EditableFile(DEMO))
    form.act("add:blocks:form")
    place = next(group.name for group in BuilderForm(form.file).whole.all_groups() if group.name.endswith(".fields.1"))
    text, refused = applied(form.file.text, {f"{place}.kind": "number"})
    assert not refused
    (field,) = next(block for block in parse(text).blocks if block.kind == "form").fields
    assert (field.kind, field.options) == ("number", [])
    text, _refused = applied(DEMO, {"stages.2.design.kind": "uniform"})
    assert parse(text).stages[1].design.epsilon is None and parse(text).stages[2].design.epsilon == 0.1


def test_what_each_level_changes_has_a_fold_with_a_box_for_each_level() -> None:
    form = BuilderForm(EditableFile(DEMO))
    form.act("add:conditions")
    groups = BuilderForm(form.file).whole.groups
    (card,) = next(group for group in groups if group.name == "conditions").groups
    assert {fold.place[-1] for fold in card.folds} >= {"texts", "options"}
    texts = next(fold for fold in card.folds if fold.place[-1] == "texts")
    assert [level.place[-1] for level in texts.open_groups] == ["one", "two"]
    assert "instructions" in {field.place[-1] for field in texts.open_groups[0].open_fields}


def test_what_is_added_is_accepted_by_the_checker() -> None:
    form = BuilderForm(EditableFile(DEMO))
    for order, words in [add for group in form.whole.all_groups() for add in group.adds]:
        form = BuilderForm(EditableFile(DEMO))
        place = form.act(order)
        made = BuilderForm(form.file)
        assert place in {group.name for group in made.whole.all_groups()}, words
        if place.startswith(("blocks", "conditions", "stages.4", "sitting", "flags.speeder", "texts", "predictor")):
            parse(form.file.text)


def test_entries_move_and_go_and_an_order_from_nowhere_changes_nothing() -> None:
    form = BuilderForm(EditableFile(DEMO))
    assert form.act("to:blocks.2:3") == "blocks.3"
    assert [block.kind for block in parse(form.file.text).blocks][:3] == ["consent", "checks", "instructions"]
    form = BuilderForm(form.file)
    form.act("up:blocks.3")
    assert form.file.text == DEMO
    form.act("remove:stages.3")
    assert len(parse(form.file.text).stages) == 2
    text = form.file.text
    for order in (
        "remove:slug",
        "up:texts",
        "add:blocks:virus",
        "add:slug",
        "remove:blocks.99",
        "to:blocks.1:x",
        "",
        "x",
    ):
        with contextlib.suppress(ValueError):
            BuilderForm(form.file).act(order)
        assert form.file.text == text, order


def test_words_beside_a_field_are_those_of_the_page_of_all_keys() -> None:
    words = in_plain_words(meanings_of(StageConfig)["stop"])
    assert words == "Ends the stage before all places are used, once an interval is narrow enough."
    assert in_plain_words(meanings_of(PanelConfig)["formats"]) == "generic: what the panel's ids look like."
    assert set(meanings_of(StudyConfig)) == set(StudyConfig.model_fields)


# The page


@pytest.fixture
def newcomer(db: None) -> Any:
    user = User.objects.create_user("newcomer", is_staff=True)
    user.groups.add(ensure_researchers_group())
    return user


@pytest.fixture
def client(newcomer: Any) -> Client:
    return client_of(newcomer)


@pytest.fixture
def study(newcomer: Any) -> Study:
    made = cast.study()
    cast.join(newcomer, made)
    return made


def words(page: Any) -> str:
    return re.sub(r"\s+", " ", page.content.decode())


def text_of(page: Any) -> str:
    return str(page.context["text"])


def send(client: Client, page: Any, address: str = ADD, changes: Mapping[str, Any] | None = None, **more: str) -> Any:
    """The page's form as a browser sends it."""
    hidden = {name: page.context[name] for name in ("text", "start", "seen", "read_sha256") if name in page.context}
    return client.post(address, {**entered(page.context["builder"]), **hidden, **(changes or {}), **more})


@pytest.mark.django_db
def test_a_short_name_is_made_of_the_title_in_the_first_language(client: Client) -> None:
    page = client.post(ADD, {"template": "answer-modes"})
    seen = send(client, page, changes={"title.en": "Mine", "title.de": "Meine"}, check="1")
    assert 'slug = "mine"' in text_of(seen)
    seen = send(client, page, changes={"title.en": "Was weiß ein Gerät?", "title.de": "Meine"}, check="1")
    assert 'slug = "was-weiss-ein-gerat"' in text_of(seen)


@pytest.mark.django_db
@pytest.mark.slow
def test_a_template_becomes_a_study_without_its_file_being_seen(client: Client) -> None:
    page = client.post(ADD, {"template": "belief"})
    assert "What people go through" in words(page) and "Make the study" in words(page)
    wrong = send(client, page, changes={"sitting.items": "many", "title": "<b>Mine</b>"}, create="1")
    assert wrong.status_code == 200 and not Study.objects.exists()
    said = words(wrong)
    assert "Write a number, such as 12." in said and 'value="many"' in said and "<b>Mine" not in said
    unmoved = send(client, wrong, changes={"sitting.items": "many"}, do="down:blocks.2")
    assert text_of(unmoved) == text_of(wrong) and "Write a number, such as 12." in words(unmoved)
    refused = send(client, wrong, changes={"sitting.items": "500"}, create="1")
    field = next(one for one in refused.context["builder"].fields() if one.name == "sitting.items")
    assert field.errors and not Study.objects.exists()
    seen = send(client, refused, changes={"sitting.items": "12", "slug": "mine"}, check="1")
    assert ("+", 'title = "<b>Mine</b>"') in seen.context["diff"]
    assert 'slug = "bmineb"' in text_of(wrong), "until somebody writes one, it is made of the title"
    made = send(client, seen, create="1")
    study = Study.objects.get()
    assert made.url == f"/admin/survey/study/{study.pk}/change/"
    assert (study.slug, study.config.sitting.items) == ("mine", 12)


@pytest.mark.django_db
@pytest.mark.slow
def test_a_second_language_brings_the_texts_that_a_template_has_in_it(client: Client) -> None:
    page = client.post(ADD, {"template": "belief"})
    assert "German (its texts are there)" in words(page)
    changes = {"texts.languages": ["", "en", "de"], "title": "My own question"}
    seen = send(client, page, changes=changes)
    assert "Was Sie tun werden" in text_of(seen) and "There is no German text yet." in words(seen)
    config = parse(text_of(seen))
    assert (
        missing_texts(config) == [(("title",), "de")]
        and config.in_language("de").blocks[0].title == "Bevor Sie anfangen"
    )
    own = send(client, page, changes={"title": "My own question"})
    assert "you write the others" in words(own) and "German (of 31 texts 30 are there" in words(own)


@pytest.mark.django_db
@pytest.mark.slow
def test_people_s_pages_are_shown_as_they_will_be_and_nothing_is_stored(client: Client) -> None:
    page = client.post(ADD, {"template": "answer-modes"})
    title = {"blocks.2.title.de": "<i>Titel</i>"}
    shown = [
        words(send(client, page, changes=title, look=place, language="de")) for place in ("first", "1", "3", "items")
    ]
    assert "Was erwarten Sie von Sprachmodellen?" in shown[0]
    assert "&lt;i&gt;Titel&lt;/i&gt;" in shown[1] and "10 Fragen" in shown[1]
    assert "Zwei Fragen zu dieser Anleitung" in shown[2] or "Minuten" in shown[2]
    assert "data-part" in shown[3] and "<script" not in "".join(shown)
    assert not Study.objects.exists() and not Respondent.objects.exists()
    humans = client.post(ADD, {"template": "humans"})
    for level, is_said in (("model", False), ("ai_or_person", True), ("strange", False)):
        shown_page = words(send(client, humans, look="1", **{"level.answerer": level}))
        assert ("The answers in this study come from AI systems" in shown_page) is is_said
    answer = send(client, page, look="1")
    assert "sandbox" in answer.headers["Content-Security-Policy"]
    broken = send(client, page, changes={"blocks.2.text.en": "", "blocks.2.text.de": ""}, look="1")
    assert broken.status_code == 200


@pytest.mark.django_db
@pytest.mark.slow
def test_parts_of_the_page_follow_what_is_typed(client: Client) -> None:
    page = client.post(ADD, {"template": "belief"})
    form = {
        **entered(page.context["builder"]),
        "text": text_of(page),
        "start": text_of(page),
        "stages.1.sittings": "40",
    }
    part = client.post(ADD, form, headers={"X-Hunch-Part": "1"})
    assert "<html" not in words(part) and "600" in words(part) and 'data-live="diff"' in words(part)


@pytest.mark.django_db
@pytest.mark.slow
def test_a_studys_file_is_changed_after_its_difference_was_seen(client: Client, study: Study) -> None:
    address = f"/admin/survey/study/{study.pk}/build/"
    page = client.get(address)
    assert "Open the builder" in words(client.get(f"/admin/survey/study/{study.pk}/change/"))
    assert "Change the file" not in words(page)
    early = send(client, page, address, {"title": "Another"}, amend="1")
    assert "look at the difference again" in words(early) and not Amendment.objects.exists()
    assert ("+", 'title = "Another"') in early.context["diff"] and "Change the file" in words(early)
    assert send(client, early, address, amend="1").status_code == 302
    assert Study.objects.get().title == "Another" and Amendment.objects.get().reason.startswith("edited before")


@pytest.mark.django_db
@pytest.mark.slow
def test_the_second_of_two_people_is_told_and_overwrites_nothing(client: Client, study: Study, superuser: Any) -> None:
    address = f"/admin/survey/study/{study.pk}/build/"
    other = client_of(superuser)
    mine = client.get(address)
    theirs = send(other, other.get(address), address, {"title": "Theirs"}, check="1")
    assert send(other, theirs, address, amend="1", reason="better").status_code == 302
    looked = send(client, mine, address, {"texts.minutes": "4"}, check="1")
    late = send(client, mine, address, {"texts.minutes": "4"}, amend="1", seen=looked.context["seen"])
    assert late.status_code == 200 and Study.objects.get().title == "Theirs"
    said = words(late)
    assert "Somebody else has changed the file" in said and "better" in said and "minutes = 4" in text_of(late)
    going = {change.key: change.new for change in late.context["proposal"].changes}
    assert set(going) == {"title", "texts.minutes"} and going["title"] != "Theirs", "what would go is shown too"


@pytest.mark.django_db
@pytest.mark.slow
def test_who_may_not_read_the_new_file_is_shown_nothing_of_it(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    """It became blind between the look at the rights and the change."""
    editor = User.objects.create_user("editor", is_staff=True)
    editor.groups.add(ensure_researchers_group())
    cast.join(editor, study, "editor")
    address = f"/admin/survey/study/{study.pk}/build/"
    client = client_of(editor)
    looked = send(client, client.get(address), address, {"texts.minutes": "4"}, check="1")
    assert looked.status_code == 200

    def changed_meanwhile(*_study: Study, **_file: str) -> None:
        Study.objects.update(is_blind=True, source_sha256="f" * 64, source_text="secret")
        raise amending.FileChanged("Somebody else has changed the file.")

    monkeypatch.setattr(amending, "amend", changed_meanwhile)
    late = send(client, looked, address, amend="1", seen=looked.context["seen"])
    assert late.status_code == 403 and "secret" not in late.content.decode()


@pytest.mark.django_db
@pytest.mark.slow
def test_a_locked_file_says_beside_the_field_what_may_not_change(superuser: Any) -> None:
    study, client = cast.open_study(), client_of(superuser)
    address = f"/admin/survey/study/{study.pk}/build/"
    page = send(client, client.get(address), address, {"sitting.items": "2"}, check="1")
    field = next(one for one in page.context["builder"].fields() if one.name == "sitting.items")
    assert any("was drawn by it" in error for error in field.errors) and "Change the file" not in words(page)
    named = send(client, client.get(address), address, {"title": "Another"}, check="1")
    unreasoned = send(client, named, address, amend="1", reason="")
    assert "This field is required" in words(unreasoned) and not Amendment.objects.exists()


@pytest.mark.django_db
@pytest.mark.slow
def test_the_file_stays_one_click_away_and_one_that_cannot_be_read_is_shown_as_it_is(
    client: Client, study: Study
) -> None:
    page = client.post(ADD, {"template": "belief"})
    text = send(client, page, changes={"title": "Another"}, file="1")
    assert 'title = "Another"' in str(text.context["form"]["text"].value()) and "Open the builder" in words(text)
    back = client.post(ADD, {"text": text.context["form"]["text"].value(), "builder": "1"})
    assert "Another" in words(back) and "What people go through" in words(back)
    assert "data-study-file" in words(client.post(ADD, {"text": "slug = ", "builder": "1"}))
    address = f"/admin/survey/study/{study.pk}/build/"
    amended = send(client, client.get(address), address, {"title": "Another"}, file="1")
    assert "Another" in str(amended.context["form"]["text"].value()) and "Amend" in words(amended)
    strange = client.post(ADD, {"text": DEMO + '\n[strange]\nkey = "kept"\n[[odd]]\nx = 1\n', "builder": "1"})
    assert strange.status_code == 200 and "This is changed in the file." in words(strange)
    assert send(client, strange, check="1").context["text"] == strange.context["text"]
