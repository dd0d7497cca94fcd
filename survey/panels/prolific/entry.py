"""Who stands at the door, by what Prolific says. Imports only what is beside it: services call it by its name.

Two ways: the link is signed, or the submission is looked up. Looking up is brief, and where no answer comes in time the
person is let in: people who came to work are not sent away over our trouble, and reconciliation shows any submission
that the panel does not know. A study that takes only signed links lets nobody in unproved.
"""

from collections.abc import Mapping

from survey.contracts.panels import Verdict
from survey.panels.errors import PanelError, PanelMissing

from .client import is_configured, open_client, open_public_client
from .statuses import REJECTED, RETURNED, TIMED_OUT, as_told
from .tokens import BadToken, KeysUnavailable, check_token

OVER = (RETURNED, TIMED_OUT, REJECTED)
TOKEN = "prolific_token"  # noqa: S105 - a parameter's name


class Prolific:
    # https://researcher-help.prolific.com, "Prolific's payment principles": 6.00 GBP or 8.00 USD.
    minimum_an_hour: Mapping[str, int] = {"GBP": 600, "USD": 800}

    def verdict(
        self, *, person: str, study: str, submission: str, given: Mapping[str, str], host: str, signed: bool
    ) -> Verdict:
        if signed:
            found = _by_token(person=person, study=study, submission=submission, given=given, host=host)
            if found != Verdict.NOT_KNOWN:
                return found
        return _by_looking_up(person=person, study=study, submission=submission)


def _by_token(*, person: str, study: str, submission: str, given: Mapping[str, str], host: str) -> Verdict:
    token = given.get(TOKEN, "")
    if not token:
        return Verdict.NOT_SENT

    def read_keys() -> Mapping[str, object]:
        with open_public_client() as client:
            return client.study_keys()

    expected = {"PROLIFIC_PID": person, "STUDY_ID": study, "SESSION_ID": submission}
    try:
        check_token(token, expected=expected, submission=submission, host=host, read_keys=read_keys)
    except BadToken:
        return Verdict.NOT_SENT
    except KeysUnavailable:
        return Verdict.NOT_KNOWN
    return Verdict.SENT


def _by_looking_up(*, person: str, study: str, submission: str) -> Verdict:
    if not is_configured():
        return Verdict.NOT_KNOWN
    try:
        with open_client(at_the_door=True) as client:
            found = client.submission(submission)
    except PanelMissing:
        return Verdict.NOT_SENT
    except PanelError:
        return Verdict.NOT_KNOWN
    if as_told(found.get("status")) in OVER:
        return Verdict.NOT_SENT  # Whoever began now would work for nothing.
    told = (str(found.get("participant_id") or found.get("participant") or ""), str(found.get("study_id") or ""))
    # A field that does not come proves nothing against the person.
    if all(not theirs or theirs == ours for theirs, ours in zip(told, (person, study), strict=True)):
        return Verdict.SENT if told[0] else Verdict.NOT_KNOWN
    return Verdict.NOT_SENT
