"""The statuses of a submission that rules are about. Any other string is kept and shown as it came. Imports nothing."""

RESERVED = "RESERVED"
ACTIVE = "ACTIVE"
AWAITING_REVIEW = "AWAITING REVIEW"
APPROVED = "APPROVED"
PARTIALLY_APPROVED = "PARTIALLY APPROVED"
REJECTED = "REJECTED"
RETURNED = "RETURNED"
TIMED_OUT = "TIMED-OUT"
SCREENED_OUT = "SCREENED OUT"

UNDER_WAY = (RESERVED, ACTIVE)
PAID = (APPROVED, PARTIALLY_APPROVED)
ENDED_UNPAID = (RETURNED, TIMED_OUT)
NO_CODE = "NOCODE"


def as_told(status: object) -> str:
    """One spelling for the two that the panel uses: bodies say `TIMED-OUT`, its list filter says `TIMED_OUT`."""
    text = str(status or "UNKNOWN").strip().upper()
    if text in ("TIMED_OUT", "TIMED OUT"):
        return TIMED_OUT
    return text.replace("_", " ")[:40]
