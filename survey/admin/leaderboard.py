"""The leaderboard of a study as a page: links in the table's head sort it, without a script."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse

from survey.admin_base.read_only_admin import admin_page
from survey.contracts.instruments import Learning
from survey.figures import Figure
from survey.figures.words import NOTHING, number
from survey.models import Study
from survey.services.answers.conditions import pairs_of
from survey.services.stages.leaderboard import (
    COLUMNS_NOTE,
    MAJORITIES_NOTE,
    LeaderboardLine,
    Sort,
    all_answers,
    bits_of,
    boards_of,
    carried_by,
    leaderboard,
    learning_of,
    read_by,
    shown_metrics,
    sorts_of,
)

WEIGHTINGS = {
    ("sampled", "design"): "sampled, weighted",
    ("sampled", "none"): "sampled, naive",
    ("holdout", "design"): "holdout",
    ("majorities", "none"): "majorities of the test stage",
}


@dataclass(frozen=True)
class SortableColumn:
    """A column that the table can be sorted by. `order` is what `aria-sort` says: empty unless it is sorted by it."""

    title: str
    link: str
    order: str
    is_number: bool


# By the name of the sort; the instrument's metrics follow.
HEADS = {
    "predictor": ("Predictor", False),
    "trained": ("Trained after", True),
    "evaluated": ("Judged by", True),
    "n": ("Answers", True),
}


# The title of each leaderboard, a note on it, and its name in the page's addresses.
BOARDS = (("", "", "texts"), ("With columns next to the texts", COLUMNS_NOTE, "columns"))


@dataclass(frozen=True)
class MetricHead:
    """The columns of a metric: over all answers, over each further part, and minus the main predictor's."""

    head: SortableColumn
    parts: Sequence[str]


def page(request: HttpRequest, study: Study) -> HttpResponse:
    """How the study's predictors did on later answers."""
    title = f"Leaderboard of {study.slug}"
    return admin_page(request, "study/leaderboard.html", title=title, study=study, **context(study, request.GET.dict()))


def context(study: Study, query: Mapping[str, str]) -> dict[str, Any]:
    """What the page shows, sorted as its address says; an unknown sort order means by stage."""
    learning = learning_of(study)
    sorts = sorts_of(learning)
    sort = query.get("sort", "")
    sort = sort if sort in sorts else "evaluated"
    reverse = query.get("reverse") == "1"
    conditions = pairs_of(study)
    level = query.get("condition", "")
    level = level if level in conditions else ""
    lines = leaderboard(study, sort=sort, reverse=reverse, level=level) if learning is not None else []
    return {
        "heads": {
            name: _head(name, title, is_number, sorts=sorts, sort=sort, reverse=reverse, level=level)
            for name, (title, is_number) in HEADS.items()
        },
        "metrics": [
            MetricHead(
                _head(metric.name, metric.head, True, sorts=sorts, sort=sort, reverse=reverse, level=level),
                [part.head for part in learning.parts[1:]] if learning is not None else [],
            )
            for metric in shown_metrics(learning)
        ],
        "hints": [metric.hint for metric in shown_metrics(learning)],
        "boards": [
            {"title": title, "note": note, "name": name, "lines": [_shown(line, learning) for line in board]}
            for (title, note, name), board in zip(BOARDS, boards_of(lines), strict=True)
            if board and learning is not None
        ],
        "conditions": conditions,
        "condition": level,
        "note": MAJORITIES_NOTE,
        "carried": carried_by(lines),
        "read": read_by(lines),
    }


def _head(
    name: str, title: str, is_number: bool, *, sorts: Mapping[str, Sort], sort: str, reverse: bool, level: str
) -> SortableColumn:
    is_sorted = name == sort
    falls = sorts[name][1] != reverse
    return SortableColumn(
        title=title,
        link="?"
        + urlencode(
            {
                "sort": name,
                **({"reverse": 1} if is_sorted and not reverse else {}),
                **({"condition": level} if level else {}),
            }
        ),
        order=("descending" if falls else "ascending") if is_sorted else "",
        is_number=is_number,
    )


def _shown(line: LeaderboardLine, learning: Learning) -> dict[str, Any]:
    return {
        "line": line,
        "counted": WEIGHTINGS.get((line.answers, line.weighting), "–"),
        "figures": [
            cell
            for metric in shown_metrics(learning)
            for cell in (
                *(
                    (
                        f"{metric.head} {part.head}" if place else metric.head,
                        *_cell(line.figures[metric.name][part.name], in_bits=metric.is_log_score),
                    )
                    for place, part in enumerate(learning.parts)
                ),
                (f"{metric.head} less the main one's", *_cell(line.difference[metric.name][all_answers(learning)])),
            )
        ],
    }


def _cell(figure: Figure, *, in_bits: bool = False) -> tuple[str, str, str]:
    """A figure, its interval, and the same figure in bits if it is a log score, in words."""
    if figure.value is None:
        return NOTHING, "", ""
    interval = "" if figure.interval is None else Figure(None, *figure.interval).in_words(3)
    return number(figure.value, 3), interval, f"{number(bits_of(figure), 3)} bits" if in_bits else ""
