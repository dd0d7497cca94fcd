"""The toy panel as Hunch knows it: its names, its door, and what its words mean."""

from collections.abc import Mapping
from datetime import datetime

from survey.contracts.panels import (
    PAY_KEYS,
    Panel,
    PanelIds,
    PanelOptions,
    PostingState,
    SubmissionStatus,
    Verdict,
)
from survey.exceptions import EntryRefused
from survey.models import Study
from survey.study_file import StudyConfig

from . import server
from .client import ToyClient

SUBMISSIONS = {
    "playing": SubmissionStatus.UNDER_WAY,
    "waiting": SubmissionStatus.AWAITING_REVIEW,
    "thanked": SubmissionStatus.APPROVED,
    "gone": SubmissionStatus.RETURNED,
    "asleep": SubmissionStatus.TIMED_OUT,
}
POSTINGS = {
    "sketched": PostingState.DRAFT,
    "swinging": PostingState.ACTIVE,
    "resting": PostingState.PAUSED,
}


class ToyOptions(PanelOptions):
    """`crew`: whom the panel asks. `most_people`: how many may begin; 0 for any number."""

    crew: str
    most_people: int = 0


class ToyPanel(Panel):
    contract = 1
    name = "toypanel"
    title = "the toy panel"
    options_model = ToyOptions
    keys = PAY_KEYS | {"places", "spending_cap"}
    client = ToyClient
    minimum_an_hour = {"USD": 500, "GBP": 400}
    no_codes = frozenset({"-"})

    def parameter_names(self, config: StudyConfig) -> Mapping[str, str]:
        return {"person": "toy_who", "study": "toy_job", "submission": "toy_ticket"}

    def placeholder(self, parameter: str) -> str:
        return f"~{parameter}~"

    def verdict(self, study: Study, ids: PanelIds, *, query: Mapping[str, str], host: str) -> Verdict:
        ticket = server.SERVER.tickets.get(ids.submission)
        return Verdict.SENT if ticket is not None and ticket["who"] == ids.person else Verdict.NOT_SENT

    def admit(self, study: Study, ids: PanelIds, *, now: datetime) -> None:
        most = self.options(study.config).most_people
        if most and study.respondents.count() >= most:
            raise EntryRefused("The crew of this study is complete.", code="full")

    def submission_status(self, text: str) -> SubmissionStatus:
        return SUBMISSIONS.get(text, SubmissionStatus.UNKNOWN)

    def posting_state(self, text: str) -> PostingState:
        return POSTINGS.get(text, PostingState.UNKNOWN)
