"""Whole studies of the toy instrument: its ratio against a plain computation, several answers an item, stages drawn by
its own priority, and its report through every door."""

import csv
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from toy_instrument.instrument import Toy, ToyControls
from toy_instrument.labels import guesses_of
from toy_instrument.models import Guess

from survey.contracts import instruments
from survey.exceptions import FileErrors
from survey.models import CandidateSet, PredictorRun, Question, Slot, Stage, Study
from survey.services.answers.counting import labelled_answers
from survey.services.base import files as stored_files
from survey.services.base import hashing
from survey.services.plans import drafting, planning
from survey.services.plans.candidates import PRIORITY, SCORE
from survey.services.results import reports
from survey.services.results.estimates import study_estimates
from survey.services.results.export import files
from survey.services.stages.verifying import verify_stage
from survey.services.studies.checking import check_study
from tests import cast
from tests.kept import kept
from tests.survey import toy

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

GREEDY = {"kind": "epsilon_greedy", "epsilon": 0.25, "top_fraction": 0.5}
BY_LETTERS: dict[str, Any] = {
    "options": {"priority": "letters"},
    "stages": [{"sittings": 6}, {"sittings": 6, "design": GREEDY}],
}
BY_DOUBT: dict[str, Any] = {
    "options": {"priority": "doubt"},
    "predictor": {"name": "logistic"},
    "stages": [{"sittings": 6}, {"sittings": 6, "design": GREEDY}],
}
SEVERAL: dict[str, Any] = {
    "options": {"priority": "letters"},
    "stages": [{"sittings": 6, "responses_per_item": 3}, {"sittings": 6, "responses_per_item": 2, "design": GREEDY}],
}


@kept
def drawn_by_letters() -> Study:
    return toy.run(**BY_LETTERS)


@kept
def several_answers() -> Study:
    return toy.run(**SEVERAL)


def exported(study: Study, folder: Path) -> list[dict[str, str]]:
    files.write_export(study, folder)
    with (folder / "answers.csv").open(newline="", encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if row["status"] == "counted"]


def figure_of(figures: Any, name: str) -> Any:
    (named_figure,) = [figure for figure in figures if figure.name == name]
    return named_figure


def rows_of(stage: Stage) -> np.ndarray:
    return stored_files.load_array(CandidateSet.objects.get(stage=stage).file_sha256)


def letters_of(slot: Slot) -> int:
    return len(slot.item.passage.question.plain)


# The ratio


def words_guessed(row: dict[str, str]) -> int:
    return sum(len(set(row[f"guess_{number}"].split())) for number in (1, 2, 3))


def sums_of(rows: list[dict[str, str]]) -> tuple[float, float]:
    """Right words and words guessed, each an item, from exported lines alone."""
    weights = np.array([1 / float(row["inclusion_probability"]) / float(row["pool_probability"]) for row in rows])
    weights /= weights.sum()
    return weights @ [float(row["points"]) for row in rows], weights @ [words_guessed(row) for row in rows]


def ratio_of(rows: list[dict[str, str]]) -> float:
    """Right words per word guessed."""
    right, guessed = sums_of(rows)
    return right / guessed


@pytest.mark.thorough
def test_the_ratio_is_what_a_plain_computation_from_the_export_gives(tmp_path: Path) -> None:
    study = drawn_by_letters()
    rows = exported(study, tmp_path)
    report = study_estimates.estimate(study, by=["half"])
    assert [figure.name for figure in report.figures] == ["found", "accuracy", "points"]
    figure = figure_of(report.figures, "accuracy")
    own = [ratio_of([row for row in rows if row["stage"] == stage]) for stage in ("1", "2")]
    assert own[0] != own[1]
    assert [stage.estimate.value for stage in figure.stages] == pytest.approx(own)
    # The sums of both stages are put together before they are divided.
    sums = np.array([sums_of([row for row in rows if row["stage"] == stage]) for stage in ("1", "2")])
    right, guessed = [stage.weight for stage in figure.stages] @ sums
    assert figure.combined.value == pytest.approx(right / guessed)
    right = sum(float(row["points"]) for row in rows)
    assert figure.naive.value == pytest.approx(right / sum(map(words_guessed, rows)))
    # A ratio is no mean of ratios.
    each = np.mean([float(row["points"]) / words_guessed(row) for row in rows if row["stage"] == "1"])
    assert abs(each - own[0]) > 1e-6
    (division,) = report.divisions
    for half, figures in zip(division.labels, division.figures, strict=True):
        inside = [row for row in rows if int(row["question_id"][1:]) % 2 == (half == "odd")]
        parts = [ratio_of([row for row in inside if row["stage"] == stage]) for stage in ("1", "2")]
        assert [stage.estimate.value for stage in figure_of(figures, "accuracy").stages] == pytest.approx(parts)


def test_all_that_labels_need_is_read_together(django_assert_num_queries: Any) -> None:
    answers = labelled_answers(toy.run(questions=8, stages=[{"sittings": 1}]))
    with django_assert_num_queries(0):
        read = [(answer.slot.item.passage.question.plain, guesses_of(answer)) for answer in answers]
    assert read and all(words and guesses for words, guesses in read)


def test_the_ratio_stands_in_the_command_the_page_and_the_api(capsys: pytest.CaptureFixture[str]) -> None:
    study = drawn_by_letters()
    value = figure_of(study_estimates.estimate(study).figures, "accuracy").combined.value
    call_command("estimate", "toy")
    assert "right words per word guessed" in capsys.readouterr().out
    admin = Client()
    admin.force_login(User.objects.create_superuser("root"))
    page = admin.get(f"/admin/survey/study/{study.pk}/estimates/").content.decode()
    assert "right words per word guessed" in page.lower()
    estimates = admin.get("/api/v1/studies/toy/estimates/").json()
    (figure,) = [figure for figure in estimates["figures"] if figure["name"] == "accuracy"]
    assert figure["combined"]["value"] == pytest.approx(value)


@pytest.mark.thorough
def test_an_item_that_is_asked_again_is_compared_by_the_ratio_of_each_answer(tmp_path: Path) -> None:
    asked: Counter[tuple[int, int]] = Counter()

    def other_words_again(question: Question, person: int) -> list[str]:
        asked[question.pk, person] += 1
        is_again = asked[question.pk, person] > 3  # Each showing asks for three guesses.
        return toy.some_words(question, person + 100 * is_again)

    study = toy.run(
        guessing=other_words_again,
        roles={"holdout": 0, "controls": 0.25, "control_kinds": ["repeat"]},
        sitting={"items": 4},
        stages=[{"sittings": 6}],
    )
    rows = exported(study, tmp_path)
    first = {(row["respondent"], row["slot"]): row for row in rows if row["role"] == "sampled"}
    pairs = [(first[row["respondent"], row["repeat_of"]], row) for row in rows if row["role"] == "repeat"]
    first_ratios, other = np.transpose([[float(row["points"]) / words_guessed(row) for row in pair] for pair in pairs])
    retest = study_estimates.estimate(study).noise.retests["accuracy"]
    assert (retest.n, retest.n_clusters, retest.same) == (6, 6, pytest.approx(np.mean(first_ratios == other)))
    assert retest.correlation == pytest.approx(np.corrcoef(first_ratios, other)[0, 1])
    assert 0 < abs(retest.correlation) < 1


# Several answers an item


@pytest.mark.thorough
def test_each_item_is_answered_by_different_people_in_different_booklets(tmp_path: Path) -> None:
    study = several_answers()
    rows = exported(study, tmp_path)
    for stage, answers in (("1", 3), ("2", 2)):
        items = defaultdict(list)
        for row in rows:
            if row["stage"] == stage:
                items[row["question_id"]].append(row)
        assert len(items) == 18 // answers
        for item_rows in items.values():
            assert sorted(row["replicate"] for row in item_rows) == [str(number + 1) for number in range(answers)]
            assert (
                len({row["booklet"] for row in item_rows}) == len({row["respondent"] for row in item_rows}) == answers
            )
        assert verify_stage(cast.stage_of(study, int(stage))).differences == []
    assert "replicate" in (tmp_path / "codebook.md").read_text(encoding="utf-8")


@pytest.mark.thorough
def test_estimates_of_such_a_study_are_plain_and_their_errors_are_between_people_and_items(tmp_path: Path) -> None:
    study = several_answers()
    rows = exported(study, tmp_path)
    report = study_estimates.estimate(study)
    for name, plain in (("accuracy", ratio_of), ("points", mean_points), ("found", share_found)):
        stages = figure_of(report.figures, name).stages
        own = [plain([row for row in rows if row["stage"] == stage]) for stage in ("1", "2")]
        assert [stage.estimate.value for stage in stages] == pytest.approx(own)
        assert all(stage.estimate.standard_error > 0 for stage in stages)
    assert any("Several people answered each item of stage 1, 2" in line for line in report.assumptions)
    assert report.answers == 36 and sum(line.planned for line in report.parts[1].strata) == 18


def mean_points(rows: list[dict[str, str]]) -> float:
    weights = [1 / float(row["inclusion_probability"]) for row in rows]
    return float(np.average([float(row["points"]) for row in rows], weights=weights))


def share_found(rows: list[dict[str, str]]) -> float:
    return mean_points([{**row, "points": str(int(float(row["points"]) > 0))} for row in rows])


# The priority


def test_a_second_stage_is_drawn_by_a_priority_that_needs_no_predictor() -> None:
    study = drawn_by_letters()
    stage = cast.stage_of(study, 2)
    assert not PredictorRun.objects.exists()
    questions = list(study.bank.questions.order_by("position"))
    rows = rows_of(stage)
    priority = rows[PRIORITY].astype(int)
    assert SCORE not in rows.dtype.names
    assert priority.tolist() == [len(questions[place].plain) for place in rows["question"].tolist()]
    cut = np.sort(priority)[::-1][len(rows) // 2 - 1]
    slots = list(stage.slots.select_related("stratum", "item__passage__question"))
    assert Counter(slot.stratum.name for slot in slots if slot.stratum)["top"] > len(slots) / 2
    for slot in slots:
        assert slot.stratum is not None
        assert letters_of(slot) >= cut if slot.stratum.name == "top" else letters_of(slot) <= cut
    assert stage.manifest["priority"] == {"name": "letters", "version": "1"}
    assert verify_stage(stage).differences == []


def test_the_manifest_has_a_hash_of_the_package_that_brings_the_instrument(tmp_path: Path) -> None:
    stage = planning.plan_stage(cast.stage_of(toy.study()))
    assert stage.manifest["packages_sha256"] == {"toy_instrument": hashing.package_digest("toy_instrument")}
    assert "packages_sha256" not in cast.planned_stage().manifest


def test_a_packages_hash_is_of_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "brought_in" / "inner").mkdir(parents=True)
    monkeypatch.syspath_prepend(tmp_path)
    inner = tmp_path / "brought_in" / "inner" / "draws.py"
    hashes = []
    for text in ("A = 1", "A = 2", "A = 2"):
        inner.write_text(text)
        (tmp_path / "brought_in" / "__init__.py").touch()
        hashing.package_digest.cache_clear()
        hashes.append(hashing.package_digest("brought_in"))
    assert hashes[0] != hashes[1] == hashes[2]


class ChosenControls(Toy):
    """Has controls only where an option says so."""

    @property
    def controls(self) -> ToyControls | None:
        return ToyControls() if self.options.priority == "letters" else None


@pytest.mark.parametrize(("option", "kinds"), [("letters", ("repeat",)), ("doubt", ())])
def test_controls_may_depend_on_the_studys_options(
    option: str, kinds: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(instruments._kinds, "toy", ChosenControls)
    made = toy.study(
        options={"priority": option},
        roles={"holdout": 0, "controls": 0.2},
        sitting={"items": 10},
        stages=[{"sittings": 2}],
    )
    assert drafting.stage_recipe(cast.stage_of(made)).kinds == kinds
    assert drafting.recipe_of(made.config, index=1, seed=1).kinds == kinds
    check = check_study(text=made.source_text, source_name="toy.toml")
    assert (check.stages[0].slots["controls"] > 0) == bool(kinds)


@pytest.mark.thorough
def test_a_second_stage_is_drawn_by_a_priority_of_a_predictors_chances_and_the_answers_so_far() -> None:
    study = toy.run(**BY_DOUBT)
    stage = cast.stage_of(study, 2)
    rows = rows_of(stage)
    asked = set(cast.stage_of(study).slots.values_list("item__passage__question__position", flat=True))
    seen = np.array([place in asked for place in rows["question"].tolist()])
    assert seen.any() and not seen.all()
    priority = rows[PRIORITY].astype(float)
    assert priority == pytest.approx(-np.abs(rows[SCORE].astype(float) - 0.5) - seen, abs=1e-6)
    cut = np.sort(priority)[::-1][len(rows) // 2 - 1]
    of_place = dict(zip(rows["question"].tolist(), priority.tolist(), strict=True))
    for slot in stage.slots.select_related("stratum", "item__passage__question"):
        assert slot.stratum is not None
        value = of_place[slot.item.passage.question.position]
        assert value >= cut if slot.stratum.name == "top" else value <= cut
    assert stage.manifest["priority"] == {"name": "doubt", "version": "1"}
    assert verify_stage(stage).differences == []
    assert stage.evaluations.get().metrics["naive"]["n"] == 18


def test_a_priority_that_needs_a_predictor_is_refused_without_one() -> None:
    with pytest.raises(FileErrors, match="the priority doubt of toy, which needs a"):
        toy.study(options=BY_DOUBT["options"], stages=BY_DOUBT["stages"])


# The report


def test_its_report_counts_words_and_is_a_file_of_the_export(tmp_path: Path) -> None:
    study = drawn_by_letters()
    texts = list(Guess.objects.values_list("text", flat=True))
    counted = Counter(word for text in texts for word in set(text.split()))
    assert len(texts) == 108 and len(counted) == 16
    least = sorted(counted.values())[8]
    often = sorted((word, count) for word, count in counted.items() if count >= least)
    findings = reports.make(study, "guessed_words", {"least": [str(least)]})
    assert "16 different words in 108 guesses" in "\n".join(findings.lines)
    assert findings.tables[0].rows == often and findings.data == {"guesses": 108, "words": dict(often)}
    files.write_export(study, tmp_path)
    assert table_of(tmp_path / "guessed_words.csv") == sorted(counted.items())
    assert "| word | text | A word that was guessed, in small letters. |" in (tmp_path / "codebook.md").read_text(
        encoding="utf-8"
    )


def table_of(path: Path) -> list[tuple[str, int]]:
    with path.open(newline="", encoding="utf-8") as file:
        return [(row["word"], int(row["guesses"])) for row in csv.DictReader(file)]
