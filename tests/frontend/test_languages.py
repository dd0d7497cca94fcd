"""A study in two languages: the choice on the first page, what is shown, and what is stored."""

from typing import Any

import pytest
from django.test import Client

from survey.exceptions import FileErrors
from survey.models import Bank, Consent, FormAnswer, Respondent, Sitting, Study
from survey.services.base.hashing import digest
from survey.services.studies.creating import create_study
from survey.study_file import StudyConfig, StudyFileError, missing_texts, parse
from tests import cast
from tests.frontend.pages import Page, get, read
from tests.survey.printed_screens.test_screens import TWO_LANGUAGES, both

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]


@pytest.fixture
def study() -> Study:
    return cast.open_study(**TWO_LANGUAGES)


def choose(client: Client, code: str) -> Page:
    return get(client, f"/s/cast/?language={code}")


def begin(client: Client) -> Page:
    return read(client.post("/s/cast/consent", {"consent": "yes"}, follow=True).content.decode())


def send(client: Client, page: Page, **fields: Any) -> Page:
    return read(client.post("/s/cast/sitting", {**page.hidden, **fields}, follow=True).content.decode())


def to_the_form(client: Client, right: str) -> Page:
    page = send(client, begin(client))
    page = send(client, page, first_check=page.value_of(right))
    while page.main["data-kind"] == "item":
        fields = {field["name"]: "50" for field in page.inputs if field["type"] in ("text", "number")}
        radios = {field["name"]: field["value"] for field in page.inputs if field["type"] == "radio"}
        page = send(client, page, **{**radios, **fields, "direction": "same"})
    return page


@pytest.mark.parametrize(
    ("asked_for", "language"),
    [
        ("", "en"),
        ("fr-FR, fr;q=0.9", "en"),
        ("de", "de"),
        ("de-AT,de;q=0.9,en;q=0.8", "de"),
        ("fr,en;q=0.5,de;q=0.7", "de"),
        ("de;q=0,en", "en"),
        ("x" * 5000, "en"),
        ("*", "en"),
    ],
)
def test_the_browsers_language_is_taken_until_somebody_chooses(
    client: Client, study: Study, asked_for: str, language: str
) -> None:
    headers = {"Accept-Language": asked_for}
    for address in ("/s/cast/", "/s/cast/consent"):
        assert client.get(address, headers=headers)["Content-Language"] == language
    other = "en" if language == "de" else "de"
    client.get("/s/cast/", {"language": other})
    assert client.get("/s/cast/", headers=headers)["Content-Language"] == other
    client.post("/s/cast/consent", {"consent": "yes"}, headers=headers)
    assert Sitting.objects.get().language == Consent.objects.get().language == other


def test_the_first_page_is_in_the_files_first_language_and_offers_the_others(client: Client, study: Study) -> None:
    body = client.get("/s/cast/").content.decode()
    assert "Welcome, all." in body and "A study in two" in body and '<html lang="en">' in body
    assert '<a href="?language=en" lang="en" hreflang="en" aria-current="true">English</a>' in body
    assert '<a href="?language=de" lang="de" hreflang="de">Deutsch</a>' in body


def test_a_choice_holds_for_all_pages_and_writes_nothing_to_the_database(client: Client, study: Study) -> None:
    response = client.get("/s/cast/?language=de")
    assert response.status_code == 302 and response["Location"] == "/s/cast/"
    cookie = response.cookies["hunch_language"]
    assert (cookie.value, cookie["path"], cookie["httponly"]) == ("de", "/s/cast/", True)
    page = client.get("/s/cast/")
    assert "Willkommen, alle." in page.content.decode() and page["Content-Language"] == "de"
    consent = client.get("/s/cast/consent").content.decode()
    assert "Sind Sie einverstanden?" in consent and "Ich willige" in consent
    assert "Eine Studie in zweien" in consent
    assert not Respondent.objects.exists()


def test_a_language_that_the_study_is_not_in_is_ignored(client: Client, study: Study) -> None:
    for code in ("fr", "", "de-AT", "../x"):
        response = client.get("/s/cast/", {"language": code})
        assert response.status_code == 200 and "hunch_language" not in response.cookies
    client.cookies["hunch_language"] = "fr"
    assert "Welcome, all." in client.get("/s/cast/").content.decode()


def test_a_study_in_one_language_offers_no_choice(client: Client) -> None:
    cast.open_study(texts={"language": "de", "welcome": "Willkommen."})
    body = client.get("/s/cast/").content.decode()
    assert "language=" not in body and '<html lang="de">' in body


def test_a_choice_in_the_panels_own_link_is_kept_with_its_ids(client: Client) -> None:
    cast.open_study(**{**TWO_LANGUAGES, "panel": cast.PROLIFIC})
    ids = {"PROLIFIC_PID": "p" * 24, "STUDY_ID": "s" * 24, "SESSION_ID": "x" * 24}
    body = client.get("/s/cast/", {**ids, "language": "de"}, follow=True).content.decode()
    assert "Willkommen, alle." in body


def test_a_sitting_and_its_consent_keep_the_language_they_began_in(client: Client, study: Study) -> None:
    choose(client, "de")
    page = begin(client)
    assert "Lesen Sie dies." in page.text or "Liebe Leserin" in page.text
    sitting, consent = Sitting.objects.get(), Consent.objects.get()
    assert (sitting.language, consent.language) == ("de", "de")
    assert consent.text_sha256 == digest("Sind Sie einverstanden?") != digest("Do you agree?")
    client.get("/s/cast/?language=en")
    again = client.get("/s/cast/sitting")
    assert again["Content-Language"] == "de" and '<html lang="de">' in again.content.decode()
    back = client.get("/s/cast/").content.decode()
    assert "Willkommen, alle." in back and "?language=" not in back


@pytest.mark.slow
def test_what_is_chosen_is_stored_in_the_words_of_the_first_language(study: Study) -> None:
    for code, right, answer_text in (("de", "richtige", "nie"), ("en", "right one", "never")):
        client = Client()
        choose(client, code)
        page = to_the_form(client, right)
        assert page.main["data-kind"] == "form", page.text
        page = send(client, page, age="30", use=page.value_of(answer_text))
        assert page.main["data-kind"] == "debriefing", page.text
    assert [answer.answers for answer in FormAnswer.objects.order_by("pk")] == [{"age": 30, "use": "never"}] * 2


def test_the_api_gives_texts_in_the_language_that_is_asked_for(client: Client, study: Study) -> None:
    info = client.get("/api/v1/studies/cast/").json()
    assert (info["title"], info["language"], info["languages"]) == ("A study in two", "en", ["en", "de"])
    info = client.get("/api/v1/studies/cast/?language=de").json()
    assert (info["title"], info["welcome"], info["language"]) == ("Eine Studie in zweien", "Willkommen, alle.", "de")
    assert info["consent"]["text"] == "Sind Sie einverstanden?"
    begun = client.post(
        "/api/v1/studies/cast/sittings/", {"consent": True, "language": "de"}, content_type="application/json"
    )
    assert begun.status_code == 201, begun.content
    assert begun.json()["step"]["text"] in ("Lesen Sie dies.", "Liebe Leserin, lieber Leser.")
    assert Consent.objects.get().text_sha256 == digest("Sind Sie einverstanden?")
    for answer in (
        client.get("/api/v1/studies/cast/?language=fr"),
        client.post("/api/v1/studies/cast/sittings/", {"consent": True, "language": "fr"}, "application/json"),
    ):
        assert answer.status_code == 422 and answer.json()["error"]["fields"]["language"] == [
            "This study is in: en, de."
        ]


# The file


def in_two(**changes: Any) -> str:
    return cast.study_text(**{**TWO_LANGUAGES, **changes})


def test_a_file_knows_its_texts_in_every_language() -> None:
    config = parse(in_two())
    assert config.languages == ("en", "de") and config.title == "A study in two"
    german = config.in_language("de")
    assert (german.title, german.blocks[2].checks[0].options) == ("Eine Studie in zweien", ["richtige", "falsche"])
    assert german.conditions[1].texts == {"warm": {"instructions": "Liebe Leserin, lieber Leser."}}
    assert german.languages == ("de",) and german.in_language("en") is german
    assert config.in_language("fr") == config.in_language("en")
    assert type(german.title) is str
    stored = StudyConfig.model_validate(config.model_dump(mode="json"))
    assert stored.in_language("de") == german and stored.title == config.title


def test_a_missing_translation_is_listed_and_refused_at_its_line() -> None:
    Bank.objects.filter(name="cast").exists() or cast.bank()
    blocks = [{"kind": "consent", "text": "Do you agree?", "version": "2"}, *TWO_LANGUAGES["blocks"][1:]]
    text = in_two(blocks=blocks, texts={"languages": ["en", "de"], "contact": "a@example.org"})
    assert missing_texts(parse(text)) == [(("blocks", 0, "text"), "de"), (("texts", "welcome"), "de")]
    with pytest.raises(FileErrors) as refused:
        create_study(text=text, source_name="cast.toml")
    line = text.splitlines().index('text = "Do you agree?"') + 1
    fix = 'has no text in "de": write a table such as { en = "...", de = "..." }'
    assert f"cast.toml:{line}: blocks.1.text: {fix}" in refused.value.message
    assert "texts.welcome" in refused.value.message
    assert not Study.objects.exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"title": {"en": "A", "fr": "B"}}, "title: fr is not among the file's languages (en, de)"),
        ({"title": {"en": "A", "de": 5}}, "title: de: Input should be a valid string"),
        ({"texts": {"languages": ["en", "en"]}}, "texts: languages: one is named twice"),
        ({"texts": {"languages": ["en", "de"], "language": "de"}}, 'texts: languages begin with "en": remove language'),
        ({"texts": {"languages": ["en", "fr"]}}, "texts.languages.2: choose one of en, de"),
    ],
)
def test_it_refuses_texts_and_languages_that_do_not_fit(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=r"^[0-9]+: ") as refused:
        parse(in_two(**changes))
    assert message in str(refused.value)


def test_what_must_differ_must_differ_in_every_language() -> None:
    check = {"name": "one", "question": both("Which?", "Welche?"), "options": [both("a", "x"), both("b", "x")]}
    blocks = [*TWO_LANGUAGES["blocks"][:2], {"kind": "checks", "checks": [check]}, *TWO_LANGUAGES["blocks"][3:]]
    with pytest.raises(ValueError, match=r"blocks.3.checks.1.options: in de: two options are the same"):
        parse(in_two(blocks=blocks))


@pytest.mark.slow
def test_questions_in_another_language_are_marked_as_such_and_the_example_is_not(client: Client) -> None:
    practice = {
        "kind": "practice",
        "example": {"target": "Eine Frage?", "evidence": "Noch eine?", "outcome": "correct"},
    }
    consent, end = ({"kind": kind, "text": "Ein Text."} for kind in ("consent", "end"))
    texts = {"language": "de", "welcome": "Willkommen.", "bank_language": "en"}
    cast.open_study(texts=texts, blocks=[consent, practice, {"kind": "items"}, end])
    client.get("/s/cast/")
    page = begin(client)
    assert '<div class="question" data-part="target">' in client.get("/s/cast/sitting").content.decode()
    while page.main["data-kind"] == "practice":
        page = send(client, page, value="50", direction="same")
    assert '<div class="question" data-part="target" lang="en">' in client.get("/s/cast/sitting").content.decode()
    send(client, page, value="50")
    body = client.get("/s/cast/sitting").content.decode()
    assert body.count('<div class="question" data-part="') == body.count(' lang="en">') == 2
    assert client.get("/api/v1/studies/cast/").json()["bank_language"] == "en"


@pytest.mark.slow
def test_texts_from_right_to_left_are_marked_and_the_pages_own_words_stand_from_left_to_right(client: Client) -> None:
    blocks = [
        {"kind": "consent", "title": "قبل أن تبدأ", "text": "نص.\n\n- سطر"},
        {"kind": "instructions", "text": "نص."},
        {
            "kind": "checks",
            "title": "سؤال",
            "checks": [{"name": "a", "question": "سؤال؟", "options": ["نعم", "لا"], "hint": "نعم."}],
        },
        {"kind": "items"},
        {"kind": "end", "text": "شكرا."},
    ]
    texts = {"text_language": "ar-EG", "welcome": "مرحبا.", "contact": "اكتب إلينا."}
    cast.open_study(title="دراسة", texts=texts, blocks=blocks)
    marked = ' lang="ar-EG" dir="rtl">'
    body = client.get("/s/cast/").content.decode()
    assert f"<div{marked}\n<h1>دراسة</h1>\n<p>مرحبا.</p>" in body and '<html lang="en">' in body
    assert f"Questions or problems? <bdi{marked}اكتب إلينا.</bdi>" in body
    assert f"<h1{marked}قبل أن تبدأ</h1>" in client.get("/s/cast/consent").content.decode()
    page = begin(client)
    body = client.get("/s/cast/sitting").content.decode()
    assert "<h1>Instructions</h1>" in body and f"<div{marked}<p>نص.</p></div>" in body
    page = send(client, page)
    body = client.get("/s/cast/sitting").content.decode()
    assert f"<h1{marked}سؤال</h1>" in body and f'<fieldset class="field"{marked}' in body
    body = client.post("/s/cast/sitting", {"step": "2"}, follow=True).content.decode()
    assert '<p class="error" lang="en" dir="ltr" id="id_a_error">' in body
    page = send(client, page, a=page.value_of("نعم"))
    body = client.get("/s/cast/sitting").content.decode()
    assert f'<div class="question" data-part="target"{marked}' in body and "<h1>How likely" in body


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ({"text_language": "de-AT"}, 'write language = "de" instead'),
        ({"text_language": "ar", "languages": ["en", "de"]}, "is for a file in one language"),
        ({"text_language": "Arabic, please"}, "text_language"),
    ],
)
def test_a_language_of_texts_is_one_that_the_pages_do_not_have(texts: dict[str, Any], words: str) -> None:
    with pytest.raises(StudyFileError, match=words):
        parse(cast.study_text(texts=texts))


def test_a_language_that_is_none_is_refused() -> None:
    with pytest.raises(FileErrors, match="bank_language"):
        cast.study(texts={"bank_language": "English please"})
