"""What the screens of an item show. The evidence and its outcome are read only once the prior is stored."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _

from survey.contracts.screens import Screen

from .forms import BeliefForm, explanation_form, own_answer_form, posterior_form
from .options import BeliefUpdateOptions

if TYPE_CHECKING:
    from survey.models import Assignment

    from .models import Pair

Parts = dict[str, dict[str, Any]]
# Names of the screens, which are also those of their responses.
PRIOR, POSTERIOR, EXPLANATION, OWN_ANSWER = "prior", "posterior", "explanation", "own_answer"
# The script that joins a number's field to a track; without it only the field is shown.
SCRIPTS = ("frontend/number.js",)


@dataclass(frozen=True)
class Setting:
    """The form in which a person sees an item: the options of their conditions, and what was drawn for them.

    `order`: the order of the directions. `explained`: whether reasons are asked for at this item.
    """

    options: BeliefUpdateOptions
    order: tuple[str, ...]
    language: str
    explained: bool = False

    def variant(self, screen: str) -> str:
        """The form of a screen in readable words."""
        facts = {
            "answerer": self.options.answerer,
            "models": self.options.models,
            "evidence": self.options.evidence,
            "language": self.language,
        }
        if screen == POSTERIOR:
            facts = {"answer_mode": self.options.answer_mode, **facts}
            if self.options.answer_mode == "direction":
                facts["order"] = ",".join(self.order)
        return "; ".join(f"{name}={value}" for name, value in facts.items())

    def is_older(self, screen: str) -> bool:
        """Whether the screen is as before variants existed, so that it keeps its hash."""
        return self.options.models == "unsaid" and (
            screen == PRIOR or (screen == POSTERIOR and self.options.answer_mode == "blank")
        )

    def parts(self, screen: str, target: str) -> Parts:
        """What all screens of an item have."""
        parts: Parts = {"target": {"kind": "question", "value": target}}
        if self.options.answerer != "model":
            parts["answerer"] = {"kind": "text", "value": self.options.answerer}
        if not self.is_older(screen):
            parts["variant"] = {"kind": "text", "value": self.variant(screen)}
        return parts


@dataclass(frozen=True)
class Evidence:
    """What happened at another question; `answer` is what a model really wrote, if it is shown."""

    question: str
    correct: bool
    answer: str | None = None


def next_screen(assignment: "Assignment", setting: Setting) -> Screen | None:
    """The screen that follows the stored responses."""
    given = {response.screen: response for response in assignment.responses.all()}
    pair = assignment.slot.item.pair
    if PRIOR not in given:
        return prior_screen(setting, target=pair.target.text)
    prior = given[PRIOR].belief.value
    if POSTERIOR not in given:
        return posterior_screen(setting, target=pair.target.text, prior=prior, evidence=_evidence(pair, setting))
    if setting.explained and EXPLANATION not in given:
        return explanation_screen(
            setting,
            target=pair.target.text,
            prior=prior,
            posterior=given[POSTERIOR].belief.value,
            evidence=_evidence(pair, setting),
        )
    if setting.options.own_answer and OWN_ANSWER not in given:
        return own_answer_screen(setting, target=pair.target.text)
    return None


def _evidence(pair: "Pair", setting: Setting) -> Evidence | None:
    if pair.evidence is None:
        return None
    written = None
    if setting.options.show_answer and pair.answer is not None:
        written = pair.answer.response if pair.answer.response.strip() else pair.answer.stated
        written = written or _("(an empty reply)")
    return Evidence(question=pair.evidence.text, correct=bool(pair.outcome), answer=written)


def prior_screen(setting: Setting, *, target: str) -> Screen:
    return Screen(
        name=PRIOR,
        title=_("How likely is a correct answer?"),
        template="belief_update/prior.html",
        scripts=SCRIPTS,
        form=BeliefForm,
        parts=setting.parts(PRIOR, target),
        words=prior_words(setting.options),
    )


def posterior_screen(setting: Setting, *, target: str, prior: int, evidence: Evidence | None) -> Screen:
    return Screen(
        name=POSTERIOR,
        title=_("And now?"),
        template="belief_update/posterior.html",
        scripts=SCRIPTS,
        form=posterior_form(mode=setting.options.answer_mode, earlier=prior, order=setting.order),
        parts={
            **setting.parts(POSTERIOR, target),
            "prior": {"kind": "number", "value": prior},
            **_evidence_parts(evidence),
        },
        words=posterior_words(setting.options, evidence),
    )


def explanation_screen(
    setting: Setting, *, target: str, prior: int, posterior: int, evidence: Evidence | None
) -> Screen:
    """The same words whether the answer changed or not: asking only after a change would teach people not to change."""
    return Screen(
        name=EXPLANATION,
        title=_("Why?"),
        template="belief_update/explanation.html",
        scripts=SCRIPTS,
        form=explanation_form(
            required=setting.options.explanation_required, characters=setting.options.explanation_characters
        ),
        parts={
            **setting.parts(EXPLANATION, target),
            "prior": {"kind": "number", "value": prior},
            "posterior": {"kind": "number", "value": posterior},
            **_evidence_parts(evidence),
        },
        words=explanation_words(setting.options, evidence),
    )


def own_answer_screen(setting: Setting, *, target: str) -> Screen:
    return Screen(
        name=OWN_ANSWER,
        title=_("And what would you answer?"),
        template="belief_update/own_answer.html",
        scripts=SCRIPTS,
        form=own_answer_form(question=target, confidence=setting.options.confidence),
        parts=setting.parts(OWN_ANSWER, target),
        words={"intro": _("How would you answer this question yourself? Please do not look it up.")},
    )


def _evidence_parts(evidence: Evidence | None) -> Parts:
    if evidence is None:
        return {}
    parts: Parts = {
        "evidence": {"kind": "question", "value": evidence.question},
        "outcome": {"kind": "text", "value": "correct" if evidence.correct else "incorrect"},
    }
    if evidence.answer is not None:
        parts["given_answer"] = {"kind": "text", "value": evidence.answer}
    return parts


# The sentences


def prior_words(options: BeliefUpdateOptions) -> Mapping[str, str]:
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


def posterior_words(options: BeliefUpdateOptions, evidence: Evidence | None) -> Mapping[str, str]:
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


def evidence_words(options: BeliefUpdateOptions, evidence: Evidence | None) -> Mapping[str, str]:
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


def explanation_words(options: BeliefUpdateOptions, evidence: Evidence | None) -> Mapping[str, str]:
    return {
        **evidence_words(options, evidence),
        "again": _("The question from before was:"),
        "earlier": _("First you said:"),
        "now": _("Then you said:"),
        "ask": _("Why is this your answer now? Say it in a sentence or two."),
    }
