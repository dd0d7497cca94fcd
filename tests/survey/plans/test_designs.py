"""Every design goes through a plan: its strata, probabilities and replicates are stored as it drew them."""

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bandit import DesignError
from survey.exceptions import PlanRefused
from survey.instruments.belief_update.models import Belief, Pair
from survey.models import Assignment, Bank, CandidateSet, PredictorRun, Slot, Stage, Study
from survey.services.base import files
from survey.services.plans import candidates, planning
from survey.services.results.export import files as export_files
from survey.services.results.methods import methods_section
from survey.services.results.policies import comparing
from survey.services.stages import jobs, lifecycle, verifying
from survey.services.stages.verifying import verify_stage
from tests import cast
from tools import verify_study

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


def settings_for(design: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "stages": [{"sittings": 4}, {"sittings": 4, "design": design, **more.pop("stage", {})}],
        "predictor": {"name": "same_task"},
        "candidates": {"size": 200},
        **more,
    }


def scored(
    design: dict[str, Any],
    *,
    disagreement: bool = False,
    first: bool = False,
    of: Callable[..., Study] = cast.small_study,
    **more: Any,
) -> Stage:
    """A second stage of that design with a scored pool; the first stage planned before if asked."""
    more.setdefault("on", Bank.objects.filter(name="wide").first() or cast.small_bank(300, name="wide"))
    study = of(**settings_for(design, **more))
    if first:
        planning.plan_stage(cast.stage_of(study), short_booklets=True)
    second = cast.stage_of(study, 2)
    run = PredictorRun.objects.create(
        stage=cast.stage_of(study), name="same_task", seed=1, input_sha256="0" * 64, example_count=12
    )
    pool = candidates.draw_candidates(second, candidates.drawable_questions(second))
    rng = np.random.default_rng(3)
    candidates.store_candidates(
        second,
        pool,
        questions_sha256=candidates.question_set_digest(study),
        scores=rng.permutation(np.linspace(0.1, 0.9, len(pool.rows))),
        disagreement=rng.permutation(np.linspace(0, 0.2, len(pool.rows))) if disagreement else None,
        predictor_run=run,
    )
    return second


def test_softmax_stores_a_chance_of_its_own_for_every_slot() -> None:
    stage = planning.plan_stage(scored({"kind": "softmax", "temperature": 0.2, "floor": 0.1}))
    slots = list(stage.slots.order_by("score").values_list("score", "inclusion_probability", "stratum__name"))
    assert {stratum for _score, _chance, stratum in slots} == {"all"}
    chances = [chance for _score, chance, _stratum in slots]
    assert chances == sorted(chances) and len(set(chances)) == 12
    assert min(chances) >= 0.1 * 12 / 200
    assert stage.strata.get().slots == 12


def test_proportional_stores_exact_chances_that_both_checks_make_again(tmp_path: Path) -> None:
    roles = {"holdout": 0.2, "controls": 0.2}
    design = {"kind": "proportional", "trade_off": 0.3, "power": 6}
    stage = scored(design, first=True, roles=roles, sitting={"items": 5}, stage={"sittings": 6})
    stage = planning.plan_stage(stage)
    slots = list(stage.slots.filter(role="sampled").order_by("score"))
    chances = [slot.inclusion_probability for slot in slots]
    assert chances == sorted(chances) and len(set(chances)) == len(slots)
    assert min(chances) >= 0.3 * len(slots) / 200
    assert {slot.role for slot in stage.slots.all()} >= {"sampled", "holdout", "control"}
    # The stored scores are those of the draw: a power of them next to an even share, none of them above 1 here.
    pool = files.load_array(CandidateSet.objects.get(stage=stage).file_sha256)["score"].astype(float)
    expected = [len(slots) * (0.3 / 200 + 0.7 * slot.score**6 / (pool**6).sum()) for slot in slots]
    assert chances == pytest.approx(expected, abs=1e-11)
    assert verifying.verify_stage(stage).differences == []
    export_files.write_export(stage.study, tmp_path)
    verification = verify_study.verify(tmp_path)
    assert not [fault for fault in verification.faults if "stage 2" in fault]
    assert any("stage 2" in line and "probabilities to 1e-12" in line for line in verification.checked)
    rows = (tmp_path / "answers.csv").read_text(encoding="utf-8")
    (tmp_path / "answers.csv").write_text(rows.replace(repr(chances[0]), repr(chances[0] + 1e-11)), encoding="utf-8")
    assert any("inclusion_probability is" in fault for fault in verify_study.verify(tmp_path).faults)


def test_a_rest_in_strata_is_drawn_stored_and_checked(tmp_path: Path) -> None:
    design = {"kind": "epsilon_greedy", "epsilon": 0.5, "rest_strata": 4}
    stage = planning.plan_stage(scored(design, first=True))
    assert {stratum.name: (stratum.size, stratum.slots) for stratum in stage.strata.all()} == {
        "top": (20, 6),
        "rest 1": (45, 2),
        "rest 2": (45, 2),
        "rest 3": (45, 1),
        "rest 4": (45, 1),
    }
    assert stage.manifest["design"]["rest_strata"] == 4
    assert verifying.verify_stage(stage).differences == []
    export_files.write_export(stage.study, tmp_path)
    verification = verify_study.verify(tmp_path)
    assert not [fault for fault in verification.faults if "stage 2" in fault]
    assert any("stage 2: scores and strata of 12 sampled slots" in line for line in verification.checked)


@pytest.mark.parametrize("by", ["closeness", "disagreement"])
def test_uncertainty_draws_from_those_the_predictor_knows_least_about(by: str) -> None:
    design = {"kind": "uncertainty", "by": by, "epsilon": 0.25}
    # Today, members of a predictor must be able to disagree; earlier files were not asked.
    stage = planning.plan_stage(scored(design, disagreement=by == "disagreement", of=cast.stored_study))
    assert {stratum.name: (stratum.size, stratum.slots) for stratum in stage.strata.all()} == {
        "uncertain": (20, 9),
        "rest": (180, 3),
    }
    rows = files.load_array(CandidateSet.objects.get(stage=stage).file_sha256)
    doubt = -np.abs(rows["score"] - 0.5) if by == "closeness" else rows["disagreement"]
    doubted = {round(float(score), 5) for score in rows["score"][np.argsort(-doubt)[:20]]}
    for score, stratum in stage.slots.values_list("score", "stratum__name"):
        assert (round(score, 5) in doubted) == (stratum == "uncertain")


def test_disagreement_that_was_never_measured_is_refused() -> None:
    with pytest.raises(PlanRefused, match="stage 2 cannot be planned: disagreement"):
        planning.plan_stage(scored({"kind": "uncertainty", "by": "disagreement"}, of=cast.stored_study))


def test_a_floor_gives_every_stratum_its_share() -> None:
    greedy = {"kind": "epsilon_greedy", "epsilon": 0, "top_fraction": 0.1, "floor": 0.5}
    stage = planning.plan_stage(scored(greedy))
    assert {stratum.name: stratum.slots for stratum in stage.strata.all()} == {"top": 6, "rest": 6}


TEST = {"kind": "test_set", "pairs": 4, "responses_per_pair": 3, "top_fraction": 0.05, "bottom_fraction": 0.05}


def test_a_test_set_asks_each_pair_of_several_people() -> None:
    stage = planning.plan_stage(scored(TEST))
    assert {stratum.name: (stratum.size, stratum.slots) for stratum in stage.strata.all()} == {
        "top": (10, 3),
        "bottom": (10, 1),
        "middle": (180, 0),
    }
    by_item: dict[int, list[Slot]] = {}
    for slot in stage.slots.select_related("stratum"):
        by_item.setdefault(slot.item_id, []).append(slot)
    assert len(by_item) == 4
    for slots in by_item.values():
        assert sorted(slot.replicate for slot in slots) == [1, 2, 3]
        assert len({slot.booklet_id for slot in slots}) == 3
        assert {slot.inclusion_probability for slot in slots} == {0.3 if slots[0].stratum.name == "top" else 0.1}


def test_a_test_set_leaves_out_what_an_earlier_stage_planned() -> None:
    # A small bank, so that a pool without the rule would hold most of what stage 1 planned.
    tiny = cast.small_bank(12, name="tiny")
    stage = planning.plan_stage(scored(TEST, first=True, on=tiny), short_booklets=True)
    pool = CandidateSet.objects.get(stage=stage)
    before = Pair.objects.filter(item__slots__stage__index=1)
    keys = set(before.values_list("evidence__position", "target__position", "outcome"))
    rows = files.load_array(pool.file_sha256)
    drawn = {(int(row["evidence"]), int(row["target"]), bool(row["outcome"])) for row in rows}
    assert len(keys) == 12 and not drawn & keys
    assert (pool.universe_size, pool.excluded) == (264, 12)
    assert pool.probability == 200 / 252
    assert stage.manifest["candidates"]["excluded"] == 12
    assert not verify_stage(stage).differences


def test_a_test_set_says_how_many_sittings_it_fills() -> None:
    with pytest.raises(PlanRefused, match="12 slots; with their controls they fill 4 sittings of 3, not 5"):
        planning.plan_stage(scored(TEST, stage={"sittings": 5}, of=cast.stored_study))
    many = {**TEST, "responses_per_pair": 4}
    with pytest.raises(PlanRefused, match="16 slots; with their controls they fill 6 sittings of 3, not 4"):
        planning.plan_stage(scored(many, slug="other", of=cast.stored_study))


def test_the_last_sitting_of_a_test_set_is_shorter() -> None:
    stage = planning.plan_stage(scored({**TEST, "responses_per_pair": 4}, stage={"sittings": 6}))
    assert sorted(booklet.slots.count() for booklet in stage.booklets.all()) == [1, 3, 3, 3, 3, 3]


def test_a_test_set_has_controls_and_no_holdout() -> None:
    roles = {"holdout": 0.2, "controls": 0.1}
    stage = planning.plan_stage(scored(TEST, roles=roles, sitting={"items": 4}, stage={"sittings": 4}))
    assert Counter(stage.slots.values_list("role", flat=True)) == {"sampled": 12, "control": 2}


def checked(**overrides: Any) -> None:
    planning.check_designs(cast.small_config(**overrides), universe_size=3120)


@pytest.mark.parametrize(
    ("design", "more", "message"),
    [
        (TEST, {"candidates": {"size": 20}}, "stage 2 cannot be drawn: pairs: 3 from the top 0.05 need 41 candidates"),
        (TEST, {"stage": {"sittings": 3}}, "they fill 4 sittings of 3, not 3"),
        ({"kind": "softmax"}, {"candidates": {"size": 10}}, "stage 1 cannot be drawn: n: stratum all gets 12"),
        ({"kind": "proportional"}, {"candidates": {"size": 10}}, "stage 1 cannot be drawn: n: stratum all gets 12"),
        ({"kind": "uncertainty"}, {"candidates": {"size": 50}}, "stage 2 cannot be drawn: n: stratum uncertain gets"),
        ({"kind": "epsilon_greedy"}, {"roles": {"holdout": 0.99}}, "stage 1 cannot be drawn: holdout: takes 4 of 4"),
        ({"kind": "epsilon_greedy"}, {"roles": {"control_kinds": ["x"]}}, "stage 1 cannot be drawn: control_kinds"),
        (
            {"kind": "epsilon_greedy", "top_fraction": 0.001},
            {"candidates": {"kind": "exhaustive"}},
            "stage 2 cannot be drawn: n: stratum top gets 11 of 12 slots but holds 4 of 3120",
        ),
        (
            {"kind": "epsilon_greedy"},
            {"candidates": {"kind": "exhaustive", "shortlist": 50}},
            "stage 2 cannot be drawn: n: stratum top gets 11 of 12 slots but holds 5 of 3120",
        ),
        (
            {"kind": "epsilon_greedy"},
            {"candidates": {"kind": "exhaustive", "shortlist": 5000}},
            "shortlist: 5000 of 3120 items is no short list",
        ),
        (
            {"kind": "robust", "for": ["changed", "speed"]},
            {},
            'stage 2: for: "speed" is no figure of belief_update; it has changed, change, size, prior',
        ),
        (
            {"kind": "epsilon_greedy"},
            {"candidates": {"kind": "exhaustive"}, "instrument": {"kind": "toy"}},
            "toy does not pair questions",
        ),
    ],
)
def test_a_design_that_could_never_be_drawn_is_refused_with_its_sizes(
    design: dict[str, Any], more: dict[str, Any], message: str
) -> None:
    with pytest.raises(PlanRefused, match=message):
        checked(**settings_for(design, **more))


def test_disagreement_is_measured_when_the_pool_is_scored() -> None:
    design = {"kind": "uncertainty", "by": "disagreement", "epsilon": 0.25}
    first = cast.full_of_answers(lifecycle.open_stage(cast.stage_of(cast.stored_study(**settings_for(design)))))
    jobs.run_inline(lifecycle.close_stage(first))
    second = cast.stage_of(first.study, 2)
    rows = files.load_array(CandidateSet.objects.get(stage=second).file_sha256)
    assert second.state == "planned"
    assert set(rows["disagreement"].tolist()) == {0.0}  # One member agrees with itself.


# A design that learns


def robust_study(
    *,
    sittings: int = 40,
    moves: Callable[[Pair], bool] | None = None,
    outcomes: tuple[bool, ...] = (False, True),
    **more: Any,
) -> Study:
    """Two stages, the first answered and frozen: beliefs about pairs of one task move every other time, others never;
    or those move that `moves` names. Answers to pairs with other `outcomes` came too late."""
    settings = {
        "stages": [{"sittings": sittings}, {"sittings": 4, "design": {"kind": "robust", **more}}],
        "predictor": {"name": "same_task"},
        "candidates": {"size": 400},
    }
    study = cast.small_study(**settings, on=cast.small_bank(60, name="wide"))
    first = cast.full_of_answers(lifecycle.open_stage(cast.stage_of(study)))
    for number, belief in enumerate(
        Belief.objects.filter(kind="posterior").select_related("response__assignment__slot__item__pair__evidence")
    ):
        pair = belief.response.assignment.slot.item.pair
        same = pair.evidence.task_id == pair.target.task_id
        moved = same and number % 2 == 0 if moves is None else moves(pair)
        Belief.objects.filter(pk=belief.pk).update(value=90 if moved else 50)
    Assignment.objects.exclude(slot__item__pair__outcome__in=outcomes).update(state="late")
    jobs.run_inline(lifecycle.close_stage(first))
    return first.study


def test_a_robust_stage_asks_more_where_earlier_answers_lay_far_from_their_predictions(tmp_path: Path) -> None:
    study = robust_study(find=0.2, **{"for": ["changed", "mean change"]})
    stage = cast.stage_of(study, 2)
    learned = stage.manifest["learned"]
    assert stage.state == "planned"
    assert learned["path"] > 0 and learned["reason"] == ""
    assert [name for name, _saving, _error in learned["savings"]] == ["changed_over_0", "change_over_0"]
    slots = list(stage.slots.order_by("score"))
    assert slots[0].inclusion_probability < 12 / 400 < slots[-1].inclusion_probability
    assert verifying.verify_stage(stage).differences == []
    export_files.write_export(study, tmp_path)
    verification = verify_study.verify(tmp_path)
    assert not [fault for fault in verification.faults if "stage 2" in fault]
    assert any("stage 2" in line and "probabilities to 1e-12" in line for line in verification.checked)
    # A plan that was made by another point of the path is found.
    rows = (tmp_path / "stages.csv").read_text(encoding="utf-8")
    path = f'""path"": {learned["path"]}'
    assert path in rows
    (tmp_path / "stages.csv").write_text(rows.replace(path, '""path"": 0.05'), encoding="utf-8")
    assert any("inclusion_probability is" in fault for fault in verify_study.verify(tmp_path).faults)
    # Other policies are compared with the chances that it was planned by, and other stages have not learnt them.
    pool = files.load_array(CandidateSet.objects.get(stage=stage).file_sha256)["score"].astype(float)
    again = comparing._chances(stage, comparing.design_of(stage), len(pool), pool, None)
    # To a grain: there, equal scores share what their chances differ by.
    assert max(np.abs(again - slot.inclusion_probability).min() for slot in slots) < 1e-11
    with pytest.raises(DesignError, match="robust learns from earlier answers when it plans a stage"):
        comparing._chances(cast.stage_of(study), comparing.design_of(stage), len(pool), pool, None)
    written = methods_section.paragraphs(methods_section.methods_of(study))["Design"]
    words = [line for line in written if "tage 2" in line]
    assert f"chances {learned['path']:g} of the way from uniform to the best" in words[0]
    assert "for changed and mean change" in words[0]


@pytest.mark.parametrize(
    ("moves", "sittings", "reason"),
    [
        (None, 5, "fewer than 10"),
        (lambda pair: pair.pk % 3 == 0, 40, "no other chances are sure to save answers"),
    ],
)
def test_where_nothing_is_sure_to_save_a_robust_stage_is_uniform_and_says_why(
    moves: Callable[[Pair], bool] | None, sittings: int, reason: str
) -> None:
    study = robust_study(moves=moves, sittings=sittings)
    stage = planning.plan_stage(cast.stage_of(study, 2))
    assert set(stage.slots.values_list("inclusion_probability", flat=True)) == {12 / 400}
    assert reason in stage.manifest["learned"]["reason"]
    assert verifying.verify_stage(stage).differences == []
    text = "".join(methods_section.paragraphs(methods_section.methods_of(study))["Design"])
    assert "chances uniform; " in text and reason in text


@pytest.mark.parametrize("figures", [["posterior_correct", "changed"], ["posterior_correct"]])
def test_a_figure_that_no_earlier_answer_is_about_is_named(figures: list[str]) -> None:
    stage = cast.stage_of(robust_study(outcomes=(False,), **{"for": figures}), 2)
    learned = stage.manifest["learned"]
    assert stage.state == "planned" and "no earlier answer is about posterior_correct" in learned["reason"]
    assert [name for name, *_saving in learned["savings"]] == (["changed_over_0"] if learned["path"] else [])
    assert "no earlier answer is about posterior_correct" in str(
        methods_section.paragraphs(methods_section.methods_of(stage.study))
    )


@pytest.mark.parametrize("name", ["size", "mean absolute change", "size_over_5"])
def test_a_robust_stage_is_drawn_for_figures_by_their_names_or_titles(name: str) -> None:
    checked(**settings_for({"kind": "robust", "for": [name]}))


def test_a_design_is_named_in_two_files_outside_bandit() -> None:
    """Its name and keys in the study file, and its chances once more in the tool that checks exports."""
    root = Path(planning.__file__).parents[3]
    word = re.compile(r"""["'`]robust["'`]|\bRobust\b|\brobust_""")
    files_with_it = {
        str(path.relative_to(root))
        for folder in ("survey", "frontend", "predictors", "tools")
        for path in (root / folder).rglob("*.py")
        # A budget's frontier has the designs that have a number to move along it.
        if "reports/budget" not in str(path) and word.search(path.read_text(encoding="utf-8"))
    }
    assert files_with_it == {"survey/study_file/sampling.py", "tools/verify_study.py"}
