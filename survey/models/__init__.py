"""The database tables, one file per subject. Of survey, only `study_file` is imported.

Rules that one row can hold are constraints, each with a name; rules that span rows live in services.
"""

from .account import FirstAccountLink
from .alert import Alert, WatchRecord
from .amendment import Amendment
from .audit import ApiToken, AuditEntry, AuditSeal
from .budget_count import BudgetCount
from .checks import AttentionAnswer, DataChoice, QuestionReport
from .estimate import StoredEstimate
from .exclusion import Exclusion
from .job import Job
from .language_model import AnswerCollection, LanguageModel, ModelAnswer
from .leased import Leased
from .link import EntryLink
from .live import LiveSnapshot
from .logo import Logo
from .look import Look
from .membership import StudyInvitation, StudyMembership
from .operation import Erasure, KeyFingerprint, Restore
from .passage import CutText, TokenExpectation, TokenizerRecord
from .plan import Booklet, CandidateSet, Item, Slot, Stratum
from .practice import PracticeAnswer
from .predictor import Evaluation, JobStep, PredictorRun, ScoringPart, SnapshotAnswer
from .question import Bank, Question, Task
from .quota import QuotaPlace
from .reading import NgramModel, QuestionText, Reading, WordNetwork
from .receiver import Delivery, Receiver
from .recruitment import Payment, PaymentBatch, Posting, PostingPart, Rehearsal, Submission, WebhookEvent
from .screen_timing import ScreenTiming, UnfinishedScreen
from .second_factor import CodeApp, RecoveryCodes
from .sitting import (
    Assignment,
    AssignmentCondition,
    CheckAttempt,
    ChosenLevels,
    ConditionLevel,
    Consent,
    FormAnswer,
    PanelIdentity,
    Respondent,
    Response,
    Score,
    Sitting,
    WaveIdentity,
)
from .study import CompletionCode, Stage, Study
from .upload import Upload
from .withdrawal import Withdrawal

__all__ = [
    "Alert",
    "Amendment",
    "AnswerCollection",
    "ApiToken",
    "Assignment",
    "AssignmentCondition",
    "AttentionAnswer",
    "AuditEntry",
    "AuditSeal",
    "Bank",
    "Booklet",
    "BudgetCount",
    "CandidateSet",
    "CheckAttempt",
    "ChosenLevels",
    "CodeApp",
    "CompletionCode",
    "ConditionLevel",
    "Consent",
    "CutText",
    "DataChoice",
    "Delivery",
    "EntryLink",
    "Erasure",
    "Evaluation",
    "Exclusion",
    "FirstAccountLink",
    "FormAnswer",
    "Item",
    "Job",
    "JobStep",
    "KeyFingerprint",
    "LanguageModel",
    "Leased",
    "LiveSnapshot",
    "Logo",
    "Look",
    "ModelAnswer",
    "NgramModel",
    "PanelIdentity",
    "Payment",
    "PaymentBatch",
    "Posting",
    "PostingPart",
    "PracticeAnswer",
    "PredictorRun",
    "Question",
    "QuestionReport",
    "QuestionText",
    "QuotaPlace",
    "Reading",
    "Receiver",
    "RecoveryCodes",
    "Rehearsal",
    "Respondent",
    "Response",
    "Restore",
    "Score",
    "ScoringPart",
    "ScreenTiming",
    "Sitting",
    "Slot",
    "SnapshotAnswer",
    "Stage",
    "StoredEstimate",
    "Stratum",
    "Study",
    "StudyInvitation",
    "StudyMembership",
    "Submission",
    "Task",
    "TokenExpectation",
    "TokenizerRecord",
    "UnfinishedScreen",
    "Upload",
    "WatchRecord",
    "WaveIdentity",
    "WebhookEvent",
    "Withdrawal",
    "WordNetwork",
]
