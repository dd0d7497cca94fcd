"""Figures of reading times: on public data to the digits, on small files, and a small law of the intervals."""

import csv
import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from django.core.management import call_command, load_command_class

import bandit
from bandit import student_t_quantile
from predictors.evaluation.reading_times import Columns, SingleTimes, TimedWords, columns_of_times, prepared, slopes_of
from survey.contracts.instruments import verdict_word
from survey.contracts.tables import ExtraFile
from survey.exceptions import HunchError
from survey.instruments.self_paced_reading import demonstration, export
from survey.instruments.self_paced_reading.analysis import figures
from survey.instruments.self_paced_reading.analysis.cleaning import (
    CleaningRules,
    ReadTimes,
    asked_of,
    cleaned,
    share_right,
)
from survey.instruments.self_paced_reading.estimands import ReadingEstimates
from survey.instruments.self_paced_reading.reports import own_times
from survey.instruments.self_paced_reading.reports.own_times import LAYOUTS, TimeSettings
from tests import r_packages
from tests.survey.instruments.test_cloze_figures import number

MODELS = {"GPT-2": "s_GPT2", "4-gram": "tetragram", "people": "cloze_s"}


def written(path: Path, header: list[str], rows: Any) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(header)
        table.writerows(rows)
    return path


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


# The public data


@pytest.fixture(scope="module")
def de_varda(human_data: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("de_varda")
    with (human_data / "devarda" / "all_measures.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    columns = ("sent_id", "context_length", "word", "self_paced_reading_time", "Subtlex_log10")
    times = written(
        folder / "times.csv",
        ["passage", "position", "word", "time", "log_frequency"],
        [[row[name] for name in columns] for row in rows],
    )
    readings = written(
        folder / "readings.csv",
        ["model", "passage", "position", "surprisal", "word"],
        [
            [name, row["sent_id"], row["context_length"], row[column], row["word"]]
            for name, column in MODELS.items()
            for row in rows
        ],
    )
    return times, readings


def test_the_command_gives_the_public_delta_log_likelihoods(de_varda: tuple[Path, Path], tmp_path: Path) -> None:
    times, readings = de_varda
    call_command("reading", times=times, readings=readings, previous=1, out=tmp_path / "out")
    rows_by_model = {row["model"]: row for row in rows_of(tmp_path / "out" / "reading_models.csv")}
    for name, expected in (("GPT-2", 9.9), ("4-gram", 21.0), ("people", 6.6)):
        assert float(rows_by_model[name]["delta_log_likelihood"]) == pytest.approx(expected, abs=0.0501)
        assert rows_by_model[name]["words"] == "1226"
    assert all(not row["low"] for row in rows_of(tmp_path / "out" / "reading_slopes.csv"))  # Nobody is named.
    for name in ("reading.json", "reading_left_out.csv", "reading_words.csv", "slopes.svg", "tenths.svg"):
        assert (tmp_path / "out" / name).stat().st_size


@pytest.mark.thorough
def test_punctuation_may_be_kept(de_varda: tuple[Path, Path]) -> None:
    times, readings = de_varda
    models = own_times.make(times, readings, TimeSettings(previous=1, keeps_punctuation=True)).data["models"]
    assert models["GPT-2"]["delta_log_likelihood"] == pytest.approx(11.8, abs=0.0501)
    assert models["GPT-2"]["words"] == 1274


@pytest.mark.slow
def test_the_natural_stories_have_the_published_correlation(human_data: Path, tmp_path: Path) -> None:
    folder = human_data / "naturalstories"
    with (folder / "processed_wordinfo.tsv").open(newline="", encoding="utf-8") as file:
        words = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    stories: dict[int, list[tuple[str, float]]] = {}
    with (folder / "all_stories_gpt3.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            tokens = stories.setdefault(int(row["story"]) + 1, [])
            tokens.append((row["token"], -number(row["logprob"])))
    readings = []
    for story, tokens in stories.items():
        text, place = "".join(token for token, _nats in tokens), 0
        ends = [match.end() for match in re.finditer(r"\S+", text)]
        surprisal = np.zeros(len(ends))
        for token, nats in tokens:
            first = place + len(token) - len(token.lstrip())
            surprisal[min(int(np.searchsorted(ends, first, side="right")), len(ends) - 1)] += nats
            place += len(token)
        readings += [
            ["GPT-3", story, position, "" if np.isnan(nats) else nats] for position, nats in enumerate(surprisal)
        ]
    frequencies = written(tmp_path / "frequencies.csv", ["word", "count"], [[row["word"], 5] for row in words])
    # Means over people, which the corpus gives under names of its own.
    means = replace(LAYOUTS["natural_stories"], measures=("meanItemRT",))
    findings = own_times.make(
        folder / "processed_wordinfo.tsv",
        written(tmp_path / "readings.csv", ["model", "passage", "position", "surprisal"], readings),
        TimeSettings(frequencies=str(frequencies), layout=means),
    ).data["models"]["GPT-3"]
    # The copy whose times stood one word too early had 0.206.
    assert findings["correlation"] == pytest.approx(0.212, abs=0.0005) and findings["correlated_words"] == 10_246


# Cleaning


def times_of(rows: list[tuple[int, int, int, float, float, bool]]) -> ReadTimes:
    word, passage, person, time, right, marked = zip(*rows, strict=True)
    whole = (np.array(column, dtype=np.int64) for column in (word, passage, person))
    return ReadTimes(*whole, np.array(time), np.array(right), np.array(marked, dtype=bool))


def test_each_rule_counts_what_it_leaves_out_once() -> None:
    times = times_of(
        [
            (0, 0, 0, 300.0, 1, False),
            (1, 0, 0, 99.0, 1, False),
            (2, 0, 0, 100.0, 1, False),
            (3, 0, 0, 3000.0, 1, False),
            (4, 0, 0, 3001.0, 1, False),
            (5, 1, 0, 20.0, 1, True),  # marked, and too short
            (0, 0, 1, 300.0, 0, False),  # half of the questions right
            (5, 1, 1, 50.0, 1, False),
        ]
    )
    cleaning = cleaned(times, CleaningRules())
    assert np.flatnonzero(cleaning.keep).tolist() == [0, 2, 3]
    assert [(rule.times, rule.whole) for rule in cleaning.left_out] == [(1, 1), (2, 1), (1, 0), (1, 0)]
    assert share_right(times).tolist() == [1.0, 0.5]
    lenient = cleaned(times, CleaningRules(shortest=0, longest=9000, least_right=0, keeps_marked=True))
    assert lenient.keep.all() and sum(rule.times for rule in lenient.left_out) == 0


def test_exactly_four_of_five_right_is_enough() -> None:
    times = times_of([(number, number, 0, 300.0, float(number > 0), False) for number in range(5)])
    assert cleaned(times, CleaningRules()).keep.all()
    assert not cleaned(times, CleaningRules(least_right=0.81)).keep.any()


# Files


HEADER = ["passage", "position", "word", "time", "person", "right", "marks", "log_frequency"]
WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]


def own_files(folder: Path, *, people: int = 6, passages: int = 6, slope: float = 20.0) -> tuple[Path, Path]:
    rng = np.random.default_rng(1)
    surprisal = rng.gamma(2, 2, (passages, len(WORDS)))
    rows, readings = [], []
    for passage in range(passages):
        for place, word in enumerate(WORDS):
            readings.append(["A", f"t{passage}", place, surprisal[passage, place]])
            for person in range(people):
                time = 250 + 10 * person + slope * surprisal[passage, place] + rng.normal(0, 20)
                rows.append(
                    [f"t{passage}", place, word, round(time), f"p{person}", 1, "", round(-rng.random() - place % 3, 2)]
                )
    return (
        written(folder / "times.csv", HEADER, rows),
        written(folder / "readings.csv", ["model", "passage", "position", "surprisal"], readings),
    )


def test_leaving_out_one_of_four_groups_counts_three_quarters() -> None:
    """The jackknife's (g - 1) / g, by fits of numpy to the rows of three groups at a time."""
    rng = np.random.default_rng(5)
    base = np.column_stack([np.ones(80), rng.normal(3, 1, 80)])
    both = np.column_stack([base, rng.normal(size=(80, 2))])
    wanted = both @ [200.0, 10.0, 8.0, 3.0] + rng.normal(0, 20, 80)
    group, summed = rng.permutation(np.arange(80) % 4) * 7, np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])

    def slopes(rows: np.ndarray) -> np.ndarray:
        return summed @ np.linalg.lstsq(both[rows], wanted[rows], rcond=None)[0][2:]

    whole = slopes(np.arange(80))
    squares = sum((slopes(np.flatnonzero(group != number)) - whole) ** 2 for number in np.unique(group))
    columns = Columns(base, both, wanted, np.zeros(80, dtype=np.int64), np.arange(80))
    assert figures._jackknife(columns, group, summed) == pytest.approx(3 / 4 * squares, rel=1e-6)


def test_people_give_intervals_around_their_own_levels(tmp_path: Path) -> None:
    findings = own_times.make(*own_files(tmp_path), TimeSettings())
    slopes = findings.data["models"]["A"]["slopes"]
    assert len(slopes) == 3 and all(slope["interval"] is not None for slope in slopes)
    low, high = slopes[0]["interval"]
    assert low < 20 < high and high - low < 10
    assert all(slope["interval"][0] < 0 < slope["interval"][1] for slope in slopes[1:])
    assert findings.data["right"]["value"] == 1.0 and findings.data["models"]["A"]["delta_log_likelihood"] > 100


def test_curves_are_fitted_and_named_where_they_are_asked_for(tmp_path: Path) -> None:
    files = own_files(tmp_path)
    straight, smooth = (own_times.make(*files, TimeSettings(fit=fit)) for fit in ("linear", "smooth"))
    notes = [next(table.note for table in made.tables if table.name == "reading_slopes") for made in (straight, smooth)]
    assert "as curves" in notes[1] and "as curves" not in notes[0]
    # Lengths and frequencies of these words have few values: curves of them take up a part of what surprisal explains.
    assert smooth.data["models"]["A"]["rows"] == straight.data["models"]["A"]["rows"] == 216
    assert smooth.data["models"]["A"] != straight.data["models"]["A"]
    assert smooth.data["mean_time"] == straight.data["mean_time"]


def test_whether_the_word_before_was_fixated_is_named_and_needs_people(tmp_path: Path) -> None:
    times, readings = own_files(tmp_path)
    rows = rows_of(times)
    eye = [{**row, "previous_fixated": number % 3 > 0} for number, row in enumerate(rows)]
    written(
        times,
        list(eye[0]),
        [[int(cell) if cell is True or cell is False else cell for cell in row.values()] for row in eye],
    )
    made = own_times.make(times, readings, TimeSettings())
    assert "whether the word before was fixated" in next(t.note for t in made.tables if t.name == "reading_slopes")
    nobody = {name: None for name in eye[0] if name != "person"}
    first = [row for row in eye if row["person"] == eye[0]["person"]]
    written(
        times,
        list(nobody),
        [[int(row[name]) if isinstance(row[name], bool) else row[name] for name in nobody] for row in first],
    )
    made = own_times.make(times, readings, TimeSettings())
    assert any("previous_fixated enters no fit" in note for note in made.notes)


def test_several_times_of_a_word_in_a_corpuss_own_columns_stand_side_by_side(tmp_path: Path) -> None:
    """Each measure has the figures that it has alone, in our own columns and with what was fixated said."""
    times, readings = own_files(tmp_path)
    rows = rows_of(times)
    skips = {(row["person"], row["passage"], row["position"]): number % 5 == 0 for number, row in enumerate(rows)}
    theirs = ["Participant_ID", "Text_ID", "Word_Number", "Word", "IA_SKIP", "log_frequency", "right"]
    measured = {"IA_FIRST_FIXATION_DURATION": 0.5, "IA_FIRST_RUN_DWELL_TIME": 0.75, "IA_DWELL_TIME": 1.0}
    eye = [
        [row["person"], row["passage"], int(row["position"]) + 1, row["word"]]
        + [int(skips[row["person"], row["passage"], row["position"]]), row["log_frequency"], row["right"]]
        + [float(row["time"]) * part for part in measured.values()]
        for row in rows
    ]
    corpus = written(tmp_path / "corpus.csv", [*theirs, *measured], eye)
    out = tmp_path / "out"
    call_command("reading", times=corpus, readings=readings, layout="provo", out=out)
    by_measure = {(row["measure"], row["model"]): row for row in rows_of(out / "reading_measures.csv")}
    assert list(by_measure) == [(measure, "A") for measure in measured]
    data = json.loads((out / "reading.json").read_text())["measures"]
    for measure, part in measured.items():
        alone = []
        for row in rows:
            before = skips.get((row["person"], row["passage"], str(int(row["position"]) - 1)))
            alone.append([*row.values(), "" if before is None else int(not before)])
            alone[-1][HEADER.index("time")] = float(row["time"]) * part
        single = written(tmp_path / "single.csv", [*HEADER, "previous_fixated"], alone)
        made = own_times.make(single, readings, TimeSettings()).data
        assert data[measure] == json.loads(json.dumps(made))
        assert made["models"]["A"]["rows"] > 0
        assert float(by_measure[measure, "A"]["ms_a_nat"]) == made["models"]["A"]["slope"]["value"]
    words = rows_of(out / "reading_words.csv")
    assert [row["measure"] for row in words] == [measure for measure in measured for _word in range(60)]
    assert (out / "slopes_by_measure.svg").stat().st_size and (out / "tenths_3.svg").stat().st_size


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["--column", "passage"], "--column: 'passage': write OURS=THEIRS"),
        (["--column", "time=RT"], "name columns of times by --measure RT"),
        (["--column", "reader=person"], "'reader' is no column that is read here: passage, position"),
        (["--measure", "time", "--measure", "time"], "--measure: time, time: name each column once"),
        (["--measure", "gaze"], "gaze"),
        (["--first-position", "1"], "0 is before the first position, 1 (--first-position)"),
        (["--measure", "time", "--measure", "right", "--model", "gamm", "--out", "o"], "one --measure at a time"),
    ],
)
def test_columns_that_cannot_be_are_refused(
    tmp_path: Path, settings: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    times, readings = own_files(tmp_path, people=2, passages=2)
    with pytest.raises(SystemExit):
        call_command("reading", "--times", str(times), "--readings", str(readings), *settings)
    assert said in capsys.readouterr().err
    assert not Path("o").exists()


def test_models_are_compared_on_words_that_all_of_them_have_read(tmp_path: Path) -> None:
    times, readings = own_files(tmp_path)
    rows = rows_of(readings)
    # Another model that gives the same, and has not read two passages.
    more = [{**row, "model": "B"} for row in rows if row["passage"] not in ("t0", "t1")]
    written(readings, list(rows[0]), [list(row.values()) for row in rows + more])
    findings = own_times.make(times, readings, TimeSettings())
    assert findings.data["models"]["A"] == findings.data["models"]["B"]
    assert any("models are compared on the 40 words" in note for note in findings.notes)
    compared = next(table for table in findings.tables if table.name == "models_compared")
    of_words = [float(row["surprisal"]) for row in rows if row["passage"] not in ("t0", "t1")]
    expected = [np.exp(np.mean(of_words)), findings.data["models"]["A"]["delta_log_likelihood"]]
    assert [row[4:] for row in compared.rows] == [pytest.approx(expected)] * 2


def test_no_perplexity_counts_words_that_a_model_does_not_know(tmp_path: Path) -> None:
    times, readings = own_files(tmp_path)
    rows = rows_of(readings)
    both = [
        {**row, "model": name, "unknown": int(name == "A" and row["position"] == "3")} for name in "AB" for row in rows
    ]
    written(readings, list(both[0]), [list(row.values()) for row in both])
    made = own_times.make(times, readings, TimeSettings())
    expected = np.exp(np.mean([float(row["surprisal"]) for row in rows if row["position"] != "3"]))
    compared = next(table for table in made.tables if table.name == "models_compared")
    assert [row[4] for row in compared.rows] == pytest.approx([expected] * 2)
    assert any("6 words are unknown to a model" in note for note in made.notes)


def test_models_stand_in_one_table_with_what_they_add_to_each_measure(tmp_path: Path) -> None:
    times, readings = own_files(tmp_path)
    rows, rng = rows_of(readings), np.random.default_rng(4)
    more = [{**row, "model": name, "surprisal": 9 * rng.random()} for name in "BC" for row in rows]
    written(readings, list(rows[0]), [list(row.values()) for row in [*rows, *more]])
    both = [{**row, "gaze": float(row["time"]) * rng.uniform(0.5, 1)} for row in rows_of(times)]
    written(times, list(both[0]), [list(row.values()) for row in both])
    made = own_times.make(times, readings, TimeSettings(measures=("time", "gaze")))
    compared = next(table for table in made.tables if table.name == "models_compared")
    assert [column.name for column in compared.columns][4:] == ["perplexity", "delta_1", "delta_2"]
    for place, measure in enumerate(("time", "gaze"), start=5):
        of_models = made.data["measures"][measure]["models"]
        assert [row[place] for row in compared.rows] == [of_models[name]["delta_log_likelihood"] for name in "ABC"]
    names = [picture.name for picture in made.pictures]
    assert names.count("perplexity_delta_1") == names.count("perplexity_delta_2") == 1
    assert [table.name for table in made.tables].count("models_compared") == 1


def test_what_is_known_of_models_groups_them(tmp_path: Path) -> None:
    times, readings = own_files(tmp_path)
    rows, rng = rows_of(readings), np.random.default_rng(3)
    more = [
        {
            **row,
            "model": name,
            "surprisal": float(row["surprisal"]) + noise * rng.random(),
            "corpus": corpus,
            "size": size,
        }
        for name, noise, corpus, size in (
            ("B", 9, "web", "9"),
            ("C", 3, "news", "9"),
            ("D", 1, "web", "2"),
            ("E", 5, "", ""),
        )
        for row in rows
    ]
    written(readings, list(more[0]), [list(row.values()) for row in more])
    made = own_times.make(times, readings, TimeSettings(above="perplexity=5"))
    tables = {table.name: table for table in made.tables}
    assert [row[3] for row in tables["models_compared"].rows] == ["D", "B", "C", "E"]
    assert [row[0] for row in tables["by_corpus"].rows] == ["web", "news", ""]
    assert next(row[:4] for row in tables["over_models"].rows) == ["delta_log_likelihood", "perplexity", "all", 4]
    assert any("delta log-likelihood, all 4 models: r = " in line for line in made.lines)
    assert "perplexity_delta_log_likelihood" in {picture.name for picture in made.pictures}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "SLUG: name a study, or give --times FILE"),
        (["study", "--times", "f"], "and not both"),
        (["--times", "f"], "--readings: is missing"),
        (["--times", "f", "--readings", "g", "--read"], "they are for a study"),
        (["--times", "f", "--readings", "g", "--condition", "a=b"], "they are for a study"),
        (["study", "--readings", "g"], "leave them out"),
        (["study", "--layout", "provo"], "they are for --times"),
        (["study", "--first-position", "0"], "they are for --times"),
        (["study", "--frequencies", "g"], "leave them out"),
        (["study", "--model", "gamm"], "--out: is missing"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments: list[str], said: str, capsys: Any) -> None:
    with pytest.raises(SystemExit):
        call_command("reading", *arguments)
    assert said in capsys.readouterr().err


def test_a_hard_passage_is_no_effect_of_its_words() -> None:
    """Without noise the slopes are those of the words, however slow passages with surprising words are as a whole."""
    rng = np.random.default_rng(1)
    passages, size, people = 6, 20, 4
    passage = np.repeat(np.arange(passages), size)
    surprisal = rng.gamma(2.0, 1.5, passages * size) + passage
    words = TimedWords(
        ["a" * int(integer) for integer in rng.integers(2, 9, passages * size)],
        passage,
        np.tile(np.arange(size), passages),
        rng.normal(-4, 1, passages * size),
        np.tile(np.arange(size) == size - 1, passages),
    )
    word = np.tile(np.arange(passages * size), people)
    person = np.repeat(np.arange(people), passages * size)
    before = np.where(words.position > 0, np.roll(surprisal, 1), 0.0)
    time = (300.0 + 50.0 * person + 40.0 * passage[word]) + 12.0 * surprisal[word] + 6.0 * before[word]
    columns = columns_of_times(prepared(words, previous=2), SingleTimes(word, person, passage[word], time), surprisal)
    assert slopes_of(columns).slopes == pytest.approx([12.0, 6.0, 0.0], abs=1e-6)


@pytest.mark.parametrize(
    ("near", "held", "word"), [(True, True, "PASSED"), (True, False, "UNCLEAR"), (False, False, "FAILED")]
)
def test_a_demonstration_passes_only_where_no_interval_misses_the_truth(near: bool, held: bool, word: str) -> None:
    assert verdict_word(near=near, held=held) == word


@pytest.mark.parametrize(
    ("slopes", "word"),
    [((12.0, 6.5, 0.5), "PASSED"), ((12.0, 9.0, 0.5), "UNCLEAR"), ((12.0, 30.0, 0.5), "FAILED")],
)
def test_the_demonstration_of_reading_says_which_intervals_miss(
    monkeypatch: pytest.MonkeyPatch, slopes: tuple[float, ...], word: str
) -> None:
    """Simulated people read with 12, 6 and 0 ms per nat; each interval is 2 ms to both sides."""
    own = {
        "slopes": [{"value": value, "interval": [value - 2, value + 2]} for value in slopes],
        "delta_log_likelihood": 10.0,
        "rows": 900,
    }
    made = SimpleNamespace(data={"models": {demonstration.READER: own}, "times": 1000, "counted": 900})
    monkeypatch.setattr(demonstration.reports, "make", lambda *_args: made)
    said = demonstration.verdict(SimpleNamespace(), null=False)  # type: ignore[arg-type]
    assert said.sentence.split(":")[0] == word and said.passed == (word != "FAILED")
    assert ("1 of 3 intervals miss it" in said.sentence) == (word != "PASSED")


def test_a_script_for_r_stands_beside_its_data(tmp_path: Path, capsys: Any) -> None:
    times, readings = own_files(tmp_path)
    call_command("reading", times=times, readings=readings, model=["gamm"], out=tmp_path / "out")
    assert f"run: Rscript {tmp_path / 'out' / 'reading_gamm.R'}" in capsys.readouterr().out
    script = (tmp_path / "out" / "reading_gamm.R").read_text()
    rows = rows_of(tmp_path / "out" / "reading_gamm.csv")
    used = {f"{name}_{place}" for name in ("length", "logfreq", "surprisal_1") for place in range(3)}
    assert set(rows[0]) == {"person", "passage", "position", "time", *used}
    assert len(rows) == 6 * 6 * 6  # The first and last words, and two after the first one, are left out.
    for term in ('pair("length_0", "logfreq_0")', 'pair("length_2", "logfreq_2")', 's(person, bs = "re")'):
        assert script.count(term) == 1
    assert script.count('method = "ML"') == 2 and "REML" not in script and "previous_fixated" not in script


def test_the_script_leaves_out_rows_that_do_not_say_whether_the_word_before_was_fixated(tmp_path: Path) -> None:
    """In both models and in the count of rows, as the fits here do."""
    times, readings = own_files(tmp_path)
    rows = rows_of(times)
    header = [*rows[0], "previous_fixated"]
    written(times, header, [[*row.values(), "" if number % 5 == 3 else number % 2] for number, row in enumerate(rows)])
    call_command("reading", times=times, readings=readings, model=["gamm"], out=tmp_path / "out")
    unknown = [row["previous_fixated"] for row in rows_of(tmp_path / "out" / "reading_gamm.csv")].count("NA")
    (fit,) = rows_of(tmp_path / "out" / "reading_models.csv")
    assert unknown > 0 and int(fit["rows"]) == 216 - unknown
    script = (tmp_path / "out" / "reading_gamm.R").read_text()
    assert (
        'complete.cases(rows[, c("surprisal_0", "surprisal_1", "surprisal_2", "previous_fixated", "time")])' in script
    )


def ran_by_r(times: Path, readings: Path, out: Path, **options: Any) -> list[dict[str, str]]:
    if not r_packages.is_installed("mgcv"):
        pytest.skip("R with the package mgcv is not installed here")
    call_command("reading", times=times, readings=readings, model=["gamm"], out=out, **options)
    ran = subprocess.run(["Rscript", str(out / "reading_gamm.R")], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return rows_of(out / "reading_gamm_results.csv")


@pytest.mark.slow  # It starts R.
@pytest.mark.any_database
def test_r_runs_the_script_and_finds_the_slope_of_people(tmp_path: Path) -> None:
    """Lengths and positions with few values, for which the usual number of knots would be too large; passages enough
    that curves of their words cannot follow the times without any surprisal."""
    times, readings = own_files(tmp_path, passages=30)
    with readings.open("a") as file:  # Another model, whose nats are twice as many.
        file.writelines(
            f"B,{row['passage']},{row['position']},{2 * float(row['surprisal'])}\n" for row in rows_of(readings)
        )
    first, second = ran_by_r(times, readings, tmp_path / "out")
    assert (first["model"], first["rows"], second["model"], second["rows"]) == ("A", "1080", "B", "1080")
    assert float(first["delta_log_likelihood"]) > 20
    assert float(second["delta_log_likelihood"]) == pytest.approx(float(first["delta_log_likelihood"]), rel=1e-4)
    assert float(first["ms_a_nat"]) == pytest.approx(20, abs=2)
    assert float(second["ms_a_nat"]) == pytest.approx(float(first["ms_a_nat"]) / 2, rel=1e-4)


@pytest.mark.thorough
@pytest.mark.any_database
def test_curves_find_what_those_of_mgcv_find(tmp_path: Path) -> None:
    """Surprisal that is a bent function of frequency adds much to straight lines and little to curves; what it has
    of its own both find."""
    rng = np.random.default_rng(8)
    sentence, position = np.divmod(np.arange(1200), 12)
    frequency = rng.uniform(-6, -1, 1200)
    own = rng.normal(0, 3, 1200)
    words = ["a" * length for length in rng.integers(2, 9, 1200)]
    surprisal = np.exp(-frequency / 2) + own - own.min()
    time = 250 + 8 * np.exp(-frequency / 2) + 3 * own + rng.normal(0, 15, 1200)
    keys = list(zip(sentence, position, strict=True))
    times = written(
        tmp_path / "times.csv",
        ["passage", "position", "word", "time", "log_frequency"],
        [[*key, *rest] for key, *rest in zip(keys, words, time, frequency, strict=True)],
    )
    readings = written(
        tmp_path / "readings.csv",
        ["model", "passage", "position", "surprisal"],
        [["A", *key, value] for key, value in zip(keys, surprisal, strict=True)],
    )
    (row,) = ran_by_r(times, readings, tmp_path / "out", previous=1)
    straight, smooth = (
        own_times.make(times, readings, TimeSettings(fit=fit, previous=1)).data["models"]["A"]
        for fit in ("linear", "smooth")
    )
    assert row["rows"] == str(smooth["rows"]) == str(straight["rows"])
    assert smooth["delta_log_likelihood"] == pytest.approx(float(row["delta_log_likelihood"]), rel=0.1)
    assert straight["delta_log_likelihood"] > 1.5 * smooth["delta_log_likelihood"]
    assert smooth["slopes"][0]["value"] == pytest.approx(float(row["ms_a_nat"]), abs=0.3)


@pytest.mark.thorough
@pytest.mark.any_database
def test_r_finds_on_the_public_data_what_the_linear_model_finds(de_varda: tuple[Path, Path], tmp_path: Path) -> None:
    """There the smooth terms become straight lines."""
    rows_by_model = {row["model"]: row for row in ran_by_r(*de_varda, tmp_path / "out", previous=1)}
    for name, expected in (("GPT-2", 9.9), ("4-gram", 21.0), ("people", 6.6)):
        assert float(rows_by_model[name]["delta_log_likelihood"]) == pytest.approx(expected, abs=0.1)
        assert rows_by_model[name]["rows"] == "1226"


GOOD = [["a", place, word, 300, "p", 1, "", -2] for place, word in enumerate(WORDS)]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({3: "x"}, "is no time from 0 to 60000 milliseconds"),
        ({3: -1}, "is no time from 0 to 60000 milliseconds"),
        ({3: 60001}, "is no time from 0 to 60000 milliseconds"),
        ({1: -1}, "is no whole number from 0"),
        ({1: 0}, "'two' is 'one' in line 2"),
        ({5: 2}, "is neither 0 nor 1"),
        ({4: ""}, "name who read, or remove the column"),
        ({7: "often"}, "is no number"),
    ],
)
def test_a_wrong_time_is_refused_with_its_line(change: dict[int, Any], said: str, tmp_path: Path) -> None:
    rows = [list(row) for row in GOOD]
    for column, value in change.items():
        rows[1][column] = value
    times = written(tmp_path / "times.csv", HEADER, rows)
    _times, readings = own_files_of(tmp_path)
    with pytest.raises(HunchError, match=re.escape(said)) as refused:
        own_times.make(times, readings, TimeSettings())
    assert "line 3" in str(refused.value) or ":3" in str(refused.value)


def own_files_of(folder: Path) -> tuple[Path, Path]:
    rows = [["A", "a", place, 2.5, word] for place, word in enumerate(WORDS)]
    times = folder / "good.csv"
    return written(times, HEADER, GOOD), written(
        folder / "readings.csv", ["model", "passage", "position", "surprisal", "word"], rows
    )


def test_models_of_another_text_and_times_without_frequencies_are_refused(tmp_path: Path) -> None:
    times, _readings = own_files_of(tmp_path)
    other = written(
        tmp_path / "other.csv",
        ["model", "passage", "position", "surprisal", "word"],
        [["A", "a", place, 2.5, word] for place, word in enumerate(["zero", *WORDS])],
    )
    with pytest.raises(HunchError, match="the model read another text"):
        own_times.make(times, other, TimeSettings())
    bare = written(tmp_path / "bare.csv", HEADER[:4], [row[:4] for row in GOOD])
    with pytest.raises(HunchError, match="--frequencies: is missing"):
        own_times.make(bare, other, TimeSettings())
    with pytest.raises(HunchError, match="--shortest"):
        own_times.make(times, other, TimeSettings(rules=CleaningRules(shortest=500, longest=400)))
    with pytest.raises(HunchError, match="--shortest"):
        TimeSettings(rules=CleaningRules(shortest=400, longest=400)).check()


# By hand


def test_a_question_counts_once_however_many_words_its_passage_has() -> None:
    rows = [(word, 0, 0, 300.0, 1.0, False) for word in range(3)] + [(3, 1, 0, 300.0, 0.0, False)]
    rows += [(0, 0, 1, 300.0, np.nan, False)]
    times = times_of(rows)
    share = share_right(times)
    assert share[0] == 0.5 and np.isnan(share[1])
    # Who was asked nothing is not careless.
    assert cleaned(times, CleaningRules()).keep.tolist() == [False] * 4 + [True]
    person, passage, right = asked_of(times)
    assert (person.tolist(), passage.tolist(), right.tolist()) == ([0, 0], [0, 1], [1, 0])
    assert figures.right_share(times).value == 0.5


def test_means_are_of_the_times_that_a_word_has() -> None:
    times = times_of([(0, 0, 0, 300.0, 1, False), (0, 0, 1, 500.0, 1, False), (2, 1, 0, 200.0, 1, False)])
    means, count = figures.mean_times(times, 3)
    assert means[[0, 2]].tolist() == [400, 200] and np.isnan(means[1]) and count.tolist() == [2, 0, 1]
    assert figures.mean_time(times).value == pytest.approx(1000 / 3)
    assert np.isnan(figures.correlation(np.array([1.0, 2]), np.array([1.0, 2])))
    assert np.isnan(figures.correlation(np.ones(4), np.arange(4.0)))


def test_a_share_of_right_answers_has_wilsons_interval_with_students_quantile() -> None:
    """Twenty people with one passage each, 15 right: nobody and nothing twice, so that 20 answers count as 20."""
    rows = [(0, n, n, 300.0, float(n < 15), False) for n in range(20)]
    right_share = figures.right_share(times_of(rows))
    t = student_t_quantile(0.95 / 2 + 0.5, 19)
    share, n = 0.75, min(20.0, 0.75 * 0.25 / (0.75 * 0.25 / 20 * 20 / 19))
    middle = (share + t**2 / n / 2) / (1 + t**2 / n)
    half = t / (1 + t**2 / n) * np.sqrt(share * (1 - share) / n + t**2 / (4 * n**2))
    assert (right_share.value, right_share.low, right_share.high) == pytest.approx((0.75, middle - half, middle + half))


def test_slopes_vary_by_person_and_by_passage_at_once() -> None:
    rng = np.random.default_rng(9)
    person, passage = np.tile(np.arange(5), 24), np.repeat(np.arange(6), 20)
    base = np.column_stack([np.ones(120), rng.normal(3, 1, 120)])
    both = np.column_stack([base, rng.normal(size=(120, 2))])
    ways = rng.normal(0, 3, 5)[person] + rng.normal(0, 6, 6)[passage]
    wanted = both @ [200.0, 10.0, 8.0, 3.0] + ways * both[:, 2] + rng.normal(0, 5, 120)
    columns = Columns(base, both, wanted, np.zeros(120, dtype=np.int64), np.arange(120))
    each, total = figures.slopes(columns, person, passage)
    summed = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    by_person, by_passage = (figures._jackknife(columns, group, summed) for group in (person, passage))
    added = slopes_of(columns).added @ summed.T
    pairs = [bandit.clustered_variance(column, person * 6 + passage) for column in added.T]
    variance = np.maximum(by_person + by_passage - pairs, np.minimum(by_person, by_passage))
    t = student_t_quantile(0.975, 4)
    for slope, squared_error in zip([*each, total], variance, strict=True):
        assert slope.low is not None and slope.value - slope.low == pytest.approx(t * np.sqrt(squared_error))
    assert variance[0] > by_person[0] and total.value == pytest.approx(sum(slope.value for slope in each))


def word_rows(answer: Any) -> list[Any]:
    return list(ExtraFile.of("", export.WORD_COLUMNS, export.words_of([answer])).rows)


def test_a_row_a_word_has_its_place_in_the_passage_and_the_passages_place_in_the_sitting() -> None:
    passage = SimpleNamespace(
        words=["Rain", "fell."], asks="Dry?", question=SimpleNamespace(external_id="t1", task=None)
    )
    assignments = [
        SimpleNamespace(
            word_times=SimpleNamespace(
                times=[310, 290], lead_ms=150, server_ms=900, means="key", marks=["focus", "clock"]
            )
        ),
        SimpleNamespace(passage_answer=SimpleNamespace(yes=True, right=False)),
    ]
    answer: Any = SimpleNamespace(
        slot=SimpleNamespace(item=SimpleNamespace(read_passage=passage)),
        sitting=SimpleNamespace(respondent=SimpleNamespace(pseudonym="r-1")),
        position=4,
        responses=SimpleNamespace(all=lambda: assignments),
    )
    assert word_rows(answer) == [
        ["r-1", "t1", 4, 0, "Rain", 310, 0, "focus clock"],
        ["r-1", "t1", 4, 1, "fell.", 290, 0, "focus clock"],
    ]
    assert ReadingEstimates().outcomes([answer])["right"].tolist() == [0]
    del assignments[1]
    assert [row[-2] for row in word_rows(answer)] == [None, None]


def test_what_the_command_leaves_out_is_what_a_study_leaves_out() -> None:
    parser = load_command_class("survey.instruments.self_paced_reading", "reading").create_parser("", "reading")
    asked, rules = parser.parse_args([]), CleaningRules()
    assert (asked.shortest, asked.longest) == (rules.shortest, rules.longest) == (100, 3000)
    assert (asked.least_right, asked.previous) == (rules.least_right, TimeSettings().previous) == (0.8, 2)
