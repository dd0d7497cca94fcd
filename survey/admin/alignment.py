"""Language models on trial as a page: what `manage.py alignment --study` prints."""

from collections.abc import Mapping
from typing import Any

from survey.exceptions import HunchError
from survey.instruments.belief_update.reports import aligning
from survey.models import LanguageModel, Study, Task

SAMPLES = 500  # enough for a page's intervals; the command takes more
FAILURES = 50


def context(study: Study, query: Mapping[str, str]) -> dict[str, Any]:
    """What the page shows; `task` and `llm` in the address choose among the failures."""
    shown: dict[str, Any] = {
        "tasks": list(Task.objects.filter(bank=study.bank_id).values_list("name", flat=True)),
        "models": list(
            LanguageModel.objects.filter(answers__question__bank=study.bank_id)
            .distinct()
            .values_list("name", flat=True)
        ),
        "task": query.get("task", ""),
        "llm": query.get("llm", ""),
    }
    try:
        found = aligning.alignment_of(study, samples=SAMPLES)
        failures = aligning.failures_of(study, llm=shown["llm"], task=shown["task"])
    except HunchError as exc:
        return {**shown, "problem": exc.message}
    return {
        **shown,
        "found": found,
        "thresholds": [f"{100 * value:.0f} %" for value in found.scores[0].thresholds],
        "tables": [
            (
                title,
                [
                    (
                        score.name,
                        score.pairs,
                        [
                            (f"{point:.3f}", f"{low:.3f} to {high:.3f}")
                            for point, (low, high) in zip(
                                getattr(score, name), getattr(score, f"{name}_interval"), strict=True
                            )
                        ],
                    )
                    for score in found.scores
                ],
            )
            for name, title in (
                ("accuracy", "Weighted generalized accuracy, higher is better"),
                ("cross_entropy", "Weighted cross-entropy, lower is better"),
            )
        ],
        "deployment": [
            {
                "title": f"{_how(table.rule)}, beliefs by {table.beliefs}",
                "note": table.note,
                "models": [
                    (
                        one.name,
                        f"{one.mean:.3f}",
                        f"{100 * one.share:.1f} %",
                        f"{one.performance:.3f}",
                        f"{one.performance_interval[0]:.3f} to {one.performance_interval[1]:.3f}",
                    )
                    for one in table.models
                ],
                "reversals": table.reversals,
            }
            for table in found.deployment
        ],
        "failures": failures[:FAILURES],
        "failure_count": len(failures),
    }


def _how(rule: Any) -> str:
    return f"Deployed above {rule.threshold:g}" if rule.kind == "threshold" else "Deployed as often as believed"
