"""Prolific's words for the states of postings and submissions, and what each means here. Unknown words are kept."""

from survey.contracts.panels import PostingState, SubmissionStatus

SUBMISSIONS = {
    "RESERVED": SubmissionStatus.RESERVED,
    "ACTIVE": SubmissionStatus.UNDER_WAY,
    "AWAITING REVIEW": SubmissionStatus.AWAITING_REVIEW,
    "APPROVED": SubmissionStatus.APPROVED,
    "PARTIALLY APPROVED": SubmissionStatus.PARTIALLY_APPROVED,
    "REJECTED": SubmissionStatus.REJECTED,
    "RETURNED": SubmissionStatus.RETURNED,
    "TIMED-OUT": SubmissionStatus.TIMED_OUT,
    "SCREENED OUT": SubmissionStatus.SCREENED_OUT,
}
POSTINGS = {
    "UNPUBLISHED": PostingState.DRAFT,
    "SCHEDULED": PostingState.SCHEDULED,
    "PUBLISHING": PostingState.PUBLISHING,
    "ACTIVE": PostingState.ACTIVE,
    "PAUSED": PostingState.PAUSED,
    "AWAITING REVIEW": PostingState.AWAITING_REVIEW,
    "COMPLETED": PostingState.COMPLETED,
}
NO_CODE = "NOCODE"  # Prolific's value in place of a code if the person entered none.


def in_one_spelling(status: object) -> str:
    """Bodies say `TIMED-OUT`, the filter of a list says `TIMED_OUT`: one spelling for both, as it is stored."""
    text = str(status or "UNKNOWN").strip().upper()
    if text in ("TIMED_OUT", "TIMED OUT"):
        return "TIMED-OUT"
    return text.replace("_", " ")[:40]
