"""The leaderboard of a study as a page: a table that sorts by the links in its head, without any script."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from survey.models import Study
from survey.services.answers.conditions import pairs_of
from survey.services.stages.leaderboard import SORTS, Line, MetricValue, leaderboard

WEIGHTINGS = {
    ("sampled", "design"): "sampled, weighted",
    ("sampled", "none"): "sampled, naive",
    ("holdout", "design"): "holdout",
}


@dataclass(frozen=True)
class Head:
    """A column that the table can be sorted by. `order` is what `aria-sort` says: empty unless it is sorted by it."""

    title: str
    link: str
    order: str
    is_number: bool


# By the name of the sort.
HEADS = {
    "predictor": ("Predictor", False),
    "trained": ("Trained after", True),
    "evaluated": ("Judged by", True),
    "n": ("Answers", True),
    "auc": ("AUC", True),
    "nll": ("NLL", True),
}


def context(study: Study, query: Mapping[str, str]) -> dict[str, Any]:
    """What the page shows, sorted as its address says; an address that means nothing sorts by stage."""
    sort = query.get("sort", "")
    sort = sort if sort in SORTS else "evaluated"
    reverse = query.get("reverse") == "1"
    conditions = pairs_of(study)
    level = query.get("condition", "")
    level = level if level in conditions else ""
    return {
        "heads": {name: _head(name, sort, reverse, level) for name in HEADS},
        "lines": [_shown(line) for line in leaderboard(study, sort=sort, reverse=reverse, level=level)],
        "conditions": conditions,
        "condition": level,
    }


def _head(name: str, sort: str, reverse: bool, level: str) -> Head:
    title, is_number = HEADS[name]
    is_sorted = name == sort
    falls = SORTS[name][1] != reverse
    return Head(
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


def _shown(line: Line) -> dict[str, Any]:
    return {
        "line": line,
        "counted": WEIGHTINGS.get((line.answers, line.weighting), "–"),
        "figures": [
            _cell(found)
            for metric in ("auc", "nll")
            for found in (
                *(line.figures[metric][part] for part in ("overall", "previous_correct", "previous_incorrect")),
                line.difference[metric]["overall"],
            )
        ],
    }


def _cell(figure: MetricValue) -> tuple[str, str]:
    """A figure and its interval in words."""
    if figure.value is None:
        return "–", ""
    if figure.low is None or figure.high is None:
        return f"{figure.value:.3f}", ""
    return f"{figure.value:.3f}", f"{figure.low:.3f} to {figure.high:.3f}"
