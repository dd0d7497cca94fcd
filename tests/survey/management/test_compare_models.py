"""Models of a finished table: what goes with what over them, against numbers by hand and the published table's."""

import csv
import math
from pathlib import Path

import pytest
from django.core.management import call_command

from bandit.correlation import correlation_interval
from survey.exceptions import FileErrors, HunchError
from survey.services.results.people_and_models.model_comparison import Threshold, compare_models, read_models

ROWS = """model,corpus,architecture,perplexity,pnc,delta_gaze
a-1,small,lstm,200,.30,10
a-2,large,lstm,100,.40,30
b-1,small,transformer,150,.45,35
b-2,large,transformer,50,.55,65
n,large,,NA,.50,
"""


def table(tmp_path: Path, text: str = ROWS) -> Path:
    path = tmp_path / "models.csv"
    path.write_text(text)
    return path


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_correlations_lines_and_means_are_as_by_hand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("compare_models", str(table(tmp_path)), "--out", str(tmp_path / "out"), "--above", "pnc=0.4")
    over = {(row["x"], row["y"], row["among"]): row for row in rows_of(tmp_path / "out" / "over_models.csv")}
    whole = over["pnc", "delta_gaze", "all"]
    # Of .30, .40, .45, .55 and 10, 30, 35, 65: squares .0325 and 1550, products 7.
    assert int(whole["models"]) == 4
    assert float(whole["correlation"]) == pytest.approx(7 / math.sqrt(0.0325 * 1550))
    assert float(whole["slope"]) == pytest.approx(7 / 0.0325)
    assert float(whole["intercept"]) == pytest.approx(35 - 7 / 0.0325 * 0.425)
    assert float(whole["spearman"]) == pytest.approx(1)
    r = float(whole["correlation"])
    assert float(whole["correlation_low"]) == pytest.approx(math.tanh(math.atanh(r) - 1.959964))
    residual = 1550 - 7**2 / 0.0325
    half = 4.302653 * math.sqrt(residual / 2 / 0.0325)
    assert float(whole["slope_high"]) - float(whole["slope"]) == pytest.approx(half, rel=1e-5)
    few = over["pnc", "delta_gaze", "PNC of 0.4 or more"]
    assert (few["models"], few["correlation"]) == ("3", "")
    means = {row["corpus"]: row for row in rows_of(tmp_path / "out" / "by_corpus.csv")}
    assert float(means["large"]["perplexity"]) == pytest.approx(75) and means["large"]["models"] == "3"
    assert [row["model"] for row in rows_of(tmp_path / "out" / "models_compared.csv")] == [
        "a-1",
        "b-1",
        "a-2",
        "b-2",
        "n",
    ]
    assert {path.name for path in (tmp_path / "out").glob("*.svg")} == {
        *("perplexity_pnc.svg", "perplexity_delta_gaze.svg", "pnc_delta_gaze.svg")
    }
    assert "perplexity and PNC, all 4 models: r = " in capsys.readouterr().out


def test_models_are_grouped_by_corpus_architecture_and_size(tmp_path: Path) -> None:
    rows = ["model,corpus,architecture,size,pnc,gaze", "a,big,lstm,1100,.1,1", "b,small,lstm,x,.2,2"]
    rows += ["c,big,gram,5,.3,3", "d,big,lstm,200,.4,5", "e,small,lstm,200,.5,4"]
    tables = {made.name: made for made in compare_models(read_models(table(tmp_path, "\n".join(rows)))).tables}
    assert [row[3] for row in tables["models_compared"].rows] == ["d", "a", "c", "e", "b"]
    assert [row[:2] for row in tables["by_size"].rows] == [["200", 2], ["1100", 1], ["5", 1], ["x", 1]]
    assert tables["by_size"].rows[0][2:] == pytest.approx([0.45, 4.5])


def test_an_interval_needs_four_pairs_that_do_not_lie_on_a_line() -> None:
    assert correlation_interval(0.5, 3) is None and correlation_interval(1.0, 9) is None
    low, high = correlation_interval(0.5, 28) or (0, 0)
    assert (low, high) == (pytest.approx(0.156, abs=1e-3), pytest.approx(0.736, abs=1e-3))  # z .5493 -+ .392


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model,pnc\na,.1\n", "no two columns of numbers"),
        ("model,pnc,ppl\na,.1,10\nb,.2,many\n", ":3: ppl: is no number"),
        ("model,pnc,ppl\na,.1,10\na,.2,20\n", ":3: model: this model stands in line 2"),
        ("name,pnc,ppl\na,.1,10\n", "model"),
        ("model,pnc,ppl\n", "has no models"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises((FileErrors, HunchError), match=message):
        read_models(table(tmp_path, text))


def test_options_name_what_the_table_has(tmp_path: Path) -> None:
    with pytest.raises(HunchError, match=r"--corpus: .* has no column trained_on"):
        read_models(table(tmp_path), {"corpus": "trained_on"})
    for wrong in ("pnc", "speed=1", "pnc=much"):
        with pytest.raises(HunchError, match="is no measure with a number"):
            Threshold.read(wrong, ["perplexity", "pnc"])


def test_the_published_table_gives_its_correlations(human_data: Path) -> None:
    models = read_models(human_data / "perplexity_pnc_dll_table2.csv", {"corpus": "trained_on"})
    assert len(models) == 32
    above = Threshold.read("pnc=0.4", [*models[0].measures])
    over_models = {(row[1], row[0], row[2]): row for row in compare_models(models, above=above).tables[1].rows}
    everything = [("perplexity", "pnc", "all", 0.222)]
    everything += [("pnc", f"dll_{time}", str(above), r) for time, r in (("ffd", 0.963), ("gd", 0.957), ("td", 0.949))]
    for x, y, among, expected in everything:
        assert over_models[x, y, among][4].value == pytest.approx(expected, abs=5e-4)
