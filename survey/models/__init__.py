"""What is stored, one subject a file. Imports nothing of survey but `study_file`.

Rules that one row can hold are constraints, each with a name; rules that span rows live in services.
"""

from .audit import ApiToken, AuditEntry
from .language_model import AnswerCollection, LanguageModel, ModelAnswer
from .plan import Booklet, CandidateSet, Item, Slot, Stratum
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

__all__ = [
    "AnswerCollection",
    "ApiToken",
    "Assignment",
    "AssignmentCondition",
    "AuditEntry",
    "Bank",
    "Booklet",
    "CandidateSet",
    "CheckAttempt",
    "CompletionCode",
    "ConditionLevel",
    "Consent",
    "Evaluation",
    "FormAnswer",
    "Item",
    "JobStep",
    "LanguageModel",
    "ModelAnswer",
    "PanelIdentity",
    "Payment",
    "PaymentBatch",
    "Posting",
    "PredictorRun",
    "Question",
    "Respondent",
    "Response",
    "Score",
    "Sitting",
    "Slot",
    "SnapshotAnswer",
    "Stage",
    "Stratum",
    "Study",
    "Submission",
    "Task",
    "WebhookEvent",
]
