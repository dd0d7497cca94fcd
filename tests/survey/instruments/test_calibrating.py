"""People and models by what a belief study expected of them: whose answers count, and what cannot be compared."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from survey.exceptions import HunchError, NotFound, StateRefused
from survey.figures.rendering import sheets_of
from survey.instruments.belief_update.reports.calibration.calibrating import human_calibration, people_studies
from survey.instruments.belief_update.reports.calibration.expectations import perplexity_table
from survey.models import ApiToken, Bank, ModelAnswer, Question, Sitting, Study, Task
from survey.services.results import reports
from tests import cast
from tests.kept import kept
from tests.survey.foresight import N, belief_study, even, model, open_one, people_study

pytestmark = pytest.mark.slow


@pytest.fixture
def bank() -> Bank:
    """Sixteen questions; the key of each is its position."""
    return cast.small_bank(N, tasks=2)


@pytest.mark.django_db
def test_perfect_foresight_has_accuracy_one_above_and_zero_below(bank: Bank) -> None:
    beliefs = belief_study(bank, posterior=lambda pair, _sitting: 90 if pair.target.position % 2 == 0 else 10)
    calibration = human_calibration(beliefs, people_study=people_study(bank, right=even))
    (people,) = calibration.lines
    low, middle, high = people.regions
    assert (low.accuracy, high.accuracy) == (0.0, 1.0)
    assert middle.matches == 0
    assert (calibration.beliefs, calibration.people, people.name) == (12, 3, "people")
    assert high.matches % 3 == 0  # All three did the same: every belief that one bears on, all do.


@pytest.mark.django_db
def test_only_pairs_whose_evidence_came_out_as_shown_count(bank: Bank) -> None:
    beliefs = belief_study(bank, posterior=lambda _pair, _sitting: 50)
    calibration = human_calibration(beliefs, people_study=people_study(bank, right=even))
    stage = cast.stage_of(beliefs)
    pairs = [slot.item.pair for slot in stage.slots.select_related("item__pair__evidence", "item__pair__target")]
    bearing = [pair for pair in pairs if pair.outcome == (pair.evidence.position % 2 == 0)]
    assert 0 < len(bearing) < len(pairs)
    middle = calibration.lines[0].regions[1]
    assert middle.beliefs == len(bearing)
    assert middle.accuracy == pytest.approx(sum(pair.target.position % 2 == 0 for pair in bearing) / len(bearing))


@pytest.mark.django_db
def test_models_have_a_line_of_their_own_and_may_be_chosen(bank: Bank) -> None:
    beliefs = belief_study(bank, posterior=lambda _pair, _sitting: 90)
    people = people_study(bank, right=even)
    model(bank, "always")
    model(bank, "never", right=lambda position: False, leave_out=2)
    ModelAnswer.objects.filter(language_model__name="never").update(unreadable=1)
    calibration = human_calibration(beliefs, people_study=people)
    assert [line.name for line in calibration.lines] == ["people", "language models"]
    assert calibration.lines[1].regions[2].answerers == 2
    assert "never: no answer to 2 of the study's 16 questions" in calibration.notes
    assert "never: 14 of its replies to 14 questions could not be read; they count as not right" in calibration.notes
    unreadable = {(point["answerers_are"], point["unreadable"]) for point in calibration.as_json()["points"]}
    assert unreadable == {("people", None), ("language models", 14)}
    own_calibration = human_calibration(beliefs, people_study=people, models=["always"])
    assert own_calibration.lines[1].regions[2].accuracy == 1.0
    assert any("hold for always, not for models at large" in note for note in own_calibration.notes)


@pytest.mark.django_db
def test_beliefs_can_be_those_of_one_condition(bank: Bank) -> None:
    beliefs = belief_study(
        bank,
        posterior=lambda _pair, sitting: 90 if sitting.levels()["answerer"] == "model" else 10,
        conditions=[{"factor": "answerer", "levels": ["model", "ai_or_person"]}],
    )
    people = people_study(bank, right=even)
    assert Sitting.objects.filter(stage__study=beliefs).count() == 4
    together = human_calibration(beliefs, people_study=people)
    assert any("all levels of answerer together" in note for note in together.notes)
    own_calibration = human_calibration(beliefs, people_study=people, condition=["answerer=model"])
    assert (together.beliefs, own_calibration.beliefs) == (12, 6)
    assert [region.matches > 0 for region in own_calibration.lines[0].regions] == [False, False, True]


@pytest.mark.django_db
def test_it_refuses_what_cannot_be_compared(bank: Bank) -> None:
    beliefs = belief_study(bank, posterior=lambda _pair, _sitting: 90)
    people = people_study(bank, right=even)
    other = people_study(cast.small_bank(N, name="other", tasks=2), right=even, slug="elsewhere")
    with pytest.raises(StateRefused, match="elsewhere asks questions of other version 1, beliefs of small version 1"):
        human_calibration(beliefs, people_study=other)
    with pytest.raises(StateRefused, match="belief_update does not have people answer questions themselves"):
        human_calibration(beliefs, people_study=beliefs)
    with pytest.raises(StateRefused, match="own_answers does not ask what people expect"):
        human_calibration(people, people_study=people)
    with pytest.raises(NotFound, match="no language model called gull has answered small version 1; there are: none"):
        human_calibration(beliefs, people_study=people, models=["gull"])
    with pytest.raises(HunchError, match="condition: beliefs has no 'answerer=model'; there are: none"):
        human_calibration(beliefs, people_study=people, condition=["answerer=model"])
    empty = open_one(cast.small_study("empty", on=bank, instrument={"kind": "own_answers"}, sitting={"items": 2}))
    with pytest.raises(StateRefused, match="empty: no answer counts yet"):
        human_calibration(beliefs, people_study=empty)


@pytest.mark.django_db
def test_it_refuses_people_who_answered_none_of_the_questions(bank: Bank) -> None:
    beliefs = belief_study(
        bank, posterior=lambda _pair, _sitting: 90, questions={"tasks": ["algebra"]}, sitting={"items": 2}, seed=11
    )
    assert Task.objects.filter(name="biology").exists()
    people = open_one(
        cast.small_study(
            "others",
            on=bank,
            instrument={"kind": "own_answers"},
            questions={"tasks": ["biology"]},
            sitting={"items": 2},
            stages=[{"sittings": 1}],
        )
    )
    visitor = cast.Visitor(people).to_items()
    visitor.post(answer="1")
    visitor.post(answer="1")
    with pytest.raises(HunchError, match="nobody answered both questions of a pair with the outcome that was shown"):
        human_calibration(beliefs, people_study=people)
    assert Question.objects.count() == N


@pytest.mark.thorough
@pytest.mark.django_db
def test_studies_in_which_people_answer_the_same_bank_are_offered(bank: Bank) -> None:
    beliefs = belief_study(bank, posterior=lambda _pair, _sitting: 90)
    (line,) = (line for line in reports.lines_of(beliefs) if line.entry.name == "human_calibration")
    assert "create one with the instrument own_answers" in line.obstacle
    people = people_study(bank, right=even)
    people_study(cast.small_bank(N, name="other", tasks=2), right=even, slug="elsewhere")
    cast.small_study("more-beliefs", on=bank)
    assert people_studies(beliefs) == [people]


# The report


@kept
def foreseen() -> Study:
    """People foresee everything; three people and two models have answered all questions."""
    bank = cast.small_bank(N, tasks=2)
    people_study(bank, right=even)
    model(bank, "<b>always</b>")
    model(bank, "never", right=lambda position: False)
    return belief_study(
        bank,
        posterior=lambda pair, sitting: 90 if pair.target.position % 2 == 0 else 10,
        conditions=[{"factor": "answerer", "levels": ["model", "ai_or_person"]}],
    )


@pytest.mark.django_db
def test_the_report_has_the_figure_and_the_perplexities() -> None:
    findings = reports.make(foreseen(), "human_calibration", {"people_study": ["people"]})
    assert any("12 beliefs, 3 people answering" in line for line in findings.lines)
    figure, perplexity = findings.tables
    assert "100.0 %" in {text for row in sheets_of(figure)[0].texts() for text in row}
    # A belief of 90 % that comes true has perplexity 1 / 0.9; of the two models one does what was foreseen.
    assert perplexity.title == "The perplexity of people's expectations"
    assert "1.111" in str(sheets_of(perplexity)[0].texts())
    assert [picture.name for picture in findings.pictures] == ["figure7"]


@pytest.mark.django_db
def test_the_report_is_of_the_chosen_models_and_levels() -> None:
    study = foreseen()
    asked = {"people_study": ["people"], "model": ["never"], "condition": ["answerer=model"]}
    findings = reports.make(study, "human_calibration", asked)
    assert any("6 beliefs" in line for line in findings.lines)
    assert any("hold for never, not for models at large" in note for note in findings.notes)
    asked |= {"model": ["never", "<b>always</b>"]}
    data = reports.as_json(study, "human_calibration", reports.make(study, "human_calibration", asked))["data"]
    people = Study.objects.get(slug="people")
    expected = human_calibration(study, people_study=people, condition=["answerer=model"])
    perplexity = json.loads(json.dumps(perplexity_table(expected.expectations).records()))
    assert json.loads(json.dumps(data)) == {**expected.as_json(), "perplexity": perplexity}
    assert len(data["points"]) == 6 and data["points"][1]["accuracy"] is None
    of_all = reports.make(study, "human_calibration", {"people_study": ["people"], "model": ["never"]})
    rows = list(of_all.tables[0].records())
    assert [row["answerers"] for row in rows if row["answerers_are"] == "language models"] == [1, 0, 1]
    assert [row["accuracy"] for row in rows[:3]] == [0.0, None, 1.0]


@pytest.mark.django_db
def test_the_api_names_the_other_studies_that_the_reader_may_see(django_user_model: Any) -> None:
    study = foreseen()
    user = django_user_model.objects.create_superuser("super")
    cast.join_all(user)
    client = Client(headers={"Authorization": f"Token {ApiToken.issue(user=user)[1]}"})

    def answer(**asked: Any) -> Any:
        return client.get(f"/api/v1/studies/{study.slug}/reports/human_calibration/", asked)

    unnamed = answer()
    assert (unnamed.status_code, unnamed.json()["error"]["code"]) == (400, "invalid")
    assert "there are: people" in unnamed.json()["error"]["message"]
    assert answer(people_study="gull").status_code == 404
    assert answer(people_study="people", model="gull").status_code == 404
    assert answer(people_study="beliefs").status_code == 409
    assert answer(people_study="people", condition="weather=fine").status_code == 400


@pytest.mark.django_db
def test_the_command_prints_the_table_and_writes_table_and_figure(bank: Bank, tmp_path: Path) -> None:
    belief_study(bank, posterior=lambda pair, _sitting: 90 if pair.target.position % 2 == 0 else 10)
    people_study(bank, right=even)
    model(bank)
    out, err = io.StringIO(), io.StringIO()
    call_command(
        *["human_calibration", "beliefs", "--people-study=people", f"--out={tmp_path / 'new'}"], stdout=out, stderr=err
    )
    text = out.getvalue()
    assert "12 beliefs, 3 people answering" in text
    assert "100.0 %" in text and re.search("language models +30 +70 +0 ", text)
    assert "note: one language model" in err.getvalue()
    with (tmp_path / "new" / "figure7.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["answerers_are"], row["lower"]) for row in rows[:4]] == [
        ("people", "0"),
        ("people", "30"),
        ("people", "70"),
        ("language models", "0"),
    ]
    assert [row["accuracy"] for row in rows[:3]] == ["0.0", "", "1.0"]
    assert "</svg>" in (tmp_path / "new" / "figure7.svg").read_text()


@pytest.mark.thorough
@pytest.mark.django_db
def test_the_command_says_in_one_line_what_it_cannot_do(bank: Bank) -> None:
    belief_study(bank, posterior=lambda _pair, _sitting: 90)

    def refused(*arguments: str) -> str:
        err = io.StringIO()
        with pytest.raises(SystemExit):
            call_command("human_calibration", "beliefs", *arguments, stderr=err)
        return err.getvalue().strip()

    assert refused("--people-study=nobody").startswith("beliefs: there is no study in which people answer questions")
    people_study(bank, right=even)
    assert refused("--people-study=nobody").startswith("no study is called 'nobody'; there are: ")
    assert refused().startswith("people_study: name the study in which people answer")
    assert "give it once, not 2 times" in refused("--people-study=people", "--people-study=people")
