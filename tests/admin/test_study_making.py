"""A study in the browser: from a template, a file, a form, another study; edited by two people; archived; outdated."""

import copy
import hashlib
import html
import re
import tomllib
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from survey.exceptions import StateRefused
from survey.models import Amendment, AuditEntry, Bank, Study, StudyMembership
from survey.services.base.auditing import actor_of
from survey.services.base.groups import ensure_researchers_group
from survey.services.results.export import files
from survey.services.stages import lifecycle
from survey.services.studies import amending, file_texts
from survey.study_file.kept import forget_files
from tests import cast
from tests.admin.conftest import client_of
from tests.survey.instruments.test_real_evidence import answered

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
ADD = "/admin/survey/study/add/"
CHECK = "/admin/survey/study/check-file/"


@pytest.fixture
def newcomer(db: None) -> Any:
    user = User.objects.create_user("newcomer", is_staff=True)
    user.groups.add(ensure_researchers_group())
    return user


@pytest.fixture
def client(newcomer: Any) -> Client:
    return client_of(newcomer)


def text_of(page: Any) -> str:
    return str(page.context.get("text") or page.context["form"]["text"].value())


def words(page: Any) -> str:
    return re.sub(r"\s+", " ", page.content.decode())


def test_a_newcomer_makes_a_study_from_a_template_without_a_shell(client: Client, newcomer: Any) -> None:
    assert "Belief update, adaptive" in words(client.get(ADD))
    page = client.post(ADD, {"template": "belief"})
    text = text_of(page)
    assert 'slug = "demo"' in text and "# The demo" in text and Bank.objects.get().name == "starter"
    assert "Make the study" in words(page) and not Study.objects.exists()
    made = client.post(ADD, {"text": text.replace('slug = "demo"', 'slug = "mine"'), "create": "1"})
    study = Study.objects.get()
    assert made.url == f"/admin/survey/study/{study.pk}/change/" and study.slug == "mine"
    member = StudyMembership.objects.get()
    assert (member.user, member.role) == (newcomer, "owner")
    assert client.get(made.url).status_code == 200
    entries = AuditEntry.objects.exclude(action="log_in").order_by("pk")
    assert [(entry.action, entry.actor, entry.via) for entry in entries] == [
        (action, actor_of(newcomer), "admin") for action in ("import_questions", "create_study")
    ]


@pytest.mark.parametrize(
    ("old", "new", "places"), [(15, 6, [2, 4]), (15, 1, [1, 1]), (15, 10, [5, 10]), (15, 30, [5, 10])]
)
def test_attention_checks_move_with_the_items(old: int, new: int, places: list[int]) -> None:
    checks = [
        {"name": name, "after_item": place, "kind": "nonsense", "text": "?", "options": ["a", "b"]}
        for name, place in (("early", 5), ("late", 10))
    ]
    text = cast.study_text(sitting={"items": old, "attention_checks": checks})
    changed = tomllib.loads(file_texts.changed(text, {"sitting.items": new}))
    assert [check["after_item"] for check in changed["sitting"]["attention_checks"]] == places
    assert file_texts.changed(text, {"title": "Another"}).count("after_item = 10") == 1


def test_a_file_is_sent_and_its_problems_stand_at_their_lines(client: Client) -> None:
    cast.small_bank(20)
    file = cast.study_text(bank="small", retention=1).encode()
    page = client.post(ADD, {"file": SimpleUploadedFile("my.toml", b"\xef\xbb\xbf" + file), "send": "1"})
    assert text_of(page).startswith("slug") and "unknown key" in words(page) and 'data-line="' in words(page)
    refused = client.post(ADD, {"text": text_of(page), "create": "1"})
    assert refused.status_code == 200 and "Problem" in words(refused) and not Study.objects.exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\xff\xfe\x00", "is not UTF-16"),
        (b"a\xffb", "byte 2 of this line is not UTF-8"),
        (b"a\0b", "holds a NUL character: remove it"),
        (b"x" * 300_000, "a study file has at most 262,144"),
        (b"", "Choose a file that is not empty"),
    ],
)
def test_what_is_no_study_file_is_refused_with_a_message(client: Client, content: bytes, said: str) -> None:
    page = client.post(ADD, {"file": SimpleUploadedFile("my.toml", content), "send": "1"})
    assert page.status_code == 200 and said in words(page)


def test_the_checker_answers_while_somebody_types(client: Client) -> None:
    response = client.post(CHECK, {"text": 'slug = "My Study"\nretention = 01.01.2030\n'})
    assert response.status_code == 200 and "<html" not in response.content.decode()
    assert 'data-line="2"' in words(response) and "2030-01-01" in words(response)
    assert "Nothing was checked yet" in words(client.post(CHECK, {}))
    assert client.get(CHECK).status_code == 405


def test_banks_and_studies_of_others_are_not_there_for_the_checker(client: Client) -> None:
    cast.study()
    text = words(client.post(CHECK, {"text": cast.study_text(slug="mine")}))
    assert "there is no bank &#x27;cast&#x27; among those that you see" in text
    theirs = Study.objects.get()
    assert client.post(CHECK, {"text": "x", "study": theirs.pk}).status_code == 404
    assert client.post(f"/admin/survey/study/{theirs.pk}/duplicate/").status_code == 404
    assert client.get(f"/admin/survey/study/{theirs.pk}/archive/").status_code == 404
    made = client.post(ADD, {"text": cast.study_text(slug="mine"), "create": "1"})
    assert made.status_code == 200 and Study.objects.count() == 1


def test_who_may_not_make_studies_is_refused(onlooker: Any) -> None:
    client = client_of(onlooker)
    assert client.get(ADD).status_code == 403 and client.post(ADD, {"template": "belief"}).status_code == 403
    assert client.post(CHECK, {"text": "x"}).status_code == 403


# Editing


@pytest.fixture
def study(newcomer: Any) -> Study:
    made = cast.study()
    cast.join(newcomer, made)
    return made


def edit(study: Study, client: Client, text: str, read: str, **more: str) -> Any:
    return client.post(f"/admin/survey/study/{study.pk}/amend/", {"text": text, "read_sha256": read, **more})


@pytest.mark.thorough
def test_an_owner_edits_an_unlocked_file_and_sees_the_lines_first(client: Client, study: Study) -> None:
    page = client.get(f"/admin/survey/study/{study.pk}/amend/")
    assert text_of(page) == study.source_text
    new = study.source_text.replace("A study of the cast", "Another title") + "# a remark\n"
    response = edit(study, client, new, study.source_sha256, show="1")
    assert "hunch-diff-new" in words(response) and "Another title" in words(response) and not Amendment.objects.exists()
    assert edit(study, client, new, study.source_sha256, amend="1").status_code == 302
    made = Amendment.objects.get()
    assert made.reason == "edited before the first main stage was opened"
    assert Study.objects.get().source_text == new


def test_a_file_that_is_locked_meanwhile_is_changed_by_who_may_amend_alone(
    client: Client, study: Study, superuser: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    def is_too_late(*_of: Any, only_unlocked: bool, **_more: Any) -> Any:
        asked.append(only_unlocked)
        raise amending.FileLocked("opened meanwhile")

    monkeypatch.setattr(amending, "amend", is_too_late)
    for visitor in (client, client_of(superuser)):
        edit(study, visitor, study.source_text + "# a remark\n", study.source_sha256, amend="1", reason="r")
    assert asked == [True, False]


def test_the_second_of_two_editors_gets_a_diff_and_loses_nothing(client: Client, study: Study, superuser: Any) -> None:
    read = study.source_sha256
    first = study.source_text.replace("A study of the cast", "The first title")
    second = study.source_text.replace("minutes = 3", "minutes = 4")
    edit(study, client_of(superuser), first, read, amend="1", reason="a better title")
    answer = edit(study, client, second, read, amend="1")
    assert answer.status_code == 200 and Study.objects.get().source_text == first
    said = words(answer)
    assert "Somebody else has changed the file" in said and "a better title" in said and "The first title" in said
    assert text_of(answer) == second, "what was typed is still there"
    assert answer.context["form"]["read_sha256"].value() == hashlib.sha256(first.encode()).hexdigest()
    merged = first.replace("minutes = 3", "minutes = 4")
    done = edit(study, client, merged, answer.context["form"]["read_sha256"].value(), amend="1")
    assert done.status_code == 302
    assert Study.objects.get().source_text == merged


def test_a_locked_file_needs_the_right_to_amend_and_a_reason(client: Client, newcomer: Any, superuser: Any) -> None:
    study = cast.open_study()
    cast.join(newcomer, study)
    assert client.get(f"/admin/survey/study/{study.pk}/amend/").status_code == 403
    new = study.source_text.replace("A study of the cast", "Another title")
    refused = edit(study, client_of(superuser), new, study.source_sha256, amend="1")
    assert refused.status_code == 200 and not Amendment.objects.exists()


def test_a_copy_of_a_study_begins_with_its_text(client: Client, study: Study) -> None:
    page = client.post(f"/admin/survey/study/{study.pk}/duplicate/")
    text = text_of(page)
    assert 'slug = "cast-2"' in text and "seed = 7\n" not in text and Study.objects.count() == 1
    client.post(ADD, {"text": text, "create": "1"})
    assert Study.objects.filter(slug="cast-2").exists()


def test_an_archived_study_leaves_the_home_and_stays_readable(client: Client, study: Study) -> None:
    address = f"/admin/survey/study/{study.pk}/"
    assert "Archive" in words(client.get(f"{address}change/")) and client.get(f"{address}archive/").status_code == 200
    client.post(f"{address}archive/")
    assert "A study of the cast" not in words(client.get("/admin/"))
    assert "A study of the cast" in words(client.get("/admin/?archived"))
    assert "Archived since" in words(client.get(f"{address}change/"))
    assert AuditEntry.objects.filter(action="archive_study", study="cast").exists()
    client.post(f"{address}archive/")
    assert "A study of the cast" in words(client.get("/admin/"))


# A file that a later release does not accept


def test_a_study_whose_file_no_longer_validates_is_read_and_exported_and_opens_no_stage(
    as_superuser: Client, superuser: Any
) -> None:
    study = cast.study(texts={**cast.BASE["texts"], "languages": ["en"]})
    stage = study.stages.get(index=1)
    lifecycle.open_stage(stage)
    before = "".join(files.answers_csv(study))
    stored = copy.deepcopy(study.stored_config)
    stored["stages"][1]["sittings"] = 10**7
    stored["gone_key"] = {"a": 1}
    stored["blocks"] = [block for block in stored["blocks"] if block["kind"] != "debriefing"]
    stored["flags"]["attention"] = {"failed": 3}
    stored["instrument"]["options"]["threshold"] = 500
    Study.objects.filter(pk=study.pk).update(stored_config=stored)
    forget_files()
    page = as_superuser.get(f"/admin/survey/study/{study.pk}/change/")
    said = words(page)
    assert page.status_code == 200 and "does not accept the study file any more" in said
    assert "stages.2.sittings: must be at most 100000" in said and "gone_key" in said
    assert "instrument.options.threshold: must be at most 99" in said
    read = Study.objects.get(pk=study.pk)
    assert read.config.stages[1].sittings == 10**7 and read.config.texts.welcome == "Welcome to the cast."
    assert "".join(files.answers_csv(read)) == before
    assert as_superuser.get("/admin/").status_code == 200
    assert as_superuser.post(f"/admin/survey/study/{study.pk}/export/answers.csv").status_code == 200
    assert as_superuser.get(f"/admin/survey/study/{study.pk}/amend/").status_code == 200
    lifecycle.pause_stage(read.stages.get(index=1))
    with pytest.raises(StateRefused, match="does not accept the file of cast any more"):
        lifecycle.open_stage(Study.objects.get(pk=study.pk).stages.get(index=1))
    # What people have met is not amended. The rest is, and then the file is sound again.
    stored |= {"blocks": study.stored_config["blocks"], "instrument": study.stored_config["instrument"]}
    Study.objects.filter(pk=study.pk).update(stored_config=stored)
    forget_files()
    sound = cast.study_text(texts={**cast.BASE["texts"], "languages": ["en"]}, title="Corrected")
    edit(read, as_superuser, sound, read.source_sha256, amend="1", reason="for the new release")
    assert Study.objects.get(pk=study.pk).config.problems == ()


# Every template


def bank_file(questions: int = 300) -> SimpleUploadedFile:
    """What a researcher would upload for a template that names a bank of their own."""
    rows = [f"q{n},task {n % 30},How much is {n} plus {n % 7}?,{n + n % 7}" for n in range(questions)]
    return SimpleUploadedFile("questions.csv", "\n".join(["id,source,question,answer", *rows]).encode())


def upload_bank(client: Client, name: str) -> None:
    page = client.post("/admin/survey/bank/add/", {"file": bank_file()}, follow=True)
    fields = {field.html_name: field.value() or "" for field in page.context["form"]}
    address = page.redirect_chain[-1][0]
    stored = client.post(address, {**fields, "bank": name, "seen": page.context["proposal"].seen, "store": "1"})
    assert stored.status_code == 302 and Bank.objects.filter(name=name).exists()


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.any_database
def test_every_template_leads_to_an_open_stage_by_pages_alone(newcomer: Any) -> None:
    newcomer.user_permissions.add(*Permission.objects.filter(codename__in=["recruit", "make_links"]))
    client = client_of(newcomer)
    says = {"lab": "make links and hand them out", "prolific": "draft a posting", "paper": "draft a posting"}
    for starting_file in file_texts.STARTING_FILES:
        page = client.post(ADD, {"template": starting_file.name})
        text = text_of(page)
        bank = tomllib.loads(text)["bank"]
        if not Bank.objects.filter(name=bank).exists():
            assert f"there is no bank &#x27;{bank}&#x27;" in words(page), starting_file.name
            upload_bank(client, bank)
        if starting_file.name == "aid":
            page = client.post(ADD, {"text": text, "create": "1"})
            assert "no language model is called &#x27;llama3&#x27;" in words(page)
            answered(Bank.objects.get(name=bank), name="llama3")
        # The page above has checked the file as it is. The paper's first stage has 8,805 slots, and 300 show as much.
        text = re.sub(r"(?m)^sittings = 587$", "sittings = 20", text)
        made = client.post(ADD, {"text": text, "create": "1"})
        assert made.status_code == 302, f"{starting_file.name}: {made.context['check'].findings}"
        study = Study.objects.latest("pk")
        opened = client.post(f"/admin/survey/study/{study.pk}/stages/1/open/", follow=True)
        said = [str(message) for message in opened.context["messages"]]
        assert study.stages.get(index=1).state == "open", f"{starting_file.name}: {said}"
        assert says.get(starting_file.name, "give people the study's address") in html.unescape(words(opened))
        entrance = Client().get(study.get_absolute_url())
        assert entrance.status_code in (200, 403), (
            starting_file.name
        )  # Links and panels let nobody in without their own.
