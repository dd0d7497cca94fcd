"""Candidates that are all pairs there are: strata of exact sizes, drawn from stored factors alone."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from django.conf import settings
from django.db import transaction
from django.utils import timezone
from threadpoolctl import threadpool_info

from bandit import FactoredScores, factored
from survey.exceptions import StateRefused
from survey.instruments.belief_update.models import Pair
from survey.instruments.question_pairs import packed, unpacked
from survey.models import CandidateSet, JobStep, LanguageModel, ModelAnswer, Question, Stage
from survey.processes import background
from survey.services.base import compute, files, leases
from survey.services.plans import planning
from survey.services.stages import jobs
from survey.services.stages.verifying import verify_stage
from tests import cast

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

UNIVERSE = 2 * 40 * 39
GREEDY = {"kind": "epsilon_greedy", "epsilon": 0.25, "top_fraction": 0.1}


def two(design: dict[str, Any] | None = None, **candidate_keys: Any) -> dict[str, Any]:
    return {
        "stages": [{"sittings": 4}, {"sittings": 4, "design": design or GREEDY, "train": False}],
        "predictor": {"name": "same_task"},
        "candidates": {"kind": "exhaustive", "scored_pairs": 200, **candidate_keys},
    }


def planned_by_predictor(slug: str = "small", **overrides: Any) -> Stage:
    """The second stage, after the first one was answered, learnt from and scored with."""
    first = cast.closed_stage(slug, **overrides)
    jobs.run_inline(first)
    return cast.stage_of(first.study, 2)


def all_scores(stage: Stage) -> np.ndarray:
    """The factored scores of all pairs, as one array: few enough here."""
    factors = unpacked(files.load_array(CandidateSet.objects.get(stage=stage).file_sha256))
    return np.array(
        [
            [
                factors.evidence[o].astype(int) @ factors.target[o].astype(int).T
                + factors.evidence_bias[o][:, None]
                + factors.target_bias[o][None, :]
            ]
            for o in (0, 1)
        ]
    ).squeeze(1)


def test_the_first_stage_draws_uniformly_from_all_pairs_without_listing_them() -> None:
    stage = cast.planned_stage(candidates={"kind": "exhaustive"})
    stored = CandidateSet.objects.get(stage=stage)
    assert (stored.kind, stored.size, stored.universe_size, stored.probability) == ("exhaustive", UNIVERSE, UNIVERSE, 1)
    assert stored.file_sha256 == stored.drawn_sha256 == ""
    assert set(stage.slots.values_list("inclusion_probability", "pool_probability", "score", "stratum__name")) == {
        (12 / UNIVERSE, 1.0, None, "all")
    }
    assert stage.strata.get().size == UNIVERSE


def test_the_strata_of_all_pairs_have_their_exact_sizes(scorer: list[dict[str, Any]]) -> None:
    stage = planned_by_predictor(**two())
    assert stage.state == "planned"
    assert {stratum.name: (stratum.size, stratum.slots) for stratum in stage.strata.all()} == {
        "top": (312, 9),
        "rest": (UNIVERSE - 312, 3),
    }
    assert set(stage.slots.values_list("stratum__name", "inclusion_probability", "pool_probability")) == {
        ("top", 9 / 312, 1.0),
        ("rest", 3 / (UNIVERSE - 312), 1.0),
    }
    assert [asked["n_pairs"] for asked in scorer] == [200]


def test_top_pairs_are_those_with_the_highest_factored_scores(scorer: list[dict[str, Any]]) -> None:
    stage = planned_by_predictor(**two())
    scores = all_scores(stage)
    apart = scores[:, ~np.eye(40, dtype=bool)]
    cut = np.sort(apart.ravel())[-312]
    for slot in stage.slots.select_related("item__pair__evidence", "item__pair__target", "stratum"):
        pair = slot.item.pair
        score = scores[int(pair.outcome), pair.evidence.position, pair.target.position]
        assert score >= cut if slot.stratum.name == "top" else score <= cut
    lowest, highest = stage.strata.values_list("lowest_score", "highest_score").get(name="top")
    assert (lowest, highest) == (cut, apart.max())


def test_a_slot_keeps_what_the_predictor_itself_gave_it(scorer: list[dict[str, Any]]) -> None:
    stage = planned_by_predictor(**two())
    scores = set(stage.slots.values_list("score", flat=True))
    # same_task knows four cells: same or other task, by outcome.
    assert None not in scores and 1 < len(scores) <= 4 and all(0 <= score <= 1 for score in scores)


def test_a_uniform_stage_after_a_predictor_scores_what_it_draws_and_learns_no_factors(
    scorer: list[dict[str, Any]],
) -> None:
    stage = planned_by_predictor(**two({"kind": "uniform"}))
    stored = CandidateSet.objects.get(stage=stage)
    assert stored.file_sha256 == "" and stored.drawn_sha256 and stored.predictor_run is not None
    assert scorer == []
    assert None not in set(stage.slots.values_list("score", flat=True))
    assert set(stage.slots.values_list("inclusion_probability", flat=True)) == {12 / UNIVERSE}


@pytest.mark.parametrize("shortlist", [0, 200])
def test_the_claim_is_renewed_block_by_block_while_all_pairs_are_scored(
    shortlist: int, scorer: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = cast.closed_stage(**two(shortlist=shortlist))
    step = cast.run_until(first, "score")
    clock = [timezone.now()]
    begun, blocks = clock[0], []
    map_blocks = FactoredScores.map_blocks

    def slowly(self: FactoredScores, work: Any, **how: Any) -> Any:
        def one(block: Any) -> Any:
            """A block takes two thirds of a lease; then another worker asks for the step."""
            clock[0] += leases.LEASE * 2 / 3
            blocks.append(leases.claim(JobStep.objects.all(), step.pk))
            return work(block)

        return map_blocks(self, one, **how)

    monkeypatch.setattr(timezone, "now", lambda: clock[0])
    monkeypatch.setattr(leases, "WRITE_EVERY", 0.0)
    monkeypatch.setattr(factored, "_BLOCK", 400)
    monkeypatch.setattr(FactoredScores, "map_blocks", slowly)
    monkeypatch.setattr(settings, "HUNCH_SCORING_THREADS", 1)  # Another thread has another connection.
    assert jobs.run_step(step.pk)
    assert len(blocks) >= 8 and set(blocks) == {None}
    assert clock[0] - begun > 5 * leases.LEASE
    assert JobStep.objects.get(pk=step.pk).attempt == 1


@pytest.mark.thorough
@pytest.mark.parametrize("shortlist", [0, 200])
def test_a_plan_is_the_same_with_any_number_of_threads(
    shortlist: int, scorer: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = cast.closed_stage(**two(shortlist=shortlist))
    cast.run_until(first, "score")
    asked: list[int] = []
    map_blocks = FactoredScores.map_blocks

    def counted(self: FactoredScores, work: Any, *, threads: int, **how: Any) -> Any:
        asked.append(threads)
        return map_blocks(self, work, threads=threads, **how)

    monkeypatch.setattr(FactoredScores, "map_blocks", counted)
    monkeypatch.setattr(factored, "_BLOCK", 400)
    monkeypatch.setattr(factored, "_COLUMNS", 16)
    hashes = set()
    for threads in (1, 2, 3):
        monkeypatch.setattr(settings, "HUNCH_SCORING_THREADS", threads)
        with transaction.atomic():
            jobs.run_inline(first)
            planned = cast.stage_of(first.study, 2)
            stored = CandidateSet.objects.get(stage=planned)
            hashes.add((planned.plan_sha256, stored.drawn_sha256, stored.shortlist_sha256, stored.file_sha256))
            transaction.set_rollback(True)
    assert len(hashes) == 1 and set(asked) == {1, 2, 3}


def test_without_a_setting_every_core_that_the_process_may_use_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "cores", lambda: 5)
    with compute.workers() as workers:
        assert workers == {"threads": 5}
        assert {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"} == {1}


def test_a_shortlist_is_scored_again_and_its_best_are_a_stratum(scorer: list[dict[str, Any]]) -> None:
    stage = planned_by_predictor(**two(shortlist=200))
    assert {stratum.name: (stratum.size, stratum.slots) for stratum in stage.strata.all()} == {
        "chosen": (20, 9),
        "others": (UNIVERSE - 20, 3),
    }
    listed = files.load_array(CandidateSet.objects.get(stage=stage).shortlist_sha256)
    assert len(listed) == 200
    worst_chosen = np.sort(listed["score"])[-20]
    for slot in stage.slots.filter(stratum__name="chosen"):
        assert slot.score >= worst_chosen - 1e-6


def test_a_test_set_of_all_pairs_leaves_out_what_was_planned_before(scorer: list[dict[str, Any]]) -> None:
    design = {"kind": "test_set", "pairs": 4, "responses_per_pair": 2, "top_fraction": 0.05, "bottom_fraction": 0.05}
    overrides = two(design)
    overrides["stages"][1]["sittings"] = 3
    first = cast.closed_stage(**overrides)
    cast.run_until(first, "plan")
    # So few booklets may not hold pairs that share a question.
    second = planning.plan_stage(cast.stage_of(first.study, 2), short_booklets=True)
    before = set(first.slots.values_list("item__key", flat=True))
    assert CandidateSet.objects.get(stage=second).excluded == 12
    assert sum(stratum.size for stratum in second.strata.all()) == UNIVERSE - 12
    assert not before & set(second.slots.values_list("item__key", flat=True))


def test_fidelity_is_kept_with_the_stage(scorer: list[dict[str, Any]]) -> None:
    stage = planned_by_predictor(**two())
    drawn = stage.manifest["candidates"]
    assert drawn["fidelity"]["uniform"]["spearman"] == 0.93
    assert CandidateSet.objects.get(stage=stage).fidelity == drawn["fidelity"]
    assert drawn["fidelity"]["scored_pairs"] == 200


def test_a_plan_from_factors_is_rebuilt_and_a_changed_factor_is_found(scorer: list[dict[str, Any]]) -> None:
    stage = planned_by_predictor(**two(shortlist=0))
    assert verify_stage(stage).differences == []
    factors = files.load_array(stage.manifest["candidates"]["sha256"])
    drawn = {**stage.manifest["candidates"], "sha256": files.store_array(factors[:, ::-1])}
    Stage.objects.filter(pk=stage.pk).update(manifest={**stage.manifest, "candidates": drawn})
    assert not verify_stage(cast.stage_of(stage.study, 2)).agrees


def test_packed_factors_come_back_as_they_were() -> None:
    rng = np.random.default_rng(5)
    array = rng.integers(-100, 100, (2, 7, 2 * 4 + 2)).astype("<i4")
    factors = unpacked(array)
    assert factors.rank == 4 and factors.n_questions == 7 and factors.happened is None
    assert np.array_equal(packed(factors), array)
    real = dataclasses.replace(factors, happened=np.array([0, 1, 1, 0, 0, 0, 1]))
    again = unpacked(packed(real))
    assert again.rank == 4 and again.sha256 == real.sha256 != factors.sha256


def test_pairs_scored_before_a_flag_was_set_are_never_planned(
    scorer: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = cast.closed_stage(**two())
    plan = cast.run_until(first, "plan")
    Question.objects.filter(position=0).update(flag="broken", flag_reason="a typing error")
    with pytest.raises(StateRefused, match="flagged since the candidates of stage 2 were scored"):
        planning.plan_stage(cast.stage_of(first.study, 2))
    assert plan.kind == "plan"


def test_the_lists_of_the_admin_show_fidelity(scorer: list[dict[str, Any]], admin_client: Any) -> None:
    planned_by_predictor(**two())
    page = admin_client.get("/admin/survey/candidateset/").content.decode()
    assert "fresh pairs: Spearman 0.930 (0.920 to 0.940), 97.0 % of the top tenth" in page


# Where evidence is what a model really answered


def real_bank(**overrides: Any) -> dict[str, Any]:
    """A bank that a model has answered, right but for every third question, and a study on it."""
    bank = cast.small_bank()
    model = LanguageModel.objects.create(name="parrot")
    ModelAnswer.objects.bulk_create(
        ModelAnswer(language_model=model, question=question, correct=question.position % 3 != 0)
        for question in bank.questions.order_by("position")
    )
    options = {"evidence": "real", "language_model": "parrot"}
    return {**overrides, "instrument": {"kind": "belief_update", "options": options}}


def happened(stage: Stage) -> bool:
    pairs = Pair.objects.filter(item__slots__stage=stage, evidence__isnull=False).select_related("evidence")
    return all(pair.outcome == (pair.evidence.position % 3 != 0) for pair in pairs)


def test_all_pairs_that_happened_are_cut_into_exact_strata(scorer: list[dict[str, Any]]) -> None:
    stage = planned_by_predictor(**real_bank(**two()))
    assert happened(stage.study.stages.get(index=1)) and happened(stage)
    stored = CandidateSet.objects.get(stage=stage)
    assert (stored.universe_size, stored.size, stored.probability) == (UNIVERSE // 2, UNIVERSE // 2, 1)
    sizes = {stratum.name: (stratum.size, stratum.slots) for stratum in stage.strata.all()}
    assert sizes == {"top": (156, 9), "rest": (UNIVERSE // 2 - 156, 3)}
    by_pair = all_scores(stage)
    outcome = np.arange(40) % 3 != 0
    off = ~np.eye(40, dtype=bool)
    possible = np.sort(by_pair[outcome.astype(int), np.arange(40)][off])[::-1]
    top = stage.strata.get(name="top")
    assert (top.lowest_score, top.highest_score) == (possible[155], possible[0])
    for slot in stage.slots.select_related("stratum"):
        chance = 9 / 156 if slot.stratum.name == "top" else 3 / (UNIVERSE // 2 - 156)
        assert (slot.inclusion_probability, slot.pool_probability) == (pytest.approx(chance), 1.0)


def test_a_plan_of_what_happened_is_rebuilt_from_its_factors(scorer: list[dict[str, Any]]) -> None:
    stage = planned_by_predictor(**real_bank(**two(shortlist=300)))
    assert happened(stage)
    assert {stratum.name: stratum.size for stratum in stage.strata.all()} == {
        "chosen": 30,
        "others": UNIVERSE // 2 - 30,
    }
    assert verify_stage(stage).differences == []


def test_a_test_set_of_what_happened_leaves_out_what_was_planned_before(scorer: list[dict[str, Any]]) -> None:
    design = {"kind": "test_set", "pairs": 4, "responses_per_pair": 2, "top_fraction": 0.05, "bottom_fraction": 0.05}
    overrides = two(design)
    overrides["stages"][1]["sittings"] = 3
    first = cast.closed_stage(**real_bank(**overrides))
    cast.run_until(first, "plan")
    second = planning.plan_stage(cast.stage_of(first.study, 2), short_booklets=True)
    assert happened(second)
    assert sum(stratum.size for stratum in second.strata.all()) == UNIVERSE // 2 - 12
    before = set(first.slots.values_list("item__key", flat=True))
    assert not before & set(second.slots.values_list("item__key", flat=True))


@pytest.mark.torch
def test_fidelity_is_that_of_the_pairs_that_happened() -> None:
    stage = planned_by_predictor(**real_bank(**two(scored_pairs=1000, rank=8)))
    # 1,000 of 3,120 pairs were scored, of both outcomes; measured is on all others that happened.
    assert 900 < CandidateSet.objects.get(stage=stage).fidelity["uniform"]["n"] < UNIVERSE // 2
    assert happened(stage) and verify_stage(stage).differences == []


@pytest.mark.thorough
@pytest.mark.torch
def test_the_real_scorer_plans_a_stage_of_all_pairs() -> None:
    stage = planned_by_predictor(**two(scored_pairs=1000, rank=8))
    stored = CandidateSet.objects.get(stage=stage)
    assert stored.fidelity["uniform"]["n"] > 0 and stored.fidelity["uniform"]["spearman"] > 0.5
    assert {stratum.name: stratum.size for stratum in stage.strata.all()} == {"top": 312, "rest": UNIVERSE - 312}
    assert verify_stage(stage).differences == []
