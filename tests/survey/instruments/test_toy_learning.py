"""The toy instrument learns a label from features of its own and is judged by a metric of its own."""

import pytest

from survey.models import PredictorRun
from survey.services.stages import jobs, lifecycle
from tests import cast

TOY = {"instrument": {"kind": "toy"}}


@pytest.mark.django_db
def test_it_learns_a_label_from_features_of_its_own_and_is_judged_by_a_metric_of_its_own() -> None:
    keyless = cast.small_bank(40, name="keyless", keyless=40)
    study = cast.small_study(
        "toy",
        on=keyless,
        **{
            **TOY,
            "candidates": {"size": 30},
            "predictor": {"name": "logistic"},
            "stages": [{"sittings": 6}, {"sittings": 4, "design": {"kind": "epsilon_greedy", "top_fraction": 0.5}}],
        },
    )
    for index, people in ((1, 6), (2, 4)):
        stage = lifecycle.open_stage(cast.stage_of(study, index))
        for _person in range(people):
            visitor = cast.Visitor(study).to_items()
            while (step := visitor.step).kind == "item":
                opening = step.screen.parts.get("opening", {"value": ""})["value"]
                asked = step.assignment.slot.item.passage.question.position
                visitor.post(**({"guess": opening if asked % 2 else "zebra"} if step.screen.form else {}))
        jobs.run_inline(lifecycle.close_stage(stage))
    run = PredictorRun.objects.get(stage__study=study, stage__index=1)
    assert (run.name, run.example_count, run.ready_at is not None) == ("logistic", 18, True)
    drawn = cast.stage_of(study, 2).slots.exclude(score=None)
    assert drawn.count() == 12 and {slot.stratum.name for slot in drawn.select_related("stratum")} == {"top", "rest"}
    judged = run.evaluations.get().metrics["naive"]
    assert judged["n"] == 12 and set(judged) == {"n", "brier", "intervals"}
    low, high = judged["intervals"]["brier"]["all"]
    assert 0 <= low <= judged["brier"]["all"] <= high <= 1
