"""A data package as a job: Psych-DS, Croissant, RO-Crate, codebook, changes, checksums, and programs that redo the main
table; or a folder for the Hugging Face Hub.

The same rows give the same bytes: nothing in it says when it was built. Imports models and below.
"""

import hashlib
import json
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from survey.contracts.reports import Argument, ReportArguments
from survey.contracts.tables import Column, ExtraFile
from survey.exceptions import HunchError
from survey.models import Sitting, Study
from survey.services.base import rights
from survey.services.base.job_kinds import JobKind, Work
from survey.services.base.rights import Right
from survey.services.base.writing import replace_file
from survey.services.results.export import files
from survey.services.results.export.check_programs import check_programs
from survey.services.results.export.contents import extra_files
from survey.services.results.export.formats import CSV, PARQUET
from survey.storage.paths import installed_version

from . import hugging_face, ro_crate
from .coarsening import Coarse
from .outcomes import outcome_files

INTERNAL, PUBLIC = "internal", "public"
REVIEWED = "reviewed"
PSYCH_DS, HUGGING_FACE = "psych-ds", "hugging-face"
WORDS = {
    "README.md": "What is in this folder.",
    "CHANGES.md": "What is new in each version, and changes of the study file.",
    "codebook.md": "What every column means.",
    "dataset_description.json": "The description by Psych-DS.",
    "croissant.json": "The description by Croissant.",
    "analysis.py": "Redoes the main table from the files alone, with Python.",
    "analysis.R": "Redoes the main table from the files alone, with R.",
    "check.R": "Computes every figure again from the files alone, with R and its package survey.",
    "formulas.R": "The formulas that check.R uses.",
}
# It grows by each look, also by asking for a package; `export` has it.
NEVER = "audit.csv"
SCRIPTS = Path(__file__).with_name("scripts")
MOMENT = (1980, 1, 1, 0, 0, 0)  # of every file in the ZIP
DOI = re.compile(r"10\.\d{4,9}/\S+", re.ASCII)
CROISSANT_TYPES = {"whole": "sc:Integer", "number": "sc:Float"}
CROISSANT_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}


def _check(study: Study, arguments: ReportArguments) -> None:
    if study.is_test and arguments.one("audience") == PUBLIC:
        raise HunchError(
            f"audience: {study.slug} is a test copy, in which nothing was measured: take internal, or the study itself",
            code="invalid",
        )
    if (doi := arguments.one("doi")) and not DOI.fullmatch(doi):
        raise HunchError(f"doi: {doi!r} is no DOI; write it as 10.5281/zenodo.1234567", code="invalid")
    if not re.fullmatch(r"\d+\.\d+\.\d+", arguments.one("version"), re.ASCII):
        raise HunchError(f"version: {arguments.one('version')!r} is no version; write it as 1.0.0", code="invalid")


def make(work: Work) -> Mapping[str, Any]:
    study, arguments = work.study, work.arguments
    is_public = arguments.one("audience") == PUBLIC
    is_hub = arguments.one("layout") == HUGGING_FACE
    name = f"{study.slug}-{arguments.one('audience')}-{arguments.one('version')}" + ("-hugging-face" if is_hub else "")
    with (
        TemporaryDirectory(dir=work.folder) as scratch,
        replace_file(work.folder / f"{name}.zip") as unfinished,
        zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        writer = _Writer(archive, name, Path(scratch), format=PARQUET if is_hub else CSV)
        tables = list(_tables(work, reviewed=arguments.one("texts") == REVIEWED) if is_public else _all_tables(work))
        for number, table in enumerate(tables):
            work.progress(number, len(tables), f"writing {table.name}")
            writer.add_table(study, table)
        facts = _facts(study, arguments, is_public=is_public)
        texts = _hub_texts if is_hub else _texts
        for path, text in texts(study, arguments, facts, writer.tables, is_public=is_public).items():
            writer.add(path, text.encode())
        writer.add(ro_crate.FILE, _as_text(_crate(study, facts, writer)).encode())
        writer.add_checksums()
    return {"rows": {table.stem: table.rows for table in writer.tables}}


# Tables


def _all_tables(work: Work) -> Iterator[ExtraFile]:
    study = work.study
    with_pay = work.asked_by is None or rights.may(work.asked_by, Right.SEE_POSTINGS, study.pk)
    yield files.answers_table(study)
    for file in extra_files(study, with_pay=with_pay):
        if file.name != NEVER:
            yield file
    yield from outcome_files(study)


def _tables(work: Work, *, reviewed: bool) -> Iterator[ExtraFile]:
    """Nothing of a panel is read for these."""
    study = work.study
    coarse = Coarse(study, reviewed=reviewed)
    whole = [
        files.answers_table(study),
        *extra_files(study),
        *outcome_files(study),
    ]
    for file in whole:
        if (table := coarse.table(file)) is not None:
            yield table


class DataFile:
    """A table that was written: its place, its columns, its rows and its hash."""

    def __init__(self, stem: str, path: str, columns: Sequence[Column]) -> None:
        self.stem, self.path, self.columns = stem, path, columns
        self.rows = 0
        self.sha256 = ""


class _Writer:
    """The ZIP that grows. Everything lies in one folder of the package's name."""

    def __init__(self, archive: zipfile.ZipFile, folder: str, scratch: Path, *, format: str) -> None:
        self.archive, self.folder, self.scratch, self.format = archive, folder, scratch, format
        self.tables: list[DataFile] = []
        self.hashes: dict[str, str] = {}
        self.sizes: dict[str, int] = {}

    def add_table(self, study: Study, file: ExtraFile) -> None:
        """CSV files are named as Psych-DS asks: keys and values of letters and digits, and the ending _data.csv. Of
        Parquet files there is none without rows: the Hub cannot show it."""
        stem = files.stem_of(file.name)
        name = f"data/study-{_plain(study.slug)}_description-{_plain(stem)}_data.csv"
        table = DataFile(stem, name if self.format == CSV else f"data/{stem}.parquet", file.columns)
        path = self.scratch / f"table.{self.format}"
        table.rows = sum(files.write_table(file, {self.format: path}))
        self.tables.append(table)
        if not table.rows and self.format == PARQUET:
            return
        entry = zipfile.ZipInfo(f"{self.folder}/{table.path}", MOMENT)
        entry.compress_type = zipfile.ZIP_DEFLATED
        digest = hashlib.sha256()
        with path.open("rb") as source, self.archive.open(entry, "w", force_zip64=True) as target_entry:
            while chunk := source.read(1 << 20):
                digest.update(chunk)
                target_entry.write(chunk)
        table.sha256 = self.hashes[table.path] = digest.hexdigest()
        self.sizes[table.path] = path.stat().st_size

    def add(self, path: str, content: bytes) -> None:
        self.archive.writestr(zipfile.ZipInfo(f"{self.folder}/{path}", MOMENT), content, zipfile.ZIP_DEFLATED)
        self.hashes[path] = hashlib.sha256(content).hexdigest()
        self.sizes[path] = len(content)

    def add_checksums(self) -> None:
        lines = "".join(f"{sha256}  {path}\n" for path, sha256 in sorted(self.hashes.items()))
        self.add("SHA256SUMS", lines.encode())


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9]", "", text)


# Descriptions


def _texts(
    study: Study, arguments: ReportArguments, facts: Mapping[str, Any], tables: Sequence[DataFile], *, is_public: bool
) -> dict[str, str]:
    return {
        "README.md": _readme(facts, tables, is_public=is_public),
        "CHANGES.md": _changes(study, arguments, is_public=is_public),
        "codebook.md": _codebook(study, tables),
        "dataset_description.json": _as_text({**facts, "variableMeasured": _variables(tables)}),
        "croissant.json": _as_text(_croissant(facts, tables)),
        "analysis.py": (SCRIPTS / "analysis.py-tpl").read_text(encoding="utf-8"),
        "analysis.R": (SCRIPTS / "analysis.R-tpl").read_text(encoding="utf-8"),
        **check_programs(study),
    }


def _hub_texts(
    study: Study, arguments: ReportArguments, facts: Mapping[str, Any], tables: Sequence[DataFile], *, is_public: bool
) -> dict[str, str]:
    """What a folder for the Hugging Face Hub has in addition to its tables. Croissant is made by the Hub itself."""
    filled_tables = [table for table in tables if table.rows]
    named = {table.stem: (table.path, table.rows) for table in filled_tables}
    head = hugging_face.card_head(facts, named, study.config.languages)
    empty = [table.stem for table in tables if not table.rows]
    lines = [
        _about(facts, is_public=is_public),
        "```python",
        'from datasets import load_dataset\n\nanswers = load_dataset("NAME/OF-THE-DATASET", "answers")["train"]',
        "```\n",
        "Every table is a configuration of its own, and has one split. `codebook.md` says what each column means.",
        "`weight` is the answer's weight in the figures of all stages: a mean with it is the study's plain figure.\n",
        *_rows_of(filled_tables),
    ]
    if empty:
        lines.append(f"\nThese tables have no rows, and so no file: {', '.join(empty)}.")
    return {
        "README.md": head + "\n".join(lines) + "\n",
        "CHANGES.md": _changes(study, arguments, is_public=is_public),
        "codebook.md": _codebook(study, filled_tables),
    }


def _crate(study: Study, facts: Mapping[str, Any], writer: _Writer) -> dict[str, Any]:
    tables = {table.path: f"The table {table.stem}: {table.rows} rows." for table in writer.tables}
    crate_files = {path: (sha256, tables.get(path) or WORDS[path]) for path, sha256 in writer.hashes.items()}
    published = facts.get("datePublished", study.created_at.date().isoformat())
    return ro_crate.crate_of(facts, crate_files, sizes=writer.sizes, published=published)


def _as_text(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def _facts(study: Study, arguments: ReportArguments, *, is_public: bool) -> dict[str, Any]:
    """What Psych-DS and Croissant both say, in the words of schema.org."""
    last = Sitting.objects.filter(stage__study=study).order_by("-last_seen_at").values_list("last_seen_at", flat=True)
    newest = last.first()
    kind = "public" if is_public else "internal"
    people = study.respondents.filter(is_simulated=True).exists()
    facts: dict[str, Any] = {
        "@context": "https://schema.org/",
        "@type": "Dataset",
        "name": f"{study.title} ({kind})",
        "description": f"Answers, people and plans of the study {study.slug}, collected with Hunch; the {kind} package."
        + (" Some of its people were simulated." if people else ""),
        "version": arguments.one("version"),
        "schemaVersion": "Psych-DS 1.5.0",
        "license": arguments.one("licence"),
        "keywords": ["Hunch", study.instrument],
        "creator": [{"@type": "Person", "name": name} for name in arguments["author"]],
    }
    if doi := arguments.one("doi"):
        facts |= {"identifier": f"https://doi.org/{doi}", "sameAs": f"https://doi.org/{doi}"}
    if newest is not None:
        facts["datePublished"] = newest.date().isoformat()  # The last day of the data: it says nothing of the building.
    return {name: value for name, value in facts.items() if value}


def _variables(tables: Iterable[DataFile]) -> list[dict[str, Any]]:
    """Each column once; where tables have columns of one name, its meaning in each."""
    meanings: dict[str, dict[str, str]] = {}
    for table in tables:
        for column in table.columns:
            meanings.setdefault(column.name, {}).setdefault(f"{column.description} ({column.kind})", table.stem)
    return [
        {
            "@type": "PropertyValue",
            "name": name,
            "description": " / ".join(
                text if len(meaning) == 1 else f"{stem}: {text}" for text, stem in meaning.items()
            ),
        }
        for name, meaning in sorted(meanings.items())
    ]


def _croissant(facts: Mapping[str, Any], tables: Sequence[DataFile]) -> dict[str, Any]:
    described = {name: value for name, value in facts.items() if name not in ("@context", "@type", "schemaVersion")}
    return {
        "@context": CROISSANT_CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        **described,
        "url": facts.get("identifier", "https://doi.org/"),
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": table.stem,
                "name": table.stem,
                "contentUrl": table.path,
                "encodingFormat": "text/csv",
                "sha256": table.sha256,
            }
            for table in tables
        ],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": f"rows_{table.stem}",
                "name": f"rows_{table.stem}",
                "field": [
                    {
                        "@type": "cr:Field",
                        "@id": f"rows_{table.stem}/{column.name}",
                        "name": column.name,
                        "description": f"{column.description} ({column.kind})",
                        "dataType": CROISSANT_TYPES.get(column.type, "sc:Text"),
                        "source": {"fileObject": {"@id": table.stem}, "extract": {"column": column.name}},
                    }
                    for column in table.columns
                ],
            }
            for table in tables
        ],
    }


def _codebook(study: Study, tables: Sequence[DataFile]) -> str:
    lines = [f"# Codebook of {study.title}\n", "Every column of every file under `data/`.\n"]
    for table in tables:
        lines += [f"## {table.path}\n", f"{table.rows} rows.\n", "| column | kind | meaning |", "| --- | --- | --- |"]
        lines += [f"| {column.name} | {column.kind} | {column.description} |" for column in table.columns]
        lines.append("")
    return "\n".join(lines)


def _changes(study: Study, arguments: ReportArguments, *, is_public: bool) -> str:
    lines = [f"# Changes\n\n## {arguments.one('version')}\n"]
    lines += [f"- {text}" for text in arguments["changes"]] or ["- The package was built."]
    lines.append(f"\n## Changes of the study file\n\nIts hash is {study.source_sha256}.\n")
    for made in study.amendments.order_by("pk"):
        day = made.at.date().isoformat()
        keys = ", ".join(change["key"] for change in made.changes) or "nothing"
        lines.append(f"- {day}: {keys}" + ("" if is_public else f" ({made.reason})"))
    return "\n".join(lines) + "\n"


def _about(facts: Mapping[str, Any], *, is_public: bool) -> str:
    """What every README begins with."""
    kind = (
        "The public package: times are weeks, ages are bands of ten years, other numbers in forms and the length of a "
        "sitting are bands as wide as needed, answers and languages of fewer than five people are `other`, people have "
        "names that stand nowhere else, whose order the rows follow, and nothing of a panel is in it. What people "
        "wrote is in it only where somebody has reviewed it."
        if is_public
        else "The internal package holds all that is known of people by pseudonym. Do not publish it."
    )
    return "\n".join(
        [
            f"# {facts['name']}\n",
            f"{facts['description']}\n",
            f"{kind}\n",
            f"Version {facts['version']}, licence: {facts.get('license', 'none given')}, made with Hunch "
            f"{installed_version()}.\n",
        ]
    )


def _rows_of(tables: Sequence[DataFile]) -> list[str]:
    return ["| file | rows |", "| --- | --- |", *(f"| {table.path} | {table.rows} |" for table in tables)]


def _readme(facts: Mapping[str, Any], tables: Sequence[DataFile], *, is_public: bool) -> str:
    lines = [
        _about(facts, is_public=is_public),
        "- `dataset_description.json` describes it by Psych-DS, `croissant.json` by Croissant, "
        "`ro-crate-metadata.json` by RO-Crate, `codebook.md` in words.",
        "- `python3 analysis.py` or `Rscript analysis.R` redoes the main table from the files alone; `Rscript check.R` "
        "every figure, each error and interval (with the package survey).",
        "- `sha256sum --check SHA256SUMS` says whether a file was changed.\n",
        *_rows_of(tables),
    ]
    return "\n".join(lines) + "\n"


KIND = JobKind(
    name="package",
    title="Data package",
    summary="The data with its description (Psych-DS, Croissant), codebook and programs that redo the main table.",
    right=Right.EXPORT,
    make=make,
    arguments=(
        Argument(
            "audience",
            "public: coarse, to be published; internal: all that is known by pseudonym",
            default=PUBLIC,
            choices=lambda _study: {PUBLIC: "public: coarse, to be published", INTERNAL: "internal: all that is known"},
            label="For whom",
        ),
        Argument(
            "texts",
            "what people wrote in their own words goes into a public package only as reviewed: somebody has read all "
            "of it and nobody can be recognised by it",
            default="left out",
            choices=lambda _study: ("left out", REVIEWED),
            label="What people wrote",
        ),
        Argument(
            "layout",
            "psych-ds: CSV files with Psych-DS and Croissant; hugging-face: Parquet files with a card, for the Hugging "
            "Face Hub. Both have RO-Crate",
            default=PSYCH_DS,
            choices=lambda _study: {PSYCH_DS: "Psych-DS", HUGGING_FACE: "Hugging Face"},
            label="Layout",
        ),
        Argument(
            "licence",
            "the address of its text; needed for a public package",
            label="Licence",
            example="https://creativecommons.org/licenses/by/4.0/",
        ),
        Argument("doi", "where one is reserved", label="DOI", example="10.5281/zenodo.1234567"),
        Argument("author", "a name each", many=True, label="Authors"),
        Argument("version", "of the package, such as 1.0.0", default="1.0.0", label="Version of the package"),
        Argument("changes", "what is new in this version, a line each", many=True, label="What is new"),
    ),
    check=_check,
)
