"""The data package of every instrument: valid, the same bytes when built again, and enough to redo the main table."""

import csv
import hashlib
import io
import json
import re
import shutil
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow.parquet
import pytest
import yaml
from django.db import connection

from survey.contracts.reports import ReportArguments, ReportResult
from survey.contracts.tables import Column, ExtraFile
from survey.exceptions import HunchError
from survey.models import DataChoice, FormAnswer, Respondent, Sitting, Study
from survey.services.base import job_kinds
from survey.services.base.job_kinds import Work
from survey.services.results import reports
from survey.services.results.estimates import study_estimates
from survey.services.results.export.contents import extra_files
from survey.services.results.package import coarsening, hugging_face
from survey.study_file.blocks import BlockConfig
from tests.golden import psych_ds
from tests.golden.test_golden import golden, loaded, study_of

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
__all__ = ["golden", "loaded"]

SLUGS = ("answers", "beliefs", "real")
AUDIENCES = ("internal", "public")
# What anyone who publishes a package may add.
ADDED: dict[str, Any] = {
    "author": ["Ada", "Ben"],
    "licence": "https://creativecommons.org/licenses/by/4.0/",
    "doi": "10.5281/zenodo.1",
}
TIME_OF_DAY = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d")


def built(study: Study, folder: Path, **arguments: Any) -> Path:
    """The package, unpacked."""
    kind = job_kinds.find_kind("package")
    asked = {name: [value] if isinstance(value, str) else value for name, value in arguments.items()}
    folder.mkdir()
    kind.make(
        Work(study, ReportArguments(kind.checked(study, asked)), folder, lambda _done, _total, _words: None, None)
    )
    (made,) = folder.glob("*.zip")
    zipfile.ZipFile(made).extractall(folder)
    return folder / made.stem


@dataclass
class Shelf:
    """What `package` has built. A report knows neither audience nor layout: each is made once for all packages of a
    study."""

    folder: Path
    packages: dict[str, Path] = field(default_factory=dict)
    reports: dict[str, ReportResult] = field(default_factory=dict)

    def make_once(self, study: Study, name: str, arguments: Any = None) -> ReportResult:
        key = json.dumps([study.slug, name, arguments], sort_keys=True)
        if key not in self.reports:
            self.reports[key] = MAKE(study, name, arguments)
        return self.reports[key]


MAKE = reports.make


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    return Shelf(tmp_path_factory.mktemp("packages"))


@pytest.fixture
def package(golden: None, shelf: Shelf) -> Callable[..., Path]:
    """A package of a golden study, to be read and left as it is: the first test that asks for it builds it."""

    def find(slug: str, audience: str, layout: str = "psych-ds", given: dict[str, Any] = ADDED) -> Path:
        name = json.dumps([slug, audience, layout, given], sort_keys=True)
        if name not in shelf.packages:
            folder = shelf.folder / str(len(shelf.packages))
            with mock.patch.object(reports, "make", shelf.make_once):
                shelf.packages[name] = built(study_of(slug), folder, audience=audience, layout=layout, **given)
        return shelf.packages[name]

    return find


def copied(package: Path, folder: Path) -> Path:
    """The package once more, to be changed."""
    return shutil.copytree(package, folder / package.name)


def tables_of(package: Path) -> dict[str, list[dict[str, str]]]:
    tables = {}
    for path in sorted((package / "data").iterdir()):
        with path.open(encoding="utf-8", newline="") as file:
            tables[path.name.split("_description-")[1].removesuffix("_data.csv")] = list(csv.DictReader(file))
    return tables


@pytest.mark.thorough
@pytest.mark.parametrize("audience", AUDIENCES)
@pytest.mark.parametrize("slug", SLUGS)
def test_the_main_table_is_redone_from_the_files_alone(
    package: Callable[..., Path], slug: str, audience: str, tmp_path: Path
) -> None:
    made = package(slug, audience)
    figures = {
        figure.name: figure.combined.value
        for figure in study_estimates.estimate(study_of(slug)).figures
        if figure.combined
    }
    stated = {row["figure"]: float(row["value"]) for row in tables_of(made)["maintable"]}
    assert stated == figures and len(figures) >= 2
    run = subprocess.run(
        [sys.executable, "-I", str(made / "analysis.py")], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert all(name in run.stdout for name in figures) and "DIFFERS" not in run.stdout


def test_the_program_notices_a_changed_answer(package: Callable[..., Path], tmp_path: Path) -> None:
    made = copied(package("answers", "public"), tmp_path)
    (path,) = (made / "data").glob("*-outcomes_data.csv")
    text = path.read_text(encoding="utf-8").splitlines()
    cells = text[1].split(",")
    cells[5] = "0.0" if cells[5] == "1.0" else "1.0"
    path.write_text("\n".join([text[0], ",".join(cells), *text[2:]]) + "\n", encoding="utf-8")
    run = subprocess.run([sys.executable, str(made / "analysis.py")], capture_output=True, text=True, check=False)
    assert run.returncode == 1 and "DIFFERS" in run.stdout
    if shutil.which("Rscript"):
        run = subprocess.run(["Rscript", str(made / "analysis.R")], capture_output=True, text=True, check=False)
        assert run.returncode == 1 and "DIFFERS" in run.stdout


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="Not tested: analysis.R, since R is not installed")
@pytest.mark.parametrize("slug", SLUGS)
def test_r_redoes_the_main_table(package: Callable[..., Path], slug: str) -> None:
    made = package(slug, audience="public")
    run = subprocess.run(["Rscript", str(made / "analysis.R")], capture_output=True, text=True, check=False)
    assert run.returncode == 0 and "DIFFERS" not in run.stdout, run.stdout + run.stderr


def remember_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    """For each key of each node, mlcroissant makes the fields of the node's class again, which took half of its
    time."""
    from mlcroissant._src.core import dataclasses

    make, known = dataclasses.jsonld_fields, {}

    def fields_of(node: Any) -> list[Any]:
        version = getattr(getattr(node, "ctx", None), "conforms_to", None)
        key = (node if isinstance(node, type) else type(node), isinstance(node, type), version)
        if key not in known:
            known[key] = list(make(node))
        return known[key]

    monkeypatch.setattr(dataclasses, "jsonld_fields", fields_of)


@pytest.mark.thorough
@pytest.mark.parametrize("audience", AUDIENCES)
@pytest.mark.parametrize("slug", SLUGS)
def test_croissant_is_valid_and_gives_every_record(
    package: Callable[..., Path], slug: str, audience: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    croissant = pytest.importorskip("mlcroissant")
    remember_fields(monkeypatch)
    made = package(slug, audience)
    dataset = croissant.Dataset(jsonld=made / "croissant.json")
    assert not dataset.metadata.issues.errors and not dataset.metadata.ctx.is_v0()
    # For each value of a record it looks for the field in a list, and asks for the version at each comparison.
    for kind in {type(node) for node in dataset.metadata.ctx.graph.nodes}:
        monkeypatch.setattr(kind, "__eq__", lambda first, other: first is other or first.id == other.id)
    for name, rows in tables_of(made).items():
        (stem,) = [
            record_set.name
            for record_set in dataset.metadata.record_sets
            if record_set.name.replace("_", "") == f"rows{name}"
        ]
        records = list(dataset.records(stem))
        assert len(records) == len(rows), name
        if rows:
            assert [key.split("/")[-1] for key in records[0]] == list(rows[0]), name


@pytest.mark.thorough
@pytest.mark.parametrize("audience", AUDIENCES)
@pytest.mark.parametrize("slug", SLUGS)
def test_it_follows_the_rules_of_psych_ds(package: Callable[..., Path], slug: str, audience: str) -> None:
    made = package(slug, audience)
    assert psych_ds.errors_of(made) == set()
    assert (made / "README.md").is_file() and (made / "CHANGES.md").is_file()
    if (program := shutil.which("psychds-validator")) is not None:
        run = subprocess.run([program, str(made)], capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stdout


@pytest.mark.thorough
def test_what_breaks_the_rules_of_psych_ds_is_found(package: Callable[..., Path], tmp_path: Path) -> None:
    made = copied(package("answers", "public"), tmp_path)
    (table,) = (made / "data").glob("*-answers_data.csv")
    description = made / "dataset_description.json"
    text, written = table.read_text(encoding="utf-8"), json.loads(description.read_text(encoding="utf-8"))
    header, rest = text.split("\n", 1)

    def found(columns: str = header, rows: str = rest, **changed: Any) -> set[str]:
        table.write_text(f"{columns}\n{rows}", encoding="utf-8")
        left = {name: value for name, value in {**written, **changed}.items() if value is not None}
        description.write_text(json.dumps(left), encoding="utf-8")
        return psych_ds.errors_of(made)

    assert found() == set()
    both = {"CSV_COLUMN_MISSING_FROM_METADATA", "VARIABLE_MISSING_FROM_CSV_COLUMNS"}
    assert found(columns=header.replace("item", "other")) >= {"CSV_COLUMN_MISSING_FROM_METADATA"}
    assert found(variableMeasured=[{"name": "nothing"}]) == both
    assert found(columns=header.replace("stage,", "study,")) == {"CSV_HEADER_REPEATED"}
    assert found(rows=f"one cell\n{rest}") == {"CSV_HEADER_LENGTH_MISMATCH"}
    assert found(name="") == {"JSON_KEY_REQUIRED"}
    assert found(**{"@type": None}) == {"MISSING_DATASET_TYPE"}
    assert found(**{"@type": "Thing"}) == found(**{"@context": "https://elsewhere/"}) == {"INCORRECT_DATASET_TYPE"}
    assert found() == set()
    description.write_text("{", encoding="utf-8")
    assert psych_ds.errors_of(made) == {"INVALID_JSON_FORMATTING"}
    description.write_bytes(b'{"name": "\xff"}')
    assert psych_ds.errors_of(made) == {"JSON_ENCODING_ERROR"}
    description.unlink()
    table.rename(table.with_name("Study-1_data.csv"))
    (made / "data/stage-1_data.xlsx").write_bytes(b"")
    assert psych_ds.errors_of(made) == {
        *("MISSING_DATASET_DESCRIPTION", "FILENAME_KEYWORD_FORMATTING_ERROR", "EXTENSION_MISMATCH")
    }
    shutil.rmtree(made / "data")
    assert {"MISSING_DATA_DIRECTORY", "MISSING_DATAFILE"} <= psych_ds.errors_of(made)


@contextmanager
def rows_in_another_order() -> Iterator[None]:
    """Where a statement names none. PostgreSQL does so by itself once tables have grown."""
    if connection.vendor == "sqlite":
        before, after = ["PRAGMA reverse_unordered_selects = ON"], ["PRAGMA reverse_unordered_selects = OFF"]
    else:
        ways = [f"enable_{way}" for way in ("nestloop", "indexscan", "bitmapscan", "indexonlyscan", "sort")]
        before, after = [f"SET {way} = off" for way in ways], [f"RESET {way}" for way in ways]
    with connection.cursor() as cursor:
        for statement in before:
            cursor.execute(statement)
        yield
        for statement in after:
            cursor.execute(statement)


@pytest.mark.thorough
@pytest.mark.parametrize("audience", AUDIENCES)
def test_it_has_the_same_bytes_when_it_is_built_again(
    package: Callable[..., Path], audience: str, tmp_path: Path
) -> None:
    first = package("beliefs", audience)
    with rows_in_another_order():
        second = built(study_of("beliefs"), tmp_path / "second", audience=audience, **ADDED)
    assert archive_of(first) == archive_of(second)


def archive_of(package: Path) -> bytes:
    return package.with_name(f"{package.name}.zip").read_bytes()


def test_every_file_has_its_checksum_and_the_codebook_every_column(package: Callable[..., Path]) -> None:
    made = package("beliefs", "internal")
    sums = dict(reversed(line.split("  ")) for line in (made / "SHA256SUMS").read_text().splitlines())
    paths = {path.relative_to(made).as_posix() for path in made.rglob("*") if path.is_file()}
    assert set(sums) == paths - {"SHA256SUMS"}
    assert all(hashlib.sha256((made / name).read_bytes()).hexdigest() == digest for name, digest in sums.items())
    codebook = (made / "codebook.md").read_text(encoding="utf-8")
    for rows in tables_of(made).values():
        assert not rows or all(f"| {column} |" in codebook for column in rows[0])


def test_a_public_package_tells_nothing_of_single_people(package: Callable[..., Path]) -> None:
    study = study_of("beliefs")
    inside = tables_of(package("beliefs", "internal"))["answers"]
    assert any(row["explanation"] for row in inside) and any(row["own_answer"] for row in inside)
    made = package("beliefs", "public")
    everything = "".join(path.read_text(encoding="utf-8") for path in (made / "data").iterdir())
    assert not TIME_OF_DAY.search(everything)
    for pseudonym in Respondent.objects.filter(study=study).values_list("pseudonym", flat=True):
        assert pseudonym not in everything
    tables = tables_of(made)
    assert not {"explanation", "own_answer"} & set(tables["answers"][0])
    assert not {"audit", "questionreports", "steps", "practice", "amendments", "checks"} & set(tables)
    assert not {"responses", "panel_status", "reward", "bonus"} & set(tables["answers"][0]) | {
        name for name in tables["sittings"][0] if name.startswith("panel_")
    }
    # The same person has one name in all tables.
    assert {row["respondent"] for row in tables["outcomes"]} <= {row["respondent"] for row in tables["sittings"]}


@pytest.mark.thorough
def test_reviewed_texts_stay(package: Callable[..., Path]) -> None:
    made = package("beliefs", "public", given={"texts": "reviewed"})
    assert any(row["explanation"] for row in tables_of(made)["answers"])


def test_ages_are_bands_and_rare_answers_are_merged(golden: None) -> None:
    study = study_of("beliefs")
    people = [sitting for person in study.respondents.all() for sitting in person.sittings.all()]
    FormAnswer.objects.filter(sitting__in=people).delete()
    for number, sitting in enumerate(people[:12]):
        answers = {
            "age": 30 + number % 2 * 9,
            "use": "rarely" if number == 0 else "often",
            "tools": ["pen", "paper"][: 1 + (number == 0)],
        }
        FormAnswer.objects.create(sitting=sitting, block="about", answers=answers, at=sitting.started_at)
    coarse = coarsening.Coarse(study, reviewed=False)
    assert coarse._answer("about", "age", 39) == "30-39"
    assert coarse._answer("about", "use", "often") == "often"
    assert coarse._answer("about", "use", "rarely") == "other"
    assert coarse._answer("about", "tools", ["pen", "paper"]) == ["other", "pen"]
    assert coarse._answer("about", "use", "prefer_not_to_say") == "prefer_not_to_say"


def people_of(study: Study) -> list[Sitting]:
    sittings = Sitting.objects.filter(stage__study=study).select_related("respondent").order_by("pk")
    return list({sitting.respondent_id: sitting for sitting in sittings}.values())


def with_numbers(study: Study, said: dict[str, list[Any]], *, is_in_file: bool = True) -> None:
    """Each field's numbers, said by one person after the other in a form called numbers."""
    FormAnswer.objects.filter(sitting__stage__study=study).delete()
    for number, sitting in enumerate(people_of(study)):
        answers = {name: values[number] for name, values in said.items() if number < len(values)}
        FormAnswer.objects.create(sitting=sitting, block="numbers", answers=answers, at=sitting.started_at)
    if not is_in_file:
        return
    kinds = [{"name": name, "label": name, "kind": "number"} for name in said]
    block = {"kind": "form", "name": "numbers", "title": "Numbers", "fields": kinds}
    study.config.blocks.insert(1, BlockConfig.model_validate(block))


POSTCODES = [10115 + 4001 * number for number in range(20)]


@pytest.mark.parametrize(
    ("numbers", "public"),
    [
        (POSTCODES, {"0-49999", "50000-99999"}),
        ([*range(1950, 1970)], {"1950-1954", "1955-1959", "1960-1964", "1965-1969"}),
        ([1, 2, 3] * 6, {1, 2, 3}),
        ([3] * 12 + [40, 77], {3, "other"}),
        ([7] * 4, {"other"}),
        ([-4, -4, -4, -3, -3, -2, -2, -2, -2, -1], {"-4 to -3", "-2 to -1"}),
    ],
)
def test_numbers_of_few_people_are_bands(golden: None, numbers: list[int], public: set[Any]) -> None:
    study = study_of("beliefs")
    with_numbers(study, {"number": numbers})
    coarse = coarsening.Coarse(study, reviewed=False)
    assert {coarse._answer("numbers", "number", number) for number in numbers} == public


def test_who_said_it_twice_is_one_person_and_simulated_people_hide_nobody(golden: None) -> None:
    study = study_of("beliefs")
    with_numbers(study, {"number": [7] * 4 + [8] * 5 + [9] * 5}, is_in_file=False)
    people = people_of(study)
    again = people[20]
    Sitting.objects.filter(pk=again.pk).update(respondent=people[0].respondent_id, wave=2)
    FormAnswer.objects.filter(sitting=again).update(answers={"number": 7})
    Respondent.objects.filter(pk__in=[sitting.respondent_id for sitting in people[4:14]]).update(is_simulated=True)
    Respondent.objects.filter(pk=people[4].respondent_id).update(is_simulated=False)
    coarse = coarsening.Coarse(study, reviewed=False)
    assert [coarse._answer("numbers", "number", number) for number in (7, 8, 9)] == ["other", "other", 9]


def test_several_answers_and_the_choice_at_the_end_stand_in_forms_as_they_were_given(golden: None) -> None:
    study = study_of("beliefs")
    FormAnswer.objects.filter(sitting__stage__study=study).delete()
    for number, sitting in enumerate(people_of(study)[:6]):
        tools = ["paper", "pen"] if number else ["brush", "pen"]
        FormAnswer.objects.create(sitting=sitting, block="about", answers={"tools": tools}, at=sitting.started_at)
        DataChoice.objects.create(sitting=sitting, may_use=number > 0, at=sitting.started_at)
    fields = [{"name": "tools", "label": "Tools", "kind": "multiple", "options": ["paper", "pen", "brush"]}]
    block = {"kind": "form", "name": "about", "title": "About", "fields": fields}
    study.config.blocks.insert(1, BlockConfig.model_validate(block))
    table = coarsening.Coarse(study, reviewed=False).table(file_of(study, "forms.csv"))
    said = sorted((row[6], row[7]) for row in table.rows)
    assert (
        said
        == [("my_data", "use")] * 5
        + [("my_data", "withdraw")]
        + [("tools", '["other", "pen"]')]
        + [("tools", '["paper", "pen"]')] * 5
    )


def file_of(study: Study, name: str) -> Any:
    (file,) = [file for file in extra_files(study) if file.name == name]
    return file


def test_a_language_of_few_people_is_merged_and_lengths_are_bands(golden: None) -> None:
    study = study_of("beliefs")
    sittings = list(Sitting.objects.filter(stage__study=study).order_by("pk"))
    for number, sitting in enumerate(sittings):
        sitting.language = "de" if number < 2 else "en"
        sitting.ended_at = sitting.started_at + timedelta(seconds=300 + 7 * number)
        sitting.save(update_fields=["language", "ended_at"])
    table = coarsening.Coarse(study, reviewed=False).table(file_of(study, "sittings.csv"))
    places = {column.name: place for place, column in enumerate(table.columns)}
    rows = [*table.rows]
    assert {row[places["language"]] for row in rows} == {"en", "other"}
    lengths = Counter(row[places["seconds"]] for row in rows)
    assert all(isinstance(length, str) for length in lengths) and all(
        people >= coarsening.FEWEST for length, people in lengths.items() if length != "other"
    )


def test_a_length_of_simulated_people_alone_hides_no_real_one() -> None:
    columns = [Column(name, "text", "") for name in ("respondent", "simulated", "seconds")]
    few, enough = coarsening.FEWEST - 1, coarsening.FEWEST
    rows = [[f"r{n}", 0, 60] for n in range(few)] + [[f"s{n}", 1, 60] for n in range(enough)]
    rows += [[f"t{n}", 0, 90] for n in range(200)]
    lengths = [row[2] for row in coarsening._with_bands(rows, "sittings", columns)]
    assert 60 not in lengths and set(lengths[: few + enough]) != {"60"}


def test_people_have_new_names_in_every_column_and_rows_are_in_their_order(golden: None) -> None:
    """Also where an instrument calls them a person or an annotator, or names several in one cell."""
    study = study_of("beliefs")
    people = [sitting.respondent.pseudonym for sitting in people_of(study)]
    columns = (Column("word", "text", "A word."), Column("person", "text", "Who."), Column("pair", "text", "Two."))
    rows = [["a", name, f"{name} and {people[0]}"] for name in people]
    rows += [["none", None, "r-line"], ["b", people[3], ""]]
    coarse = coarsening.Coarse(study, reviewed=False)
    public = [*coarse.table(ExtraFile("words.csv", columns, rows)).rows]
    names = coarse._names
    assert [row[1] for row in public[:-1]] == sorted(names[name] for name in [*people, people[3]])
    assert public[-1] == ["none", None, "r-line"]
    assert [row[0] for row in public if row[1] == names[people[3]]] == ["a", "b"]
    assert all(row[2] in ("", f"{row[1]} and {names[people[0]]}") for row in public[:-1])


@pytest.mark.thorough
@pytest.mark.parametrize("slug", SLUGS)
def test_no_table_of_a_public_package_is_in_the_order_of_arrival(package: Callable[..., Path], slug: str) -> None:
    for name, rows in tables_of(package(slug, "public")).items():
        people = [row["respondent"] for row in rows if row.get("respondent")]
        assert people == sorted(people), name


def test_weeks_begin_on_monday() -> None:
    assert coarsening.week_of("2026-11-25T13:00:00+00:00") == "2026-11-23"
    assert coarsening.week_of(None) is None


@pytest.mark.parametrize(
    ("given", "word"), [({"doi": "zenodo"}, "doi"), ({"version": "two"}, "version"), ({"audience": "all"}, "audience")]
)
def test_a_wrong_argument_is_named(golden: None, given: dict[str, str], word: str) -> None:
    with pytest.raises(HunchError, match=word):
        job_kinds.find_kind("package").checked(study_of("answers"), {name: [text] for name, text in given.items()})


def test_the_description_names_licence_and_doi(golden: None, tmp_path: Path) -> None:
    package = built(
        study_of("answers"), tmp_path / "made", licence="CC0-1.0", doi="10.5281/zenodo.7", author=["A", "B"]
    )
    described = json.loads((package / "dataset_description.json").read_text(encoding="utf-8"))
    assert (described["license"], described["identifier"]) == ("CC0-1.0", "https://doi.org/10.5281/zenodo.7")
    assert [creator["name"] for creator in described["creator"]] == ["A", "B"]
    assert io.StringIO((package / "CHANGES.md").read_text(encoding="utf-8")).readline() == "# Changes\n"


def crate_problems(package: Path) -> list[str]:
    """What RO-Crate 1.1 says that a crate must have, and each file with its size and hash."""
    crate = json.loads((package / "ro-crate-metadata.json").read_text(encoding="utf-8"))
    entities = {entity["@id"]: entity for entity in crate["@graph"]}
    about, root = entities["ro-crate-metadata.json"], entities["./"]
    problems = []
    if crate["@context"] != "https://w3id.org/ro/crate/1.1/context" or len(entities) != len(crate["@graph"]):
        problems.append("context, or two entities of one id")
    if about["@type"] != "CreativeWork" or about["about"] != {"@id": "./"}:
        problems.append("descriptor")
    if root["@type"] != "Dataset" or not all(root.get(name) for name in ("name", "description", "license")):
        problems.append("root")
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", root["datePublished"]):
        problems.append("datePublished")
    if isinstance(root["license"], dict) and not {"name", "description"} <= set(entities[root["license"]["@id"]]):
        problems.append("license")
    problems += [author["@id"] for author in root.get("author", ()) if entities[author["@id"]]["@type"] != "Person"]
    parts = {part["@id"] for part in root["hasPart"]}
    there = {path.relative_to(package).as_posix() for path in package.rglob("*") if path.is_file()}
    problems += sorted(parts ^ (there - {"ro-crate-metadata.json", "SHA256SUMS"}))
    for name in parts & there:
        content, entity = (package / name).read_bytes(), entities[name]
        said = (entity["@type"], int(entity["contentSize"]), entity["sha256"])
        if said != ("File", len(content), hashlib.sha256(content).hexdigest()):
            problems.append(name)
    return problems


@pytest.mark.thorough
@pytest.mark.parametrize("layout", ["psych-ds", "hugging-face"])
@pytest.mark.parametrize("slug", SLUGS)
def test_ro_crate_names_every_file(package: Callable[..., Path], slug: str, layout: str, tmp_path: Path) -> None:
    assert crate_problems(package(slug, "public", layout)) == []
    if slug == "answers":  # Without author and licence, once.
        assert crate_problems(package(slug, "public", layout, given={})) == []
    made = copied(package(slug, "public", layout), tmp_path)
    (made / "codebook.md").write_text("changed", encoding="utf-8")
    assert crate_problems(made) == ["codebook.md"]


@pytest.mark.thorough
@pytest.mark.parametrize("audience", AUDIENCES)
@pytest.mark.parametrize("slug", SLUGS)
def test_a_folder_for_the_hub_has_a_card_over_its_tables(
    package: Callable[..., Path], slug: str, audience: str
) -> None:
    """The rules of the Hub's page on manual configuration and of its list of a card's fields."""
    made = package(slug, audience, "hugging-face")
    text = (made / "README.md").read_text(encoding="utf-8")
    empty, head, body = text.split("---\n", 2)
    card = yaml.safe_load(head)
    assert empty == "" and body.startswith("\n# ") and card["license"] == "cc-by-4.0" and card["pretty_name"]
    assert card["language"] and all(re.fullmatch("[a-z]{2,3}", language) for language in card["language"])
    assert [table_config["config_name"] for table_config in card["configs"] if table_config.get("default")] == [
        "answers"
    ]
    names = [table_config["config_name"] for table_config in card["configs"]]
    assert len(set(names)) == len(names) and all(re.fullmatch(r"\w+", name) for name in names)
    paths = set()
    csvs = tables_of(package(slug, audience))
    for config in card["configs"]:
        ((split, path),) = [(file["split"], file["path"]) for file in config["data_files"]]
        assert split == "train"
        paths.add(path)
        rows = pyarrow.parquet.read_table(made / path)
        assert rows.num_rows == len(csvs[config["config_name"].replace("_", "")]) > 0, path
        assert rows.column_names == list(csvs[config["config_name"].replace("_", "")][0])
    longest = max(len(rows) for rows in csvs.values())
    assert card["size_categories"] == ["n<1K" if longest < 1000 else "1K<n<10K"]
    assert paths == {path.relative_to(made).as_posix() for path in (made / "data").iterdir()}


@pytest.mark.thorough
def test_a_folder_for_the_hub_has_the_same_bytes_when_it_is_built_again(
    package: Callable[..., Path], tmp_path: Path
) -> None:
    first = package("beliefs", "public", "hugging-face")
    second = built(study_of("beliefs"), tmp_path / "second", audience="public", layout="hugging-face", **ADDED)
    assert archive_of(first) == archive_of(second)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("", {"license": "unknown"}),
        ("http://www.creativecommons.org/licenses/by-nc/4.0/deed.de", {"license": "cc-by-nc-4.0"}),
        (
            "https://example.org/terms",
            {"license": "other", "license_name": "see-link", "license_link": "https://example.org/terms"},
        ),
        ("Ask us", {"license": "other", "license_name": "Ask us"}),
    ],
)
def test_licences_have_the_names_of_the_hub(given: str, found: dict[str, str]) -> None:
    head = hugging_face.card_head({"name": "x", "license": given, "keywords": []}, {"answers": ("a", 5000)}, ["en"])
    card = yaml.safe_load(head.split("---\n")[1])
    assert {name: value for name, value in card.items() if name.startswith("license")} == found
    assert card["size_categories"] == ["1K<n<10K"]
