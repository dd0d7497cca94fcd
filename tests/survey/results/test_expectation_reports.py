"""The reports agreement, calibration and gaps of a belief study: read from its rows, and shown everywhere."""

import numpy as np
import pytest

from survey.contracts import instruments
from survey.exceptions import HunchError, StateRefused
from survey.instruments.belief_update.instrument import BeliefUpdate
from survey.models import Assignment, LanguageModel, ModelAnswer, Question, Study
from survey.services.results import reports
from survey.services.results.estimates.weights import answer_weights
from survey.services.results.people_and_models.load import Selection, read
from survey.services.stages.leaderboard import leaderboard
from tests import cast
from tests.survey.filled import run_study
from tests.survey.instruments.test_aligning import ADAPTIVE, answers_of

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

NAMES = (reports.AGREEMENT, reports.CALIBRATION, reports.GAPS)


@pytest.fixture
def study() -> Study:
    new_study = run_study(**ADAPTIVE)
    answers_of("good", new_study, share=0.8)
    answers_of("poor", new_study, share=0.5)
    return new_study


def test_a_belief_counts_for_the_models_that_show_what_the_person_saw(study: Study) -> None:
    right, changed = read(study, Selection()).found
    weight_of = answer_weights(study, {})
    assert len(right.value) == len(changed.value) == len(weight_of)
    known = {
        model.name: dict(model.answers.values_list("question", "correct")) for model in LanguageModel.objects.all()
    }
    rows = Assignment.objects.filter(pk__in=weight_of).order_by("slot__stage__index", "slot__number")
    rows = rows.select_related("slot__item__pair__target").prefetch_related("responses__belief")
    for place, row in enumerate(rows):
        pair = row.slot.item.pair
        assert right.items.labels[right.item[place]] == pair.target.external_id
        posterior = next(
            response.belief.value for response in row.responses.all() if response.belief.kind == "posterior"
        )
        assert right.value[place] == posterior / 100
        assert right.weight[place] == pytest.approx(weight_of[row.pk])
        for reader in right.readers:
            same = known[reader.name][pair.evidence_id] == pair.outcome
            assert reader.counts[place] == same
            assert reader.chance[right.item[place]] == known[reader.name][pair.target_id]


def test_the_predictors_chances_are_those_of_the_plan(study: Study) -> None:
    _right, changed = read(study, Selection()).found
    (reader,) = changed.readers
    scores = dict(study.items.filter(slots__score__isnull=False).values_list("key", "slots__score"))
    for label, chance in zip(changed.items.labels, reader.chance, strict=True):
        assert np.isnan(chance) if label not in scores else chance == pytest.approx(scores[label])
    assert np.isfinite(reader.chance).any()


@pytest.mark.parametrize("name", NAMES)
def test_each_speaks_of_both_events_and_of_the_models(name: str, study: Study) -> None:
    findings = reports.make(study, name)
    assert {row["event"] for row in findings.data[name]} == {"right", "changed"}
    assert findings.notes and "good" in str(findings.tables[0].rows)


def test_readers_and_events_are_chosen_by_name(study: Study) -> None:
    findings = reports.make(study, "agreement", {"event": ["right"], "reader": ["poor"]})
    assert [row[:2] for row in findings.tables[0].file_rows()] == [["right", "poor"]]
    with pytest.raises(HunchError, match="there is no 'wrong'; there are: right, changed"):
        reports.make(study, "agreement", {"event": ["wrong"]})
    with pytest.raises(HunchError, match="there is no nobody; there are: good, poor"):
        reports.make(study, "gaps", {"reader": ["nobody"]})


def test_a_note_says_that_texts_may_have_been_learnt(study: Study) -> None:
    notes = reports.make(study, "gaps", {"event": ["right"]}).notes
    assert any("it is not known whether the texts are older than good, poor" in note for note in notes)
    arguments = {
        "event": ["right"],
        "texts_from": ["2024-01-01"],
        "trained": ["good=2023-06-30", "poor=2024-06-30"],
    }
    notes = reports.make(study, "gaps", arguments).notes
    assert [note for note in notes if "learnt" in note] == [
        "poor learnt until 2024-06-30, and the texts existed on 2024-01-01: it may have learnt them, and then says "
        "less about new ones"
    ]
    with pytest.raises(HunchError, match="trained: 'good' is not NAME=YYYY-MM-DD"):
        reports.make(study, "gaps", {"trained": ["good"]})
    with pytest.raises(HunchError, match="texts_from: 'May' is not a day"):
        reports.make(study, "gaps", {"texts_from": ["May"]})


@pytest.mark.thorough
def test_what_is_missing_is_said_event_by_event(study: Study) -> None:
    ModelAnswer.objects.all().delete()
    findings = reports.make(study, "calibration")
    assert any("no language model has answered questions" in note for note in findings.notes)
    assert {row["event"] for row in findings.tables[0].records()} == {"changed"}
    with pytest.raises(StateRefused, match="`hunch collect_answers` and `hunch import_answers` bring answers"):
        reports.make(study, "calibration", {"event": ["right"]})


def test_a_study_without_answers_says_so() -> None:
    study = cast.small_study("empty")
    with pytest.raises(StateRefused, match=r"no language model.*no predictor scored"):
        reports.make(study, "agreement")
    question = Question.objects.filter(bank=study.bank).first()
    model = LanguageModel.objects.create(name="one")
    ModelAnswer.objects.create(language_model=model, question=question, correct=True)
    with pytest.raises(StateRefused, match="no answer counts yet"):
        reports.make(study, "agreement")


def test_only_the_model_that_people_were_shown_is_compared(study: Study, monkeypatch) -> None:
    expecting = instruments.of_study(study).expectations
    monkeypatch.setattr(expecting, "_only", "poor")
    monkeypatch.setattr("survey.services.results.people_and_models.load.expecting_of", lambda _study: expecting)
    (right,) = read(study, Selection(event="right")).found
    assert [reader.name for reader in right.readers] == ["poor"]


def test_an_export_of_a_study_that_cannot_be_compared_has_them_empty_and_warns_of_nothing(caplog) -> None:
    study = cast.small_study("empty")
    files = {export_file.name: list(export_file.rows) for export_file in reports.export_files(study, {}, ())}
    assert files["agreement.csv"] == []
    assert not [record for record in caplog.records if record.levelname == "WARNING" and "agreement" in record.message]


def test_an_instrument_that_cannot_say_what_it_expects_keeps_the_other_reports(study: Study, monkeypatch) -> None:
    def broken(_instrument: BeliefUpdate) -> None:
        raise KeyError("lost")

    monkeypatch.setattr(BeliefUpdate, "expectations", property(broken))
    names = [entry.name for entry in reports.entries_of(study)]
    assert "alignment" in names
    assert not set(NAMES) & set(names)


@pytest.mark.thorough
def test_the_leaderboard_knows_how_few_answers_decide(study: Study) -> None:
    lines = [line for line in leaderboard(study) if not line.is_main and line.evaluated_on is not None]
    assert lines
    for line in lines:
        assert line.lost is None or 1 <= line.lost <= line.n
    assert any(line.lost for line in lines)
