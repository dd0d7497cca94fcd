"""What the screens of an item show. The evidence and its outcome are read only once the prior is stored."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _

from survey.contracts.screens import Screen
from survey.study_file import AnswererConfig

from . import wording
from .forms import explanation_form, own_answer_form, posterior_form, prior_form
from .options import BeliefUpdateOptions

if TYPE_CHECKING:
    from survey.models import Assignment, ModelAnswer

    from .models import Pair

Parts = dict[str, dict[str, Any]]
# Names of the screens, which are also those of their responses.
PRIOR, POSTERIOR, EXPLANATION, OWN_ANSWER = "prior", "posterior", "explanation", "own_answer"
# Between prior and posterior, in items with several evidence questions.
BETWEEN = ("step_1", "step_2")
# The script that joins a number's field to a track; without it only the field is shown.
SCRIPTS = ("frontend/number.js",)


@dataclass(frozen=True)
class ShownAid:
    """How many of the questions most like the target the model was really asked, and answered correctly."""

    right: int
    asked: int

    def __str__(self) -> str:
        return f"{self.right}/{self.asked}"


@dataclass(frozen=True)
class Setting:
    """The form in which a person sees an item: the options of their conditions, and what was drawn for them.

    `order`: the order of the directions. `explained`: whether reasons are asked for at this item. `name`: what the
    study calls the one who answers, in the language of the pages; None where it does not say. `evidence_order`: the
    places of several evidence questions in the order in which they are shown; empty where items have one. `aid`: what
    the aid says next to the target; None where none is shown.
    """

    options: BeliefUpdateOptions
    order: tuple[str, ...]
    language: str
    explained: bool = False
    name: AnswererConfig | None = None
    evidence_order: tuple[int, ...] = ()
    aid: "ShownAid | None" = None

    def variant(self, screen: str) -> str:
        """The form of a screen in readable words."""
        facts: dict[str, str] = {
            "answerer": self.options.answerer,
            "models": self.options.models,
            "evidence": self.options.evidence,
            "language": self.language,
        }
        if screen == POSTERIOR or screen in BETWEEN:
            facts = {"answer_mode": self.options.answer_mode, **facts}
            if self.options.answer_mode == "direction":
                facts["order"] = ",".join(self.order)
            if self.evidence_order:
                facts["evidence_order"] = "-".join(map(str, self.evidence_order))
        if self.aid is not None:
            facts["aid"] = f"{self.options.aid} {self.aid}"
        if self.options.pay_for_accuracy:
            facts["paid"] = "for accuracy"
        facts["edition"] = str(self.options.edition)
        return "; ".join(f"{name}={value}" for name, value in facts.items())

    def parts(self, screen: str, target: str) -> Parts:
        """What all screens of an item have."""
        parts: Parts = {"target": {"kind": "question", "value": target}}
        if self.options.answerer != "model":
            parts["answerer"] = {"kind": "text", "value": self.options.answerer}
        if self.aid is not None and screen != OWN_ANSWER:
            parts["aid"] = {"kind": "text", "value": str(self.aid)}
        parts["variant"] = {"kind": "text", "value": self.variant(screen)}
        return parts


@dataclass(frozen=True)
class Evidence:
    """What happened at another question; `answer` is what a model really wrote, if it is shown. `before`: what
    was shown of other questions on earlier screens of the item."""

    question: str
    correct: bool
    answer: str | None = None
    before: "tuple[Evidence, ...]" = ()


def next_screen(assignment: "Assignment", setting: Setting) -> Screen | None:
    """The screen that follows the stored responses."""
    responses = {response.screen: response for response in assignment.responses.all()}
    pair = assignment.slot.item.pair
    if PRIOR not in responses:
        return prior_screen(setting, target=pair.target.text)
    evidences = _shown(pair, setting)
    earlier = responses[PRIOR].belief.value
    for screen, evidence in zip(screens_after(len(evidences)), evidences, strict=True):
        if screen not in responses:
            return posterior_screen(setting, target=pair.target.text, prior=earlier, evidence=evidence, name=screen)
        earlier = responses[screen].belief.value
    if setting.explained and EXPLANATION not in responses:
        return explanation_screen(
            setting,
            target=pair.target.text,
            prior=responses[PRIOR].belief.value,
            posterior=earlier,
            evidence=evidences[-1],
        )
    if setting.options.own_answer and OWN_ANSWER not in responses:
        return own_answer_screen(setting, target=pair.target.text)
    return None


def screens_after(evidence_questions: int) -> tuple[str, ...]:
    """The names of the screens with evidence, in order."""
    return (*BETWEEN[: evidence_questions - 1], POSTERIOR)


def place_before(screen: str, setting: Setting) -> int | None:
    """The place of the evidence question that this screen shows; None where items have one, or it shows none."""
    names = screens_after(len(setting.evidence_order))
    return setting.evidence_order[names.index(screen)] if setting.evidence_order and screen in names else None


def _shown(pair: "Pair", setting: Setting) -> list[Evidence | None]:
    """What each screen after the prior shows, in order; one screen without evidence in a control."""
    steps = pair.steps
    if not steps:
        return [None]
    evidences: list[Evidence | None] = []
    before: tuple[Evidence, ...] = ()
    for place in setting.evidence_order or (1,):
        step = steps[place - 1]
        evidence = Evidence(step.question.text, step.correct, _written(step.answer, setting))
        evidences.append(replace(evidence, before=before))
        before = (*before, evidence)
    return evidences


def _written(answer: "ModelAnswer | None", setting: Setting) -> str | None:
    if not setting.options.show_answer or answer is None:
        return None
    written = answer.response if answer.response.strip() else answer.stated
    return written or _("(an empty reply)")


def prior_screen(setting: Setting, *, target: str) -> Screen:
    return Screen(
        name=PRIOR,
        title=wording.prior_title(setting),
        template="belief_update/prior.html",
        scripts=SCRIPTS,
        form=prior_form(),
        parts=setting.parts(PRIOR, target),
        words={**wording.prior_words(setting), **wording.aid_words(setting), **wording.pay_words(setting)},
    )


def posterior_screen(
    setting: Setting, *, target: str, prior: int, evidence: Evidence | None, name: str = POSTERIOR
) -> Screen:
    """`prior`: the number that was given right before. `name`: of the screen, where there are several with evidence."""
    return Screen(
        name=name,
        title=wording.posterior_title(setting, evidence),
        template="belief_update/posterior.html",
        scripts=SCRIPTS,
        form=posterior_form(mode=setting.options.answer_mode, earlier=prior, order=setting.order),
        parts={
            **setting.parts(name, target),
            "prior": {"kind": "number", "value": prior},
            **_evidence_parts(evidence),
        },
        words={
            **wording.posterior_words(setting, evidence),
            **wording.aid_words(setting),
            **wording.pay_words(setting),
        },
    )


def explanation_screen(
    setting: Setting, *, target: str, prior: int, posterior: int, evidence: Evidence | None
) -> Screen:
    """The same words whether the answer changed or not: asking only after a change would teach people not to change."""
    return Screen(
        name=EXPLANATION,
        title=wording.explanation_title(),
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
        words={**wording.explanation_words(setting, evidence), **wording.aid_words(setting)},
    )


def own_answer_screen(setting: Setting, *, target: str) -> Screen:
    return Screen(
        name=OWN_ANSWER,
        title=wording.own_answer_title(),
        template="belief_update/own_answer.html",
        scripts=SCRIPTS,
        form=own_answer_form(question=target, confidence=setting.options.confidence),
        parts=setting.parts(OWN_ANSWER, target),
        words=wording.own_answer_words(),
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
    for number, earlier in enumerate(evidence.before, 1):
        parts[f"before_{number}"] = {"kind": "question", "value": earlier.question}
        parts[f"before_{number}_outcome"] = {"kind": "text", "value": "correct" if earlier.correct else "incorrect"}
        if earlier.answer is not None:
            parts[f"before_{number}_answer"] = {"kind": "text", "value": earlier.answer}
    return parts
