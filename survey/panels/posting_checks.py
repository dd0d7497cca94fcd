"""What stands between a study and its publishing at a panel, in sentences. Writes nothing and asks nobody."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from survey.contracts import panels
from survey.exceptions import HunchError
from survey.models import Stage, Study
from survey.services.base.retention import refuse_without_retention
from survey.services.sittings.capacity import free_booklets
from survey.services.sittings.hourly_pay import refuse_low_pay
from survey.services.studies import test_copies

from .money import refuse_over_cap
from .postings import refuse_without_real_people


@dataclass(frozen=True)
class PostingCheck:
    """`problem` is empty where the thing is as it should be. `stops`: publishing is refused while there is one."""

    title: str
    problem: str = ""
    stops: bool = True


def checks(stage: Stage, *, places: int, reward: int) -> list[PostingCheck]:
    """What publishing so many places of the stage for this reward, in cents, would be refused for, and what a person
    should look at before."""
    return list(_checked(stage, places, reward))


def cost_of(study: Study, places: int, reward: int) -> int:
    """What a posting may cost, in cents: the rewards of all places, and of who is screened out."""
    return places * reward + study.config.panel.screen_outs


def _checked(stage: Stage, places: int, reward: int) -> Iterator[PostingCheck]:
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
    yield refused("The cost fits under the cap", lambda: refuse_over_cap(study, cost_of(study, places, reward)))
    free = free_booklets(stage).count() if stage.plan_sha256 else stage.config.sittings
    more = f"{places} places are offered, and the stage has {free} free: whoever comes after them is turned away"
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
