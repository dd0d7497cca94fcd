"""The practice item: the instrument's usual screens with the researcher's example, which is in no bank."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.utils.translation import gettext as _

from survey.contracts.screens import Screen

from .screens import (
    BETWEEN,
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
    screens_after,
)

TEXTS = ("target", "evidence", "outcome")
AID = "aid"
AID_TEXT = re.compile(r"^(\d{1,2}) of (\d{1,2})$")
OUTCOMES = ("correct", "incorrect")


def texts_of(steps: int) -> tuple[str, ...]:
    """The texts of an example, where items have so many evidence questions."""
    return (*TEXTS, *(f"{name}_{step}" for step in range(2, steps + 1) for name in ("evidence", "outcome")))


def problems(example: Mapping[str, str], *, steps: int = 1) -> Iterator[tuple[str, str]]:
    texts = texts_of(steps)
    for name in texts:
        if not example.get(name):
            yield name, "is missing: the practice item shows it"
        elif name.startswith("outcome") and example[name] not in OUTCOMES:
            yield name, f'is {example[name]!r}: write "correct" or "incorrect"'
    for name in sorted(set(example) - {*texts, AID}):
        yield name, f"unknown; the practice item has {', '.join(texts)}, and {AID} where the items show an aid"
    if example.get(AID) and not AID_TEXT.match(example[AID]):
        yield AID, f'is {example[AID]!r}: write how many similar questions were right, such as "7 of 10"'


def next_screen(setting: Setting, *, example: Mapping[str, str], given: Sequence[Mapping[str, Any]]) -> Screen | None:
    answers = {answer["screen"]: answer for answer in given}
    target = example["target"]
    match = AID_TEXT.match(example.get(AID, ""))
    if match and setting.options.aid != "none":
        setting = replace(setting, aid=ShownAid(right=int(match[1]), asked=int(match[2])))
    if PRIOR not in answers:
        return prior_screen(setting, target=target)
    earlier = answers[PRIOR]["value"]
    evidences = _shown(example, steps=len(setting.evidence_order) or 1)
    for screen, evidence in zip(screens_after(len(evidences)), evidences, strict=True):
        if screen not in answers:
            return posterior_screen(setting, target=target, prior=earlier, evidence=evidence, name=screen)
        earlier = answers[screen]["value"]
    if setting.explained and EXPLANATION not in answers:
        prior = answers[PRIOR]["value"]
        return explanation_screen(setting, target=target, prior=prior, posterior=earlier, evidence=evidences[-1])
    if setting.options.own_answer and OWN_ANSWER not in answers:
        return own_answer_screen(setting, target=target)
    return None


def _shown(example: Mapping[str, str], *, steps: int) -> list[Evidence]:
    evidences: list[Evidence] = []
    for ending in ("", *(f"_{step}" for step in range(2, steps + 1))):
        text = example.get(f"evidence{ending}")
        if text is not None:  # A study of an older file may lack them.
            evidence = Evidence(question=text, correct=example.get(f"outcome{ending}") == "correct")
            evidences.append(replace(evidence, before=tuple(replace(before, before=()) for before in evidences)))
    return evidences


def summary(given: Sequence[Mapping[str, Any]]) -> list[str]:
    """Repeats what was entered, without saying whether a belief was good."""
    answers = {answer["screen"]: answer for answer in given}
    prior, posterior = answers[PRIOR]["value"], answers[POSTERIOR]["value"]
    if any(screen in answers for screen in BETWEEN):
        if prior == posterior:
            sentence = _("On the first page you entered %(prior)d %%, and on the last page the same.")
        else:
            sentence = _("On the first page you entered %(prior)d %%, and on the last page %(posterior)d %%.")
    elif prior == posterior:
        sentence = _("On the first page you entered %(prior)d %%, and on the second page you kept it.")
    else:
        sentence = _("On the first page you entered %(prior)d %%, and on the second page %(posterior)d %%.")
    return [sentence % {"prior": prior, "posterior": posterior}]
