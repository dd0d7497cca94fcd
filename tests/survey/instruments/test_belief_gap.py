"""The belief update's priority: how far people's belief lies from what language models really do."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from django.core.management import call_command

from survey.contracts import instruments
from survey.exceptions import FileErrors
from survey.instruments.belief_update import gap_priority
from survey.instruments.belief_update.analysis import expected
from survey.instruments.belief_update.gap_priority import expected_belief, models_share
from survey.instruments.belief_update.labels import KNOWN, Beliefs
from survey.instruments.belief_update.pairing import ROW
from survey.models import Bank, CandidateSet, LanguageModel, ModelAnswer, Slot
from survey.services.answers.counting import training_examples
from survey.services.banks.eligibility import eligible_questions
from survey.services.base import files
from survey.services.stages import lifecycle
from survey.services.stages.verifying import verify_stage
from tests import cast
from tests.survey import filled

GREEDY = {"kind": "epsilon_greedy", "epsilon": 0.3, "top_fraction": 0.2}
GAP: dict[str, Any] = {
    "instrument": {"kind": "belief_update", "options": {**cast.PLAIN, "priority": "gap"}},
    "stages": [{"sittings": 12}, {"sittings": 8, "design": GREEDY}],
    "roles": {"holdout": 0, "controls": 0},
}


def rows_of(*triples: tuple[int, int, int]) -> np.ndarray:
    """Of (evidence, target, outcome)."""
    rows = np.zeros(len(triples), dtype=ROW)
    for row, values in zip(rows, triples, strict=True):
        row["evidence"], row["target"], row["outcome"] = values
    return rows


def models_on(bank: Bank) -> None:
    """Two that are right on every second question, and a third of whom one question is known."""
    questions = list(bank.questions.order_by("position"))
    for name, asked in (("ash", questions), ("elm", questions), ("fir", questions[:1])):
        model = LanguageModel.objects.create(name=name)
        ModelAnswer.objects.bulk_create(
            ModelAnswer(language_model=model, question=question, correct=question.position % 2 == 0)
            for question in asked
        )


def test_models_count_by_how_far_they_show_the_outcome_that_is_seen() -> None:
    right = np.array([[1.0, 0.0, np.nan], [0.25, 1.0, np.nan]])
    shares = models_share(rows_of((0, 1, 1), (0, 1, 0), (1, 0, 0), (-1, 1, -1), (0, 2, 1), (2, 1, 1)), right)
    # (1 x 0 + 0.25 x 1) / 1.25; only the second is wrong on the evidence; only the first; without evidence both.
    assert shares[:4] == pytest.approx([0.2, 1.0, 1.0, 0.5])
    assert np.isnan(shares[4:]).all()  # Nobody answered the target, or the evidence.


def test_the_belief_is_foreseen_from_outcome_and_target() -> None:
    rng = np.random.default_rng(5)
    n = 30
    right, tasks = rng.random((3, n)), np.arange(n) % 4
    evidence, target = rng.integers(0, n, 4000), rng.integers(0, n, 4000)
    rows = rows_of(*((int(e), int(t), int(rng.integers(2))) for e, t in zip(evidence, target, strict=True) if e != t))
    own = rng.normal(0, 0.08, n)  # What the columns do not know of a target.
    truth = 0.4 + 0.1 * rows["outcome"] + 0.2 * right.mean(axis=0)[rows["target"]] + own[rows["target"]]
    told = np.arange(len(rows)) < 2000
    stated = np.clip(truth[told] + rng.normal(0, 0.2, told.sum()), 0, 1)
    foreseen = expected_belief(rows, rows[told], stated, right=right, tasks=tasks, lengths=np.full(n, 9.0))
    assert np.sqrt(np.mean((foreseen - truth)[~told] ** 2)) < 0.04 < truth[~told].std() / 2
    nothing = expected_belief(rows, rows[:0], np.zeros(0), right=right, tasks=tasks, lengths=np.full(n, 9.0))
    assert set(nothing) == {0.5}


@pytest.mark.thorough
@pytest.mark.django_db
def test_a_later_stage_draws_where_people_and_models_part() -> None:
    models_on(cast.small_bank())
    study = filled.run_study("parting", **GAP)
    stage = study.stages.select_related("study__bank").get(index=2)
    assert stage.manifest["priority"] == {"name": "gap", "version": "1"}
    assert not verify_stage(stage).differences
    stored = files.load_array(CandidateSet.objects.get(stage=stage).file_sha256)
    # The belief lies near 60 %, and models are wrong on every second target. No model shows the other outcomes.
    shown_right = stored["outcome"] == (stored["evidence"] % 2 == 0)
    wrong = stored["target"] % 2 == 1
    gap = stored["priority"]
    assert 0 == gap[~shown_right].max() < gap[shown_right & ~wrong].min()
    assert pytest.approx(gap[shown_right & wrong].mean(), abs=0.1) == 0.55 and gap[shown_right & ~wrong].mean() < 0.5
    slots = list(Slot.objects.filter(stage=stage, role="sampled").select_related("item__pair__target"))
    often = max(slot.inclusion_probability for slot in slots)
    top = [slot.item.pair.target.position % 2 for slot in slots if slot.inclusion_probability == often]
    assert len(top) > 12 and np.mean(top) > 0.6
    assert all(slot.score is None for slot in slots)  # There is no predictor, and a gap is no chance.
    # Weights take the draw off again: the slots stand for all candidates.
    assert sum(1 / slot.inclusion_probability for slot in slots) == pytest.approx(400, rel=0.02)


@pytest.mark.slow
@pytest.mark.django_db
def test_verdicts_by_which_a_stage_was_drawn_are_not_judged_again(capsys: pytest.CaptureFixture[str]) -> None:
    models_on(cast.small_bank())
    ModelAnswer.objects.update(rules_version="1", response="no reply")
    study = filled.run_study("parting", **GAP)
    stage = study.stages.select_related("study__bank").get(index=2)
    call_command("judge_again", bank=study.bank.name, yes=True)
    assert "81 answers stay as they were judged, since planned studies rest on them: parting" in capsys.readouterr().out
    stored = files.load_array(CandidateSet.objects.get(stage=stage).file_sha256)
    again = instruments.of_study(study).priority.of(
        rows=stored,
        questions=eligible_questions(study),
        chances=None,
        answers=training_examples(study.stages.get(index=1)),
        rng=np.random.default_rng(0),
    )
    assert again == pytest.approx(stored["priority"])
    assert not verify_stage(stage).differences


@pytest.mark.django_db
def test_what_a_study_would_draw_by_is_judged_again_before_its_first_plan(capsys: pytest.CaptureFixture[str]) -> None:
    models_on(cast.small_bank())
    ModelAnswer.objects.update(rules_version="1", response="no reply")
    study = cast.small_study("waiting", **GAP)
    call_command("judge_again", bank=study.bank.name)
    assert "81 answers would be judged again" in capsys.readouterr().out


@pytest.mark.django_db
def test_a_predictor_that_reads_models_answers_keeps_their_verdicts(capsys: pytest.CaptureFixture[str]) -> None:
    models_on(cast.small_bank())
    ModelAnswer.objects.update(rules_version="1", response="no reply")
    compared = [{"name": "logistic", "params": {"columns": ["models"]}}]
    study = cast.small_study("columns", predictor={"name": "logistic", "compared": compared})
    lifecycle.open_stage(cast.stage_of(study))
    call_command("judge_again", bank=study.bank.name, yes=True)
    assert "81 answers stay as they were judged, since planned studies rest on them: columns" in capsys.readouterr().out


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("changes", "answered", "said"),
    [
        ({}, False, "instrument.options.priority: no language model has answered questions of small version 1"),
        ({"stages": [{"sittings": 4}]}, True, "no stage draws by it: give a later stage a design"),
        ({"stages": [{"sittings": 4}, {"sittings": 4, "design": {"kind": "proportional"}}]}, True, "proportional"),
        (
            {"instrument": {"kind": "belief_update", "options": {"priority": "gap", "evidence_questions": 2}}},
            True,
            "items with several evidence questions have no gap",
        ),
    ],
)
def test_a_gap_that_cannot_be_is_refused(changes: dict[str, Any], answered: bool, said: str) -> None:
    bank = cast.small_bank()
    if answered:
        models_on(bank)
    with pytest.raises(FileErrors) as refused:
        cast.small_study("refused", **{**GAP, **changes})
    assert said in str(refused.value)


@pytest.mark.django_db
def test_only_the_model_that_people_are_told_about_counts() -> None:
    models_on(cast.small_bank())
    options = {**cast.PLAIN, "models": "one", "priority": "gap", "evidence": "real", "language_model": "elm"}
    study = cast.small_study("real", **{**GAP, "instrument": {"kind": "belief_update", "options": options}})
    instrument = instruments.of_study(study)
    questions = list(study.bank.questions.select_related("task").order_by("position"))
    rows = rows_of((0, 2, 1), (1, 3, 0))
    ModelAnswer.objects.filter(language_model__name="ash").update(correct=False)
    priorities = instrument.priority.of(
        rows=rows, questions=questions, chances=None, answers=[], rng=np.random.default_rng(0)
    )
    assert priorities.tolist() == [
        0.5,
        0.5,
    ]  # Nobody answered yet, so that the belief is a half.
    LanguageModel.objects.get(name="elm").answers.all().delete()
    with pytest.raises(Exception, match="elm has not answered questions of small version 1"):
        instrument.priority.of(rows=rows, questions=questions, chances=None, answers=[], rng=np.random.default_rng(0))


# By hand


def test_what_is_known_of_questions_makes_the_columns_of_the_forecast() -> None:
    right = np.array([[1.0, np.nan, np.nan], [0.0, 1.0, np.nan]])
    assert gap_priority._mean_right(right) == pytest.approx([0.5, 1, 2 / 3])
    assert gap_priority._mean_right(right * np.nan).tolist() == [0.5, 0.5, 0.5]
    rows = rows_of((0, 1, 1), (0, 2, 0), (-1, 1, -1))
    columns = gap_priority._columns(rows, np.array([0.8, 0.6, 0.3]), np.array([4, 4, 5]), np.array([9.0, 1.0, np.e]))
    # The outcome, the target's ease, the evidence's, both at once, the outcome of the same task, the length.
    assert columns[0] == pytest.approx([1, 0.6, 0.3, 0.3, 1, 0])
    assert columns[1] == pytest.approx([-1, 0.3, 0.3, -0.3, 0, 1])
    assert columns[2] == pytest.approx([0, 0.6, 0, 0, 0, 0])


def test_what_a_target_adds_is_drawn_in_by_its_answers() -> None:
    """Nothing but the target differs: two answers to the first, one to the second, none to the third."""
    alike, asked = rows_of((-1, 0, -1), (-1, 1, -1), (-1, 2, -1)), rows_of((-1, 0, -1), (-1, 0, -1), (-1, 1, -1))
    foreseen = expected_belief(
        alike,
        asked,
        np.array([0.2, 0.4, 0.9]),
        right=np.full((1, 3), 0.5),
        tasks=np.zeros(3, dtype=int),
        lengths=np.ones(3),
    )
    assert foreseen == pytest.approx([0.5 - 0.4 / 7, 0.5 + 0.4 / 6, 0.5])
    of_tasks = expected_belief(
        alike,
        asked,
        np.array([0.2, 0.4, 0.9]),
        right=np.full((1, 3), 0.5),
        tasks=np.array([0, 0, 1]),
        lengths=np.ones(3),
    )
    assert of_tasks == pytest.approx(foreseen)
    other = rows_of((-1, 0, -1), (-1, 2, -1))
    half = expected_belief(
        other, other, np.array([0.4, 0.6]), right=np.full((1, 3), 0.5), tasks=np.array([0, 0, 1]), lengths=np.ones(3)
    )
    # A task takes a sixth, and of what is left the target takes one more.
    assert half == pytest.approx([0.5 - 0.1 / 6 - (0.1 - 0.1 / 6) / 6, 0.5 + 0.1 / 6 + (0.1 - 0.1 / 6) / 6])


def test_answers_about_questions_that_are_gone_say_nothing() -> None:
    def answer(evidence: int | None, target: int, outcome: bool | None, posterior: int | None) -> Any:
        pair = SimpleNamespace(evidence_id=evidence, target_id=target, outcome=outcome)
        made = SimpleNamespace(slot=SimpleNamespace(item=SimpleNamespace(pair=pair)))
        made.__dict__[KNOWN] = Beliefs(50, posterior)
        return made

    rows = [
        answer(10, 11, True, 80),
        answer(11, 10, False, 30),
        answer(None, 11, None, 60),
        answer(10, 99, True, 70),
        answer(99, 11, True, 70),
        answer(10, 11, True, None),
    ]
    asked, stated = gap_priority._answered(rows, {10: 0, 11: 1})
    assert asked.tolist() == [(0, 1, 1), (1, 0, 0), (-1, 1, -1)] and stated.tolist() == [0.8, 0.3, 0.6]


def test_steps_are_expected_by_the_assumptions_and_then_by_the_answers() -> None:
    nothing = expected.AnsweredSteps(np.zeros((0, 3)), np.zeros((0, 2), dtype=bool))
    assert expected.change_sizes(nothing) == (-0.8, 0.8)
    assert expected.step_weights(nothing, 2, (-0.8, 0.8)) == pytest.approx([0.5, 0.5])
    said = expected.AnsweredSteps(
        np.array([[50.0, 75, 75], [50, 25, 50], [50, 50, 60]]), np.array([[True, True], [False, True], [True, True]])
    )
    step = np.log(3)  # From 50 to 75 %. Who did not move says nothing of how far people move.
    assert expected.change_sizes(said) == pytest.approx((-(16 + step) / 21, (16 + step) / 21))
    chances, outcome = np.array([[0.5, 0.2]]), np.array([[1, 0]])
    for order in ("drawn", "shuffled"):
        assert expected.departure(chances, outcome, nothing, order=order) == pytest.approx([0.5 * 0.8 * (0.5 - 0.2)])
    last = [expected.last_change(chances, order=order)[0] for order in ("drawn", "2-1", "shuffled")]
    assert last == pytest.approx([0.2, 0.5, 0.35])
