"""The belief update's columns, and the layout of the paper's released data."""

from collections.abc import Iterable, Iterator, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from survey.contracts.exports import SETTING, AnswerColumn, Answered, AnswerExport, AnswerPlace, CountedAnswers
from survey.contracts.tables import ExtraFile

from . import export_steps, variants
from .aids import ids_in_words
from .estimands import THRESHOLDS
from .options import BeliefUpdateOptions
from .screens import POSTERIOR, PRIOR

if TYPE_CHECKING:
    from survey.models import Assignment, Response

    from .instrument import BeliefUpdate

PRIOR_VALUE = Answered("belief__value", screens=(PRIOR,))
POSTERIOR_VALUE = Answered("belief__value", screens=(POSTERIOR,))
DIRECTION = Answered("belief__direction", screens=(POSTERIOR,))


class AnswerForm(NamedTuple):
    """The form in which an answer was given: the options under its conditions, and what is drawn for its place."""

    options: BeliefUpdateOptions
    threshold: int
    place: AnswerPlace

    @property
    def order(self) -> Sequence[str]:
        return variants.order_by_id(self.place.sitting, seed=self.place.stage_seed)

    @property
    def is_explained(self) -> bool:
        place, share = self.place, self.options.explanation_share
        return variants.is_explained(place.sitting, place.position, seed=place.stage_seed, share=share)


def _or_none(text: str) -> str | None:
    return text or None


def _changed_by_study(prior: int, posterior: int, form: AnswerForm) -> int:
    return int(abs(posterior - prior) > form.threshold)


def _if_shown(fact: Any, form: AnswerForm, _prior: int) -> Any:
    """What the aid showed; empty where none was shown (yet)."""
    return None if form.options.aid == "none" else fact


COLUMNS = (
    AnswerColumn(
        "evidence_id",
        "text",
        "Id of the question whose answer was shown; empty for a re-asking control.",
        of="evidence__external_id",
    ),
    AnswerColumn("target_id", "text", "Id of the question whose answer was to be predicted.", of="target__external_id"),
    AnswerColumn("evidence_task", "text", "Task of the evidence question.", of="evidence__task__name"),
    AnswerColumn("target_task", "text", "Task of the target question.", of="target__task__name"),
    AnswerColumn(
        "evidence_text", "text", "The evidence question as in the bank, markup included.", of="evidence__text"
    ),
    AnswerColumn("target_text", "text", "The target question as in the bank, markup included.", of="target__text"),
    AnswerColumn(
        "outcome", "0 or 1", "1: the evidence was answered correctly; 0: incorrectly.", of="outcome", value=int
    ),
    AnswerColumn(
        "evidence_model",
        "text",
        "The language model that had this outcome; empty where it is hypothetical.",
        of="answer__language_model__name",
    ),
    AnswerColumn(
        "evidence_answer",
        "text",
        "What it really answered to the evidence, as stored.",
        of=("answer__response", "answer__stated"),
        value=lambda response, stated: response or stated,
    ),
    AnswerColumn(
        "prior",
        "percentage points",
        "Stated probability of a correct answer before the evidence, 0 to 100.",
        of=PRIOR_VALUE,
    ),
    AnswerColumn("posterior", "percentage points", "The same after the evidence, 0 to 100.", of=POSTERIOR_VALUE),
    AnswerColumn(
        "change",
        "percentage points",
        "posterior - prior.",
        of=(PRIOR_VALUE, POSTERIOR_VALUE),
        value=lambda prior, posterior: posterior - prior,
    ),
    AnswerColumn(
        "belief_change",
        "0 or 1",
        "1 where the absolute change exceeds the study's threshold.",
        of=(PRIOR_VALUE, POSTERIOR_VALUE, SETTING),
        value=_changed_by_study,
    ),
    *(
        AnswerColumn(
            f"belief_change_{threshold}",
            "0 or 1",
            f"1 where the absolute change exceeds {threshold} points.",
            of=(PRIOR_VALUE, POSTERIOR_VALUE),
            value=lambda prior, posterior, limit=threshold: int(abs(posterior - prior) > limit),
        )
        for threshold in THRESHOLDS
    ),
    AnswerColumn(
        "answer_mode",
        "text",
        "How the posterior was asked for: direction (lower, the same or higher, then a number), blank (an empty "
        "number), keep_button (a number, or a button that keeps the prior) or prefilled (the prior stood there).",
        of=(SETTING, POSTERIOR_VALUE),
        value=lambda form, _posterior: form.options.answer_mode,
    ),
    AnswerColumn(
        "direction",
        "text",
        "What was chosen in the mode direction: lower, same or higher.",
        of=DIRECTION,
        value=_or_none,
    ),
    AnswerColumn(
        "direction_order",
        "text",
        "The order in which the directions were shown, the same for a whole sitting.",
        of=(SETTING, DIRECTION),
        value=lambda form, direction: ",".join(form.order) if direction else None,
    ),
    *(
        column
        for kind in (PRIOR, POSTERIOR)
        for column in (
            AnswerColumn(
                f"{kind}_entry",
                "text",
                "How the number was entered: typed, track (by pointer), track_keys (on the track by keyboard), button "
                "(the prior was kept) or prefilled (left as it stood there); empty where no script ran.",
                of=Answered("belief__entered_by", screens=(kind,)),
                value=_or_none,
            ),
            AnswerColumn(
                f"{kind}_first",
                "percentage points",
                "The first number that was set; empty where no script ran.",
                of=Answered("belief__first_value", screens=(kind,)),
            ),
            AnswerColumn(
                f"{kind}_changes",
                "number",
                "How often the number was set, the first time included; empty where no script ran.",
                whole=True,
                of=Answered("belief__value_changes", screens=(kind,)),
            ),
        )
    ),
    AnswerColumn(
        "explanation_asked",
        "0 or 1",
        "1 where reasons were asked for or were going to be: drawn for sitting and item before any answer.",
        of=(SETTING, Answered("belief__value", screens=(PRIOR, POSTERIOR))),
        value=lambda form, _belief: int(form.is_explained),
    ),
    AnswerColumn(
        "explanation",
        "text",
        "The reasons, as they were written; empty where none were written (yet).",
        written=True,
        of=Answered("explanation__text"),
        value=_or_none,
    ),
    AnswerColumn(
        "own_answer",
        "text",
        "What the respondent answers to the target: the letter of an option, or a text.",
        written=True,
        of=Answered("target_answer__text"),
    ),
    AnswerColumn(
        "own_answer_correct",
        "0 or 1",
        "1 where that is right, judged as a language model's answer is.",
        of=Answered("target_answer__correct"),
        value=int,
    ),
    AnswerColumn(
        "own_confidence",
        "percentage points",
        "How sure the respondent was of their own answer, 0 to 100.",
        of=Answered("target_answer__confidence"),
    ),
    AnswerColumn(
        "variant",
        "text",
        "The form of the last screen on which a belief was given: answer mode, who answers, whether models differ, "
        "evidence, language, order of the directions. Empty in answers from before it was stored.",
        of=Answered("belief__variant", screens=(PRIOR, POSTERIOR)),
        value=_or_none,
        reveals_condition=True,
    ),
    # What the aid showed: last, so that files from before it keep the order of their columns.
    AnswerColumn(
        "aid_asked",
        "number",
        "How many similar questions the aid next to the target counted.",
        whole=True,
        of=("aid__asked", SETTING, PRIOR_VALUE),
        value=_if_shown,
        reveals_condition=True,
    ),
    AnswerColumn(
        "aid_right",
        "number",
        "How many of these the model answered correctly.",
        whole=True,
        of=("aid__right", SETTING, PRIOR_VALUE),
        value=_if_shown,
        reveals_condition=True,
    ),
    AnswerColumn(
        "aid_questions",
        "text",
        "The ids of these questions, the most similar first; empty where none was shown.",
        of=("aid__questions", SETTING, PRIOR_VALUE),
        value=lambda questions, form, prior: _if_shown(ids_in_words(questions), form, prior),
        reveals_condition=True,
    ),
    AnswerColumn(
        "aid_similarity",
        "text",
        "By what they are similar: words, or embeddings of the texts.",
        of=("aid__similarity", SETTING, PRIOR_VALUE),
        value=_if_shown,
        reveals_condition=True,
    ),
    AnswerColumn(
        "pay_screen",
        "text",
        "Where people are paid for being right: prior, posterior or a step between, if this belief was drawn for its "
        "sitting.",
        of=Answered("score__response__screen"),
        reveals_condition=True,
    ),
    AnswerColumn(
        "pay_draw",
        "text",
        "The two numbers that were drawn for it, and whether the model was right.",
        of=Answered("score__rule"),
        reveals_condition=True,
    ),
    AnswerColumn(
        "pay_points",
        "number",
        "1 where it won: it, or 100 less it where the model was wrong, is no less than the lower number; else 0.",
        of=Answered("score__value"),
        value=int,
        reveals_condition=True,
    ),
)

PAPER_FILE = "belief_changes.csv"
# Of the item of an answer that showed evidence.
PAPER_ITEM = (
    AnswerColumn("q1", "text", "The evidence question.", of="evidence__text"),
    AnswerColumn("q2", "text", "The target question.", of="target__text"),
    AnswerColumn("source1", "text", "Task of q1.", of="evidence__task__name"),
    AnswerColumn("source2", "text", "Task of q2.", of="target__task__name"),
    AnswerColumn("previous_correct", "0 or 1", "1: q1 was answered correctly.", of="outcome", value=int),
)
PAPER_COLUMNS = (
    *PAPER_ITEM,
    AnswerColumn(
        "belief_change",
        "0 or 1",
        "1 where the absolute change exceeds the study's threshold.",
        of=(PRIOR_VALUE, POSTERIOR_VALUE, SETTING),
        value=_changed_by_study,
    ),
)


class BeliefExport(AnswerExport):
    first_look = MappingProxyType(
        {"outcome": "evidence answered correctly", "prior": "before", "posterior": "after", "change": "change"}
    )
    columns = COLUMNS
    codebook_note = "Beliefs are whole percentage points."

    def __init__(self, instrument: "BeliefUpdate") -> None:
        self._instrument = instrument
        self._options: dict[tuple[Any, ...], BeliefUpdateOptions] = {}

    def setting(self, place: AnswerPlace) -> AnswerForm:
        """Options as `BeliefUpdate.setting` has them; looked up once for each file and levels."""
        key = (place.study_sha256, *place.levels.items())
        if key not in self._options:
            config = self._instrument.study.as_of(place.study_sha256)
            self._options[key] = self._instrument.options_under(config, place.levels if config.conditions else {})
        return AnswerForm(self._options[key], self._instrument.options.threshold, place)

    def extra_files(self, answers: CountedAnswers) -> Iterable[ExtraFile]:
        if self._instrument.sequences is not None:
            return (export_steps.steps_file(answers, self._instrument.study),)
        return (ExtraFile(PAPER_FILE, PAPER_COLUMNS, _paper_rows(answers)),)


def _paper_rows(answers: CountedAnswers) -> Iterator[Sequence[Any]]:
    for row in answers.values(PAPER_COLUMNS):
        evidence, changed = row[0], row[-1]
        if evidence is not None and changed is not None:
            yield row


def paper_row(assignment: "Assignment", changed: bool | None) -> tuple[Any, ...]:
    """The item of an answer that showed evidence, as a row of `PAPER_COLUMNS` with this label."""
    item = [column.of_row(assignment.slot.item.pair) for column in PAPER_ITEM]
    return (*item, None if changed is None else int(changed))


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
