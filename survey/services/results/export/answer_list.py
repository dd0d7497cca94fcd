"""Answers one by one, as a person reads them: filtered, searched and sorted by the database, and some rows at a time.

The values are those of the instrument's export. Panel ids are never read here.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from django.db.models import F, Q, QuerySet, Sum
from django.db.models.expressions import OrderBy

from survey.contracts import instruments
from survey.contracts.exports import AnswerPlace
from survey.contracts.tables import TIME, Column, ExtraFile
from survey.models import (
    Assignment,
    AssignmentCondition,
    ConditionLevel,
    Item,
    Question,
    Response,
    Sitting,
    Slot,
    Stage,
    Study,
)
from survey.models.question import plain_text
from survey.services.answers.conditions import hand_levels
from survey.services.answers.counting import ESTIMATED
from survey.services.answers.sitting_flags import marks_of
from survey.services.results.export.answer_values import AnswerValues
from survey.services.results.export.common_columns import in_utc

CHUNK = 500  # rows read together
OF_ANSWER = (
    "sitting__respondent",
    "sitting__booklet",
    "sitting__exclusion",
    "slot__stratum",
    "slot__item",
    "slot__booklet",
)
# What is read of each response; what the instrument reads follows the screen's name.
RESPONSE = ("assignment", "number", "server_ms", "screen")
SERVER_MS = RESPONSE.index("server_ms")
COUNTS, NOT = "counts", "not"
State = Assignment.State
BEFORE = (
    Column("respondent", "text", "Pseudonym of the person."),
    Column("question", "text", "What was asked about."),
    Column("evidence", "text", "Other questions that were shown with it."),
)
AFTER = (
    Column("seconds", "number", "For all pages of the item, by the server's clock.", digits=1),
    Column("stage", "number", "The stage, from 1.", whole=True),
    Column("position", "number", "Place among the person's items, from 1.", whole=True, heading="item"),
    Column("completed_at", TIME, "When the item was complete.", heading="answered"),
    Column("counts", "text", "Whether the answer counts in estimates, or why not."),
)


# Which answers

# Why an answer does not count, by name. Only what was complete in time can have one of the later reasons.
STATES: Mapping[str, tuple[str, State]] = {
    "open": ("being answered", State.LIVE),
    "unanswered": ("given back unanswered", State.RELEASED),
    "declined": ("left out by stopping", State.DECLINED),
    "withdrawn": ("taken back by the person", State.WITHDRAWN),
    "late": ("came too late", State.LATE),
}
EXCLUDED, PILOT, OTHER_ROLE = "excluded", "pilot", "control"
REASONS: Mapping[str, str] = {
    **{name: words for name, (words, _state) in STATES.items()},
    EXCLUDED: "excluded by a rule",
    PILOT: "of a pilot",
    OTHER_ROLE: "a control or a repeat",
}
SORTS: Mapping[str, Sequence[Any]] = {
    "respondent": ("sitting__respondent__pseudonym", "sitting_id", "position"),
    "stage": ("slot__stage__index", "sitting_id", "position"),
    "position": ("position", "sitting_id"),
    "completed_at": (F("completed_at"), "pk"),
    "seconds": (F("milliseconds"), "pk"),
}


@dataclass(frozen=True)
class Facts:
    """What some rows are made of: by item, by answer and by sitting."""

    items: Mapping[int, Any]
    responses: Mapping[int, Sequence[Sequence[Any]]]
    flags: Mapping[int, Sequence[str]]


@dataclass(frozen=True)
class Selection:
    """Which answers, in which order. `counts`: `COUNTS`, `NOT` or one of `REASONS`. `levels`: factor to level, as
    `read_condition` gave it. `person`: the beginning of a pseudonym. `words`: in a question's text. `sort`: one of
    `SORTS`, or empty: the newest people first, with their answers in order."""

    stage: int | None = None
    counts: str = ""
    levels: Mapping[str, str] = field(default_factory=dict)
    person: str = ""
    words: str = ""
    sort: str = ""
    descending: bool = False


class AnswerList:
    """The answers of a study that a selection names.

    Args:
        stages: all of the study's, in order, each with `study`.
    """

    def __init__(self, study: Study, stages: Sequence[Stage], selection: Selection) -> None:
        self.study, self.selection = study, selection
        self.stages = {stage.pk: stage for stage in stages}
        self.instrument = instruments.of_study(study)
        self.export = self.instrument.export
        names = self.export.first_look or {column.name: "" for column in self.export.columns}
        self.own_columns = [column for column in self.export.columns if column.name in names]
        self.headings = {name: heading for name, heading in names.items() if heading}
        self._shows_more = len(self.instrument.rows.questions) > 1
        self.columns = [*(BEFORE if self._shows_more else BEFORE[:2]), *self.own_columns, *AFTER]
        self._values_of = AnswerValues(self.instrument, self.own_columns, screen_at=len(RESPONSE) - 1)
        item = f"slot__item__{self.instrument.rows.item}"
        self._questions_beside = [f"{item}__{name}" for name in self.instrument.rows.questions]

    def count(self) -> int:
        return self._selected().count()

    def keys(self, first: int = 0, last: int | None = None) -> list[int]:
        """The keys of these answers, in order."""
        rows = self._selected()
        order = SORTS.get(self.selection.sort)
        if order is None:
            return list(rows.order_by("-sitting_id", "position").values_list("pk", flat=True)[first:last])
        if self.selection.sort == "seconds":
            rows = rows.annotate(milliseconds=Sum("responses__server_ms"))
        leading, *others = order
        by = leading if isinstance(leading, F) else F(leading)
        ordering: OrderBy = by.desc(nulls_last=True) if self.selection.descending else by.asc(nulls_last=True)
        return list(rows.order_by(ordering, *others).values_list("pk", flat=True)[first:last])

    def _selected(self) -> QuerySet[Assignment]:
        wanted = self.selection
        stages = [pk for pk, stage in self.stages.items() if wanted.stage in (None, stage.index)]
        # By the sittings, which are few: their answers lie in the order of an index.
        rows = Assignment.objects.filter(sitting__in=Sitting.objects.filter(stage__in=stages).order_by().values("pk"))
        if wanted.counts:
            rows = rows.filter(self._why(wanted.counts))
        if wanted.person:
            people = self.study.respondents.filter(pseudonym__startswith=wanted.person)
            rows = rows.filter(sitting__respondent__in=people.values("pk"))
        for factor, level in wanted.levels.items():
            of_sitting = ConditionLevel.objects.filter(factor=factor, level=level, sitting__stage__in=stages)
            of_item = AssignmentCondition.objects.filter(factor=factor, level=level)
            per = next(condition.per for condition in self.study.config.conditions if condition.factor == factor)
            rows = (
                rows.filter(sitting__in=of_sitting.values("sitting"))
                if per == "sitting"
                else rows.filter(pk__in=of_item.filter(assignment__sitting__stage__in=stages).values("assignment"))
            )
        if not wanted.words:
            return rows
        slots = Slot.objects.filter(stage__in=stages, item__in=self._items_with(wanted.words)).order_by()
        return rows.filter(slot__in=slots.values("pk"))

    def _why(self, name: str) -> Q:
        """The answers that count, that do not, or that do not for this reason."""
        if name in STATES:
            return Q(state=STATES[name][1])
        excluded = Q(sitting__exclusion__isnull=False)
        in_pilots = Q(slot__stage__in=[pk for pk, stage in self.stages.items() if stage.is_pilot])
        other_role = ~Q(slot__role__in=ESTIMATED)
        wanted = {EXCLUDED: excluded, PILOT: in_pilots, OTHER_ROLE: other_role}
        if name in wanted:
            return Q(state=State.COUNTED) & wanted[name]
        counting = Q(state=State.COUNTED) & ~(excluded | in_pilots | other_role)
        return counting if name == COUNTS else ~counting

    def _items_with(self, words: str) -> QuerySet[Any]:
        """The items that show a question with these words."""
        rows = self.instrument.rows
        if not rows.questions:
            return Item.objects.none().values("pk")
        questions = Question.objects.filter(bank=self.study.bank_id, text__icontains=words).values("pk")
        related: Any = Item._meta.get_field(rows.item)
        shows = Q()
        for name in rows.questions:
            shows |= Q(**{f"{name}__in": questions})
        showing = related.related_model._default_manager.filter(shows)
        return showing.order_by().values(related.field.name)

    # Their rows

    def rows(self, keys: Sequence[int]) -> list[tuple[Assignment, list[Any]]]:
        """Each of these answers with its values, in the order of the columns."""
        read = Assignment.objects.filter(pk__in=keys).select_related(*OF_ANSWER, *self._questions_beside)
        by_key = {answer.pk: answer for answer in read}
        assignments = [by_key[key] for key in keys if key in by_key]
        for assignment in assignments:
            assignment.slot.stage = assignment.sitting.stage = self.stages[assignment.slot.stage_id]
        if self.study.config.conditions and assignments:
            hand_levels(assignments)
        facts = Facts(
            self._values_of.items({assignment.slot.item_id for assignment in assignments}),
            self._responses(keys),
            self._present_flags(assignments),
        )
        return [(assignment, self._values(assignment, facts)) for assignment in assignments]

    def _responses(self, keys: Sequence[int]) -> Mapping[int, Sequence[Sequence[Any]]]:
        """What was read of each response, by assignment and in their order."""
        responses: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
        rows = Response.objects.filter(assignment__in=keys)
        ordered = rows.order_by("assignment", "number", *self.export.response_order)
        for row in ordered.values_list(*RESPONSE, *self._values_of.lookups):
            own = responses[row[0]]
            if own and own[-1][1] == row[1]:
                own.pop()  # An earlier row of the same response.
            own.append(row)
        return responses

    def table(self, name: str) -> ExtraFile:
        """All of them as a file; its rows are read while they are written."""
        return ExtraFile(name, self.columns, self._all_rows())

    def _all_rows(self) -> Iterator[Sequence[Any]]:
        keys = iter(self.keys())
        while part := list(islice(keys, CHUNK)):
            yield from (values for _assignment, values in self.rows(part))

    def _values(self, assignment: Assignment, facts: Facts) -> list[Any]:
        sitting = assignment.sitting
        place = AnswerPlace(
            sitting.study_sha256,
            sitting.language,
            sitting.public_id.hex,
            assignment.slot.stage.seed,
            assignment.position,
            assignment.levels() if self.study.config.conditions else {},
        )
        responses = facts.responses.get(assignment.pk, ())
        own = self._values_of.values(facts.items.get(assignment.slot.item_id), responses, place)
        question, *others = [*self._questions(assignment), ""]
        return [
            sitting.respondent.pseudonym,
            question,
            *(["\n\n".join(filter(None, others)) or None] if self._shows_more else []),
            *(
                None if self.study.is_blind and column.reveals_condition else value
                for column, value in zip(self.own_columns, own, strict=True)
            ),
            sum(response[SERVER_MS] for response in responses) / 1000 if responses else None,
            assignment.slot.stage.index,
            assignment.position,
            in_utc(assignment.completed_at),
            self._standing(assignment, facts.flags.get(sitting.pk, ())),
        ]

    def _questions(self, assignment: Assignment) -> Iterator[str]:
        """First the one that is asked about."""
        rows = self.instrument.rows
        row = getattr(assignment.slot.item, rows.item) if rows.item else None
        for name in rows.questions:
            question = getattr(row, name)
            if question is not None:
                yield plain_text(question.text)

    def _present_flags(self, assignments: Sequence[Assignment]) -> Mapping[int, Sequence[str]]:
        """Of sittings whose stage is not frozen yet, the flags that exclude them as things are."""
        reasons = self.study.config.exclusions.flags
        is_open = {a.sitting_id for a in assignments if a.slot.stage.state != Stage.State.FROZEN}
        if not reasons or not is_open:
            return {}
        marks = marks_of(self.study, is_open)
        return {sitting: [flag for flag in flags if flag in reasons] for sitting, flags in marks.items()}

    def _standing(self, assignment: Assignment, flags: Sequence[str]) -> str:
        """Whether an answer counts, or why not."""
        for words, state in STATES.values():
            if assignment.state == state:
                return words
        exclusion = getattr(assignment.sitting, "exclusion", None)
        if exclusion is not None:
            return f"{REASONS[EXCLUDED]}: {', '.join(exclusion.flags)}"
        if assignment.slot.stage.is_pilot:
            return REASONS[PILOT]
        if assignment.slot.role not in ESTIMATED:
            return "a control" if assignment.slot.role == Slot.Role.CONTROL else "a repeat"
        return f"counts, but would be excluded now: {', '.join(flags)}" if flags else "counts"
