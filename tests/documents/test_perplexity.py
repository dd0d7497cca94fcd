"""The example of docs/perplexity.md gives the numbers that the page says."""

import csv
import math
import re
from pathlib import Path

import pytest
from django.core.management import call_command

from .blocks import DOCS, blocks_of


@pytest.mark.django_db
def test_the_example_gives_the_numbers_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for block in blocks_of("perplexity.md"):
        if block.name:
            Path(block.name).write_text(block.text.rstrip("\n") if block.name.endswith(".txt") else block.text)
        else:
            (command,) = block.text.splitlines()
            call_command(*command.split()[1:])
    said = "".join(capsys.readouterr())
    page = DOCS.joinpath("perplexity.md").read_text(encoding="utf-8")
    with Path("cat/tokens.csv").open(newline="") as file:
        surprisals = [float(row["surprisal"]) for row in csv.DictReader(file)]
    assert [f"{bits:.2f}" for bits in surprisals] == ["2.32", "3.32", "1.74"]
    assert f"({' + '.join(f'{bits:.2f}' for bits in surprisals)}) / 3 = 2.46 bits" in page
    (sentence,) = re.findall(r"2\.46 bits a token, perplexity 5\.50: as unsure .* equally likely ones", page)
    assert f"bigram: {sentence}" in said
    with Path("cat/perplexity.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["tokens"], f"{float(row['nats']):.3f}") == ("3", "5.116") and "= 5.116." in page


def test_the_table_of_marks_is_computed() -> None:
    page = DOCS.joinpath("perplexity.md").read_text(encoding="utf-8")
    assert f"| {math.log2(27):.2f} | 27 | {round(27**5.5, -6):,.0f} |" in page
    assert f"| 0.6 to 1.3 | {2**0.6:.1f} to {2**1.3:.1f} | {2 ** (0.6 * 5.5):.0f} to {2 ** (1.3 * 5.5):.0f} |" in page
