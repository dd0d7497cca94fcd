"""What stands between a study and its publishing at a panel, in sentences. Writes nothing and asks nobody."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from survey.contracts import panels
from survey.exceptions import HunchError
from survey.figures.words import money
from survey.models import Posting, Stage, Study
from survey.services.base.retention import refuse_without_retention
from survey.services.sittings.capacity import free_booklets
from survey.services.sittings.hourly_pay import hourly_pay, refuse_low_pay
from survey.services.studies import test_copies

from .accounts import advice_of
from .money import fees_expected, refuse_over_cap
from .postings import refuse_without_real_people


@dataclass(frozen=True)
class PostingCheck:
    """`problem` is empty where the thing is as it should be. `stops`: publishing is refused while there is one."""

    title: str
    problem: str = ""
    stops: bool = True


def checks(stage: Stage, *, places: int, reward: int, posting: Posting | None = None) -> list[PostingCheck]:
    """What publishing so many places of the stage for this reward, in cents, would be refused for, and what a person
    should look at before.

    Args:
        posting: the draft at the panel, if there is one: the panel has said more about it.
    """
    cents = posting.cost if posting is not None else cost_of(stage.study, places, reward)
    checks = list(_checked(stage, places, reward, cents))
    return [*checks, *_said(posting, cents)] if posting is not None else checks


def cost_of(study: Study, places: int, reward: int) -> int:
    """What a posting may cost, in cents: the rewards of all places and the pay of who is screened out, with the panel's
    fee and VAT as far as they are known before it is drafted."""
    people = places * reward + study.config.panel.screen_outs
    return people + fees_expected(study).on(people)


def _said(posting: Posting, cents: int) -> Iterator[PostingCheck]:
    """By what the panel said when the draft was read last."""
    advice = advice_of(posting)
    short = advice.balance is not None and advice.balance < cents
    have = f"it has {money(advice.balance or 0)}, and {money(cents, posting.currency)} are needed: top it up"
    yield PostingCheck("The account at the panel has enough", have if short else "")
    pay = hourly_pay(posting.study, reward=posting.reward)
    if pay is None or advice.recommended is None:
        return
    whose = "for this account" if advice.is_said else "in general; for this account it could not be asked"
    paid, wanted = money(pay.cents, posting.currency), money(advice.recommended)
    less = f"{paid} an hour, and the panel recommends {wanted} {whose}"
    too_little = less if pay.cents < advice.recommended else ""
    yield PostingCheck("An hour is paid as the panel recommends", too_little, stops=False)


def _checked(stage: Stage, places: int, reward: int, cents: int) -> Iterator[PostingCheck]:
    study = stage.study

    def refused(title: str, refuse: Callable[[], object]) -> PostingCheck:
        try:
            refuse()
        except HunchError as exc:
            return PostingCheck(title, exc.message)
        return PostingCheck(title)

    yield PostingCheck("The panel can be asked", _settings_problem(study))
    is_open = stage.state == Stage.State.OPEN
    closed = f"stage {stage.index} is {stage.state}: open it before publishing, or nobody who comes can begin"
    yield PostingCheck("The stage is open", "" if is_open else closed)
    yield refused("Only real people take part", lambda: refuse_without_real_people(study))
    yield refused("The study says until when personal data is kept", lambda: refuse_without_retention(study))
    yield refused("An hour is paid enough", lambda: refuse_low_pay(study, reward=reward))
    yield refused("The cost fits under the cap", lambda: refuse_over_cap(study, cents))
    free = free_booklets(stage).count() if stage.plan_sha256 else stage.config.sittings
    more = f"{places} places are offered, and the stage has {free} free: anyone who comes after them is turned away"
    yield PostingCheck("The stage has a place for everybody", more if places > free else "", stops=False)
    yield PostingCheck("The present file was tried out", _untried(study), stops=False)


def _settings_problem(study: Study) -> str:
    panel = panels.of_study(study)
    if panel.problem:
        return panel.problem
    if panel.client is None:
        return f"{panel.title} has no API: a study is posted there by hand"
    return panel.missing_setting(study.config) or panel.client.missing_setting()


def _untried(study: Study) -> str:
    copy = test_copies.copy_of(study)
    if copy is None or not copy.respondents.exists():
        return "nobody has gone through its pages in the test copy yet: try it out"
    return "" if test_copies.is_current(copy) else "the file was changed since: try it out again"
