"""The first page: a card for each study, with how far its stages are and what to do next. Ten statements for any number
of studies."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Max
from django.utils import timezone

from survey.contracts import instruments, panels
from survey.live.next_action import Facts, next_action
from survey.live.stage_sections import StageSection, running_sections
from survey.models import Sitting, Stage, Study

from .study_page import Addressed, addressed

State = Stage.State


@dataclass(frozen=True)
class StagesLine:
    """Stages in a row that have the same state: a study may have fifty."""

    first: StageSection
    last: StageSection
    state: str
    people: int
    wanted: int

    @property
    def is_collecting(self) -> bool:
        return self.state in (State.OPEN, State.PAUSED, State.CLOSING)


@dataclass(frozen=True)
class Card:
    study: Study
    lines: Sequence[StagesLine]
    next: Addressed
    copies: "Sequence[Card]"


def cards(studies: Sequence[Study], user: Any) -> list[Card]:
    """In the order of the studies; a test copy stands on the card of its study, if that is among them.

    Args:
        studies: with their stages.
    """
    now = timezone.now()
    stages = [stage for study in studies for stage in study.stages.all()]
    by_pk = {study.pk: study for study in studies}
    for stage in stages:
        stage.study = by_pk[stage.study_id]
    sections = running_sections(stages, now)
    newest = dict(
        Sitting.objects.filter(stage__in=stages)
        .order_by()
        .values_list("stage__study")
        .annotate(newest=Max("started_at"))
    )
    made: dict[int, Card] = {}
    copies: dict[int, list[Card]] = defaultdict(list)
    for study in studies:
        ordered = sorted(study.stages.all(), key=lambda stage: stage.index)
        own = {stage.index: sections[stage.pk] for stage in ordered}
        problem = panels.of_study(study).problem or instruments.problem_with(study.instrument) or ""
        wanted = next_action(Facts(study, ordered, own, now, newest.get(study.pk)), problem=problem)
        mine = copies[study.pk] = []
        made[study.pk] = Card(study, stages_lines(list(own.values())), addressed(study, user, wanted), mine)
    for study in studies:
        if study.test_of_id in made:
            copies[study.test_of_id].append(made.pop(study.pk))
    return list(made.values())


def stages_lines(sections: Sequence[StageSection]) -> list[StagesLine]:
    groups: list[list[StageSection]] = []
    for section in sections:
        if groups and _state(groups[-1][-1]) == _state(section):
            groups[-1].append(section)
        else:
            groups.append([section])
    return [
        StagesLine(
            group[0],
            group[-1],
            _state(group[0]),
            sum(section.complete for section in group),
            sum(section.stage.config.sittings for section in group if section.stage is not None),
        )
        for group in groups
    ]


def _state(section: StageSection) -> str:
    return section.stage.state if section.stage is not None else ""
