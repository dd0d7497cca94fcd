"""Pay for being right: what is drawn, when it wins, what is stored, shown and exported, and that honesty pays."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from survey.contracts import instruments
from survey.contracts.panels import PanelIds
from survey.contracts.screens import Points
from survey.instruments.belief_update.accuracy_pay import draw_for, points_of, wins
from survey.models import EntryLink, ModelAnswer, Score, Sitting, Study
from survey.panels import money
from survey.services.results.export import answers_file, columns
from survey.services.sittings.links import make_links
from survey.services.stages import lifecycle
from survey.services.stages.verifying import verify_stage
from tests import cast
from tests.survey.instruments.test_real_evidence import REAL, answered, refused

PAID = {"kind": "belief_update", "options": {**REAL["options"], "answer_mode": "blank", "pay_for_accuracy": True}}
PANEL = {"kind": "links", "completion_url": "https://panel.example/done", "reward": 200, "bonus_per_point": 50}
SCREENS = ("prior", "posterior")


def chance_to_win(belief: int, *, likely: float) -> float:
    """By all pairs of numbers that can be drawn."""
    pairs = [(first, second) for first in range(1, 101) for second in range(1, 101)]
    won = [np.mean([wins(belief, pair, correct=correct) for pair in pairs]) for correct in (True, False)]
    return float(likely * won[0] + (1 - likely) * won[1])


@pytest.mark.parametrize("likely", [0, 7, 50, 83, 100])
def test_nobody_wins_more_often_than_by_saying_what_they_believe(likely: int) -> None:
    near = {max(likely - 1, 0), likely, min(likely + 1, 100), 0, 50, 100}
    chances = {belief: chance_to_win(belief, likely=likely / 100) for belief in near}
    assert max(chances, key=lambda belief: chances[belief]) == likely
    share = likely / 100
    assert chances[likely] == pytest.approx(share * (1 - (1 - share) ** 2) + (1 - share) * (1 - share**2))


@pytest.mark.parametrize(
    ("belief", "correct", "expected"),
    [(34, True, True), (33, True, False), (66, False, True), (67, False, False), (0, True, False), (100, False, False)],
)
def test_a_belief_counts_for_what_happened_against_the_lower_number(belief: int, correct: bool, expected: bool) -> None:
    assert wins(belief, (71, 34), correct=correct) is wins(belief, (34, 71), correct=correct) is expected


def test_points_say_what_was_drawn_and_hold_the_promise_where_the_answer_is_gone() -> None:
    assert points_of(34, (71, 34), correct=True) == Points(1, "drawn 34 and 71; the model was right", "1")
    assert points_of(67, (71, 34), correct=False) == Points(0, "drawn 34 and 71; the model was wrong", "1")
    assert points_of(0, (71, 34), correct=None) == Points(1, "drawn 34 and 71; the model was not known any more", "1")


def test_every_item_belief_and_number_is_drawn_equally_often() -> None:
    draws = [draw_for(f"{person:032x}", seed=7, items=3) for person in range(3000)]
    assert draws == [draw_for(f"{person:032x}", seed=7, items=3) for person in range(3000)]
    assert draws != [draw_for(f"{person:032x}", seed=8, items=3) for person in range(3000)]
    places = Counter((draw.position, draw.screen_among(SCREENS)) for draw in draws)
    assert set(places) == {(position, screen) for position in (1, 2, 3) for screen in SCREENS}
    assert all(abs(count - 500) < 5 * 500**0.5 for count in places.values())
    numbers = np.array([draw.numbers for draw in draws])
    assert (numbers.min(), numbers.max()) == (1, 100) and abs(numbers.mean() - 50.5) < 2
    assert abs(np.corrcoef(numbers.T)[0, 1]) < 0.1


# In a study


def paid_study(**overrides: Any) -> Study:
    bank = cast.small_bank()
    answered(bank)
    made = cast.small_study(on=bank, **{"instrument": PAID, "panel": PANEL, **overrides})
    cast.open_first_stage(made)
    return made


def begin(study: Study) -> Sitting:
    make_links(study, count=1, root="https://hunch.example")
    link = EntryLink.objects.filter(study=study, used_at=None).latest("pk")
    return cast.begin(study, PanelIds(panel="links", person=link.token_hash))


def walk_through(study: Study) -> Sitting:
    """Somebody who says 60 and then 70 of every item, to the end."""
    sitting = begin(study)
    cast.walk(sitting)
    return sitting


@pytest.mark.django_db
def test_one_belief_of_a_sitting_wins_its_point_as_drawn_and_the_panel_owes_it() -> None:
    study = paid_study()
    assert any(note.message.endswith("may win 0.50 USD") for note in instruments.of_study(study).remarks())
    sittings = [walk_through(study) for _ in range(3)]
    for sitting in sittings:
        draw = draw_for(sitting.public_id.hex, seed=sitting.stage.seed, items=sitting.assignments.count())
        score = Score.objects.get(response__assignment__sitting=sitting)
        assignment = score.response.assignment
        assert (assignment.position, score.response.screen) == (draw.position, draw.screen_among(SCREENS))
        right = assignment.slot.item.pair.target.position % 3 != 0  # As `answered` answers.
        assert score.value == wins(score.response.belief.value, draw.numbers, correct=right)
        assert f"the model was {'right' if right else 'wrong'}" in score.rule
        assert money.points_of([sitting]) == {sitting.pk: score.value}
    stage = lifecycle.close_stage(cast.stage_of(study))
    lifecycle.freeze(stage)
    stage = cast.stage_of(study)
    assert verify_stage(stage).agrees
    names = [column.name for column in columns.columns_of(study)]
    rows = [dict(zip(names, row, strict=True)) for row in answers_file.answer_rows(study)]
    paid = [row for row in rows if row["pay_screen"]]
    assert len(paid) == len(sittings) < len(rows)
    assert {(row["pay_screen"], row["pay_draw"], row["pay_points"]) for row in paid} == {
        (score.response.screen, score.rule, int(score.value)) for score in Score.objects.select_related("response")
    }

    Score.objects.filter(response__assignment__sitting=sittings[1]).update(value=2)
    assert [text.partition(":")[0] for text in verify_stage(stage).differences] == ["points"]


@pytest.mark.django_db
def test_a_reply_that_is_gone_or_cannot_be_read_costs_nobody_the_point() -> None:
    study = paid_study()
    ModelAnswer.objects.update(unreadable=1)
    sitting = walk_through(study)
    score = Score.objects.get(response__assignment__sitting=sitting)
    assert score.value == 1 and "not known any more" in score.rule


@pytest.mark.django_db
def test_pages_say_it_where_it_holds_and_nobody_else_is_paid() -> None:
    condition = {"factor": "paid", "levels": ["no", "yes"], "options": {"yes": {"pay_for_accuracy": True}}}
    unpaid = {**PAID, "options": {**PAID["options"], "pay_for_accuracy": False}}
    study = paid_study(instrument=unpaid, conditions=[condition], stages=[{"sittings": 6}])
    paid_by_level = {}
    for _ in range(6):
        sitting = begin(study)
        step = cast.walk(sitting, until="item")
        assert step.screen is not None
        level = sitting.levels()["paid"]
        says = "pay_rule" in step.screen.words and "paid=for accuracy" in step.screen.parts["variant"]["value"]
        assert says == (level == "yes")
        cast.walk(sitting)
        paid_by_level[level] = Score.objects.filter(response__assignment__sitting=sitting).exists()
    assert paid_by_level == {"no": False, "yes": True}


@pytest.mark.django_db
def test_a_study_that_cannot_pay_for_it_is_refused_with_the_key_to_change() -> None:
    answered(cast.small_bank())
    base = {"bank": "small", "roles": {"controls": 0.2}, "candidates": {"size": 60}}
    supposed = {"kind": "belief_update", "options": {"pay_for_accuracy": True}}
    assert "instrument.options.pay_for_accuracy: nobody can be right about a supposed answer" in refused(
        **base, instrument=supposed, panel=PANEL
    )
    nothing = {**PANEL, "bonus_per_point": 0}
    assert "panel.bonus_per_point: pay_for_accuracy pays a point of it" in refused(
        **base, instrument=PAID, panel=nothing
    )
    condition = {"factor": "paid", "levels": ["no", "yes"], "options": {"yes": {"pay_for_accuracy": True}}}
    unpaid = {**PAID, "options": {**PAID["options"], "pay_for_accuracy": False}}
    assert "panel.bonus_per_point" in refused(**base, instrument=unpaid, panel=nothing, conditions=[condition])
