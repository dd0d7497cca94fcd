"""Items with several evidence questions: options, screens, what is stored and exported, the report, adaptive stages."""

from typing import Any

import numpy as np
import pytest
from django.contrib.auth.models import Permission, User
from django.db import IntegrityError, transaction
from django.test import Client

from bandit import student_t_quantile
from survey.contracts import instruments
from survey.exceptions import FileErrors, HunchError, OutOfOrder, StateRefused
from survey.instruments.belief_update.analysis import bayes_person, composing, expected
from survey.instruments.belief_update.analysis.bayes_person import bayes_slope
from survey.instruments.belief_update.analysis.composition import (
    best_of,
    compose,
    fits,
    halves,
    order_effect,
    scale_of_adding,
)
from survey.instruments.belief_update.analysis.step_simulation import StepPlan, study
from survey.instruments.belief_update.labels import beliefs_of
from survey.instruments.belief_update.models import Belief, Pair
from survey.instruments.belief_update.variants import evidence_order
from survey.models import ApiToken, Assignment, Question, Response, Study
from survey.services.answers.counting import study_answers
from survey.services.results import reports
from survey.services.results.estimates.study_estimates import estimate
from survey.services.results.export import answers_file, contents, files
from survey.services.results.export.contents import file_named
from survey.services.sittings import expiry
from survey.services.sittings.answering import advance
from survey.services.sittings.flow import Step, current_step
from survey.services.stages import jobs, lifecycle
from survey.services.stages.verifying import verify_stage
from tests import cast
from tests.frontend.pages import go_to, send
from tests.kept import kept
from tests.survey import filled

pytestmark = pytest.mark.slow

TWO = {"kind": "belief_update", "options": {"evidence_questions": 2}}
THREE = {"kind": "belief_update", "options": {"evidence_questions": 3, "answer_mode": "blank"}}
STEP_API = "/api/v1/sitting/"
NO_ROLES = {"holdout": 0, "controls": 0}


# How people put evidence together


def test_each_way_weighs_the_steps_as_it_says() -> None:
    changes = [1.0, -0.5]
    ends = {name: float(composing.after_each(name, 0.2, changes)[-1]) for name in composing.NAMES}
    assert ends["bayes"] == pytest.approx(0.7)
    assert ends["averaging"] == pytest.approx(0.45)
    assert ends["anchoring"] == pytest.approx(0.95)
    assert ends["recency"] == pytest.approx(0.2)
    points = [float(composing.points(value)) for value in (0.2, 1.2, -0.3)]
    assert float(composing.points(ends["additive"])) == pytest.approx(points[1] + points[2] - points[0])


@pytest.mark.parametrize("name", composing.NAMES)
def test_the_report_tells_how_simulated_people_put_evidence_together(name: str) -> None:
    answers = study(StepPlan(kind=name, people=160, items=60), rng=np.random.default_rng(11))
    logits, points = compose(answers), compose(answers, in_points=True)
    assert logits is not None
    assert points is not None
    shapes = [scale_of_adding(answers, rng=np.random.default_rng(1), cut=cut) for cut in (True, False)]
    assert best_of(fits(logits, points), shapes) == name
    assert logits.slope.holds(1) == (name == "bayes")
    assert order_effect(answers).holds(0) == (name not in ("anchoring", "recency"))


def test_in_points_a_few_items_with_long_changes_count_as_few() -> None:
    """Student's t knows the variance less well where few items make most of the slope."""
    answers = study(StepPlan(), rng=np.random.default_rng(5))
    logits, points = compose(answers), compose(answers, in_points=True)
    assert logits and points and logits.items == points.items < logits.people
    in_logits, in_points = ((fit.slope.high - fit.slope.value) / fit.slope.standard_error for fit in (logits, points))
    assert in_logits == pytest.approx(student_t_quantile(0.975, logits.items - 1))
    half, fewest = (student_t_quantile(0.975, freedom) for freedom in (logits.items / 2, 5))
    assert in_logits < half < in_points < fewest


def test_noise_makes_the_slope_too_small_only_where_people_are_not_parted() -> None:
    slopes = []
    for seed in range(6):
        answers = study(StepPlan(noise=0.6, spread=0.3, people=160), rng=np.random.default_rng(seed))
        composition = compose(answers)
        assert composition is not None
        first, second = halves(answers, rng=np.random.default_rng(seed))
        assert first is not None
        assert second is not None
        slopes.append((composition.slope.value, composition.naive, (first + second) / 2))
    parted, naive, split = np.mean(np.array(slopes, dtype=np.float64), axis=0)
    assert naive < 0.93
    assert abs(parted - 1) < 0.06
    assert abs(split - 1) < 0.15


def test_the_slope_of_bayesian_people_falls_below_1_only_where_beliefs_reach_the_ends() -> None:
    middle = study(StepPlan(steps=3, people=200, spread=0.1, prior_sd=0.1), rng=np.random.default_rng(4))
    wide = study(StepPlan(steps=3, people=200, spread=1.6), rng=np.random.default_rng(4))
    slopes = [bayes_slope(answers, rng=np.random.default_rng(1)) for answers in (middle, wide)]
    seen = compose(wide)
    assert slopes[0] == pytest.approx(1, abs=0.01)
    assert seen is not None and seen.slope.value is not None and slopes[1] is not None
    assert not seen.slope.holds(1) and seen.slope.holds(slopes[1])
    assert slopes[1] < 0.95
    # What else people do does not move it far: it says what Bayesian people would do.
    averaging = study(StepPlan(kind="averaging", people=160), rng=np.random.default_rng(4))
    assert bayes_slope(averaging, rng=np.random.default_rng(1)) == pytest.approx(1, abs=0.03)


@pytest.mark.parametrize(
    ("others", "grid"), [([], 10), ([13], 10), ([5, 15], 5), ([5, 15, 13, 17], 1), ([5, 15, 13, 0.5, 0.25], 0)]
)
def test_beliefs_are_rounded_to_what_nine_in_ten_of_them_are(others: list[float], grid: int) -> None:
    belief = np.array([10.0 * number for number in range(10 - len(others))] + others)
    assert bayes_person._grid(belief) == grid


def test_points_that_add_up_to_more_than_the_scale_has_are_told_from_bayes() -> None:
    """Who adds points ends at 100 where the sum is larger, and looks like a Bayesian there."""
    named, scales = [], []
    for seed in range(12):
        answers = study(StepPlan(kind="additive"), rng=np.random.default_rng(seed))
        logits, points = compose(answers), compose(answers, in_points=True)
        assert logits is not None and points is not None
        cut, uncut = (scale_of_adding(answers, rng=np.random.default_rng(seed), cut=is_cut) for is_cut in (True, False))
        scales.append(cut)
        named.append(best_of(fits(logits, points), [cut, uncut]))
    assert named.count("additive") >= 11
    assert abs(float(np.mean([scale.value for scale in scales if scale.value is not None]))) < 0.15
    assert sum(scale.holds(0) for scale in scales) >= 10


def test_three_steps_have_three_weights_and_too_few_people_have_none() -> None:
    answers = study(StepPlan(kind="recency", steps=3, people=240), rng=np.random.default_rng(3))
    composition = compose(answers)
    assert composition is not None
    assert [round(weight.value or 0, 1) for weight in composition.weights] == [0.2, 0.5, 1.0]
    assert compose(study(StepPlan(people=12, items=60), rng=np.random.default_rng(3))) is None


def test_priorities_follow_what_the_predictor_gives_the_steps() -> None:
    chances = np.array([[0.9, 0.1], [0.1, 0.9], [0.9, 0.9]])
    assert expected.last_change(chances, order="drawn").tolist() == [0.1, 0.9, 0.9]
    assert expected.last_change(chances, order="2-1").tolist() == [0.9, 0.1, 0.9]
    assert expected.last_change(chances, order="shuffled").tolist() == pytest.approx([0.5, 0.5, 0.9])
    nobody = expected.AnsweredSteps(np.empty((0, 3)), np.empty((0, 2), dtype=bool))
    outcome = np.array([[1, 1], [1, 1], [1, 0]])
    before = expected.departure(chances, outcome, nobody, order="shuffled")
    # Where one correct and one incorrect answer cancel out, adding up and moving half as far end at the same place.
    assert before.tolist() == pytest.approx([0.4, 0.4, 0.0])
    rng = np.random.default_rng(5)
    correct = rng.random((400, 2)) < 0.5
    moves = np.where(correct, 0.8, -0.8)
    start = rng.normal(0, 0.5, 400)
    steps = [start, start + moves[:, 0], start + moves[:, 1]]  # Only the last evidence counts.
    seen = expected.AnsweredSteps(composing.points(np.stack(steps, axis=1)), correct)
    assert expected.step_weights(seen, 2, (-0.8, 0.8)) == pytest.approx([0.0, 1.0], abs=0.1)
    after = expected.departure(chances, outcome, seen, order="drawn")
    assert after[0] > after[1] + 0.4


# The study file


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"evidence_questions": 4}, "must be at most 3"),
        ({"evidence_questions": 0}, "must be 1 or more"),
        ({"evidence_questions": 2.5}, "write a whole number"),
        ({"evidence_questions": 2, "evidence_order": "1-1"}, "each number from 1 to 2 once"),
        ({"evidence_questions": 2, "evidence_order": "2-1-3"}, "each number from 1 to 2 once"),
        ({"evidence_order": "2-1"}, "set evidence_questions to 2 or 3"),
        ({"priority": "additivity"}, "set evidence_questions to 2 or 3"),
        (
            {"evidence_questions": 2, "evidence": "real", "language_model": "gpt", "aid": "similar_questions"},
            "show no aid",
        ),
        ({"evidence_questions": 2, "priority": "last_change"}, "no stage draws by it"),
    ],
)
@pytest.mark.django_db
def test_options_that_do_not_fit_are_refused_with_what_to_do(options: dict[str, Any], line: str) -> None:
    with pytest.raises(FileErrors) as refusal:
        cast.study(instrument={"kind": "belief_update", "options": options})
    assert any(line in problem.message for problem in refusal.value.problems), refusal.value.problems


@pytest.mark.django_db
def test_an_adaptive_stage_needs_a_priority_and_listed_candidates() -> None:
    adaptive = [{"sittings": 4}, {"sittings": 4, "design": {"kind": "epsilon_greedy"}}]
    with pytest.raises(FileErrors) as refusal:
        cast.study(
            instrument=TWO,
            predictor={"name": "previous_correct"},
            stages=adaptive,
            candidates={"kind": "exhaustive"},
        )
    said = "".join(problem.message for problem in refusal.value.problems)
    assert "set priority to additivity or last_change" in said
    assert "too many to score all" in said


# Screens


def screens_of(sitting: Any) -> list[Step]:
    """Every screen of the first item, each answered by 60, then 70."""
    steps = []
    cast.walk(sitting, until="item")
    while (step := current_step(sitting)).kind == "item" and step.position == 1:
        steps.append(step)
        advance(sitting=sitting, step=step.number, data=cast.answers_for(step))
        sitting.refresh_from_db()
    return steps


@pytest.mark.django_db
def test_a_belief_is_asked_after_each_evidence_question_and_earlier_ones_stay_in_sight() -> None:
    made = cast.open_study(instrument=THREE, roles=NO_ROLES, stages=[{"sittings": 4}])
    sitting = cast.begin(made)
    steps = screens_of(sitting)
    assert [step.screen.name for step in steps if step.screen] == ["prior", "step_1", "step_2", "posterior"]
    parts = [dict(step.screen.parts) for step in steps if step.screen]
    assert not any(name.startswith(("evidence", "before")) for name in parts[0])
    assert [part["prior"]["value"] for part in parts[1:]] == [60, 70, 70]
    assert parts[3]["before_1"] == parts[1]["evidence"]
    assert parts[3]["before_2"] == parts[2]["evidence"]
    assert parts[3]["before_2_outcome"] == parts[2]["outcome"]
    assert len({str(part["evidence"]["value"]) for part in parts[1:]}) == 3
    answer = Assignment.objects.get(sitting=sitting, position=1)
    beliefs = beliefs_of(answer)
    assert (beliefs.prior, beliefs.posterior) == (60, 70)
    order = tuple(place for place, _after in beliefs.steps)
    assert order == evidence_order(
        instruments.of_study(made).options, sitting.public_id.hex, answer.slot.item.key, seed=answer.slot.stage.seed
    )
    pair = answer.slot.item.pair
    assert [pair.steps[place - 1].question.text for place in order] == [part["evidence"]["value"] for part in parts[1:]]
    values = instruments.of_study(made).answer_values(answer)
    assert values[2:] == [["step", place, 70] for place in order]


@pytest.mark.django_db
def test_a_repeated_answer_and_a_later_return_lose_nothing_and_store_nothing_twice() -> None:
    made = cast.open_study(instrument=TWO, roles=NO_ROLES)
    sitting = cast.begin(made)
    cast.walk(sitting, until="item", screen="step_1")
    step = current_step(sitting)
    data = cast.answers_for(step, value="35")
    first = advance(sitting=sitting, step=step.number, data=data)
    sitting.refresh_from_db()
    again = advance(sitting=sitting, step=step.number, data={**data, "value": "90", "direction": "higher"})
    assert first.screen is not None
    assert again.screen is not None
    assert first.screen.name == again.screen.name == "posterior"
    # Anyone who comes back sees the same screen with the same evidence.
    back = current_step(type(sitting).objects.get(pk=sitting.pk))
    assert back.screen is not None
    assert back.screen.content() == first.screen.content()
    assert list(Belief.objects.filter(kind="step_1").values_list("value", flat=True)) == [35]
    assert Response.objects.filter(assignment__sitting=sitting, screen="step_1").count() == 1


@pytest.mark.django_db
def test_who_leaves_between_two_steps_counts_in_nothing_and_the_item_is_dealt_again() -> None:
    made = cast.open_study(instrument=TWO, roles=NO_ROLES, stages=[{"sittings": 4}])
    visitor = cast.Visitor(made)
    cast.walk(visitor.sitting, until="item", screen="posterior")
    left = visitor.expire().sitting.assignments.get(position=1)
    assert left.state in Assignment.GIVEN_BACK
    assert [belief.kind for belief in Belief.objects.order_by("response__number")] == ["prior", "step_1"]
    with pytest.raises(StateRefused, match="no answer"):
        study_answers(made)
    file = file_named(made, "belief_steps.csv")
    assert file is not None and [*file.rows] == []
    with pytest.raises(StateRefused, match="no answer"):
        reports.make(made, "composition", {})
    names = [column.name for column in files.answers_table(made).columns]
    (row,) = [dict(zip(names, row, strict=True)) for row in answers_file.answer_rows(made) if row[names.index("prior")]]
    assert row["posterior"] is None and row["change"] is None
    # Somebody else gets the whole item, from its beginning.
    assert expiry.deal_make_up_booklets(cast.stage_of(made)) == 1
    for _person in range(4):
        cast.walk(cast.begin(made))
    answer = Assignment.objects.get(slot=left.slot, state="counted")
    assert [response.screen for response in answer.responses.order_by("number")] == ["prior", "step_1", "posterior"]


@pytest.mark.django_db
def test_the_pages_say_what_is_new_and_what_was_before(client: Client) -> None:
    made = cast.open_study(instrument=THREE, roles=NO_ROLES, stages=[{"sittings": 4}])
    page = go_to(client, "item", screen="step_2", slug=made.slug)
    text = " ".join(page.text.split())
    assert "This is what you have seen before:" in text
    assert "was asked one more question:" in text
    page = send(client, page, made.slug)
    assert page.form["data-screen"] == "posterior"


@pytest.mark.django_db
def test_a_condition_decides_the_order_and_every_order_comes_up() -> None:
    made = cast.study(
        instrument={"kind": "belief_update", "options": {"evidence_questions": 2, "evidence_order": "drawn"}},
        roles=NO_ROLES,
        conditions=[
            {"factor": "order", "levels": ["forth", "back"], "options": {"back": {"evidence_order": "2-1"}}},
        ],
    )
    instrument = instruments.of_study(made)
    under = {
        level: instrument.options_under(made.config, {"order": level}).evidence_order for level in ("forth", "back")
    }
    assert under == {"forth": "drawn", "back": "2-1"}
    options = instruments.kind("belief_update").options_model.model_validate({"evidence_questions": 3})
    orders = {evidence_order(options, f"{number:032x}", "1:1,2:0,3:1>4", seed=7) for number in range(120)}
    assert len(orders) == 6


@pytest.mark.django_db
def test_a_control_without_evidence_asks_twice_and_stores_no_step() -> None:
    made = cast.open_study(instrument=TWO, roles={"holdout": 0, "controls": 0.4, "control_kinds": ["no_evidence"]})
    control = Pair.objects.filter(evidence=None).first()
    assert control is not None
    assert control.steps == []
    sitting = cast.begin(made)
    cast.walk(sitting)
    plain = Assignment.objects.filter(sitting=sitting, slot__item__pair__evidence=None).first()
    assert plain is not None
    assert [response.screen for response in plain.responses.order_by("number")] == ["prior", "posterior"]
    assert beliefs_of(plain).steps == ()


# Attacks


@pytest.mark.django_db
def test_later_evidence_is_in_nothing_that_is_sent_before_the_step_that_shows_it(client: Client) -> None:
    cast.bank(texts=tuple(f"plain{number}words" for number in range(40)))
    made = cast.open_study(instrument=THREE, roles=NO_ROLES, stages=[{"sittings": 4}])
    page = go_to(client, "item", screen="prior", slug=made.slug)
    answer = Assignment.objects.select_related("sitting").get(position=1)
    person = Client(headers={"X-Sitting-Token": answer.sitting.token})
    pair = answer.slot.item.pair
    order = evidence_order(
        instruments.of_study(made).options,
        answer.sitting.public_id.hex,
        answer.slot.item.key,
        seed=answer.slot.stage.seed,
    )
    texts = [pair.steps[place - 1].question.text for place in order]
    for known, screen in enumerate(("prior", "step_1", "step_2", "posterior")):
        assert page.form["data-screen"] == screen
        sent = [client.get(f"/s/{made.slug}/sitting").content.decode(), person.get(STEP_API).content.decode()]
        for body in sent:
            assert [text in body for text in texts] == [place < known for place in range(3)]
            assert pair.item.key not in body
        page = send(client, page, made.slug)


@pytest.mark.django_db
def test_a_step_out_of_order_or_of_another_item_is_not_stored() -> None:
    made = cast.open_study(instrument=THREE, roles=NO_ROLES, stages=[{"sittings": 4}])
    sitting = cast.begin(made)
    cast.walk(sitting, until="item")
    step = current_step(sitting)
    # A later screen's name, with this step's number.
    for screen in ("step_1", "step_2", "posterior", "step_9"):
        with pytest.raises(HunchError):
            advance(sitting=sitting, step=step.number, data={**cast.answers_for(step), "screen": screen})
    # The number of a step that is still to come, of this item and of the next.
    for number in (step.number + 1, step.number + 4, step.number + 40):
        with pytest.raises(OutOfOrder):
            advance(sitting=sitting, step=number, data=cast.answers_for(step))
    assert not Belief.objects.exists()
    cast.walk(sitting, until="item", screen="step_2")
    first = Belief.objects.count()
    assert first == 2
    later = current_step(sitting)
    # From a tab that still shows the item's first screen.
    again = advance(sitting=sitting, step=step.number, data=cast.answers_for(step, value="1"))
    assert (again.number, Belief.objects.count()) == (later.number, first)


# The database


@pytest.mark.django_db
def test_the_database_refuses_items_and_steps_that_cannot_be() -> None:
    made = cast.open_study(instrument=TWO, roles=NO_ROLES)
    pair = Pair.objects.filter(item__study=made).first()
    assert pair is not None
    other = Question.objects.exclude(pk__in=[pair.target_id, pair.evidence_id, pair.evidence_2_id]).first()
    for changed in (
        {"evidence_2": pair.target},
        {"evidence_2": pair.evidence},
        {"outcome_2": None},
        {"evidence_3": other},
        {"evidence_3": pair.evidence_2, "outcome_3": True},
    ):
        with pytest.raises(IntegrityError), transaction.atomic():
            Pair.objects.filter(pk=pair.pk).update(**changed)
    screens_of(cast.begin(made))
    for kind, place in (("prior", 1), ("posterior", 4)):
        with pytest.raises(IntegrityError), transaction.atomic():
            Belief.objects.filter(kind=kind).update(place=place)


# The whole loop


def play(made: Study, kind: str) -> None:
    """One simulated person, by the services that pages call."""
    sitting = cast.begin(made)
    person = cast.simulated_person(sitting, kind=kind)
    while (step := current_step(sitting)).kind != "end":
        if step.screen is None:
            data = cast.answers_for(step)
        else:
            parts = {name: str(part["value"]) for name, part in step.screen.parts.items()}
            data = {"screen": step.screen.name, **person.answer(screen=step.screen.name, parts=parts)}
        advance(sitting=sitting, step=step.number, data=data)
        sitting.refresh_from_db()


ADAPTIVE: dict[str, Any] = {
    "instrument": {
        "kind": "belief_update",
        "options": {"evidence_questions": 2, "priority": "additivity", "threshold": 10},
    },
    "predictor": {"name": "previous_correct"},
    "roles": NO_ROLES,
    "candidates": {"size": 200},
    "sitting": {"items": 6},
    "stages": [
        {"sittings": 12, "responses_per_item": 12},  # Six items: with fewer people some orders would lack by chance.
        {
            "sittings": 4,
            "responses_per_item": 2,
            "design": {"kind": "epsilon_greedy", "epsilon": 0.4, "top_fraction": 0.3},
        },
    ],
}


@pytest.mark.django_db
def test_a_study_runs_from_people_to_the_report_and_to_a_stage_drawn_by_additivity() -> None:
    made = cast.small_study("steps", on=cast.small_bank(400), **ADAPTIVE)
    stage = cast.open_first_stage(made)
    stage = cast.stage_of(made)
    for _person in range(12):
        play(made, "averaging")
    jobs.run_inline(lifecycle.close_stage(stage))
    stage = cast.stage_of(made)
    assert stage.state == "frozen"
    second = cast.stage_of(made, 2)
    assert second.state == "planned"
    chances = {slot.inclusion_probability for slot in second.slots.all()}
    assert len(chances) == 2
    assert verify_stage(second).agrees

    answers = study_answers(made)
    assert len(answers) == 72
    assert [file_head.name for file_head in contents.file_heads(made)].count(
        "steps.csv"
    ) == 1  # Of pages, in every export.
    file = file_named(made, "belief_steps.csv")
    assert file is not None
    names = [column.name for column in file.columns]
    lines = [dict(zip(names, row, strict=True)) for row in file.rows]
    assert len(lines) == 144
    assert {(line["step"], line["place"]) for line in lines} == {(1, 1), (1, 2), (2, 1), (2, 2)}
    both: dict[tuple[int, int], dict[int, dict[str, Any]]] = {(line["stage"], line["slot"]): {} for line in lines}
    for line in lines:
        both[line["stage"], line["slot"]][line["step"]] = line
    assert all(steps[1]["after"] == steps[2]["before"] for steps in both.values())
    posterior = {answer.slot.number: beliefs_of(answer).posterior for answer in answers}
    assert all(steps[2]["after"] == posterior[slot] for (_stage, slot), steps in both.items())

    findings = reports.make(made, "composition", {})
    assert findings.data["answers"] <= 72
    assert findings.data["steps"] == 2
    assert any("times the sum of the single changes" in line for line in findings.lines)
    assert {"slope_of_bayes", "slope_as_bayes", "figures", "ways"} <= {*findings.data}
    names_of = {entry.name for entry in instruments.of_study(made).reports()}
    assert names_of == {"composition", "composition_live", "reasons"}
    # Its tables are in the export, with every digit.
    exported = file_named(made, "composition_ways.csv")
    assert exported is not None
    assert [row[0] for row in exported.rows if row[-1] == 1] == [composing.TITLES[findings.data["best"]]]
    assert file_named(made, "composition.csv") is not None
    # While answers come in: the same answers, and how many items the report can use.
    live = reports.make(made, "composition_live", {})
    assert (live.data["answers"], live.data["people"]) == (72, 12)
    assert live.data["items_ready"] == 6 - findings.data["items_left_out"]
    assert live.data["share_of_100"] == pytest.approx(findings.data["share_of_100"])
    (steps,) = [table for table in live.tables if table.name == "steps_so_far"]
    assert sum(row[2] for row in steps.rows) == 144 and {row[0] for row in steps.rows} == {1, 2}
    moved = sum(row[2] * row[3] for row in steps.rows)
    assert moved == pytest.approx(sum(line["change"] for line in lines))
    assert estimate(made)


@kept
def answered_steps() -> Study:
    """A study with two evidence questions an item, every slot of which is answered; written as rows."""
    made = cast.small_study(
        "answered-steps",
        on=cast.small_bank(400, name="many"),
        instrument=TWO,
        roles=NO_ROLES,
        candidates={"size": 200},
        sitting={"items": 6},
        stages=[{"sittings": 12, "responses_per_item": 12}],
    )
    filled.answer(cast.open_first_stage(made))
    return made


def researcher() -> Client:
    user, _is_new = User.objects.get_or_create(username="reader")
    user.user_permissions.add(Permission.objects.get(codename="export_study"))
    cast.join_all(user)
    return Client(headers={"Authorization": f"Token {ApiToken.issue(user=user)[1]}"})


@pytest.mark.django_db
def test_the_report_says_why_it_cannot_be_made() -> None:
    single = cast.small_study("single")
    assert "composition" not in {entry.name for entry in instruments.of_study(single).reports()}
    made = cast.open_study(instrument=TWO, roles=NO_ROLES)
    for name in ("composition", "composition_live"):
        with pytest.raises(StateRefused, match="no answer"):
            reports.make(made, name, {})
    for _person in range(2):
        cast.walk(cast.begin(made))
    with pytest.raises(StateRefused, match="fewer than 5 items"):
        reports.make(made, "composition", {})
