"""An aid next to the target: what it counts, who sees it, what is exported, and what arms change."""

import csv
import html
import math
import random
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from survey.contracts import instruments
from survey.exceptions import FileErrors, HunchError, PlanRefused, StateRefused
from survey.figures import Figure
from survey.instruments.belief_update import people, variants
from survey.instruments.belief_update.aids import Similar, store_vectors, words_of
from survey.instruments.belief_update.models import Aid, Belief, Pair, QuestionVector
from survey.instruments.belief_update.reports.alignment.deployment import Rule
from survey.instruments.belief_update.reports.arms import report as arms_report
from survey.instruments.belief_update.reports.arms.measures import ArmAnswers, ArmMeasure, as_measures, measures_of_arms
from survey.live.replay import replay
from survey.models import Assignment, AssignmentCondition, ModelAnswer, Question, Sitting, Study
from survey.services.banks.eligibility import eligible_questions
from survey.services.plans import planning
from survey.services.results import reports
from survey.services.results.export import answers_file, files
from survey.services.sittings.answering import advance
from survey.services.sittings.flow import current_step
from survey.services.stages import lifecycle
from survey.services.studies import amending
from survey.services.studies.creating import create_study, remarks_on
from tests import cast
from tests.frontend.pages import go_to
from tests.kept import kept
from tests.survey import filled
from tests.survey.instruments.test_real_evidence import REAL, answered

pytestmark = pytest.mark.slow

K = 5
AID = {"kind": "belief_update", "options": {**REAL["options"], "aid_questions": K, "answer_mode": "blank"}}
ARMS = {
    "factor": "help",
    "levels": ["alone", "aided"],
    "per": "item",
    "options": {"aided": {"aid": "similar_questions"}},
}


# Which questions are similar


def similar(*texts: str) -> Similar:
    return Similar([words_of(text) for text in texts])


def test_the_nearest_questions_share_rare_words_and_equals_stand_in_the_banks_order() -> None:
    known = similar("a river in Peru", "a lake in Peru", "the sum of two", "a river in Chile", "the sum of six", "x")
    assert known.nearest(0, without=[], count=2).tolist() == [1, 3]
    assert known.nearest(2, without=[], count=1).tolist() == [4]
    assert known.nearest(5, without=[], count=3).tolist() == [0, 1, 2]  # Nothing is like it.


def test_the_target_the_evidence_and_their_copies_are_never_among_them() -> None:
    known = similar("2 + 2 = ?", "which is 2 + 2", "Is 2 + 2 which?", "2 + 3 = ?", "3 + 3 = ?")
    assert known.nearest(1, without=[], count=9).tolist() == [0, 3, 4]  # Not the copy in another order and case.
    assert known.nearest(0, without=[2], count=9).tolist() == [3, 4]
    assert known.most_alike == 2
    assert [of_pair.tolist() for of_pair in known.of_pairs([0, 1, 0], [2, -1, 3], 9)] == [[3, 4], [0, 3, 4], [1, 2, 4]]


def test_with_vectors_the_angle_decides_and_copies_stay_out() -> None:
    vectors = np.array([[1, 0], [0.8, 0.6], [0.6, 0.8], [0, 1]], dtype=np.float32)
    known = Similar([("a",), ("b",), ("a",), ("c",)], vectors)
    assert known.nearest(0, without=[], count=9).tolist() == [1, 3]
    assert known.nearest(3, without=[1], count=9).tolist() == [0, 2] or known.to(3)[2] > known.to(3)[0]


# What is stored


def plan(slug: str = "small", **overrides: Any) -> Study:
    bank = cast.small_bank()
    answered(bank)
    made = cast.small_study(
        slug,
        on=bank,
        **{
            "instrument": AID,
            "conditions": [ARMS],
            "roles": {"holdout": 0.25, "controls": 0.2},
            "sitting": {"items": 10},
            "stages": [{"sittings": 8}],
            **overrides,
        },
    )
    planning.plan_stage(cast.stage_of(made))
    return made


@kept
def aided() -> Study:
    """A study whose stage is open, with an aid for half of the items of each person."""
    made = plan()
    lifecycle.open_stage(cast.stage_of(made))
    return made


@pytest.mark.django_db
def test_every_planned_item_has_an_aid_of_other_questions_that_the_model_was_asked() -> None:
    aided()
    position = dict(Question.objects.values_list("external_id", "position"))
    aids = list(Aid.objects.select_related("pair__target", "pair__evidence"))
    assert len(aids) == Pair.objects.count() > 60 and any(aid.pair.evidence is None for aid in aids)
    for aid in aids:
        question_ids = {aid.pair.target.external_id, aid.pair.evidence.external_id if aid.pair.evidence else ""}
        assert len(set(aid.questions)) == aid.asked == K and not question_ids & {*aid.questions}
        assert aid.right == sum(position[key] % 3 != 0 for key in aid.questions)  # As `answered` answers.
        assert (aid.language_model, aid.similarity) == ("parrot", "words")


@pytest.mark.django_db
def test_what_the_model_answered_to_a_target_never_reaches_its_own_aid() -> None:
    """The attack: every answer is turned round for one question after the other, in the plan's own computation."""
    study = aided()
    instrument: Any = instruments.of_study(study)
    questions = eligible_questions(study)
    targets = [*Pair.objects.select_related("item").order_by("pk")]
    before = dict(Aid.objects.values_list("pair", "right"))
    turned = targets[0].target
    ModelAnswer.objects.filter(question=turned).update(correct=turned.position % 3 == 0)
    Aid.objects.all().delete()
    instrument.__dict__.pop("real", None)
    fresh: Any = instruments.of_study(Study.objects.get(pk=study.pk))
    from survey.instruments.belief_update.aids import create_aids

    create_aids(targets, questions=questions, study=Study.objects.get(pk=study.pk), real=fresh.real)
    after = dict(Aid.objects.values_list("pair", "right"))
    shows = {pair.pk for pair in targets if turned.pk in (pair.target_id, pair.evidence_id)}
    assert shows and all(after[key] == before[key] for key in shows)
    assert any(after[key] != before[key] for key in after)  # It does count where it is another question.


@pytest.mark.django_db
def test_a_study_without_an_aid_stores_none() -> None:
    plan(conditions=[])
    assert Pair.objects.exists() and not Aid.objects.exists()


@pytest.mark.django_db
def test_embeddings_decide_where_the_study_says_so_and_are_asked_for_first() -> None:
    bank = cast.small_bank()
    answered(bank)
    options = {**AID["options"], "aid_similarity": "embeddings"}
    file = {"instrument": {**AID, "options": options}, "conditions": [ARMS], "stages": [{"sittings": 4}]}
    made = cast.small_study(on=bank, **file)
    (remark,) = [note for note in remarks_on(made) if note.field == "instrument.options.aid_similarity"]
    assert remark.message.startswith("40 questions have no stored embedding (")
    with pytest.raises(PlanRefused, match=r"no stored embedding .*: `hunch jobs ask prepare small --now`"):
        planning.plan_stage(cast.stage_of(made))
    questions = [*bank.questions.order_by("position")]
    angles = np.linspace(0, 1.5, len(questions))  # The nearest ones are the neighbours.
    store_vectors(questions, np.stack([np.cos(angles), np.sin(angles)], axis=1), model="a circle")
    store_vectors(questions, np.stack([np.cos(angles), np.sin(angles)], axis=1), model="a circle")  # Again: replaced.
    assert QuestionVector.objects.count() == 40
    planning.plan_stage(cast.stage_of(made))
    for aid in Aid.objects.select_related("pair__target", "pair__evidence"):
        near = [int(key[1:]) - aid.pair.target.position for key in aid.questions]
        assert aid.similarity == "embeddings" and max(map(abs, near)) <= K and 0 not in near


# What is refused


@pytest.mark.django_db
def test_it_refuses_an_aid_that_cannot_be_shown_and_says_what_to_do() -> None:
    bank = cast.bank(texts=())
    answered(bank)
    base = {**AID["options"]}

    def refused(options: dict[str, Any], **more: Any) -> str:
        with pytest.raises(FileErrors) as error:
            create_study(
                text=cast.study_text(instrument={"kind": "belief_update", "options": options}, **more), source_name="x"
            )
        return str(error.value)

    assert 'instrument.options.aid: it says what a model really answered: set evidence = "real"' in refused(
        {"aid": "similar_questions"}
    )
    assert "which leaves at least 38 for every target" in refused(
        {**base, "aid": "similar_questions", "aid_questions": 39}
    )
    assert "conditions" in refused({"answer_mode": "blank"}, conditions=[ARMS])
    assert "aid_questions" in refused(base, conditions=[{**ARMS, "options": {"aided": {"aid_questions": 7}}}])


@pytest.mark.django_db
def test_items_of_a_pilot_keep_their_aid() -> None:
    study = plan(stages=[{"sittings": 8, "pilot": True}, {"sittings": 8}], sitting={"items": 5})
    options = {**AID["options"], "aid_questions": K + 1}
    text = study.source_text.replace(f"aid_questions = {K}", f"aid_questions = {options['aid_questions']}")
    assert text != study.source_text
    with pytest.raises(FileErrors, match="keep the keys that begin with aid, or duplicate the study"):
        amending.amend(study, text=text, source_name="x", reason="More.")


@pytest.mark.django_db
def test_a_plan_is_refused_where_too_few_answered_questions_are_left() -> None:
    bank = cast.small_bank()
    answered(bank)
    made = cast.small_study(
        on=bank,
        instrument={**AID, "options": {**AID["options"], "aid_questions": 38}},
        conditions=[ARMS],
        stages=[{"sittings": 4}],
    )
    Question.objects.filter(position=7).update(flag="broken", flag_reason="It has no right answer.")
    with pytest.raises(PlanRefused, match="38 similar questions are wanted, and 37 are left"):
        planning.plan_stage(cast.stage_of(made))


# What is shown, and to whom


def aids_by_level(sitting: Sitting) -> dict[str, list[tuple[str, str]]]:
    """By level and screen: what the aid said on the pages of a person who answers everything."""
    aids: dict[str, list[tuple[str, str]]] = {"alone": [], "aided": []}
    step = current_step(sitting)
    while step.kind != "end":
        if step.kind == "item" and step.screen is not None:
            own = Assignment.objects.filter(sitting=sitting, completed_at=None).order_by("position")[0]
            words = step.screen.words.get("aid", "")
            aids[own.levels()["help"]].append((step.screen.parts.get("aid", {}).get("value", ""), words))
        step = advance(sitting=sitting, step=step.number, data=cast.answers_for(step))
    return aids


@pytest.mark.django_db
def test_only_people_in_the_arm_see_it_and_the_export_has_what_they_saw(tmp_path: Path) -> None:
    study = aided()
    sitting = cast.begin(study)
    aids = aids_by_level(sitting)
    assert {*aids["alone"]} == {("", "")} and len(aids["aided"]) >= 8
    for value, words in aids["aided"]:
        right, asked = value.split("/")
        assert words == (
            f"The model was really asked the {asked} other questions that are most similar to this one: {right} of "
            f"these {asked} answers were correct."
        )
    files.write_export(study, tmp_path)
    with (tmp_path / "answers.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    rows = [row for row in rows if row["prior"]]
    counted = Counter(row["aid_asked"] for row in rows)
    assert len(rows) == 10
    assert counted[str(K)] == len(aids["aided"]) / 2 and counted[""] == len(aids["alone"]) / 2
    for row in rows:
        aid = Aid.objects.get(pair__item__key=row["item"])
        own = (row["aid_right"], row["aid_questions"], row["aid_similarity"])
        if row["aid_asked"]:
            assert own == (str(aid.right), " ".join(aid.questions), "words")
            assert f"aid=similar_questions {aid.right}/{K}" in row["variant"]
        else:
            assert own == ("", "", "") and "aid" not in row["variant"]


@pytest.mark.django_db
def test_the_page_says_it_in_german_beside_the_target(client: Client) -> None:
    bank = cast.bank(texts=())
    answered(bank)
    options = {**AID["options"], "aid": "similar_questions"}
    cast.open_study(instrument={"kind": "belief_update", "options": options})
    page = go_to(client, "item", screen="prior")
    assignment = Assignment.objects.select_related("slot__item__pair__aid").order_by("position")[0]
    stored = assignment.slot.item.pair.aid
    assert f"{stored.right} of these {stored.asked} answers were correct" in page.parts["aid"]
    assert page.text.index(page.parts["target"][:12]) < page.text.index("was really asked")
    from django.utils.translation import override

    from survey.instruments.belief_update import wording
    from survey.instruments.belief_update.screens import ShownAid

    setting = variants.of_assignment(
        assignment, instruments.of_study(assignment.slot.stage.study).options_for(assignment), {}
    )
    assert setting.aid == ShownAid(stored.right, stored.asked)
    with override("de"):
        said = wording.aid_words(setting)["aid"]
    assert said.startswith("Das Modell") and f"{stored.right} dieser {stored.asked} Antworten waren richtig" in said


@pytest.mark.django_db
def test_a_blind_study_shows_nothing_of_it() -> None:
    study = plan(blind=True)
    names = [column.name for column in files.answers_table(study).columns]
    cast.walk(cast.begin(lifecycle.open_stage(cast.stage_of(study)).study))
    for row in answers_file.answer_rows(study):
        own = dict(zip(names, row, strict=True))
        assert [own[name] for name in ("aid_asked", "aid_right", "aid_questions", "aid_similarity")] == [None] * 4
    with pytest.raises(StateRefused, match="blind"):
        reports.make(study, "arms", {})
    assert "hidden while the study is blind" in pair_page(study, Pair.objects.latest("pk"))


def pair_page(study: Study, pair: Pair) -> str:
    """The page of a pair in the admin, as somebody sees it who may read answers."""
    user, is_new = User.objects.get_or_create(username="reader", is_staff=True)
    if is_new:
        user.user_permissions.add(*Permission.objects.filter(codename__startswith="view_"))
        cast.join_all(user)
    client = Client()
    client.force_login(user)
    response = client.get(f"/admin/belief_update/pair/{pair.pk}/change/")
    assert response.status_code == 200
    return html.unescape(response.content.decode())


@pytest.mark.django_db
def test_a_pairs_page_and_a_replay_say_what_the_aid_said() -> None:
    study = aided()
    sitting = cast.begin(study)
    aids_by_level(sitting)
    pages = [page for page in replay(sitting).pages if "similar to this one" in " ".join(page.texts)]
    own = Assignment.objects.filter(sitting=sitting, conditions__level="aided").select_related("slot__item__pair__aid")
    stored = {assignment.position: assignment.slot.item.pair.aid for assignment in own}
    assert {page.title.split(",")[0] for page in pages} == {f"item {position}" for position in stored}
    for page in pages:
        aid = stored[int(page.title.split(",")[0].removeprefix("item "))]
        assert f"{aid.right} of these {aid.asked} answers were correct" in " ".join(page.texts)
    (_position, aid), *_rest = stored.items()
    said = f"parrot was right on {aid.right} of the {K} most similar questions, by their words: {aid.questions[0]}, "
    assert said in pair_page(study, aid.pair)


def test_simulated_people_move_towards_what_the_aid_says_by_a_set_weight() -> None:
    assert people.with_aid(40, "9/10", weight=0.5) == 65
    assert people.with_aid(40, "9/10", weight=0.0) == people.with_aid(40, "", weight=0.5) == 40
    assert people.with_aid(100, "0/10", weight=1.0) == 0


# What arms change


def test_figures_are_ratios_of_sums_over_stated_beliefs() -> None:
    answers = ArmAnswers(
        prior=np.array([0.4, 0.6, 1.0]),
        posterior=np.array([0.5, 0.8, 0.0]),
        correct=np.array([1.0, 0.0, 1.0]),
        counts=np.array([1.0, 1.0, 0.0]),  # The third shows an outcome that the model did not have.
    )
    wanted = measures_of_arms([19.0], [Rule("threshold", 0.5), Rule("proportional")])
    measures = {as_measure.name: as_measure for as_measure in as_measures(wanted, answers)}

    def ratio(name: str) -> float:
        measure = measures[name]
        assert measure.per is not None and measure.where is not None
        return float(measure.values[measure.where].sum() / measure.per[measure.where].sum())

    assert ratio("accuracy_posterior_19") == pytest.approx((0.5 + 19 * 0.2) / 20)
    assert ratio("accuracy_prior_19") == pytest.approx((0.4 + 19 * 0.4) / 20)
    assert ratio("cross_entropy_posterior_19") == pytest.approx(-(math.log(0.5) + 19 * math.log(0.2)) / 20)
    assert ratio("performance_posterior_threshold") == 0  # Above 0.5 stands only the wrong one.
    assert ratio("deployed_posterior_threshold") == 0.5
    assert ratio("performance_posterior_proportional") == pytest.approx(0.25)
    assert ratio("correct") == 0.5
    assert len(measures) == len(wanted) and all(np.isfinite(measure.values).all() for measure in measures.values())


def test_a_certain_belief_that_is_wrong_has_a_finite_loss() -> None:
    answers = ArmAnswers(np.array([1.0]), np.array([1.0]), np.array([0.0]), np.array([1.0]))
    (measure,) = as_measures([ArmMeasure("cross_entropy", "posterior", alpha=1.0)], answers)
    assert measure.values[0] == pytest.approx(-math.log(0.005))


@kept
def answered_arms() -> Study:
    """Half of the items of each person had the aid, and there the belief after the evidence is right."""
    study = aided()
    stage = filled.answer(cast.stage_of(study))
    AssignmentCondition.objects.bulk_create(
        AssignmentCondition(
            assignment=assignment,
            factor="help",
            level=["alone", "aided"][assignment.position % 2],
            probability=0.5,
            seed=1,
        )
        for assignment in Assignment.objects.filter(slot__stage=stage)
    )
    told = Belief.objects.filter(kind="posterior", response__assignment__conditions__level="aided")
    for belief in told.select_related("response__assignment__slot__item__pair__target"):
        belief.value = 90 if belief.response.assignment.slot.item.pair.target.position % 3 else 10
        belief.save(update_fields=["value"])
    return study


@pytest.mark.django_db
def test_the_report_tells_the_arms_apart_where_they_differ_and_not_before() -> None:
    study = answered_arms()
    ModelAnswer.objects.filter(language_model__name="parrot", question__position__lt=5).update(unreadable=1)
    made = reports.make(study, "arms", {"alpha": ["1"]})
    lines = {
        (difference["belief"], difference["measure"], difference["rule"]): difference
        for difference in made.data["arm_differences"]
        if difference["llm"] == "parrot"
    }
    assert all(line["level"] == "aided" and line["less"] == "alone" for line in lines.values())
    after, before = lines["posterior", "accuracy", None], lines["prior", "accuracy", None]
    assert after["low"] > 0.1 and after["p"] < 0.01
    assert before["low"] < 0 < before["high"]
    assert "parrot: 5 of its replies to 40 questions could not be read; they count as not right" in made.notes
    counts = {row[0]: row[-1] for row in made.tables[0].rows}
    assert counts == {"parrot": 5}
    assert lines["posterior", "cross_entropy", None]["high"] < 0
    told = {
        (arm["belief"], arm["measure"], arm["rule"]): arm["value"]
        for arm in made.data["arms"]
        if arm["level"] == "aided"
    }
    assert told["posterior", "accuracy", None] == pytest.approx(0.9)
    # Anyone who is told the truth deploys the model just where it is right.
    right = told[None, "correct", None]
    assert told["posterior", "performance", "threshold"] == told["posterior", "deployed", "threshold"] == right
    assert any("alignment, alpha 1 is higher under aided than under alone" in line for line in made.lines)
    assert made.pictures and {table.name for table in made.tables} == {"arms", "arm_differences"}


def test_the_picture_has_each_arm_less_the_first_one(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Any] = []
    monkeypatch.setattr(arms_report, "ForestChart", lambda **named: drawn.append(SimpleNamespace(**named)))
    monkeypatch.setattr(arms_report, "_figure_of", lambda value: Figure(value))
    monkeypatch.setattr(arms_report.Picture, "of", lambda *_arguments, **_named: None)
    measures = [SimpleNamespace(measure="accuracy"), SimpleNamespace(measure="cross_entropy")]
    monkeypatch.setattr(arms_report, "_short", lambda what: what.measure)
    figures = [("aided", measures[0], 0.1), ("led", measures[0], 0.2), ("aided", measures[1], 0.3)]
    found = SimpleNamespace(factor="help", levels=["alone", "aided", "led"])
    comparison: Any = SimpleNamespace(llm="m", found=found, wanted=measures, differences=lambda: figures)
    further = [("aided", measures[0], -0.7), ("led", measures[0], None)]
    other: Any = SimpleNamespace(llm="n", found=found, wanted=measures, differences=lambda: further)
    assert len(list(arms_report._pictures([comparison, other]))) == 2
    chart, other_chart = drawn
    assert chart.x == other_chart.x and {*chart.x.includes} == {0.1, 0.2, -0.7}
    assert chart.series == ["aided less alone", "led less alone"] and chart.mark_at == 0
    assert [(row.name, [figure.value for figure in row.figures]) for row in chart.rows] == [("accuracy", [0.1, 0.2])]


@pytest.mark.thorough
@pytest.mark.django_db
def test_the_report_refuses_what_it_cannot_compare(tmp_path: Path) -> None:
    study = answered_arms()
    with pytest.raises(HunchError, match=r"llm: .*gull"):
        reports.make(study, "arms", {"llm": ["gull"]})
    with pytest.raises(HunchError, match="help is what is compared"):
        reports.make(study, "arms", {"condition": ["help=aided"]})
    with pytest.raises(HunchError, match="by"):
        reports.make(study, "arms", {"by": ["colour"]})
    files.write_export(study, tmp_path)
    with (tmp_path / "arm_differences.csv").open(newline="") as file:
        assert {row["level"] for row in csv.DictReader(file)} == {"aided"}


def test_simulated_people_are_anything_from_not_to_wholly_sure_of_their_own_answer() -> None:
    person: Any = SimpleNamespace(_chance=random.Random(1), person=SimpleNamespace(step=25))
    parts = {"target": "Which?\n(A) one\n(B) two"}
    given = [people.BeliefPerson._own_answer(person, parts) for _time in range(200)]
    assert {answer["confidence"] for answer in given} == {"0", "25", "50", "75", "100"}
    assert {answer["answer"] for answer in given} == {"A", "B"}
    assert people.BeliefPerson._own_answer(person, {"target": "Why?"})["answer"] == people.GUESS
