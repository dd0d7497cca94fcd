"""The rules of Psych-DS 1.5.0 whose breach is an error.

The standard's own validator is a program for Deno, which no package of ours brings; where `psychds-validator` is
installed, a test runs it too. Each rule here has the validator's code. In the standard's repository (psych-ds/psych-DS)
they stand under schema_model/versions/1.5.0, in the file that is named next to each.
"""

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path

DATA_FILE = re.compile(r"([a-z]+-[a-zA-Z0-9]+)(_[a-z]+-[a-zA-Z0-9]+)*_data\.csv")  # rules/files/tabular_data/data.yaml
REQUIRED = ("name", "description", "variableMeasured")  # rules/compiled_metadata.yaml
SCHEMA_ORG = ("http://schema.org", "https://schema.org")


def errors_of(package: Path) -> set[str]:
    """The codes of the rules that the package breaks."""
    return set(_errors(package))


def _errors(package: Path) -> Iterator[str]:
    data = package / "data"
    if not data.is_dir():
        yield "MISSING_DATA_DIRECTORY"  # rules/files/common/core.yaml: data
    files = [path for path in data.rglob("*") if path.is_file()]
    if not any(DATA_FILE.fullmatch(path.name) for path in files):
        yield "MISSING_DATAFILE"  # rules/files/tabular_data/data.yaml: Datafile
    for path in files:
        if path.stem.endswith("_data") and path.suffix not in (".csv", ".json"):
            yield "EXTENSION_MISMATCH"  # rules/errors.yaml: ExtensionMismatch
        elif path.suffix == ".csv" and not DATA_FILE.fullmatch(path.name):
            yield "FILENAME_KEYWORD_FORMATTING_ERROR"  # rules/errors.yaml: FilenameKeywordFormattingError
    columns: set[str] = set()
    for path in files:
        if DATA_FILE.fullmatch(path.name):
            yield from _errors_of_table(path, columns)
    description = package / "dataset_description.json"
    if not description.is_file():
        yield "MISSING_DATASET_DESCRIPTION"  # rules/files/common/core.yaml: dataset_description
        return
    try:
        text = description.read_bytes().decode()
    except UnicodeDecodeError:
        yield "JSON_ENCODING_ERROR"  # rules/errors.yaml: JsonEncodingError
        return
    try:
        metadata = json.loads(text)
    except ValueError:
        yield "INVALID_JSON_FORMATTING"  # rules/errors.yaml: InvalidJsonFormatting
        return
    if "@type" not in metadata:
        yield "MISSING_DATASET_TYPE"  # rules/errors.yaml: MissingDatasetType
    elif metadata["@type"] != "Dataset" or str(metadata.get("@context")).rstrip("/") not in SCHEMA_ORG:
        yield "INCORRECT_DATASET_TYPE"  # rules/errors.yaml: IncorrectDatasetType
    if not all(metadata.get(name) for name in REQUIRED):
        yield "JSON_KEY_REQUIRED"  # rules/errors.yaml: JsonKeyRequired
    named = {
        variable["name"] if isinstance(variable, dict) else variable
        for variable in metadata.get("variableMeasured", ())
    }
    if columns - named:
        yield "CSV_COLUMN_MISSING_FROM_METADATA"  # rules/errors.yaml: CsvColumnMissingFromMetadata
    if named - columns:
        yield "VARIABLE_MISSING_FROM_CSV_COLUMNS"  # rules/errors.yaml: VariableMissingFromCsvColumns


def _errors_of_table(path: Path, columns: set[str]) -> Iterator[str]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, strict=True))
    header = rows[0] if rows else []
    columns |= set(header)
    if not header or not all(header):
        yield "CSV_HEADER_MISSING"  # rules/errors.yaml: CSVHeaderMissing
    if len(set(header)) < len(header):
        yield "CSV_HEADER_REPEATED"  # rules/errors.yaml: CSVHeaderRepeated
    if any(len(row) != len(header) for row in rows):
        yield "CSV_HEADER_LENGTH_MISMATCH"  # rules/errors.yaml: CSVHeaderLengthMismatch
    if "row_id" in header:
        keys = [row[header.index("row_id")] for row in rows[1:]]
        if len(set(keys)) < len(keys):
            yield "ROWID_VALUES_NOT_UNIQUE"  # rules/errors.yaml: RowidValuesNotUnique
