"""What an assignment holds: the times of its passage and the answer to its question; and why times are marked."""

from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from survey.models import Assignment, Response

    from .models import PassageAnswer, WordTimes

# The server's clock and the browser's may differ by so much, since pages and answers travel.
FASTER_MS, SLOWER_MS = 2_000, 10_000


def times_of(assignment: "Assignment") -> "WordTimes | None":
    return next(
        (response.word_times for response in assignment.responses.all() if hasattr(response, "word_times")), None
    )


def answer_of(assignment: "Assignment") -> "PassageAnswer | None":
    return next(
        (response.passage_answer for response in assignment.responses.all() if hasattr(response, "passage_answer")),
        None,
    )


def server_marks(response: "Response", *, nonce: str, spent_ms: int) -> "tuple[int | None, Sequence[str]]":
    """Milliseconds from the beginning to the answer by the server's clock, None where this window has not begun the
    passage; and what that says against the times.

    Args:
        spent_ms: how long the person took by the browser's clock, from the dashes to the last word.
    """
    openings = list(response.assignment.passage_openings.all())
    own = [opening for opening in openings if opening.nonce == nonce]
    marks = []
    if len(openings) > 1:
        marks.append("opened_again")
    if not own:
        return None, [*marks, "not_opened"]
    passed = milliseconds(own[0].opened_at, response.answered_at)
    # Simulated people do not wait: nobody asks whether somebody is one unless the clocks differ.
    if not -SLOWER_MS <= spent_ms - passed <= FASTER_MS and not response.assignment.sitting.respondent.is_simulated:
        marks.append("server_clock")
    return passed, marks


def milliseconds(since: datetime, until: datetime) -> int:
    return max(0, int((until - since).total_seconds() * 1000))
