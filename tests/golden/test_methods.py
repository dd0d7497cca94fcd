"""The methods section: each number in the texts stands in a table, and each table is what the database has."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from survey.figures import rendering
from survey.models import Exclusion, Sitting, Slot, Stage, Study
from survey.services.results import reports
from survey.services.results.estimates import study_estimates
from survey.services.results.methods import methods_section
from tests import cast
from tests.golden.test_golden import golden, loaded, study_of

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
__all__ = ["golden", "loaded"]
SLUGS = ("answers", "beliefs", "real")


def numbers_of(study_methods: methods_section.StudyMethods) -> set[str]:
    """Every number that a table shows, as texts write it."""
    shown = [
        text
        for table in study_methods.tables.values()
        for sheet in rendering.sheets_of(table)
        for text in sheet.texts()
    ]
    return {number for row in shown for text in row for number in re.findall(r"\d+(?:\.\d+)?", text.replace(",", ""))}


def test_stages_have_their_sentences_planned_or_not_and_those_alike_share_one() -> None:
    """A later one may be planned before an earlier one is."""
    blank = dict.fromkeys(column.name for column in methods_section.SAMPLING)
    open_one = {**blank, "stage": 1, "pilot": True, "design": "uniform", "people_planned": 1, "sampled": 0}
    drawn = {**blank, "people_planned": 20, "state": "frozen", "design": "greedy", "sampled": 9}
    rows = [
        open_one,
        {
            **drawn,
            "stage": 2,
            "sampled": 1060,
            "predictor": "",
            "holdout": 0,
            "control": 4,
            "repeat": 2,
            "state": "open",
        },
        {**open_one, "stage": 3, "pilot": False},
        {**drawn, "stage": 4, "predictor": "bert", "candidates": 600, "items_in_all": 1234, "holdout": 3},
        {**drawn, "stage": 5, "predictor": "bert", "candidates": 600, "items_in_all": 1234, "holdout": 3},
        {**drawn, "stage": 6, "design": "uniform", "candidates": 29, "items_in_all": 29},
    ]
    stops = [
        {"stage": 6, "rule": "ends soon", "looks": 1, "people": 12},
        {"stage": 7, "rule": "ends", "looks": 0, "people": None},
    ]
    tables = {"sampling": rows, "stops": stops}
    text = methods_section._sampling_sentences(SimpleNamespace(records=tables.__getitem__))  # type: ignore[arg-type]
    assert text == (
        "What each stage asked was drawn before it opened, and the chance of each draw was stored. A "
        "presentation is one item, shown to one person. Stage 1 (1 person, uniform), a pilot whose answers enter "
        "no estimate, is not planned yet. Stage 2 drew 1,060 presentations by the design greedy, for 20 people; "
        "to these came 4 to measure noise and 2 to ask an item again. The stage is open: its answers may change. "
        "Stage 3 (1 person, uniform) is not planned yet. Stages 4 and 5 each drew 9 presentations by the design "
        "greedy with the scores of bert from 600 candidates, of 1,234 possible items, for 20 people; to these "
        "came 3 of a uniform holdout. Stage 6 drew 9 presentations uniformly at random from all 29 possible "
        "items, for 20 people. By its stopping rule stage 6 ends soon; it was looked at once, and the last look, "
        "at 12 people, ended it. By its stopping rule stage 7 ends; no look was made yet."
    )


PEOPLE = {"arrived": 9, "screened_out": 2, "passed": 7, "left": 1, "finished": 6, "finished_late": 1, "withdrawn": 1}


@pytest.mark.parametrize(
    ("steps", "text"),
    [
        ({}, "Nobody has taken part yet."),
        (
            {"arrived": 1, "passed": 1, "inside": 1},
            "1 person agreed to take part. Of the 1 who was given items, 1 [inside].",
        ),
        (
            {**PEOPLE, "excluded": 2, "excluded_fast": 2, "excluded_attention": 1, "analysed": 4},
            "9 people agreed to take part; 2 [screened_out]. Of the 7 who were given items, 6 [finished] and 1 "
            "[left]. 1 person finished with an answer that came too late. 1 person withdrew their answers, which "
            "were deleted. By the rules of the study file 2 people were excluded: fast (2) and attention (1). A "
            "person may meet several of these rules. Each person was given a level of tone at random: warm (3) "
            "and cold (4). The level of mode was drawn at random for each item: blank and keep. The estimates "
            "rest on the answers of 4 people.",
        ),
    ],
)
def test_people_are_told_apart_in_whole_sentences(
    steps: dict[str, int], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    conditions = [
        SimpleNamespace(factor="tone", per="sitting", levels=["warm", "cold"]),
        SimpleNamespace(factor="mode", per="item", levels=["blank", "keep"]),
    ]
    monkeypatch.setattr(methods_section, "shown_conditions", lambda study: conditions if "analysed" in steps else [])
    methods = SimpleNamespace(
        people=lambda name: steps.get(name, 0),
        flow=[(name, people, f"[{name}]") for name, people in steps.items()],
        records=lambda name: [
            {"factor": "tone", "level": level, "people": n} for level, n in (("warm", 3), ("cold", 4))
        ],
        study=SimpleNamespace(config=SimpleNamespace(quotas=())),
    )
    assert methods_section._people_sentences(methods) == text  # type: ignore[arg-type]


@pytest.mark.thorough
@pytest.mark.parametrize("slug", SLUGS)
def test_every_number_in_the_text_stands_in_a_table(golden: None, slug: str) -> None:
    study_methods = methods_section.methods_of(study_of(slug))
    assert study_methods.estimates is not None
    known = numbers_of(study_methods) | {"95"}
    design, people, (main, assumptions) = methods_section.paragraphs(study_methods).values()
    assert assumptions == " ".join(study_methods.estimates.assumptions) and study_methods.estimates.estimand in main
    for line in (*design, *people, main.replace(study_methods.estimates.estimand, "")):
        for number in re.findall(r"\d+(?:\.\d+)?", line.replace(",", "")):
            assert number in known, f"{number} in: {line}"


@pytest.mark.thorough
def test_people_flow_as_the_database_has_them(golden: None) -> None:
    study = study_of("beliefs")
    study_methods = methods_section.methods_of(study)
    main = Sitting.objects.filter(stage__in=study.main_stages())
    assert study_methods.people("arrived") == main.count()
    assert study_methods.people("finished") == main.filter(state="complete").count() > 0
    assert study_methods.people("passed") == main.filter(assignments__isnull=False).distinct().count()
    assert study_methods.people("withdrawn") == main.filter(withdrawn_at__isnull=False).count() > 0
    assert study_methods.people("excluded") == Exclusion.objects.filter(sitting__in=main).count() > 0
    assert study_methods.people("analysed") == study_estimates.estimate(study).respondents
    text = methods_section.markdown(study_methods)
    assert f"{study_methods.people('arrived')} people agreed to take part" in text and "attention (" in text


@pytest.mark.thorough
def test_sampling_is_what_was_drawn(golden: None) -> None:
    study = study_of("beliefs")
    study_methods = methods_section.methods_of(study)
    rows = study_methods.records("sampling")
    assert [row["stage"] for row in rows] == list(Stage.objects.filter(study=study).values_list("index", flat=True))
    for row in rows:
        slots = Slot.objects.filter(stage__study=study, stage__index=row["stage"])
        assert {role: row[role] for role in ("sampled", "holdout", "control")} == {
            role: slots.filter(role=role).count() for role in ("sampled", "holdout", "control")
        }
    strata = study_methods.records("strata")
    assert sum(row["drawn"] for row in strata) > 0


@pytest.mark.parametrize("slug", SLUGS)
def test_the_report_writes_every_form(golden: None, slug: str, tmp_path: Path) -> None:
    findings = reports.make(study_of(slug), "methods")
    written = {path.name: path for path in reports.write(study_of(slug), "methods", findings, tmp_path)}
    assert {
        "methods.md",
        "methods.txt",
        "methods.tex",
        "preregistration.md",
        "ethics.md",
        "flow.svg",
        "flow.csv",
    } <= set(written)
    text = written["methods.md"].read_text(encoding="utf-8")
    sentences = re.split(r"(?<=[.:;]) ", text.partition("**Estimates**")[0])
    assert len(sentences) == len(set(sentences)) and "|" not in text.partition("**Estimates**")[0], "said twice"
    latex = written["methods.tex"].read_text(encoding="utf-8")
    assert latex.count("\\begin{tabular}") == latex.count("\\end{tabular}") >= 3
    assert not re.search(r"(?<!\\)[%#&_](?![^\n]*booktabs)", re.sub(r"(?m)^%.*$|(?<= )&(?= )", "", latex))
    flow = written["flow.svg"].read_text(encoding="utf-8")
    assert all(
        f">{people} " in flow for _name, people, _text in methods_section.methods_of(study_of(slug)).flow if people
    )


def test_before_data_there_is_a_text_to_preregister(db: None) -> None:
    study = cast.small_study(stages=[{"sittings": 4}, {"sittings": 6}])
    findings = reports.make(study, "methods")
    assert any("no estimates yet" in line for line in findings.lines) and "Nobody has taken part yet." in findings.lines
    text = methods_section.preregistration(study)
    assert study.source_sha256 in text and "2 stages, 10 people in all, 3 items each" in text
    assert "not locked yet" in text and "weighted by 1 /" in text


def test_one_page_is_for_the_board(db: None) -> None:
    study = cast.open_study(panel={**cast.PROLIFIC, "reward": 300, "currency": "USD"})
    page = methods_section.ethics_page(study)
    consent = next(block.text for block in study.config.blocks if block.kind == "consent")
    assert str(consent) in page and "3.00 USD" in page and str(study.config.data.retention_until) in page
    assert len(page.split()) < 600


def test_special_signs_are_escaped() -> None:
    assert rendering.escaped_latex("50 % & a_b {x} \\ ~ ^") == (
        r"50 \% \& a\_b \{x\} \textbackslash{} \textasciitilde{} \textasciicircum{}"
    )
    assert isinstance(Study, type)


def test_a_blind_study_names_no_condition(golden: None) -> None:
    study = study_of("beliefs")
    study.is_blind = True
    assert methods_section.methods_of(study).tables["conditions"].rows == []
    assert "framing" not in methods_section.preregistration(study) and "framing" not in methods_section.ethics_page(
        study
    )
