"""The sentences of an item's pages. A page's question is its heading; the one who answers has one name on all pages.

In German every form of the name is in the nominative, so that no sentence changes it.

These words are part of what is measured, so that studies keep those that they were created with. To change a sentence,
raise NEWEST_EDITION, and give the new sentence only from that edition on:

    if setting.options.edition >= 2:
        return _("The new sentence.")
    return _("The sentence as it was.")
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _

if TYPE_CHECKING:
    from .screens import Evidence, Setting

# The edition that new studies get.
NEWEST_EDITION = 2


@dataclass(frozen=True)
class Name:
    """The one who answers, in the forms that the sentences need."""

    a: str
    the: str
    same: str
    another: str


def name_of(setting: "Setting") -> Name:
    """The study's own name for a model, else ours; where the pages leave open who answers, always ours."""
    if setting.options.answerer != "model":
        return Name(
            a=_("an AI system or a person"),
            the=_("the AI system or person"),
            same=_("the same AI system or person"),
            another=_("a different AI system or person"),
        )
    own = setting.name
    if own is not None:
        return Name(a=str(own.a), the=str(own.the), same=str(own.same), another=str(own.another))
    return Name(
        a=_("a large language model"), the=_("the model"), same=_("the same model"), another=_("a different model")
    )


def begin(sentence: str) -> str:
    """The sentence with a capital letter, since a name may stand first."""
    return sentence[:1].upper() + sentence[1:]


def prior_title(setting: "Setting") -> str:
    return _("How likely is it that %(the)s answers this question correctly?") % {"the": name_of(setting).the}


def prior_words(setting: "Setting") -> Mapping[str, str]:
    name = name_of(setting)
    each = {
        "different": (
            _("Each time, we ask about %(another)s. What you see this time says nothing about the next time.")
            if setting.options.edition >= 2
            else _("Each time, we ask about %(another)s. What you see of one says nothing about the next.")
        ),
        "one": _("We always ask about %(same)s."),
    }
    words = {"intro": begin(_("%(a)s is asked this question:") % {"a": name.a})}
    if setting.options.models in each:
        sentence = each[setting.options.models] % {"another": name.another, "same": name.same}
        return {"each": begin(sentence), **words}
    return words


def posterior_title(setting: "Setting", evidence: "Evidence | None") -> str:
    the = {"the": name_of(setting).the}
    if evidence is None:
        return _("How likely is it now that %(the)s answers this question correctly?") % the
    return _("How likely is it now that %(the)s answers the first question correctly?") % the


def posterior_words(setting: "Setting", evidence: "Evidence | None") -> Mapping[str, str]:
    again = _("This was the first question:") if evidence else _("Please think of this question once more:")
    words = {**evidence_words(setting, evidence), "again": again, "earlier": _("Your answer before:")}
    if setting.options.answer_mode != "blank":
        return words
    return {**words, "ask": _("You may give the same number or another one.")}


def evidence_words(setting: "Setting", evidence: "Evidence | None") -> Mapping[str, str]:
    """The sentences say whether it really happened: a supposed outcome is not a fact about anybody."""
    if evidence is None:
        return {}
    name, options = name_of(setting), setting.options
    said = "unsaid" if options.models == "unsaid" else options.evidence
    intro = {
        "unsaid": _("%(same)s was asked another question:"),
        "hypothetical": _("Suppose that %(same)s was asked another question:"),
        "real": _("%(same)s was really asked another question:"),
    }[said]
    if evidence.before:
        intro = {
            "unsaid": _("%(same)s was asked one more question:"),
            "hypothetical": _("Suppose that %(same)s was asked one more question:"),
            "real": _("%(same)s was really asked one more question:"),
        }[said]
    words = {
        "evidence": begin(intro % {"same": name.same}),
        "outcome": _outcome_words(said, name, correct=evidence.correct),
    }
    if evidence.before:
        words["before"] = _("This is what you have seen before:")
        for number, earlier in enumerate(evidence.before, 1):
            words[f"before_{number}"] = _outcome_words(said, name, correct=earlier.correct)
    return {**words, "answer": _("The answer was:")} if evidence.answer is not None else words


def _outcome_words(said: str, name: Name, *, correct: bool) -> str:
    outcome = {
        ("unsaid", True): _("%(the)s answered this question correctly."),
        ("unsaid", False): _("%(the)s answered this question incorrectly."),
        ("hypothetical", True): _("Suppose that %(the)s answered this question correctly."),
        ("hypothetical", False): _("Suppose that %(the)s answered this question incorrectly."),
        ("real", True): _("%(the)s really answered this question correctly."),
        ("real", False): _("%(the)s really answered this question incorrectly."),
    }[said, correct]
    return begin(outcome % {"the": name.the})


def aid_words(setting: "Setting") -> Mapping[str, str]:
    """What the aid says: of real answers, and of other questions than those on the item's pages."""
    if setting.aid is None:
        return {}
    said = _(
        "%(the)s was really asked the %(asked)d other questions that are most similar to this one: %(right)d of these "
        "%(asked)d answers were correct."
    )
    facts = {"the": name_of(setting).the, "asked": setting.aid.asked, "right": setting.aid.right}
    return {"aid": begin(said % facts)}


def pay_words(setting: "Setting") -> Mapping[str, str]:
    """The advice first and the rule for those who ask: people who are shown the odds of such a rule answer further from
    what they believe (Danz, Vesterlund and Wilson, American Economic Review 112, 2022)."""
    if not setting.options.pay_for_accuracy:
        return {}
    rule = _(
        "When you have finished, one of your answers is picked at random, and two whole numbers from 1 to 100 are "
        "drawn. If %(the)s really answered that question correctly, your answer counts as it is. If not, 100 minus "
        "your answer counts. You get the bonus if that is at least as high as the lower of the two numbers."
    )
    return {
        "pay": _("One of your answers may win a bonus. Your chance is best if you always say what you really think."),
        "pay_how": _("How is this decided?"),
        "pay_rule": rule % {"the": name_of(setting).the},
    }


def explanation_title() -> str:
    return _("Why is this your answer now?")


def explanation_words(setting: "Setting", evidence: "Evidence | None") -> Mapping[str, str]:
    return {
        **evidence_words(setting, evidence),
        "again": _("This was the first question:"),
        "earlier": _("First you said:"),
        "now": _("Then you said:"),
        "ask": _("A sentence or two are enough."),
    }


def own_answer_title() -> str:
    return _("How would you answer this question yourself?")


def own_answer_words() -> Mapping[str, str]:
    return {"intro": _("Please do not look it up.")}
