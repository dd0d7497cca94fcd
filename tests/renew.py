"""Writes again what is stored and compared, in sorted order: a new row is a diff of one row.

Name the parts, or none for all of them:

    python -m tests.renew
    python -m tests.renew golden rights

Then git says which files are other ones now.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
# What compares a part, and with --renew stores it first.
TESTS = {
    "golden": ["tests/golden/test_golden.py"],  # Exports and figures of the golden studies, with their codebooks.
    "reports": ["tests/survey/results/test_every_report.py"],  # What each report says of the golden studies.
    "query_counts": [f"tests/{folder}/test_query_counts.py" for folder in ("frontend", "api", "admin")],
    "examples": [  # survey/api/examples.json
        "tests/api/test_examples.py::test_what_people_who_take_part_send_and_get_is_as_recorded",
        "tests/api/test_examples.py::test_what_researchers_send_and_get_is_as_recorded",
        "tests/api/test_examples.py::test_every_error_is_as_its_example_says",
    ],
    "rights": ["tests/authorization/test_table.py"],
    "codebook": ["tests/survey/results/test_exporting.py::test_the_codebook_in_the_docs_is_what_an_export_writes"],
    "sentences": ["tests/survey/instruments/test_sentences.py"],  # tests/sentences.txt
    "tables": ["tests/documents/test_tables.py"],  # docs/tables.md
    "pictures": [
        "tests/documents/test_tutorial.py",
        "tests/documents/test_tutorial_by_clicks.py",
        "tests/browser/test_template_pictures.py",
    ],
    "commands": ["tests/nets/test_commands.py"],
    "pages": ["tests/nets/test_pages.py"],
    "sittings": ["tests/nets/test_sittings.py"],
    "money": ["tests/nets/test_money.py"],
    "bounds": ["tests/nets/test_bounds.py"],
    "reading": ["tests/documents/test_reading_reports.py"],  # docs/reading-reports.md
}
COMMANDS = {
    "notices": ["tools/third_party_notices.py"],
    "study_file": ["tools/study_file_page.py"],
    "instruments": ["tools/instruments_page.py"],  # docs/instruments.md
    "panels": ["-m", "tools.panels_page"],  # docs/panel-contract.md
    "glossary": ["-m", "tools.glossary_page"],  # docs/glossary.md
}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.renew", description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join([*TESTS, *COMMANDS]))
    parts = parser.parse_args(arguments).parts or [*TESTS, *COMMANDS]
    if unknown := [part for part in parts if part not in TESTS and part not in COMMANDS]:
        parser.error(f"There is no part {unknown[0]}: {', '.join([*TESTS, *COMMANDS])}.")
    tests = [test for part in parts for test in TESTS.get(part, ())]
    commands = [COMMANDS[part] for part in parts if part in COMMANDS]
    if tests:
        commands.append(["-m", "pytest", "-q", "--renew", *tests])
    with tempfile.TemporaryDirectory(prefix="hunch-renew-") as folder:
        environment = {**os.environ, "DATABASE_URL": "", "HUNCH_TEST_FOLDER": folder}
        statuses = [subprocess.call([sys.executable, *command], cwd=ROOT, env=environment) for command in commands]
    subprocess.call(["git", "status", "--short", "tests", "docs", "survey/api", "THIRD_PARTY_NOTICES.md"], cwd=ROOT)
    return max(statuses)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
