"""Readings by REST: of texts in the banks of one's studies, and of no others."""

import math

import numpy as np
import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from predictors.readings import Text, parse_source
from survey.models import ApiToken, Reading
from survey.services.banks import ngrams, readings
from tests import cast

pytestmark = [pytest.mark.django_db, pytest.mark.any_database, pytest.mark.slow]
API = "/api/v1/readings/"


@pytest.fixture
def study():
    """A study on a bank that an n-gram has read, without smoothing: some tokens are impossible."""
    new_study = cast.study(slug="read")
    texts = [Text(question.external_id, question.plain) for question in new_study.bank.questions.order_by("position")]
    ngrams.train(texts[:2], name="two", order=2, unit="word", smoothing="none")
    readings.read(parse_source("N=ngram:two"), texts)
    readings.note_bank(new_study.bank)
    return new_study


def reader(name: str = "reader") -> tuple[User, Client]:
    user = User.objects.create_user(name)
    user.user_permissions.add(Permission.objects.get(codename="export_study"))
    return user, Client(headers={"Authorization": f"Token {ApiToken.issue(user=user)[1]}"})


def test_a_member_gets_the_tokens_of_a_text(study):
    user, client = reader()
    cast.join(user, study)
    question = study.bank.questions.order_by("position").last()
    (reading,) = client.get(API, {"text_id": question.external_id, "bank": f"{study.bank.name}@1"}).json()
    stored = Reading.objects.get(text_sha256=readings.text_hash(question.plain)).token_array
    assert (reading["language_model"], reading["source"], reading["reads_end"]) == ("N", "ngram:two", True)
    assert [token["start"] for token in reading["tokens"]] == stored["start"].tolist()
    for token, value in zip(reading["tokens"], stored["logprob"].tolist(), strict=True):
        assert token["impossible"] == (value == -math.inf)
        assert token["logprob"] == (value if np.isfinite(value) else None)
    same = client.get(API, {"text_sha256": reading["text_sha256"], "language_model": "N"}).json()
    assert same == [reading]
    assert client.get(API, {"text_id": question.external_id, "language_model": "M"}).json() == []
    for bank in ("another", f"{study.bank.name}@2", f"{study.bank.name}@x"):
        assert client.get(API, {"text_id": question.external_id, "bank": bank}).json() == []


def test_others_get_nothing(study):
    _user, stranger = reader("stranger")
    question = study.bank.questions.first()
    assert stranger.get(API, {"text_id": question.external_id}).json() == []
    assert stranger.get(API, {"text_sha256": readings.text_hash(question.plain)}).json() == []
    assert Client().get(API, {"text_id": question.external_id}).status_code == 401


def test_a_text_of_no_bank_is_for_superusers(study):
    readings.read(parse_source("N=ngram:two"), [Text("x", "of nobody")])
    asked = {"text_sha256": readings.text_hash("of nobody")}
    user, client = reader()
    cast.join(user, study)
    assert client.get(API, asked).json() == []
    user.is_superuser = True
    user.save()
    assert len(client.get(API, asked).json()) == 1


@pytest.mark.parametrize(
    ("query", "field"), [({}, "text_id"), ({"bank": "x"}, "bank"), ({"text_id": "\0"}, "text_id"), ({"x": "1"}, "x")]
)
def test_a_query_that_names_no_text_is_refused(study, query, field):
    user, client = reader()
    cast.join(user, study)
    response = client.get(API, query)
    assert response.status_code in (400, 422) and field in response.json()["error"]["fields"]
