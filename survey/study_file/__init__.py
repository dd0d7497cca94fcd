"""The study file (TOML): its keys, their defaults and limits. Imports pydantic, bandit's designs, survey's exceptions.

`parse` turns a file's text into a checked `StudyConfig` or raises `StudyFileError` with a line for every problem. The
whole study is one file, so it can be reviewed, versioned and preregistered. docs/study-file.md lists every key.
"""

from .answerer import AnswererConfig
from .attention import AttentionCheckConfig
from .base import (
    SEED_LIMIT,
    FieldName,
    FieldPath,
    HintText,
    LongText,
    Name,
    Note,
    Slug,
    Strict,
    Text,
    TitleText,
    WrongKey,
    dotted,
    words_in,
)
from .blocks import BlockConfig, CheckConfig, ConditionConfig, InstrumentConfig, SittingConfig
from .bounds import LONGEST_FILE, too_large
from .closing import IDS, SIGNATURE, CompletionSignatureConfig, FormatConfig, filled
from .constructing import as_far_as_possible
from .data import DataConfig
from .fields import LONGEST_TEXT, NOT_SAID, FieldConfig
from .messages import message_of, near, unknown_key, with_hint
from .older import problem_lines, read_stored
from .panel import PANEL_KEYS, CodesConfig, FilterConfig, PanelConfig, ParametersConfig, RangeConfig
from .parsing import RepairedConfig, StudyFileError, by_line, missing_texts, parse, problem_at, tables_in
from .quotas import CellConfig, QuotaConfig, decided_in, unplaced_values
from .rules import FLAGS, ExclusionsConfig, FlagName, FlagsConfig
from .sampling import (
    CANDIDATES,
    DEFAULT_TIES,
    DESIGNS,
    LEARNED,
    CandidatesConfig,
    ComparedConfig,
    DesignConfig,
    PredictorChoice,
    PredictorConfig,
    QuestionsConfig,
    RolesConfig,
    StageConfig,
    StageRolesConfig,
    StopConfig,
    design_defaults,
    scouts_of,
)
from .study import StudyConfig, TextsConfig, languages_of
from .waves import WaveConfig
from .weighting import (
    BETWEEN,
    MarginConfig,
    WeightingConfig,
    band_names,
    grouping_questions,
    groups_in,
    refuse_unknown_groups,
)

__all__ = [
    "BETWEEN",
    "CANDIDATES",
    "DEFAULT_TIES",
    "DESIGNS",
    "FLAGS",
    "IDS",
    "LEARNED",
    "LONGEST_FILE",
    "LONGEST_TEXT",
    "NOT_SAID",
    "PANEL_KEYS",
    "SEED_LIMIT",
    "SIGNATURE",
    "AnswererConfig",
    "AttentionCheckConfig",
    "BlockConfig",
    "CandidatesConfig",
    "CellConfig",
    "CheckConfig",
    "CodesConfig",
    "ComparedConfig",
    "CompletionSignatureConfig",
    "ConditionConfig",
    "DataConfig",
    "DesignConfig",
    "ExclusionsConfig",
    "FieldConfig",
    "FieldName",
    "FieldPath",
    "FilterConfig",
    "FlagName",
    "FlagsConfig",
    "FormatConfig",
    "HintText",
    "InstrumentConfig",
    "LongText",
    "MarginConfig",
    "Name",
    "Note",
    "PanelConfig",
    "ParametersConfig",
    "PredictorChoice",
    "PredictorConfig",
    "QuestionsConfig",
    "QuotaConfig",
    "RangeConfig",
    "RepairedConfig",
    "RolesConfig",
    "SittingConfig",
    "Slug",
    "StageConfig",
    "StageRolesConfig",
    "StopConfig",
    "Strict",
    "StudyConfig",
    "StudyFileError",
    "Text",
    "TextsConfig",
    "TitleText",
    "WaveConfig",
    "WeightingConfig",
    "WrongKey",
    "as_far_as_possible",
    "band_names",
    "by_line",
    "decided_in",
    "design_defaults",
    "dotted",
    "filled",
    "grouping_questions",
    "groups_in",
    "languages_of",
    "message_of",
    "missing_texts",
    "near",
    "parse",
    "problem_at",
    "problem_lines",
    "read_stored",
    "refuse_unknown_groups",
    "scouts_of",
    "tables_in",
    "too_large",
    "unknown_key",
    "unplaced_values",
    "with_hint",
    "words_in",
]
