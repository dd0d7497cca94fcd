"""Where an instrument keeps its items and answers, and how the core reads them because of it. Imports Django alone."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from django.db.models import Model, prefetch_related_objects

if TYPE_CHECKING:
    import numpy as np
    from django.db.models import QuerySet

    from survey.models import Assignment, Item, Question, Response

SLOT_ITEM = "slot__item__"
# SQLite takes no more than some hundred keys of related rows in one statement.
READ_TOGETHER = 500
# Fields of a question that screens do not show, for `hidden_of_questions`.
NEVER_SHOWN = ("answer", "reason", "flag_reason")


@dataclass(frozen=True)
class ItemRows:
    """The rows of an instrument's own that say what an item shows and what was answered.

    Args:
        item: the relation from an item to its row, which is one-to-one.
        questions: the fields of that row that name the questions it shows; first the one that is asked about. Rows of
            candidates have fields of these names: places in the list of questions, below 0 where there is none.
        answers: the relations from a response to the rows of what was answered, which are one-to-one. A path may go on
            from there, as "written_word__scores".
        labels: those of `answers` that labels, outcomes and later screens read; by default all.
        shown: further relations of the item's row that a screen reads.
        hidden_of_questions: fields of the questions that no screen reads, so that they are not read for it.
        hidden: other fields beyond the item's row that no screen reads.
        of_assignment: relations of the assignment itself that a screen reads.
        exported: further relations of the item's row that only exports read.
        labelled: further relations of the item's row that labels, estimates and exports read.
        conflicts: the fields of `questions` that may come only once in a booklet, in the order of their keys; by
            default all.
        seen_first: by screen, how many of the questions a person has seen on that screen; all where it is not named.
        outcomes_read_items: whether `Estimates.outcomes` needs the items' rows, and not the answers alone.
    """

    item: str = ""
    questions: Sequence[str] = ()
    answers: Sequence[str] = ()
    labels: Sequence[str] | None = None
    shown: Sequence[str] = ()
    hidden_of_questions: Sequence[str] = ()
    hidden: Sequence[str] = ()
    of_assignment: Sequence[str] = ()
    exported: Sequence[str] = ()
    labelled: Sequence[str] = ()
    conflicts: Sequence[str] | None = None
    seen_first: Mapping[str, int] = field(default_factory=dict)
    outcomes_read_items: bool = True

    # For screens

    def with_items(self, assignments: "QuerySet[Assignment]") -> "QuerySet[Assignment]":
        """The queryset with all that a screen shows of an item, so that a page reads it in one statement."""
        joined = [*self._of_item(self.questions, self.shown), *self.of_assignment]
        if not joined:
            return assignments
        hidden = [f"{name}__{field}" for name in self.questions for field in self.hidden_of_questions]
        paths = [f"{SLOT_ITEM}{self.item}__{path}" for path in (*hidden, *self.hidden)]
        return assignments.select_related(*joined).defer(*paths)

    def with_answers(self, responses: "QuerySet[Response]") -> "QuerySet[Response]":
        """The queryset with what was answered, as far as later screens read it."""
        names = dict.fromkeys(path.partition("__")[0] for path in self._labels)
        return responses.select_related(*names) if names else responses

    # For labels, estimates and exports

    @property
    def export_paths(self) -> list[str]:
        """The relations of an assignment that the files of an export read."""
        return [*_of_responses(self.answers), *self._of_item(self._tasks, self.labelled, self.exported)]

    @property
    def label_paths(self) -> list[str]:
        """The relations of an assignment that labels, estimands and divisions read."""
        return [*_of_responses(self._labels), *self._of_item(self._tasks, self.labelled)]

    @property
    def outcome_paths(self) -> list[str]:
        """The relations of an assignment that outcomes read. Two long questions per item would take three times as long
        as the answers alone."""
        return self.label_paths if self.outcomes_read_items else _of_responses(self._labels)

    # Questions of stored items

    def questions_of(self, items: "Sequence[Item]") -> "list[tuple[Question, ...]]":
        """The questions that each item shows, in order. The items may be of several studies."""
        rows = self._rows_of(items, joined=True)
        return [
            tuple(question for name in self.questions if (question := getattr(rows[item.pk], name)) is not None)
            for item in items
        ]

    def questions_seen(self, items: "Sequence[Item]", screens: Sequence[str]) -> "list[tuple[Question, ...]]":
        """Those of `questions_of` that a person has seen of each item on the screen of that name, or before it."""
        return [
            questions[: self.seen_first.get(screen)]
            for questions, screen in zip(self.questions_of(items), screens, strict=True)
        ]

    def question_keys_of(self, items: "Sequence[Item]") -> list[tuple[int, ...]]:
        """The primary keys of the questions of items whose rows were read (`LabelReading.read`)."""
        if not self.item:
            return [() for _item in items]
        return [_keys(getattr(item, self.item), self.questions) for item in items]

    # What may come only once in a booklet

    def conflict_keys(self, row: "np.void") -> tuple[int, ...]:
        """Of a candidate: the places of its questions."""
        names = [name for name in self._conflicts if name in (row.dtype.names or ())]
        return tuple(int(row[name]) for name in names if row[name] >= 0)

    def conflict_keys_of(self, items: "Sequence[Item]") -> list[tuple[int, ...]]:
        """Of stored items: the primary keys of their questions."""
        rows = self._rows_of(items, joined=False)
        return [_keys(rows[item.pk], self._conflicts) for item in items]

    @property
    def _labels(self) -> Sequence[str]:
        return self.answers if self.labels is None else self.labels

    @property
    def _conflicts(self) -> Sequence[str]:
        return self.questions if self.conflicts is None else self.conflicts

    @property
    def _tasks(self) -> list[str]:
        return [f"{name}__task" for name in self.questions]

    def _of_item(self, *groups: Sequence[str]) -> list[str]:
        """Paths from an assignment to these relations of the item's row, or to the row where there are none."""
        if not self.item:
            return []
        row = f"{SLOT_ITEM}{self.item}"
        return [f"{row}__{path}" for paths in groups for path in paths] or [row]

    def _rows_of(self, items: "Sequence[Item]", *, joined: bool) -> Mapping[int, Any]:
        """The items' rows by their keys: with their questions, or with no more than the questions' keys."""
        if not items or not self.questions:
            return {item.pk: None for item in items}
        related: Any = type(items[0])._meta.get_field(self.item)
        rows = related.related_model._default_manager.all()
        rows = rows.select_related(*self.questions) if joined else rows.only(*self.questions)
        by_key: Mapping[int, Any] = rows.in_bulk([item.pk for item in items])
        return by_key


def _of_responses(paths: Sequence[str]) -> list[str]:
    return [f"responses__{path}" for path in paths]


def _keys(row: Any, names: Sequence[str]) -> tuple[int, ...]:
    keys = (getattr(row, f"{name}_id") for name in names)
    return tuple(key for key in keys if key is not None)


def read_relations(rows: Sequence[Model], paths: Collection[str]) -> None:
    """Read these relations of many rows, some hundred at a time."""
    for start in range(0, len(rows), READ_TOGETHER):
        prefetch_related_objects(rows[start : start + READ_TOGETHER], *paths)
