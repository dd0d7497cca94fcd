"""The study file (TOML): its keys, their defaults and limits. Imports pydantic, bandit's designs, survey's exceptions.

`parse` turns a file's text into a checked `StudyConfig` or raises `StudyFileError` with a line for every problem. The
whole study is one file, so it can be reviewed, versioned and preregistered. docs/study-file.md lists every key.
"""

from .answerer import AnswererConfig
from .attention import AttentionCheckConfig
from .base import (
    SEED_LIMIT,
    FieldName,
    HintText,
    LongText,
    Name,
    Note,
    Place,
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
from .data import DataConfig
from .fields import LONGEST_TEXT, NOT_SAID, FieldConfig
from .panel import PANEL_KEYS, CodesConfig, FilterConfig, PanelConfig, ParametersConfig, RangeConfig
from .reading import StudyFileError, by_line, missing_texts, parse, problem_at
from .rules import FLAGS, ExclusionsConfig, FlagName, FlagsConfig
from .sampling import (
    CANDIDATES,
    DEFAULT_TIES,
    DESIGNS,
    EXHAUSTIVE_DESIGNS,
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
)
from .study import StudyConfig, TextsConfig

__all__ = [
    "CANDIDATES",
    "DEFAULT_TIES",
    "DESIGNS",
    "EXHAUSTIVE_DESIGNS",
    "FLAGS",
    "LONGEST_FILE",
    "LONGEST_TEXT",
    "NOT_SAID",
    "PANEL_KEYS",
    "SEED_LIMIT",
    "AnswererConfig",
    "AttentionCheckConfig",
    "BlockConfig",
    "CandidatesConfig",
    "CheckConfig",
    "CodesConfig",
    "ComparedConfig",
    "ConditionConfig",
    "DataConfig",
    "DesignConfig",
    "ExclusionsConfig",
    "FieldConfig",
    "FieldName",
    "FilterConfig",
    "FlagName",
    "FlagsConfig",
    "HintText",
    "InstrumentConfig",
    "LongText",
    "Name",
    "Note",
    "PanelConfig",
    "ParametersConfig",
    "Place",
    "PredictorChoice",
    "PredictorConfig",
    "QuestionsConfig",
    "RangeConfig",
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
    "WrongKey",
    "by_line",
    "design_defaults",
    "dotted",
    "missing_texts",
    "parse",
    "problem_at",
    "too_large",
    "words_in",
]
