"""The sentences of an item's pages as they were before `wording`: studies that were created with them keep them.

Nothing here is changed any more: the words are part of what was measured.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _

if TYPE_CHECKING:
    from .options import BeliefUpdateOptions
    from .screens import Evidence, Setting


def prior_title(setting: "Setting") -> str:
    return _("How likely is a correct answer?")


def posterior_title(setting: "Setting", evidence: "Evidence | None") -> str:
    return _("And now?")


def explanation_title() -> str:
    return _("Why?")


def own_answer_title() -> str:
    return _("And what would you answer?")


def own_answer_words() -> Mapping[str, str]:
    return {"intro": _("How would you answer this question yourself? Please do not look it up.")}


def prior_words(setting: "Setting") -> Mapping[str, str]:
    options = setting.options
    if options.answerer == "model":
        each = {
            "different": _("Each item is about a different model. What you see in one says nothing about the next."),
            "one": _("All items are about the same model."),
        }
        words = {
            "intro": _("A large language model is asked this question:"),
            "ask": _("How likely is it that the model answers it correctly?"),
        }
    else:
        each = {
            "different": _("Each item is about somebody else. What you see in one says nothing about the next."),
            "one": _("All items are about the same AI system or person."),
        }
        words = {
            "intro": _("This question is put to somebody, an AI system or a person:"),
            "ask": _("How likely is it that the AI system or person answers it correctly?"),
        }
    return {**({"each": each[options.models]} if options.models in each else {}), **words}


def posterior_words(setting: "Setting", evidence: "Evidence | None") -> Mapping[str, str]:
    options = setting.options
    by_model = options.answerer == "model"
    if options.answer_mode == "blank":
        ask = (
            _("How likely is it now that the model answers it correctly? You may give the same number or another one.")
            if by_model
            else _(
                "How likely is it now that the AI system or person answers it correctly? "
                "You may give the same number or another one."
            )
        )
    else:
        ask = (
            _("How likely is it now that the model answers it correctly?")
            if by_model
            else _("How likely is it now that the AI system or person answers it correctly?")
        )
    if evidence is None:
        again = _("Please think once more of the question from before:")
    else:
        again = _("Now think once more of the question from before:")
    return {**evidence_words(options, evidence), "again": again, "earlier": _("Earlier you said:"), "ask": ask}


def evidence_words(options: "BeliefUpdateOptions", evidence: "Evidence | None") -> Mapping[str, str]:
    """The sentences say whether it really happened: a supposed outcome is not a fact about a model."""
    if evidence is None:
        return {}
    said = "unsaid" if options.models == "unsaid" else options.evidence
    by_model = options.answerer == "model"
    intro = {
        "unsaid": _("The same model was asked another question:")
        if by_model
        else _("The same AI system or person was asked another question:"),
        "hypothetical": _("Suppose that the same model was asked another question:")
        if by_model
        else _("Suppose that the same AI system or person was asked another question:"),
        "real": _("The same model was really asked another question:")
        if by_model
        else _("The same AI system or person was really asked another question:"),
    }
    if by_model:
        outcome = {
            ("unsaid", True): _("The model answered this question correctly."),
            ("unsaid", False): _("The model answered this question incorrectly."),
            ("hypothetical", True): _("Suppose that the model answered this question correctly."),
            ("hypothetical", False): _("Suppose that the model answered this question incorrectly."),
            ("real", True): _("The model really answered this question correctly."),
            ("real", False): _("The model really answered this question incorrectly."),
        }
    else:
        outcome = {
            ("unsaid", True): _("This question was answered correctly."),
            ("unsaid", False): _("This question was answered incorrectly."),
            ("hypothetical", True): _("Suppose that this question was answered correctly."),
            ("hypothetical", False): _("Suppose that this question was answered incorrectly."),
            ("real", True): _("This question was really answered correctly."),
            ("real", False): _("This question was really answered incorrectly."),
        }
    words = {"evidence": intro[said], "outcome": outcome[said, evidence.correct]}
    return {**words, "answer": _("The answer was:")} if evidence.answer is not None else words


def explanation_words(setting: "Setting", evidence: "Evidence | None") -> Mapping[str, str]:
    return {
        **evidence_words(setting.options, evidence),
        "again": _("The question from before was:"),
        "earlier": _("First you said:"),
        "now": _("Then you said:"),
        "ask": _("Why is this your answer now? Say it in a sentence or two."),
    }
