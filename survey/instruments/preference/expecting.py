"""The same replies, judged by people and by judges: what the reports `agreement`, `calibration` and `gaps` compare."""

from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np

from survey.contracts.expectations import ComparedEvent, Expectations, Expecting, ItemReader, Items
from survey.exceptions import StateRefused

from .analysis import judging
from .rows import judgements_of, judges_of

if TYPE_CHECKING:
    from survey.models import Assignment, Study

PREFERRED = ComparedEvent(
    "preferred",
    "the next person prefers the reply of the model named first",
    "whether a person preferred it",
    "the chance that the judge gives to it",
)


class PreferenceExpecting(Expecting):
    """`options`: the study's; None without a study."""

    events = (PREFERRED,)

    def __init__(self, study: "Study | None", options: Any) -> None:
        self._study = study
        self._options = options

    def of(self, answers: "Sequence[Assignment]", weights: np.ndarray, *, event: str) -> Expectations:
        if self._study is None:
            raise RuntimeError("preference: expectations need a study")
        models = self._options.models
        questions = {
            answer.slot.item.comparison.question.external_id: answer.slot.item.comparison.question for answer in answers
        }
        prompts = sorted(questions)
        categories = [questions[prompt].task.name for prompt in prompts]
        people = judgements_of(answers, models=models, prompts=prompts, weights=weights).with_ties(self._options.tie)
        if not people.n:
            raise StateRefused(f"{self._study.slug}: no judgement counts yet")
        keys, where, item = np.unique(people.key, return_index=True, return_inverse=True)
        readers = []
        for name, judged in judges_of(self._study.bank_id, models, prompts, categories).items():
            compared = judging.compare(people, judged.with_ties(self._options.tie))
            if compared is None or compared.says_nothing:
                continue
            chance = np.full(len(keys), np.nan)
            chance[np.searchsorted(keys, compared.rows.key)] = compared.chance[compared.row_item]
            readers.append(ItemReader(name, "judge", chance))
        if not readers:
            raise StateRefused(
                f"{self._study.slug}: no judge has judged enough of these items: `hunch judge_replies` asks one, "
                "`hunch import_judgements` takes verdicts that you have"
            )
        pairs = [
            f"{models[a]} : {models[b]}"
            for a, b in zip(people.a[where].tolist(), people.b[where].tolist(), strict=True)
        ]
        names = [prompts[place] for place in people.prompt[where].tolist()]
        return Expectations(
            event=PREFERRED,
            items=Items(
                labels=[f"{prompt}, {pair}" for prompt, pair in zip(names, pairs, strict=True)],
                texts=[questions[prompt].plain for prompt in names],
                groups={"category": people.category[where], "pair": np.array(pairs, dtype=str)},
            ),
            item=item.reshape(-1).astype(np.int64),
            person=people.person,
            weight=people.weight,
            value=people.win,
            readers=readers,
            written=self._written(),
        )

    def _written(self) -> date | None:
        """The bank's import: its prompts existed by then."""
        return None if self._study is None else self._study.bank.created_at.date()
