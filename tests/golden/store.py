"""Reading and writing the golden studies: one database dump, the stored files, and what was read off them."""

import csv
import gzip
import io
import json
import math
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core import serializers
from django.core.management import call_command
from django.core.management.color import no_style
from django.db import connection, transaction
from django.db.models import Model

from survey.instruments.belief_update.reports.alignment import aligning
from survey.instruments.belief_update.reports.calibration import calibrating
from survey.models import Stage, Study
from survey.services.answers.conditions import pairs_of
from survey.services.results.estimates import study_estimates
from survey.services.results.export import files
from survey.services.stages import verifying
from tests import kept

DATA = Path(__file__).parent / "data"
APPS = ("survey", "belief_update", "own_answers")
INSTRUMENTS = ("cloze", "next_token", "preference", "self_paced_reading", "token_comparison")
# The two dumps: of `make.py`, and what `make_instruments.py` has added to it.
BELIEFS, ADDED = "database", "instruments"
# Snapshots are hashed with it; it guards nothing but these made-up studies.
IDENTITY_KEY = "Z29sZGVuLXN0dWRpZXMtYXJlLW5vdC1zZWNyZXQtMDE="


def results_of(study: Study, folder: Path) -> dict[str, bytes]:
    """Everything that is read off a finished study, by file name. `folder` gets the export."""
    files.write_export(study, folder)
    results = {f"export/{path.name}": path.read_bytes() for path in sorted(folder.iterdir())}
    for stage in Stage.objects.filter(study=study).order_by("index"):
        seen = verifying.verify_stage(Stage.objects.select_related("study__bank").get(pk=stage.pk))
        facts = [stage.plan_sha256, stage.snapshot_sha256, seen.slots, seen.answers, seen.withdrawn, seen.differences]
        results[f"stage_{stage.index}.json"] = as_bytes(facts)
    factors = [condition.factor for condition in study.config.conditions]
    by = [*study_estimates.division_names(study)[:1], *factors]
    results["estimates.json"] = as_bytes(study_estimates.estimate(study, by=by).as_json())
    return results


def reports_about_models(beliefs: Study, people: Study) -> dict[str, bytes]:
    """What is read off a study of beliefs, and off one of people's own answers to the same questions."""
    reports = {
        "alignment.json": aligning.alignment_of(beliefs, samples=200),
        "alignment_warm.json": aligning.alignment_of(beliefs, samples=200, condition=pairs_of(beliefs)[1:2]),
        "calibration.json": calibrating.human_calibration(beliefs, people_study=people),
    }
    return {name: as_bytes(report.as_json()) for name, report in reports.items()}


DECIMAL = re.compile(r"-?\d+(\.\d+(e[-+]?\d+)?|e[-+]?\d+)")
# A list or an object that holds no other, over several lines.
RECORD = re.compile(r"[\[{]\n[^\[\]{}]*\n *[\]}]")


def as_bytes(value: Any) -> bytes:
    """JSON with a line for each record, so that a difference is a few lines long."""
    text = json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False)
    return (RECORD.sub(lambda match: re.sub(r"\n *", " ", match[0]), text) + "\n").encode()


def write_database() -> None:
    """Every row of our own tables, and every stored file."""
    DATA.mkdir(exist_ok=True)
    text = io.StringIO()
    call_command("dumpdata", *APPS, stdout=text, indent=0)
    _write_rows(BELIEFS, text.getvalue())
    _write_files("files", set())


def write_added() -> None:
    """The rows and files that were added to those that `write_database` wrote."""
    text = io.StringIO()
    call_command("dumpdata", *APPS, *INSTRUMENTS, stdout=text, indent=0)
    there = {(row["model"], row["pk"]) for row in json.loads(gzip.decompress(_rows(BELIEFS).read_bytes()))}
    rows = [row for row in json.loads(text.getvalue()) if (row["model"], row["pk"]) not in there]
    _write_rows(ADDED, json.dumps(rows, ensure_ascii=False))
    _write_files(ADDED, set(zipfile.ZipFile(DATA / "files.zip").namelist()))


def _rows(name: str) -> Path:
    return DATA / f"{name}.json.gz"


def _write_rows(name: str, text: str) -> None:
    with gzip.GzipFile(_rows(name), "wb", mtime=0) as file:
        file.write(text.encode())


def _write_files(name: str, but: set[str]) -> None:
    with zipfile.ZipFile(DATA / f"{name}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        root = stored_files()
        for path in sorted(path for path in root.rglob("*") if path.is_file()):
            if (stored := path.relative_to(root).as_posix()) not in but:
                archive.write(path, stored)


def load_database() -> None:
    """The stored rows and files, into the test's own database and folder."""
    _load(BELIEFS, "files")


def load_with_instruments() -> None:
    """Those, and the studies of the other instruments."""
    load_database()
    _load(ADDED, ADDED)


def _load(name: str, files: str) -> None:
    # In one transaction: rows refer to rows that come later.
    with transaction.atomic(), gzip.open(_rows(name), "rt", encoding="utf-8") as file:
        loaded = list(serializers.deserialize("json", file))
        by_model: dict[type[Model], list[Model]] = {}
        for record in loaded:
            by_model.setdefault(type(record.object), []).append(record.object)
        for model, objects in by_model.items():
            insert(model, objects)
        for record in loaded:
            for name, keys in record.m2m_data.items():
                getattr(record.object, name).set(keys)
        # The next rows get keys of their own.
        with connection.cursor() as cursor:
            for statement in connection.ops.sequence_reset_sql(no_style(), list(by_model)):
                cursor.execute(statement)
    with zipfile.ZipFile(DATA / f"{files}.zip") as archive:
        archive.extractall(stored_files())


def insert(model: type[Model], objects: list[Model]) -> None:
    """Write rows as they are, with their keys and times. `save` would take two statements for each."""
    fields = model._meta.local_concrete_fields
    rows = [
        tuple(field.get_db_prep_save(getattr(instance, field.attname), connection) for field in fields)
        for instance in objects
    ]
    kept.Table(model._meta.db_table, [field.column for field in fields], rows).insert()


def stored_files() -> Path:
    return Path(settings.STORAGES["default"]["OPTIONS"]["location"])


def write_results(slug: str, results: Mapping[str, bytes]) -> None:
    """As text files. One whose numbers differ in their last digits alone stays as it is."""
    stored = read_results(slug)
    for name, content in results.items():
        if name not in stored or differences_of(name, content, stored[name]):
            (DATA / slug / name).write_bytes(as_bytes(rounded(json.loads(content))) if is_json(name) else content)


def read_results(slug: str) -> dict[str, bytes]:
    folder = DATA / slug
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def differences_of(name: str, content: bytes, stored: bytes) -> list[str]:
    """Where a result differs from the stored one: JSON and tables by their values, any other file by its bytes."""
    if is_json(name):
        return differences(json.loads(content), json.loads(stored), name)
    if content != stored and name.endswith(".csv"):
        return differences(cells_of(content), cells_of(stored), name)
    return [] if content == stored else [f"{name} differs"]


def cells_of(table: bytes) -> list[list[Any]]:
    """The rows of a CSV file; a cell with a decimal point or an exponent as a number."""
    return [
        [float(cell) if DECIMAL.fullmatch(cell) else cell for cell in row]
        for row in csv.reader(io.StringIO(table.decode(), newline=""))
    ]


def is_json(name: str) -> bool:
    return name.endswith(".json")


def rounded(value: Any) -> Any:
    """With the digits that are compared, and two more."""
    if isinstance(value, dict):
        return {name: rounded(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [rounded(inner) for inner in value]
    return float(f"{value:.8g}") if isinstance(value, float) else value


def differences(result: Any, stored: Any, path: str = "") -> list[str]:
    """Where two JSON values differ; numbers may differ in their last digits, which depend on the machine."""
    if isinstance(result, dict) and isinstance(stored, dict) and result.keys() == stored.keys():
        return [line for name in result for line in differences(result[name], stored[name], f"{path}/{name}")]
    if isinstance(result, list) and isinstance(stored, list) and len(result) == len(stored):
        pairs = enumerate(zip(result, stored, strict=True))
        return [line for place, (inner, other) in pairs for line in differences(inner, other, f"{path}/{place}")]
    if isinstance(result, float) and isinstance(stored, float):
        return [] if math.isclose(result, stored, rel_tol=1e-6, abs_tol=1e-9) else [f"{path}: {result} is not {stored}"]
    return [] if result == stored else [f"{path}: {result!r} is not {stored!r}"]
