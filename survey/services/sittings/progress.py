"""How far a sitting has come, as people see it: in percent of the whole way, and among its questions. Reads no row.

Only items count as questions, so that the number is the one of the instructions. An attention check has the number of
the item that it comes before, or of the last one: a page without a number would stand out as a check.
"""

from dataclasses import dataclass

from survey.study_file import BlockConfig, StudyConfig

from .queries import Standing


@dataclass(frozen=True)
class Progress:
    """`percent` of the whole way from the consent to the end; item number `question` of `questions` where the page is
    one of the items or an attention check among them, and 0 elsewhere."""

    percent: int = 0
    question: int = 0
    questions: int = 0


NOWHERE = Progress()


def in_block(config: StudyConfig, block: int, *, within: float = 0.0) -> Progress:
    """At a block of the study file (from 0), of which the share `within` is done."""
    lengths = [_length(block, config) for block in config.blocks]
    done = sum(lengths[:block]) + within * lengths[block]
    return Progress(percent=round(100 * done / sum(lengths)))


def among_items(config: StudyConfig, block: int, standing: Standing) -> Progress:
    """At an item, or at an attention check that comes before it or after the last one."""
    checks = len(config.sitting.attention_checks)
    pages = standing.total + checks
    answered = standing.total if standing.assignment is None else standing.assignment.position - 1
    before = answered + len(standing.checks)
    if before >= pages:  # Nothing is left here.
        return in_block(config, block, within=1.0)
    # How many screens an item has is not known before they are shown.
    screens = len(standing.responses)
    part = in_block(config, block, within=(before + screens / (screens + 1)) / pages)
    return Progress(percent=part.percent, question=min(answered + 1, standing.total), questions=standing.total)


def _length(block: BlockConfig, config: StudyConfig) -> int:
    """How long a block is: one for a page. An item has two pages or more."""
    if block.kind == "items":
        return 2 * config.sitting.items + len(config.sitting.attention_checks)
    if block.kind == "practice":
        return 2 * len(block.all_examples)
    return 0 if block.kind == "end" else 1
