"""Prolific as a panel: its parameters, whether it sent a person, and what its words mean.

There are two ways to know that Prolific sent somebody: the link is signed, or the submission is looked up. A look-up is
brief, and one that fails lets nobody in: the person is asked to try again. A study that takes only signed links lets
nobody in without one.
"""

import math
import re
from collections.abc import Mapping, Sequence

from django.conf import settings

from survey.contracts.panels import (
    PAY_KEYS,
    FeeRates,
    Invitations,
    Invitee,
    LookedUp,
    Panel,
    PanelCannot,
    PanelClient,
    PanelIds,
    PanelMissing,
    PostingState,
    SubmissionStatus,
    Verdict,
)
from survey.models import Posting, Stage, Study
from survey.study_file import StudyConfig

from .account import ProlificAccount
from .client import is_configured, open_client, open_public_client
from .drafts import group_of_wave, mark_of
from .statuses import NO_CODE, POSTINGS, SUBMISSIONS, in_one_spelling
from .tokens import BadToken, KeysUnavailable, check_token

PERSON, STUDY, SUBMISSION = "PROLIFIC_PID", "STUDY_ID", "SESSION_ID"
WORKSPACE = "workspace_id"  # In the token alone.
TOKEN = "prolific_token"  # noqa: S105 - a parameter's name
OVER = (SubmissionStatus.RETURNED, SubmissionStatus.TIMED_OUT, SubmissionStatus.REJECTED)


class Prolific(Panel):
    contract = 1
    name = "prolific"
    title = name_for_people = "Prolific"
    keys = PAY_KEYS | {
        "places",
        "maximum_minutes",
        "spending_cap",
        "exclude_people_of",
        "signed_entry",
        "screen_out_pay",
        "screen_out_places",
        "project",
        "devices",
        "filters",
        "filter_set",
        "participant_group",
        "representative_sample",
        "content_warning",
        "content_warning_details",
    }
    client = ProlificAccount
    has_parts = True  # Quotas and representative samples.
    # https://researcher-help.prolific.com, "Prolific's payment principles": 6.00 GBP or 8.00 USD.
    minimum_an_hour = {"GBP": 600, "USD": 800}
    recommended_an_hour = {"GBP": 900, "USD": 1200}
    # https://www.prolific.com/pricing: 42.8 % for companies, 33.3 % for universities; VAT of at most 20 % on the fee.
    highest_fees = FeeRates(fee=4280, vat=2000)
    # https://docs.prolific.com, custom screening: 0.10 GBP or 0.14 USD.
    minimum_screen_out = {"GBP": 10, "USD": 14}
    no_codes = frozenset({NO_CODE})
    id_pattern = re.compile(r"^[0-9A-Za-z_-]{1,64}$")

    def parameter_names(self, config: StudyConfig) -> Mapping[str, str]:
        return {"person": PERSON, "study": STUDY, "submission": SUBMISSION}

    def token_name(self, config: StudyConfig) -> str:
        return TOKEN if config.panel.signed_entry else ""

    def shortest_maximum(self, minutes: int) -> int:
        return math.ceil(2 + 2 * minutes + 2 * math.sqrt(minutes))

    def placeholder(self, parameter: str) -> str:
        return f"{{{{%{parameter}%}}}}"

    def verdict(self, study: Study, ids: PanelIds, *, query: Mapping[str, str], host: str) -> Verdict:
        if not study.config.panel.signed_entry:
            return Verdict.NOT_KNOWN
        return _by_token(ids, query=query, host=host)

    def can_look_up(self) -> bool:
        return is_configured()

    def look_up(self, study: Study, ids: PanelIds) -> LookedUp:
        return _by_looking_up(ids)

    def mark(self, posting: Posting) -> str:
        return mark_of(posting)

    def invite(
        self, stage: Stage, people: Sequence[Invitee], *, root: str = "", client: PanelClient | None = None
    ) -> Invitations:
        """Put them into the panel's group of the wave. The wave's posting is for its members alone."""
        if client is None:
            raise PanelCannot("prolific: it is asked to invite people, and nobody asked it")
        study = stage.study
        group = client.group(group_of_wave(study, stage.wave), project=study.config.panel.project or "")
        if people:
            client.add_to_group(group, [person.ids.person for person in people])
        return Invitations(len(people))

    def own_group(self, config: StudyConfig) -> str:
        """A group belongs to a project or a workspace: without either, none is kept."""
        is_known = config.panel.project or settings.HUNCH_PROLIFIC_WORKSPACE
        return f"{config.slug} took part" if is_known and len(config.stages) > 1 else ""

    def invited_group(self, posting: Posting) -> str:
        return group_of_wave(posting.study, posting.wave)

    def submission_status(self, text: str) -> SubmissionStatus:
        return SUBMISSIONS.get(text, SubmissionStatus.UNKNOWN)

    def posting_state(self, text: str) -> PostingState:
        return POSTINGS.get(text, PostingState.UNKNOWN)


def _by_token(ids: PanelIds, *, query: Mapping[str, str], host: str) -> Verdict:
    token = query.get(TOKEN, "")
    if not token:
        return Verdict.NOT_SENT

    def read_keys() -> Mapping[str, object]:
        with open_public_client() as client:
            return client.study_keys()

    expected = {PERSON: ids.person, STUDY: ids.study, SUBMISSION: ids.submission}
    if settings.HUNCH_PROLIFIC_WORKSPACE:
        expected[WORKSPACE] = settings.HUNCH_PROLIFIC_WORKSPACE
    try:
        check_token(token, expected=expected, submission=ids.submission, host=host, read_keys=read_keys)
    except BadToken:
        return Verdict.NOT_SENT
    except KeysUnavailable:
        return Verdict.NOT_KNOWN
    return Verdict.SENT


def _by_looking_up(ids: PanelIds) -> LookedUp:
    try:
        with open_client(at_the_door=True) as client:
            submission = client.submission(ids.submission)
    except PanelMissing:
        return LookedUp(Verdict.NOT_SENT)
    if SUBMISSIONS.get(in_one_spelling(submission.get("status"))) in OVER:
        return LookedUp(Verdict.NOT_SENT)  # A person who began now would not be paid.
    person = str(submission.get("participant_id") or submission.get("participant") or "")
    study, parent = str(submission.get("study_id") or ""), str(submission.get("parent_study_id") or "")
    # A missing field is no proof against the person.
    if person not in ("", ids.person) or (study and ids.study not in (study, parent)):
        return LookedUp(Verdict.NOT_SENT)
    return LookedUp(Verdict.SENT if person else Verdict.NOT_KNOWN, part_of=parent)
