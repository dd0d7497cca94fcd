"""Fields of models as the "Advanced" pages name them: in words, and not by the name that the code has for them."""

import re
from collections.abc import Iterator
from typing import Any

from django.apps import apps

# Django makes words of a field's name. These are plain English as they come; any other field has words of its own.
PLAIN = """
accepted at, accepted by, action, address, alert, answer, answered at, answers, answers until, approved at, asked by,
assignment, bank, batch, booklet, cause, changed at, code, code version, completed at, computed at, confidence,
context, created at, created by, currency, data, decided at, direction, domain, ended at, error, event, event type,
expires at, explanation, files, finished at, for all studies, found at, frozen at, given at, height, highest score,
instrument, invited by, item, kind, language, language model, last seen at, last used at, left at, level, lowest
score, mean score, message, name, number, opened at, outcome, pair, panel, passed, paused at, people, places, planned
at, posting, probability, pseudonym, published at, question, quota, ready at, reason, received at, receiver, rejected
at, reply, resolved at, respondent, response, revoked at, right, role, scores, screen, sealed at, sent at, similarity,
since, sitting, smoothing, stage, standard error, started at, state, step, stratum, study, submission, task,
temperature, text, title, tokenizer, tries, tries left, used at, user, value, vector, version, vocabulary size, wave,
width, withdrawn at, word
"""


def fields_of_all() -> Iterator[tuple[str, Any]]:
    for model in apps.get_models():
        if model.__module__.startswith("survey."):
            for field in (*model._meta.local_fields, *model._meta.local_many_to_many):
                if not field.auto_created:
                    yield f"{model.__name__}.{field.name}", field


def has_own_words(field: Any) -> bool:
    """Whether its class names it; Django keeps that apart from what it makes of the attribute."""
    return field._verbose_name is not None


def test_every_field_has_words_of_its_own_or_a_plain_name() -> None:
    plain = set(" ".join(PLAIN.split()).split(", "))
    derived = {name: str(field.verbose_name) for name, field in fields_of_all() if not has_own_words(field)}
    wrong = {name: words for name, words in derived.items() if words not in plain}
    assert wrong == {}, "give it a verbose_name, or list it in PLAIN if anybody would understand it"
    assert plain - {*derived.values()} == set(), "remove these from PLAIN"


def test_own_words_are_no_names_of_the_code() -> None:
    own = {name: str(field.verbose_name) for name, field in fields_of_all() if has_own_words(field)}
    assert {name: words for name, words in own.items() if re.search(r"_|sha256|\bms\b|\b(id|log) [a-z]$", words)} == {}
    assert len(own) > 400


def test_no_two_fields_of_a_model_have_the_same_words() -> None:
    words = [(name.partition(".")[0], str(field.verbose_name)) for name, field in fields_of_all()]
    assert sorted({pair for pair in words if words.count(pair) > 1}) == []
