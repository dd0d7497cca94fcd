"""The practice item: the instrument's usual screens with the researcher's example, which is in no bank."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.utils.translation import gettext as _

from survey.contracts.screens import Screen

from .screens import (
    EXPLANATION,
    OWN_ANSWER,
    POSTERIOR,
    PRIOR,
    Evidence,
    Setting,
    ShownAid,
    explanation_screen,
    own_answer_screen,
    posterior_screen,
    prior_screen,
)

TEXTS = ("target", "evidence", "outcome")
AID = "aid"
AID_TEXT = re.compile(r"^(\d{1,2}) of (\d{1,2})$")
OUTCOMES = ("correct", "incorrect")


def problems(example: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name in TEXTS:
        if not example.get(name):
            yield name, "is missing: the practice item shows it"
    for name in sorted(set(example) - {*TEXTS, AID}):
        yield name, f"unknown; the practice item has {', '.join(TEXTS)}, and {AID} where the items show an aid"
    if example.get(AID) and not AID_TEXT.match(example[AID]):
        yield AID, f'is {example[AID]!r}: write how many similar questions were right, such as "7 of 10"'
    if example.get("outcome") and example["outcome"] not in OUTCOMES:
        yield "outcome", f'is {example["outcome"]!r}: write "correct" or "incorrect"'


def next_screen(setting: Setting, *, example: Mapping[str, str], given: Sequence[Mapping[str, Any]]) -> Screen | None:
    answers = {answer["screen"]: answer for answer in given}
    target = example["target"]
    found = AID_TEXT.match(example.get(AID, ""))
    if found and setting.options.aid != "none":
        setting = replace(setting, aid=ShownAid(right=int(found[1]), asked=int(found[2])))
    evidence = Evidence(question=example["evidence"], correct=example["outcome"] == "correct")
    if PRIOR not in answers:
        return prior_screen(setting, target=target)
    prior = answers[PRIOR]["value"]
    if POSTERIOR not in answers:
        return posterior_screen(setting, target=target, prior=prior, evidence=evidence)
    if setting.explained and EXPLANATION not in answers:
        posterior = answers[POSTERIOR]["value"]
        return explanation_screen(setting, target=target, prior=prior, posterior=posterior, evidence=evidence)
    if setting.options.own_answer and OWN_ANSWER not in answers:
        return own_answer_screen(setting, target=target)
    return None


def summary(given: Sequence[Mapping[str, Any]]) -> list[str]:
    """Repeats what was entered, without saying whether a belief was good."""
    answers = {answer["screen"]: answer for answer in given}
    prior, posterior = answers[PRIOR]["value"], answers[POSTERIOR]["value"]
    if prior == posterior:
        sentence = _("On the first page you entered %(prior)d %%, and on the second page you kept it.")
    else:
        sentence = _("On the first page you entered %(prior)d %%, and on the second page %(posterior)d %%.")
    return [sentence % {"prior": prior, "posterior": posterior}]
