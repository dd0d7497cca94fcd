"""The belief update's columns, and the layout of the paper's released data."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from survey.contracts.tables import Column, ExtraFile

from .aids import ids_in_words
from .estimands import THRESHOLDS
from .labels import beliefs_of
from .models import Belief
from .screens import EXPLANATION, OWN_ANSWER, POSTERIOR, PRIOR, Setting

if TYPE_CHECKING:
    from survey.models import Assignment, Response


COLUMNS = (
    Column("evidence_id", "text", "Id of the question whose answer was shown; empty for a re-asking control."),
    Column("target_id", "text", "Id of the question whose answer was to be predicted."),
    Column("evidence_task", "text", "Task of the evidence question."),
    Column("target_task", "text", "Task of the target question."),
    Column("evidence_text", "text", "The evidence question as in the bank, markup included."),
    Column("target_text", "text", "The target question as in the bank, markup included."),
    Column("outcome", "0 or 1", "1: the evidence was answered correctly; 0: incorrectly."),
    Column("evidence_model", "text", "The language model that had this outcome; empty where it is hypothetical."),
    Column("evidence_answer", "text", "What it really answered to the evidence, as stored."),
    Column("prior", "percentage points", "Stated probability of a correct answer before the evidence, 0 to 100."),
    Column("posterior", "percentage points", "The same after the evidence, 0 to 100."),
    Column("change", "percentage points", "posterior - prior."),
    Column("belief_change", "0 or 1", "1 where the absolute change exceeds the study's threshold."),
    *(
        Column(f"belief_change_{threshold}", "0 or 1", f"1 where the absolute change exceeds {threshold} points.")
        for threshold in THRESHOLDS
    ),
    Column(
        "answer_mode",
        "text",
        "How the posterior was asked for: direction (lower, the same or higher, then a number), blank (an empty "
        "number), keep_button (a number, or a button that keeps the prior) or prefilled (the prior stood there).",
    ),
    Column("direction", "text", "What was chosen in the mode direction: lower, same or higher."),
    Column("direction_order", "text", "The order in which the directions were shown, the same for a whole sitting."),
    *(
        column
        for kind in (PRIOR, POSTERIOR)
        for column in (
            Column(
                f"{kind}_entry",
                "text",
                "How the number was entered: typed, track (by pointer), track_keys (on the track by keyboard), button "
                "(the prior was kept) or prefilled (left as it stood there); empty where no script ran.",
            ),
            Column(f"{kind}_first", "percentage points", "The first number that was set; empty where no script ran."),
            Column(
                f"{kind}_changes",
                "number",
                "How often the number was set, the first time included; empty where no script ran.",
                whole=True,
            ),
        )
    ),
    Column(
        "explanation_asked",
        "0 or 1",
        "1 where reasons were asked for or were going to be: drawn for sitting and item before any answer.",
    ),
    Column(
        "explanation", "text", "The reasons, as they were written; empty where none were written (yet).", written=True
    ),
    Column(
        "own_answer",
        "text",
        "What the respondent answers to the target: the letter of an option, or a text.",
        written=True,
    ),
    Column("own_answer_correct", "0 or 1", "1 where that is right, judged as a language model's answer is."),
    Column("own_confidence", "percentage points", "How sure the respondent was of their own answer, 0 to 100."),
    Column(
        "variant",
        "text",
        "The form of the last screen on which a belief was given: answer mode, who answers, whether models differ, "
        "evidence, language, order of the directions. Empty in answers from before it was stored.",
    ),
)

# What the aid showed: last, so that files from before it keep the order of their columns.
AID_COLUMNS = (
    Column("aid_asked", "number", "How many similar questions the aid next to the target counted.", whole=True),
    Column("aid_right", "number", "How many of these the model answered correctly.", whole=True),
    Column("aid_questions", "text", "The ids of these questions, the most similar first; empty where none was shown."),
    Column("aid_similarity", "text", "By what they are similar: words, or embeddings of the texts."),
)
AID_NAMES = tuple(column.name for column in AID_COLUMNS)
COLUMNS = (*COLUMNS, *AID_COLUMNS)
NO_AID = (None,) * len(AID_COLUMNS)

PAPER_FILE = "belief_changes.csv"
PAPER_COLUMNS = (
    Column("q1", "text", "The evidence question."),
    Column("q2", "text", "The target question."),
    Column("source1", "text", "Task of q1."),
    Column("source2", "text", "Task of q2."),
    Column("previous_correct", "0 or 1", "1: q1 was answered correctly."),
    Column("belief_change", "0 or 1", "1 where the absolute change exceeds the study's threshold."),
)


def values(assignment: "Assignment", threshold: int, setting: Setting) -> list[Any]:
    pair = assignment.slot.item.pair
    beliefs = beliefs_of(assignment)
    changed = beliefs.changed(threshold)
    evidence = pair.evidence
    return [
        evidence.external_id if evidence else None,
        pair.target.external_id,
        evidence.task.name if evidence else None,
        pair.target.task.name,
        evidence.text if evidence else None,
        pair.target.text,
        None if pair.outcome is None else int(pair.outcome),
        pair.answer.language_model.name if pair.answer else None,
        (pair.answer.response or pair.answer.stated) if pair.answer else None,
        beliefs.prior,
        beliefs.posterior,
        beliefs.change,
        _as_number(changed),
        *(_as_number(beliefs.changed(fixed)) for fixed in THRESHOLDS),
        *_how(assignment, setting),
        *_aid(assignment, setting),
    ]


def _aid(assignment: "Assignment", setting: Setting) -> Sequence[Any]:
    """What the aid showed; empty where none was shown (yet)."""
    if setting.aid is None or beliefs_of(assignment).prior is None:
        return NO_AID
    stored = assignment.slot.item.pair.aid
    return stored.asked, stored.right, ids_in_words(stored.questions), stored.similarity


def _how(assignment: "Assignment", setting: Setting) -> list[Any]:
    """How the answers were asked for and given, and further answers of the item."""
    responses = {response.screen: response for response in assignment.responses.all()}
    prior, posterior = (getattr(responses.get(kind), "belief", None) for kind in (PRIOR, POSTERIOR))
    last: Belief | None = posterior or prior
    reasons = getattr(responses.get(EXPLANATION), "explanation", None)
    own = getattr(responses.get(OWN_ANSWER), "target_answer", None)
    direction = posterior.direction if posterior else ""
    return [
        setting.options.answer_mode if posterior else None,
        direction or None,
        ",".join(setting.order) if direction else None,
        *_entry(prior),
        *_entry(posterior),
        int(setting.explained) if last else None,
        reasons.text or None if reasons else None,
        own.text if own else None,
        int(own.correct) if own else None,
        own.confidence if own else None,
        last.variant or None if last else None,
    ]


def _entry(belief: Belief | None) -> list[Any]:
    return [None] * 3 if belief is None else [belief.entered_by or None, belief.first_value, belief.value_changes]


def _as_number(changed: bool | None) -> int | None:
    return None if changed is None else int(changed)


def paper_row(assignment: "Assignment", changed: bool | None) -> tuple[Any, ...]:
    """The item of an answer that showed evidence, as a row of `PAPER_COLUMNS` with this label."""
    pair = assignment.slot.item.pair
    assert pair.evidence is not None  # noqa: S101 - callers leave out what showed none
    return (
        pair.evidence.text,
        pair.target.text,
        pair.evidence.task.name,
        pair.target.task.name,
        int(bool(pair.outcome)),
        _as_number(changed),
    )


def _paper_rows(assignments: "Iterable[Assignment]", threshold: int) -> Iterable[Sequence[Any]]:
    for assignment in assignments:
        changed = beliefs_of(assignment).changed(threshold)
        if assignment.slot.item.pair.evidence is not None and changed is not None:
            yield paper_row(assignment, changed)


def paper_file(assignments: "Iterable[Assignment]", threshold: int) -> ExtraFile:
    return ExtraFile(PAPER_FILE, PAPER_COLUMNS, _paper_rows(assignments, threshold))


def in_words(response: "Response") -> str:
    """What was answered on one screen: a belief with how it was given, reasons, or an answer of one's own."""
    if (belief := getattr(response, "belief", None)) is not None:
        how = [belief.get_direction_display() if belief.direction else "", belief.get_entered_by_display()]
        known = ", ".join(part for part in how if part and part != "unknown")
        return f"{belief.value} %" + (f" ({known})" if known else "")
    if (explanation := getattr(response, "explanation", None)) is not None:
        return explanation.text or "nothing was written"
    if (answer := getattr(response, "target_answer", None)) is not None:
        sure = "" if answer.confidence is None else f", {answer.confidence} % sure"
        return f"{answer.text} ({'right' if answer.correct else 'wrong'}{sure})"
    return ""
