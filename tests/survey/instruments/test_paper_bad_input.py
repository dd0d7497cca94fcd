"""Studies of the paper's kind that lack something: a sentence in the figure's place, and the other figures unharmed.

Each case goes through the estimates, the paper, every other report and the leaderboard.
"""

import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.core.management import call_command

from survey.console.reports import page
from survey.exceptions import HunchError
from survey.instruments.belief_update.models import Belief
from survey.instruments.belief_update.reports.alignment import aligning
from survey.instruments.belief_update.reports.paper import study as paper_study
from survey.models import Assignment, CandidateSet, LanguageModel, ModelAnswer, Sitting, Study
from survey.services.banks.eligibility import eligible_questions
from survey.services.base import files
from survey.services.results import reports
from survey.services.results.estimates import study_estimates
from tests import cast
from tests.survey.filled import NO_ROLES, run_study
from tests.survey.instruments.test_paper import DRAWN

pytestmark = [pytest.mark.django_db, pytest.mark.thorough]
# Arguments with which a report is quick.
QUICK: dict[str, dict[str, list[str]]] = {
    "alignment": {"samples": ["100"]},
    "domination": {"samples": ["100"]},
    "budget": {"studies": ["2"], "frontier": ["0"]},
}
TWO_STAGES: dict[str, Any] = {
    "stages": [{"sittings": 8}, {"sittings": 8, "design": {"kind": "epsilon_greedy", "epsilon": 0.25}}],
    "predictor": {"name": "same_task"},
    "candidates": {"size": 600},
    **NO_ROLES,
}


def with_models(study: Study) -> Study:
    rng = np.random.default_rng(2)
    for name, share in (("good", 0.8), ("poor", 0.4)):
        model = LanguageModel.objects.create(name=name)
        ModelAnswer.objects.bulk_create(
            ModelAnswer(language_model=model, question=question, correct=bool(rng.random() < share))
            for question in eligible_questions(study)
        )
    return Study.objects.get(pk=study.pk)


def whole(study: Study, folder: Path) -> dict[str, str]:
    """What each piece of `paper` lacks, with everything drawn and written; the estimates, the leaderboard and the other
    reports made too. No text says NaN or p = 0.000."""
    findings = reports.make(study, "paper")
    for path in reports.write(study, "paper", findings, folder):
        clean(path.read_text(encoding="utf-8"), path.name)
    for line in reports.lines_of(study):
        name = line.entry.name
        if not line.obstacle and name != "paper":
            made = tried(lambda name=name: reports.make(study, name, QUICK.get(name, {})))
            if made is not None:
                clean(json.dumps(reports.as_json(study, name, made), allow_nan=False), name)
                clean("\n".join(page(made)), name)
                for picture in made.pictures:
                    if not picture.heavy:
                        picture.draw(folder / "picture.svg")
    tried(lambda: estimated(study, folder / "estimates"))
    clean(shown("leaderboard", study.slug), "leaderboard")
    return {piece["name"]: piece["missing"] for piece in findings.data["pieces"]}


def tried(make: Callable[[], Any]) -> Any:
    """What it makes; None where it says in a sentence what is missing."""
    try:
        return make()
    except reports.ReportBroken:
        raise
    except HunchError:
        return None


def estimated(study: Study, folder: Path) -> None:
    asked = ["--by", "outcome", "--by", "target_task", "--threshold", "0", "--threshold", "10", "--out", str(folder)]
    clean(shown("estimate", study.slug, *asked), "estimate")
    for path in folder.iterdir():
        clean(path.read_text(encoding="utf-8"), path.name)


def shown(*command: str) -> str:
    out = io.StringIO()
    call_command(*command, stdout=out, stderr=out)
    return out.getvalue()


def clean(text: str, name: str) -> None:
    text = text.lower()
    assert not re.search(r"\bnan\b", text), name
    assert not re.search(r"\bp = 0\.0+\b", text), name
    assert "0.000 [0.000, 0.000]" not in text and "traceback" not in text, name


def there(missing: dict[str, str], *names: str) -> None:
    assert {name: missing[name] for name in names if missing[name]} == {}


def test_a_study_without_a_test_stage(tmp_path: Path) -> None:
    missing = whole(with_models(run_study(**TWO_STAGES)), tmp_path)
    assert all("no test stage is frozen" in missing[name] for name in ("table1", "table3", "table4"))
    there(missing, "table2", "table5", "figure4", "figure7", *DRAWN)


def test_a_stage_in_which_nobody_changes(tmp_path: Path) -> None:
    study = with_models(run_study(**TWO_STAGES))
    Belief.objects.update(value=50)
    missing = whole(study, tmp_path)
    there(missing, "figure4", *DRAWN)


def test_a_stage_in_which_everybody_changes_alike(tmp_path: Path) -> None:
    study = with_models(run_study(**TWO_STAGES))
    Belief.objects.filter(kind="prior").update(value=0)
    Belief.objects.filter(kind="posterior").update(value=100)
    there(whole(study, tmp_path), "figure4", *DRAWN)


def test_one_person_alone(tmp_path: Path) -> None:
    study = with_models(run_study(**TWO_STAGES))
    sitting = Sitting.objects.filter(stage__study=study, stage__index=1).order_by("pk")[0]
    Assignment.objects.exclude(sitting=sitting).update(state="late")
    missing = whole(study, tmp_path)
    assert "no estimate of the mean" in missing["table2"] or "one alone cannot be resampled" in missing["table2"]
    assert "no frozen stage was drawn by a predictor" in missing["figure3_right"]
    there(missing, "figure2", "figure3_left", "figure5", "figure6")
    table = next(piece.table for piece in paper_study.pieces_of(study) if piece.name == "figure5")
    assert table is not None and "1 people are too few" in table.note


def test_two_stages_of_nine_people(tmp_path: Path) -> None:
    stages = [{**stage, "sittings": 9} for stage in TWO_STAGES["stages"]]
    study = with_models(run_study(**{**TWO_STAGES, "stages": stages}))
    first = study_estimates.estimate(study, by=["target_task"]).figures[0]
    assert first.combined is not None and "18 respondents, fewer than 30" in first.combined.too_few
    assert first.agreement is None and "stages have an effective sample" in first.agreement_withheld
    there(whole(study, tmp_path), "table2", "table5", "figure4", "figure7", *DRAWN)


@pytest.mark.slow
@pytest.mark.any_database  # The same statements as those of the studies above.
def test_a_thousand_answers_by_nine_people() -> None:
    """However much each of nine people answers, nine cannot say how people differ, and the figures say so."""
    many: dict[str, Any] = {
        **TWO_STAGES,
        "stages": [{"sittings": 80}],
        "candidates": {"size": 1500},
        "sitting": {"items": 15},
    }
    study = with_models(run_study(on=cast.small_bank(60), people=9, **many))
    estimates = study_estimates.estimate(study, by=["outcome", "target_task"])
    clean(json.dumps(estimates.as_json(), allow_nan=False), "estimate")
    assert (estimates.answers, estimates.respondents) == (1200, 9)
    first = estimates.figures[0].combined
    assert first is not None and first.interval is not None and "9 respondents, fewer than 30" in first.too_few
    # As many independent answers would have an interval of 0.05.
    assert first.interval[1] - first.interval[0] > 0.1 and first.degrees_of_freedom < 9
    pieces = {piece.name: piece for piece in paper_study.pieces_of(study)}
    there({name: piece.missing for name, piece in pieces.items()}, "figure3_left", "figure4", "figure5", "figure7")
    assert all("no test stage is frozen" in pieces[name].missing for name in ("table1", "table3", "table4"))
    assert pieces["figure5"].table is not None and "9 people are too few" in pieces["figure5"].table.note


def test_a_bank_with_one_task(tmp_path: Path) -> None:
    bank = cast.small_bank(40, tasks=1)
    missing = whole(with_models(run_study(on=bank, **TWO_STAGES)), tmp_path)
    there(missing, "table2", "table5", "figure4", "figure7", *DRAWN)


def test_a_predictor_that_gives_the_same_number_everywhere(tmp_path: Path) -> None:
    study = with_models(run_study(**TWO_STAGES))
    stored = CandidateSet.objects.get(stage__study=study, stage__index=2)
    rows = files.load_array(stored.file_sha256).copy()
    rows["score"] = 0.5
    CandidateSet.objects.filter(pk=stored.pk).update(file_sha256=files.store_array(rows))
    cast.stage_of(study, 2).slots.update(score=0.5)
    missing = whole(study, tmp_path)
    there(missing, "table2", "table5", "figure4", "figure7", *DRAWN)
    assert "gives every pair the same number" in (tmp_path / "index.html").read_text(encoding="utf-8")
    assert aligning.alignment_of(study, samples=100).scores


def test_models_that_answered_nothing_in_common_and_nothing_right(tmp_path: Path) -> None:
    study = run_study(**TWO_STAGES)
    questions = eligible_questions(study)
    for place, name in enumerate(("left", "right")):
        model = LanguageModel.objects.create(name=name)
        ModelAnswer.objects.bulk_create(
            ModelAnswer(language_model=model, question=question, correct=False) for question in questions[place::2]
        )
    study = Study.objects.get(pk=study.pk)
    missing = whole(study, tmp_path)
    assert "no language model was right on an evidence question" in missing["figure4"]
    there(missing, *DRAWN)
    with pytest.raises(HunchError, match="no two language models have answered the same question"):
        reports.make(study, "domination")
