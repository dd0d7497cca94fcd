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


def test_each_stage_has_its_sentence_planned_or_not() -> None:
    """A later one may be planned before an earlier one is."""
    open_one = {"stage": 1, "pilot": True, "design": "uniform", "people_planned": 1, "sampled": 0}
    drawn = {"pilot": False, "people_planned": 20, "candidates": None, "state": "open", "design": "greedy"}
    rows = [
        open_one,
        {**drawn, "stage": 2, "sampled": 60, "predictor": "", "holdout": 0, "control": 4, "repeat": 2},
        {**open_one, "stage": 3},
        {**drawn, "stage": 4, "sampled": 9, "predictor": "bert", "holdout": 0, "control": 0, "repeat": 0},
    ]
    tables = {"sampling": rows, "stops": []}
    assert [*methods_section._sampling_sentences(SimpleNamespace(records=tables.__getitem__))] == [  # type: ignore[arg-type]
        "Stage 1 (uniform) for 1 person is not planned yet.",
        "The stage 2 drew 60 slots (greedy), in addition to 4 control, 2 repeat slots, dealt to 20 people; it is open.",
        "Stage 3 (uniform) for 1 person is not planned yet.",
        "The stage 4 drew 9 slots (greedy), by the scores of bert, dealt to 20 people; it is open.",
    ]


@pytest.mark.thorough
@pytest.mark.parametrize("slug", SLUGS)
def test_every_number_in_the_text_stands_in_a_table(golden: None, slug: str) -> None:
    study_methods = methods_section.methods_of(study_of(slug))
    assert study_methods.estimates is not None
    known = numbers_of(study_methods) | {"95"}
    sampling, people, estimates = methods_section.paragraphs(study_methods)
    own = [
        line
        for line in estimates
        if line not in study_methods.estimates.assumptions and study_methods.estimates.estimand not in line
    ]
    for line in (*sampling, *people, *own):
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
    assert {"methods.md", "methods.tex", "preregistration.md", "ethics.md", "flow.svg", "flow.csv"} <= set(written)
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
