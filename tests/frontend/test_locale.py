"""German is complete: the shipped catalogues have every sentence that a respondent or an API client can see."""

import ast
import functools
import gettext
import re
from pathlib import Path

import pytest
from django.template import engines
from django.test import Client

from tests import cast
from tests.frontend.pages import arrive, go_to, read

ROOT = Path(__file__).parents[2]
APPS = (
    "frontend",
    "survey/instruments/belief_update",
    "survey/instruments/own_answers",
    "survey/instruments/preference",
    "survey/instruments/cloze",
    "survey/instruments/next_token",
    "survey/instruments/token_comparison",
    "survey/instruments/self_paced_reading",
    "survey",
)
# The admin and the commands are in English only.
NOT_SHOWN = ("survey/admin/", "survey/management/", "survey/templates/")
CALLS = {"_", "gettext", "gettext_lazy", "ngettext"}


def sources(suffix: str) -> list[Path]:
    paths = {path for app in APPS for path in (ROOT / app).rglob(f"*{suffix}")}
    return sorted(path for path in paths if not str(path.relative_to(ROOT)).startswith(NOT_SHOWN))


@functools.cache
def sentences() -> frozenset[str]:
    texts: set[str] = set()
    for path in sources(".py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CALLS:
                texts |= {arg.value for arg in node.args[:1] if isinstance(arg, ast.Constant)}
    for path in sources(".html"):
        marked = engines["pages"].env.extract_translations(path.read_text(encoding="utf-8"))
        texts |= {message if isinstance(message, str) else message[0] for _line, _call, message in marked}
    return frozenset(texts)


def catalogue(app: str) -> dict[str, str]:
    with (ROOT / app / "locale/de/LC_MESSAGES/django.mo").open("rb") as file:
        read_in = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]
    # A sentence with a plural has the key (sentence, form); it is enough to check the first form.
    forms = {key if isinstance(key, tuple) else (key, 0): text for key, text in read_in.items()}
    return {key: text for (key, form), text in forms.items() if form == 0}


@pytest.mark.thorough
def test_every_sentence_has_its_german_one() -> None:
    known = {key for app in APPS for key, text in catalogue(app).items() if text}
    wanted = sentences()
    assert len(wanted) > 60
    assert wanted - known == set()


@pytest.mark.thorough
def test_no_translation_is_left_without_its_sentence() -> None:
    assert {key for app in APPS for key in catalogue(app) if key} - sentences() == set()


@pytest.mark.parametrize("app", APPS)
def test_the_compiled_catalogue_is_that_of_its_source(app: str) -> None:
    text = (ROOT / app / "locale/de/LC_MESSAGES/django.po").read_text(encoding="utf-8")
    pairs = re.findall(r'^msgid (".*")\n(?:msgid_plural .*\n)?msgstr(?:\[0\])? (".*")$', text, flags=re.MULTILINE)
    source = {ast.literal_eval(key): ast.literal_eval(value) for key, value in pairs}
    source.pop("")
    compiled = catalogue(app)
    compiled.pop("")
    assert source == compiled


@pytest.mark.parametrize("app", APPS)
def test_placeholders_are_the_same_in_both_languages(app: str) -> None:
    for key, text in catalogue(app).items():
        if key:
            assert set(re.findall(r"%\(\w+\)\w", key)) == set(re.findall(r"%\(\w+\)\w", text)), key


@pytest.mark.django_db
def test_a_german_study_speaks_german_to_the_end() -> None:
    cast.open_study(texts={"language": "de"})
    client = Client(headers={"Accept-Language": "en"})
    page = go_to(client, "item", screen="posterior")
    assert "Frage 1 von 3" in page.text and "Ihre Antwort vorhin" in page.text
    assert 'lang="de"' in client.get("/s/cast/sitting").content.decode()


@pytest.mark.django_db
def test_an_english_study_stays_english_in_a_german_browser() -> None:
    cast.open_study()
    client = Client(headers={"Accept-Language": "de"})
    arrive(client)
    response = client.get("/s/cast/sitting")
    page = response.content.decode()
    assert 'lang="en"' in page and "Weiter" not in read(page).text
    assert response.headers["Content-Language"] == "en"
