"""The database tables, one file per subject. Of survey, only `study_file` is imported.

Rules that one row can hold are constraints, each with a name; rules that span rows live in services.
"""

from .amendment import Amendment
from .audit import ApiToken, AuditEntry
from .checks import AttentionAnswer, DataChoice, QuestionReport
from .exclusion import Exclusion
from .language_model import AnswerCollection, LanguageModel, ModelAnswer
from .leased import Leased
from .link import EntryLink
from .plan import Booklet, CandidateSet, Item, Slot, Stratum
from .practice import PracticeAnswer
from .predictor import Evaluation, JobStep, PredictorRun, SnapshotAnswer
from .question import Bank, Question, Task
from .recruitment import Payment, PaymentBatch, Posting, Submission, WebhookEvent
from .sitting import (
    Assignment,
    AssignmentCondition,
    CheckAttempt,
    ConditionLevel,
    Consent,
    FormAnswer,
    PanelIdentity,
    Respondent,
    Response,
    Score,
    Sitting,
)
from .study import CompletionCode, Stage, Study
from .timing import ScreenTiming, UnfinishedScreen
from .withdrawal import Withdrawal

__all__ = [
    "Amendment",
    "AnswerCollection",
    "ApiToken",
    "Assignment",
    "AssignmentCondition",
    "AttentionAnswer",
    "AuditEntry",
    "Bank",
    "Booklet",
    "CandidateSet",
    "CheckAttempt",
    "CompletionCode",
    "ConditionLevel",
    "Consent",
    "DataChoice",
    "EntryLink",
    "Evaluation",
    "Exclusion",
    "FormAnswer",
    "Item",
    "JobStep",
    "LanguageModel",
    "Leased",
    "ModelAnswer",
    "PanelIdentity",
    "Payment",
    "PaymentBatch",
    "Posting",
    "PracticeAnswer",
    "PredictorRun",
    "Question",
    "QuestionReport",
    "Respondent",
    "Response",
    "Score",
    "ScreenTiming",
    "Sitting",
    "Slot",
    "SnapshotAnswer",
    "Stage",
    "Stratum",
    "Study",
    "Submission",
    "Task",
    "UnfinishedScreen",
    "WebhookEvent",
    "Withdrawal",
]
