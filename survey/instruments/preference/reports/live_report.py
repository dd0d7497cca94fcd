"""The report `preferences_live`: what is known while answers come in. One statement over few columns."""

from collections import Counter

import numpy as np

from survey.contracts.reports import Report, ReportArguments, ReportResult
from survey.exceptions import StateRefused
from survey.figures import Column, FigureColumn, Table
from survey.figures.words import integer, percent
from survey.models import Study
from survey.services.answers.counting import counting

from ..analysis import bradley_terry
from ..analysis.judgements import A, B, Judgements
from ..material import preference_of
from ..models import MIDDLE

STRENGTHS = (
    Column("model", "text", "The model."),
    FigureColumn(
        "theta",
        "number",
        "Bradley-Terry strength so far, in logits with mean 0.",
        heading="strength",
        prefix="",
        high="Upper end of its 95 % interval.",
    ),
    Column("judgements", "number", "Judgements of its replies so far."),
)
PLACES = (
    Column("place", "number", "Place on the scale; 1: reply 1 is much better."),
    Column("judgements", "number", "How often it was chosen."),
)
FACTS = (
    *("slot__item__comparison__question", "slot__item__comparison__a__language_model__name"),
    *("slot__item__comparison__b__language_model__name", "sitting__respondent"),
    *("responses__judgement__place", "responses__judgement__a_first", "responses__judgement__cannot_judge"),
    *("slot__inclusion_probability", "slot__pool_probability"),
)


class PreferencesLiveReport(Report):
    """How the ranking stands, and how people use the scale."""

    def make(self, study: Study, arguments: ReportArguments) -> ReportResult:
        models = preference_of(study).options.models
        rows = list(counting(study.main_stages()).order_by().values_list(*FACTS).iterator(5000))
        judged = [row for row in rows if row[4] is not None]
        if not judged:
            raise StateRefused(f"{study.slug}: no judgement counts yet")
        cannot = sum(bool(row[6]) for row in rows)
        people = _judgements(judged, models)
        places = Counter(int(row[4]) for row in judged)
        used = [(place, places[place]) for place in range(1, 9)]
        first = float(np.mean([row[4] < MIDDLE for row in judged]))
        lines = [
            f"{integer(len(judged))} judgements of {integer(len({row[3] for row in judged}))} people so far; "
            f"{integer(cannot)} could not be judged; the reply shown first was preferred in {percent(first)}."
        ]
        tables, notes = [Table("places", "How the scale is used", PLACES, used)], []
        try:
            ranking = bradley_terry.fit(people)
        except bradley_terry.NoRanking as exc:
            notes.append(f"No ranking yet: {exc}.")
        else:
            counts = Counter([*people.a.tolist(), *people.b.tolist()])
            strengths = [(models[model], ranking.of(model), counts[model]) for model in ranking.order]
            tables.insert(0, Table("ranking_so_far", "Ranking so far", STRENGTHS, strengths))
        return ReportResult(
            title=f"Preferences so far: {study.title}",
            lines=lines,
            tables=tables,
            notes=notes,
            data={"judgements": len(judged), "cannot_judge": cannot, "first_better": first},
        )


def _judgements(rows: list[tuple[object, ...]], models: tuple[str, ...]) -> Judgements:
    place = {model: index for index, model in enumerate(models)}
    columns = list(zip(*rows, strict=True))
    prompts, prompt = np.unique(np.array(columns[0], dtype=np.int64), return_inverse=True)
    a_first = np.array(columns[5], dtype=bool)
    places = np.array(columns[4], dtype=np.float64)
    rating = np.where(a_first, MIDDLE - places, places - MIDDLE)
    chance = np.array(columns[7], dtype=np.float64) * np.array(columns[8], dtype=np.float64)
    return Judgements(
        models=models,
        prompts=tuple(map(str, prompts)),
        prompt=prompt.reshape(-1).astype(np.int64),
        a=np.array([place[str(column)] for column in columns[1]], dtype=np.int64),
        b=np.array([place[str(column)] for column in columns[2]], dtype=np.int64),
        category=np.full(len(rows), "", dtype=str),
        person=np.array(columns[3], dtype=np.int64),
        outcome=np.where(rating > 0, A, B).astype(np.int64),
        value=rating,
        first=np.where(a_first, 1, -1).astype(np.int64),
        probability=chance,
        chance=np.full(len(rows), np.nan),
    )
