"""The columns of `export`, from tuples: the same values without an object for each answer."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from survey.contracts.exports import QuickAnswer, QuickExport, QuickPlace
from survey.contracts.tables import ExtraFile

from . import variants
from .aids import ids_in_words
from .estimands import THRESHOLDS
from .export import NO_AID, PAPER_COLUMNS, PAPER_FILE
from .labels import Beliefs
from .models import Pair
from .screens import EXPLANATION, OWN_ANSWER, POSTERIOR, PRIOR

if TYPE_CHECKING:
    from .instrument import BeliefUpdate

KEPT = 20_000  # questions
NO_ENTRY = (None, None, None)
NOTHING_GIVEN = (None,) * (14 + len(THRESHOLDS))  # From `prior` to `explanation_asked`.


class _Form(NamedTuple):
    """What the study file and the levels say of how a person answers."""

    answer_mode: str
    share: float
    shows_aid: bool


class BeliefQuickExport(QuickExport):
    response_facts = (
        *("belief__kind", "belief__value", "belief__direction", "belief__entered_by", "belief__first_value"),
        *("belief__value_changes", "belief__variant", "explanation__text"),
        *("target_answer__text", "target_answer__correct", "target_answer__confidence"),
    )

    def __init__(self, instrument: "BeliefUpdate") -> None:
        self._instrument = instrument
        self._thresholds = (instrument.options.threshold, *THRESHOLDS)
        self._texts: dict[str, str] = {}
        self._forms: dict[tuple[Any, ...], _Form] = {}

    def items(self, keys: Collection[int]) -> Mapping[int, Any]:
        rows = Pair.objects.filter(pk__in=keys).values_list(
            *("pk", "evidence__external_id", "target__external_id", "evidence__task__name", "target__task__name"),
            *("evidence__text", "target__text", "outcome"),
            *("answer__language_model__name", "answer__response", "answer__stated"),
            *("aid__asked", "aid__right", "aid__questions", "aid__similarity"),
        )
        items = {}
        for key, shown, asked, shown_task, asked_task, *more in rows:
            *texts, outcome, model, written, stated, counted, right, ids, similarity = more
            aid = NO_AID if counted is None else (counted, right, ids_in_words(ids), similarity)
            items[key] = (
                *(shown, asked, shown_task, asked_task, *map(self._once, texts)),
                *(None if outcome is None else int(outcome), model, None if model is None else written or stated),
                aid,
            )
        return items

    def _once(self, text: str | None) -> str | None:
        """One copy of each question's text: many items have the same."""
        if text is None:
            return None
        if len(self._texts) > KEPT:
            self._texts.clear()
        return self._texts.setdefault(text, text)

    def values(self, stored: Any, responses: Sequence[Sequence[Any]], place: QuickPlace) -> Sequence[Any]:
        *item, aid = stored
        prior: Sequence[Any] | None = None
        posterior: Sequence[Any] | None = None
        reasons: Any = None
        own: tuple[Any, ...] = (None, None, None)
        for response in responses:
            screen = response[0]
            if response[1] == PRIOR:
                prior = response[2:8]
            elif response[1] == POSTERIOR:
                posterior = response[2:8]
            elif screen == EXPLANATION:
                reasons = response[8]
            elif screen == OWN_ANSWER:
                own = (response[9], None if response[10] is None else int(response[10]), response[11])
        last = posterior or prior
        if last is None:
            return (*item, *NOTHING_GIVEN, reasons or None, *own, None, *NO_AID)
        beliefs = Beliefs(None if prior is None else prior[0], None if posterior is None else posterior[0])
        change = beliefs.change
        size = None if change is None else abs(change)
        form = self._form(place)
        direction = posterior[1] if posterior else ""
        return (
            *item,
            *(beliefs.prior, beliefs.posterior, change),
            *([None] * len(self._thresholds) if size is None else [int(size > limit) for limit in self._thresholds]),
            *(form.answer_mode if posterior else None, direction or None),
            ",".join(variants.order_by_id(place.sitting, seed=place.stage_seed)) if direction else None,
            *(NO_ENTRY if prior is None else (prior[2] or None, prior[3], prior[4])),
            *(NO_ENTRY if posterior is None else (posterior[2] or None, posterior[3], posterior[4])),
            int(variants.is_explained(place.sitting, place.position, seed=place.stage_seed, share=form.share)),
            *(reasons or None, *own, last[5] or None),
            *(aid if form.shows_aid and prior is not None else NO_AID),
        )

    def extra_files(self, answers: Iterable[QuickAnswer]) -> Iterable[ExtraFile] | None:
        if self._instrument.sequences is not None:
            return None  # Their file has a row for each step.
        return (ExtraFile(PAPER_FILE, PAPER_COLUMNS, self._paper_rows(answers)),)

    def _paper_rows(self, answers: Iterable[QuickAnswer]) -> Iterator[Sequence[Any]]:
        """As `export.paper_file` has them."""
        for (shown_id, _asked, shown_task, task, shown_text, text, outcome, *_of_model), responses, _place in answers:
            beliefs = {response[1]: response[2] for response in responses}
            changed = Beliefs(beliefs.get(PRIOR), beliefs.get(POSTERIOR)).changed(self._thresholds[0])
            if shown_id is not None and changed is not None:
                yield shown_text, text, shown_task, task, outcome or 0, int(changed)

    def _form(self, place: QuickPlace) -> _Form:
        """As `BeliefUpdate.setting` has it; once for each file and levels."""
        key = (place.study_sha256, *place.levels.items())
        if key not in self._forms:
            config = self._instrument.study.as_of(place.study_sha256)
            options = self._instrument.options_under(config, place.levels if config.conditions else {})
            self._forms[key] = _Form(options.answer_mode, options.explanation_share, options.aid != "none")
        return self._forms[key]
