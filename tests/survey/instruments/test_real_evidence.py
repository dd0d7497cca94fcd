"""Evidence that a model really gave: only outcomes that happened are drawn, and what it wrote is shown as text."""

import csv
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from django.core.management import call_command
from django.test import Client

from survey.contracts import instruments
from survey.exceptions import FileErrors
from survey.instruments.belief_update import real_evidence
from survey.instruments.belief_update.models import Pair
from survey.instruments.belief_update.reports.alignment.aligning import alignment_of
from survey.models import CandidateSet, LanguageModel, ModelAnswer, Question, Slot, Study
from survey.services.banks.answer_checking import RULES_VERSION
from survey.services.banks.eligibility import eligible_questions
from survey.services.plans import candidates
from survey.services.results.estimates.study_estimates import estimate
from survey.services.results.export import files
from survey.services.results.policies import comparing
from survey.services.stages import jobs, lifecycle
from survey.services.stages.verifying import verify_stage
from survey.services.studies.creating import create_study, remarks_on
from tests import cast
from tests.frontend.pages import go_to
from tests.survey import filled

pytestmark = pytest.mark.slow

REPLY = 'The answer is <script>alert("B")</script> &amp; so on.'
REAL = {"kind": "belief_update", "options": {"evidence": "real", "language_model": "parrot"}}


def answered(bank: Any, *, name: str = "parrot", leave_out: int = 0, response: str = REPLY) -> LanguageModel:
    """A model that is right on every question whose position is not a multiple of three."""
    model = LanguageModel.objects.create(name=name)
    questions = list(bank.questions.order_by("position"))
    ModelAnswer.objects.bulk_create(
        ModelAnswer(language_model=model, question=question, correct=question.position % 3 != 0, response=response)
        for question in questions[: len(questions) - leave_out]
    )
    return model


def real_study(slug: str = "small", *, leave_out: int = 0, **overrides: Any) -> Study:
    bank = cast.small_bank()
    answered(bank, leave_out=leave_out)
    return cast.small_study(slug, on=bank, **{"instrument": REAL, **overrides})


def refused(**overrides: Any) -> str:
    with pytest.raises(FileErrors) as error:
        create_study(text=cast.study_text(**overrides), source_name="study.toml")
    return str(error.value)


# What is drawn


@pytest.mark.django_db
def test_every_outcome_that_is_planned_really_happened() -> None:
    study = real_study(roles={"holdout": 0.25, "controls": 0.1}, sitting={"items": 10}, stages=[{"sittings": 8}])
    lifecycle.open_stage(cast.stage_of(study))
    pairs = list(Pair.objects.exclude(evidence=None).select_related("evidence", "answer"))
    assert len(pairs) > 60
    for pair in pairs:
        assert pair.outcome == (pair.evidence.position % 3 != 0)
        assert (pair.answer.question_id, pair.answer.correct) == (pair.evidence_id, pair.outcome)
    assert {slot.control_kind for slot in Slot.objects.all()} == {"", "unrelated_evidence", "no_evidence"}
    assert Pair.objects.filter(evidence=None).exists()


@pytest.mark.django_db
def test_answers_that_a_planned_stage_rests_on_keep_their_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    study = real_study(roles={"holdout": 0.25, "controls": 0.1}, sitting={"items": 10}, stages=[{"sittings": 8}])
    answered(study.bank, name="owl", response="no reply")
    ModelAnswer.objects.update(rules_version="1")
    lifecycle.open_stage(cast.stage_of(study))
    before = dict(ModelAnswer.objects.filter(language_model__name="parrot").values_list("pk", "correct"))
    call_command("judge_again", bank=study.bank.name, yes=True)
    parrot, owl = (ModelAnswer.objects.filter(language_model__name=name) for name in ("parrot", "owl"))
    assert dict(parrot.values_list("pk", "correct")) == before
    assert set(parrot.values_list("rules_version", flat=True)) == {"1"}
    assert set(owl.values_list("rules_version", "correct")) == {(RULES_VERSION, False)}
    said = capsys.readouterr().out
    assert "stays, since it is what small rests on" in said


@pytest.mark.django_db
def test_replies_that_could_not_be_read_are_no_evidence() -> None:
    bank = cast.small_bank()
    parrot = answered(bank)
    parrot.answers.filter(question__external_id__in=("q3", "q9")).update(unreadable=1, reason="two answers")
    study = cast.small_study(on=bank, instrument=REAL, candidates={"size": 5000})
    _first, second, *_others = map(str, remarks_on(study))
    assert second == "2 questions with replies of parrot that could not be read are left out: q3, q9"
    stage = lifecycle.open_stage(cast.stage_of(study))
    assert CandidateSet.objects.get(stage=stage).universe_size == 38 * 37
    assert not Pair.objects.filter(answer__unreadable__gt=0).exists()
    assert not verify_stage(stage).differences


def unreadable(*external_ids: str) -> None:
    ModelAnswer.objects.filter(question__external_id__in=external_ids).update(unreadable=1)


@pytest.mark.thorough
@pytest.mark.django_db
def test_a_stage_keeps_the_replies_it_was_planned_with_and_later_stages_have_none_found_unreadable_since() -> None:
    study = real_study(
        stages=[{"sittings": 30}, {"sittings": 30, "design": {"kind": "epsilon_greedy"}}],
        predictor={"name": "same_task"},
        candidates={"size": 900},
    )
    first = filled.answer(lifecycle.open_stage(cast.stage_of(study)))
    figures = estimate(study)
    assert figures.parts[0].predictions.startswith("a logistic regression")  # Of all candidates, by their questions.
    evidence = Pair.objects.filter(item__study=study, outcome=False).order_by("pk")
    unreadable(evidence[0].evidence.external_id, "q39")
    study = Study.objects.select_related("bank").get(pk=study.pk)
    assert len(eligible_questions(study)) == 38 and estimate(study) == figures

    jobs.run_inline(lifecycle.close_stage(first))
    second = filled.answer(cast.stage_of(study, 2), seed=2)
    planned = Pair.objects.filter(item__slots__stage=second)
    assert planned.count() > 50 and not planned.filter(answer__unreadable__gt=0).exists()
    left_out = [evidence[0].evidence_id, study.bank.questions.get(external_id="q39").pk]
    assert not planned.filter(target__in=left_out).exists()
    stages = list(study.stages.order_by("index"))
    assert [stage.manifest["questions"]["count"] for stage in stages] == [40, 38]
    assert [verify_stage(stage).differences for stage in stages] == [[], []]
    of_first = [[figure.stages[0].estimate for figure in report.figures] for report in (figures, estimate(study))]
    assert of_first[0] == of_first[1]

    def reports() -> tuple[Any, ...]:
        again = Study.objects.select_related("bank").get(pk=study.pk)
        return (
            estimate(again),
            comparing.compare(again, epsilons=[0.5]),
            alignment_of(again, samples=100).as_json()["scores"],
        )

    before = reports()
    assert all(stage.policies and not stage.reason for stage in before[1])
    unreadable("q0", "q30")
    assert reports() == before


@pytest.mark.django_db
def test_judging_again_counts_what_cannot_be_read_of_a_planned_study_and_changes_no_verdict(
    capsys: pytest.CaptureFixture[str],
) -> None:
    study = real_study(stages=[{"sittings": 4}, {"sittings": 4}])
    ModelAnswer.objects.update(rules_version="1", response="")
    lifecycle.open_stage(cast.stage_of(study))
    call_command("judge_again", bank=study.bank.name)
    assert not ModelAnswer.objects.filter(unreadable__gt=0).exists()
    call_command("judge_again", bank=study.bank.name, yes=True)
    assert "14 of these are known as unreadable from now on" in capsys.readouterr().out
    rows = ModelAnswer.objects.values_list("question__position", "correct", "unreadable", "rules_version")
    assert sorted(rows) == [(place, place % 3 != 0, int(place % 3 == 0), "1") for place in range(40)]
    assert len(eligible_questions(Study.objects.get(pk=study.pk))) == 26
    call_command("judge_again", bank=study.bank.name, yes=True)
    assert "known as unreadable" not in capsys.readouterr().out


def test_a_reply_is_shown_wherever_in_an_items_evidence_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    """An item has up to three pieces of evidence."""

    class Pairs:
        objects = SimpleNamespace(filter=lambda **where: Pairs if where == {"item__study__slug": "cast"} else None)

        @staticmethod
        def values_list(*names: str) -> Any:
            rows = [{"answer": 11, "answer_2": 12, "answer_3": 13}, {"answer": 14, "answer_2": None, "answer_3": None}]
            return SimpleNamespace(distinct=lambda: [tuple(row[name] for name in names) for row in rows])

    monkeypatch.setattr(real_evidence, "Pair", Pairs)
    outcomes = real_evidence.RealOutcomes(SimpleNamespace(slug="cast"), language_model="parrot")  # type: ignore[arg-type]
    outcomes.known = {number: (10 + number, True) for number in range(1, 7)}
    outcomes.left_out = {1, 2, 3, 4, 5}
    assert outcomes.in_items() == {1, 2, 3, 4}


@pytest.mark.django_db
def test_remarks_name_the_unreadable_replies_that_stages_planned_before_show() -> None:
    study = real_study()
    lifecycle.open_stage(cast.stage_of(study))
    wrong = study.bank.questions.filter(model_answers__correct=False).order_by("position")
    shown_ids = set(Pair.objects.values_list("evidence", flat=True))
    seen = next(question.external_id for question in wrong if question.pk in shown_ids)
    unseen = next(question.external_id for question in wrong if question.pk not in shown_ids)
    unreadable(seen, unseen)
    remarks = " | ".join(map(str, remarks_on(Study.objects.get(pk=study.pk))))
    assert "2 questions with replies of parrot that could not be read are left out" in remarks
    assert (
        f"1 of them are evidence in stages that were planned before, as incorrect answers: {seen} |" in f"{remarks} |"
    )
    other = cast.small_study("second", on=study.bank, instrument=REAL)
    assert "planned before" not in " | ".join(map(str, remarks_on(other)))


@pytest.mark.django_db
def test_the_universe_is_that_of_the_ordered_pairs_and_the_chances_follow() -> None:
    study = real_study(candidates={"size": 400})
    stage = lifecycle.open_stage(cast.stage_of(study))
    stored = CandidateSet.objects.get(stage=stage)
    assert stored.universe_size == 40 * 39
    assert stored.probability == pytest.approx(400 / (40 * 39))
    assert {slot.inclusion_probability for slot in Slot.objects.filter(role="sampled")} == {12 / 400}
    assert {slot.pool_probability for slot in Slot.objects.filter(role="sampled")} == {400 / (40 * 39)}


@pytest.mark.django_db
def test_all_pairs_that_happened_are_candidates_where_the_pool_is_large_enough() -> None:
    study = real_study(candidates={"size": 5000})
    questions = eligible_questions(study)
    drawn = candidates.draw_candidates(cast.stage_of(study), questions)
    assert len(drawn.rows) == drawn.universe_size == 40 * 39
    assert drawn.probability == 1.0
    right = np.array([question.position % 3 != 0 for question in questions])
    assert (drawn.rows["outcome"] == right[drawn.rows["evidence"]]).all()
    assert len(np.unique(drawn.rows)) == len(drawn.rows)


@pytest.mark.django_db
def test_the_unbound_instrument_still_draws_hypothetical_outcomes() -> None:
    study = cast.small_study()
    assert instruments.of_study(study).universe_size(eligible_questions(study)) == 2 * 40 * 39
    drawn = candidates.draw_candidates(cast.stage_of(study), eligible_questions(study))
    outcomes = Counter(drawn.rows["outcome"].tolist())
    assert min(outcomes.values()) > 100


@pytest.mark.django_db
def test_questions_without_an_answer_are_left_out_and_named() -> None:
    study = real_study(leave_out=2)
    assert len(eligible_questions(study)) == 38
    first, second, *_others = map(str, remarks_on(study))
    assert first == "evidence is what parrot really answered: 25 of 38 questions right"
    assert second == "2 questions that parrot has not answered are left out: q38, q39"


@pytest.mark.django_db
def test_answers_that_come_later_are_noticed_as_other_candidates() -> None:
    study = real_study(leave_out=2)
    stage = lifecycle.open_stage(cast.stage_of(study))
    assert not candidates.candidates_are_outdated(stage)
    question = Question.objects.get(external_id="q39")
    ModelAnswer.objects.create(language_model=LanguageModel.objects.get(), question=question, correct=True)
    assert candidates.candidates_are_outdated(stage)


@pytest.mark.django_db
def test_a_plan_can_be_drawn_again_from_its_manifest() -> None:
    study = real_study()
    stage = lifecycle.open_stage(cast.stage_of(study))
    assert verify_stage(cast.stage_of(study, stage.index)).differences == []


@pytest.mark.django_db
def test_studies_without_real_evidence_keep_the_hash_of_their_questions() -> None:
    study = cast.small_study()
    before = candidates.question_set_digest(study)
    answered(study.bank)
    assert candidates.question_set_digest(study) == before


# What is shown


@pytest.mark.django_db
def test_what_the_model_wrote_is_shown_as_text_with_the_evidence_and_not_before(client: Client) -> None:
    bank = cast.bank(texts=())
    answered(bank)
    cast.open_study(instrument={"kind": "belief_update", "options": {**REAL["options"], "show_answer": True}})
    page = go_to(client, "item", screen="prior")
    assert "given_answer" not in page.parts and "alert" not in page.text
    page = go_to(Client(), "item", screen="posterior")
    assert page.parts["given_answer"] == REPLY
    assert "script" not in page.tags[page.tags.index("main") :]
    assert page.parts["evidence"].startswith("Question number")


@pytest.mark.django_db
def test_a_reply_that_was_collected_empty_is_shown_as_such(client: Client) -> None:
    bank = cast.bank(texts=())
    answered(bank, response=" ")
    ModelAnswer.objects.update(request_sha256="0" * 64)
    cast.open_study(instrument={"kind": "belief_update", "options": {**REAL["options"], "show_answer": True}})
    assert go_to(client, "item", screen="posterior").parts["given_answer"] == "(an empty reply)"


@pytest.mark.django_db
def test_the_reply_is_shown_only_where_the_study_asks_for_it(client: Client) -> None:
    bank = cast.bank(texts=())
    answered(bank)
    cast.open_study(instrument=REAL)
    assert "given_answer" not in go_to(client, "item", screen="posterior").parts


# What follows from it


@pytest.mark.thorough
@pytest.mark.django_db
def test_the_export_names_the_model_and_what_it_wrote(tmp_path: Path) -> None:
    study = real_study()
    stage = lifecycle.open_stage(cast.stage_of(study))
    filled.answer(stage)
    files.write_export(study, tmp_path)
    with (tmp_path / "answers.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {(row["evidence_model"], row["evidence_answer"]) for row in rows} == {("parrot", REPLY)}
    assert {(int(row["evidence_id"][1:]) % 3 != 0, row["outcome"]) for row in rows} == {(True, "1"), (False, "0")}


@pytest.mark.thorough
@pytest.mark.django_db
def test_an_estimate_says_whose_outcomes_it_is_over() -> None:
    study = real_study()
    filled.answer(lifecycle.open_stage(cast.stage_of(study)))
    assert "1,560 ordered pairs of this study's 40 questions" in estimate(study).estimand
    assert "parrot really had" in estimate(study).estimand


@pytest.mark.django_db
def test_alignment_looks_at_the_model_that_was_shown_alone() -> None:
    bank = cast.small_bank()
    answered(bank)
    answered(bank, name="other")
    study = filled.run_study(
        on=bank,
        instrument=REAL,
        predictor={"name": "previous_correct"},
        stages=[{"sittings": 12}, {"sittings": 4, "design": {"kind": "epsilon_greedy"}}],
    )
    alignment = alignment_of(study, samples=100)
    assert [score.name for score in alignment.scores] == ["parrot"]
    assert alignment.scores[0].pairs == alignment.pairs
    assert any(note.startswith("other: left out; the study shows real outcomes of parrot") for note in alignment.notes)


# What is refused when a study is created


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"evidence": "real"}, "instrument.options.evidence: whose answers? name the model"),
        ({"language_model": "parrot"}, 'instrument.options.language_model: only evidence = "real" has it'),
        ({"show_answer": True}, 'instrument.options.show_answer: only evidence = "real" has it'),
        ({"evidence": "real", "language_model": "gull"}, "no language model is called 'gull'; there are: parrot, shy"),
        ({"evidence": "true"}, "instrument.options.evidence: choose one of hypothetical, real"),
        ({"answerer": "a horse"}, "instrument.options.answerer: choose one of model, ai_or_person"),
        (
            {"evidence": "real", "language_model": "shy"},
            "instrument.options.language_model: shy has answered 1 of the study's 40 questions: collect its answers",
        ),
    ],
)
def test_it_refuses_options_that_cannot_be_shown(options: dict[str, Any], said: str) -> None:
    bank = cast.bank()
    answered(bank)
    answered(bank, name="shy", leave_out=39)
    assert said in refused(instrument={"kind": "belief_update", "options": options})


@pytest.mark.django_db
def test_it_refuses_to_show_replies_that_were_not_imported() -> None:
    answered(cast.bank(), response="")
    said = refused(instrument={"kind": "belief_update", "options": {**REAL["options"], "show_answer": True}})
    assert "show_answer: 40 answers of parrot were imported without the reply, which cannot be shown: q0, q1" in said


@pytest.mark.django_db
def test_the_command_says_what_was_left_out(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    answered(cast.bank(), leave_out=3)
    file = tmp_path / "study.toml"
    file.write_text(cast.study_text(instrument=REAL))
    call_command("create_study", str(file))
    assert "note: 3 questions that parrot has not answered are left out: q37, q38, q39" in capsys.readouterr().out


# Who answers, as the pages have it


@pytest.mark.django_db
def test_a_study_may_leave_open_whether_an_ai_or_a_person_answers(client: Client) -> None:
    cast.open_study(instrument={"kind": "belief_update", "options": {"answerer": "ai_or_person"}})
    page = go_to(client, "item", screen="prior")
    assert page.parts["answerer"] and "An AI system or a person is asked" in page.text
    page = go_to(Client(), "item", screen="posterior")
    assert "the same AI system or person was asked" in page.text
    assert "model" not in page.text.replace("language models", "")


@pytest.mark.thorough
@pytest.mark.django_db
def test_a_condition_of_that_factor_changes_the_words_of_the_items() -> None:
    cast.open_study(conditions=[{"factor": "answerer", "levels": ["model", "ai_or_person"]}])
    seen = set()
    for _person in range(4):
        page = go_to(Client(), "item", screen="prior")
        level = cast.Sitting.objects.order_by("pk").last().levels()["answerer"]
        assert ("AI system or a person" in page.text) == (level == "ai_or_person")
        assert ("A large language model is asked" in page.text) == (level == "model")
        seen.add(level)
    assert seen == {"model", "ai_or_person"}


@pytest.mark.django_db
def test_it_refuses_levels_of_that_factor_that_have_no_words() -> None:
    cast.bank()
    said = refused(conditions=[{"factor": "answerer", "levels": ["model", "oracle"]}])
    assert "conditions.1.levels: the factor answerer changes the words of the items" in said and "not oracle" in said


@pytest.mark.django_db
def test_a_study_runs_to_its_second_stage_on_real_evidence() -> None:
    study = real_study(
        predictor={"name": "previous_correct"},
        stages=[{"sittings": 10}, {"sittings": 4, "design": {"kind": "test_set", "pairs": 3, "responses_per_pair": 4}}],
    )
    stage = lifecycle.open_stage(cast.stage_of(study))
    filled.answer(stage)
    jobs.run_inline(lifecycle.close_stage(stage))
    second = cast.stage_of(study, 2)
    assert second.state == "planned"
    planned = Pair.objects.filter(item__slots__stage=second).select_related("evidence").distinct()
    assert len(planned) == 3
    assert all(pair.outcome == (pair.evidence.position % 3 != 0) for pair in planned)
    stored = CandidateSet.objects.get(stage=second)
    assert (stored.universe_size, stored.excluded) == (40 * 39, 30)
