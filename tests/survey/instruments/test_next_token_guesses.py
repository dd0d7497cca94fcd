"""Guesses of next tokens as arrays and files: public data, known answers, bad input."""

import csv
import io
import json
import math
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from django.conf import settings
from django.core.management import call_command

import bandit
from survey.exceptions import FileErrors, HunchError
from survey.instruments.next_token import practice
from survey.instruments.next_token.analysis import guesses as analysis
from survey.instruments.next_token.analysis import priority
from survey.instruments.next_token.analysis.guesses import GuessTable, ModelGuesses
from survey.instruments.next_token.analysis.simulation import GuessPlan, GuessWorld, study, truth
from survey.instruments.next_token.estimands import NextTokenEstimates
from survey.instruments.next_token.reports.own_guesses import read_guesses
from survey.services.results.people_and_models.errors import interval

PUBLIC = Path(settings.HUNCH_STUDY_DATA) / "human" / "redwood"
# Who tried the game out: the data's owners.
OWNERS = {-6247052403041399844, 7513247084907933005, 3056584949900737159}


def written(path: Path, rows: list[tuple[Any, ...]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["person", "passage", "position", "guess", "truth", "asked"])
        writer.writerows(rows)
    return path


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> GuessTable:
    if not PUBLIC.exists():
        pytest.skip("the public guesses are not on this machine")
    texts = json.loads((PUBLIC / "docs_used.json").read_text(encoding="utf-8"))
    made = json.loads((PUBLIC / "res_accuracy_anonym.json").read_text(encoding="utf-8"))
    assert len(made) == 25_203
    assert len({row[1] for row in made}) == 71
    rows = []
    for _number, person, guess, _sign, place, text in made:
        if person not in OWNERS:
            tokens = texts.get(str(text), [])
            truth = tokens[place - 1] if 0 < place <= len(tokens) else ""
            asked = bool(truth) and "\n" not in truth and "�" not in truth
            rows.append((person, text, place - 1, guess, truth, int(asked)))
    assert len(rows) == 24_175
    return read_guesses(written(tmp_path_factory.mktemp("public") / "guesses.csv", rows)).table


@pytest.mark.thorough
def test_the_public_guesses_have_the_known_figures(public: GuessTable) -> None:
    share = analysis.share(public)
    assert (share.n, len(public.people), public.given) == (22_634, 68, 24_175 - 22_634)
    assert round(100 * share.figure.value, 2) == 26.75
    listed = analysis.by_person(public)
    assert len(listed) == 39
    busiest = max(listed, key=lambda entry: entry[1])
    assert (busiest[1], round(100 * busiest[2] / busiest[1], 1)) == (4605, 19.7)
    without = public.person != public.people.index(busiest[0])
    rest = analysis.share(public, without)
    assert (rest.n, round(100 * rest.right / rest.n, 1)) == (18_029, 28.6)


def small(**changed: Any) -> GuessTable:
    """Two people, two passages, three positions each; the model is right where the surprisal is below 1."""
    truth = [" the", "s", ",", " the", "7", " a"] * 2
    guess = [" the", "x", ",", " a", "7", " a", " the", "s", ".", " the", "8", " b"]
    right = np.array([guessed == other for guessed, other in zip(guess, truth, strict=True)], dtype=np.float64)
    columns = {
        "person": np.repeat([0, 1], 6),
        "passage": np.tile([0, 0, 0, 1, 1, 1], 2),
        "people": ["p", "q"],
        "passages": ["a", "b"],
        "position": np.tile([0, 1, 2], 4),
        "place": np.tile([1, 2, 3], 4),
        "number": np.tile(np.arange(1, 7), 2),
        "right": right,
        "weight": np.ones(12),
        "guess": guess,
        "truth": truth,
        "models": [ModelGuesses("m", np.tile([1.0, 0, 0, 1, 0, 0], 2), np.tile([0.5, 2, 2, 0.5, 2, 2], 2))],
    }
    return GuessTable(**{**columns, **changed})


def test_shares_are_ratios_of_weighted_sums() -> None:
    table = small()
    assert analysis.share(table).figure.value == pytest.approx(7 / 12)
    weight = np.where(table.person == 0, 3.0, 1.0)
    assert analysis.share(small(weight=weight)).figure.value == pytest.approx((3 * 4 + 3) / 24)
    model = table.models[0]
    assert analysis.mean(table.right - model.right, table, scale="difference").value == pytest.approx(7 / 12 - 4 / 12)
    assert analysis.perplexity(model, table).value == pytest.approx(math.exp(1.5))
    assert analysis.perplexity(ModelGuesses("z", model.right, np.full(12, np.inf)), table).value == math.inf


def test_tokens_are_parted_by_what_they_are() -> None:
    kinds = [analysis.kind_of(token, first=False) for token in (" the", "s", ",", " 7", "'ve", " “", " ", "\n")]
    assert kinds == ["begins a word", "goes on", "punctuation", "digit", "goes on", "punctuation", "space", "space"]
    assert analysis.kind_of("The", first=True) == "begins a word"
    parts = analysis.divisions(small())
    assert parts["token"][:6] == ["begins a word", "goes on", "punctuation", "begins a word", "digit", "begins a word"]
    assert set(parts["surprisal of m, in tenths"]) == {"1 of 10", "4 of 10"}
    assert sorted(["1 to 20", "1001 and more", "21 to 40"], key=analysis.order_of)[-1] == "1001 and more"


def test_the_ensemble_takes_the_most_frequent_guess_and_shares_ties() -> None:
    people = 6
    guess = ["a", "a", "a", "b", "b", "c", "a", "a", "b", "b", "c", "d"]
    truth = ["a"] * 6 + ["b"] * 6
    table = GuessTable(
        person=np.tile(np.arange(people), 2),
        passage=np.repeat([0, 1], people),
        people=[str(number) for number in range(people)],
        passages=["x", "y"],
        position=np.zeros(12, dtype=np.int64),
        place=np.zeros(12, dtype=np.int64),
        number=np.ones(12, dtype=np.int64),
        right=np.array([guessed == other for guessed, other in zip(guess, truth, strict=True)], dtype=np.float64),
        weight=np.ones(12),
        guess=guess,
        truth=truth,
    )
    ensemble = analysis.ensemble(table)
    assert ensemble is not None
    assert ensemble.positions == 2
    assert ensemble.ensemble.value == pytest.approx((1 + 0.5) / 2)
    assert ensemble.person.value == pytest.approx((3 / 6 + 2 / 6) / 2)
    assert analysis.ensemble(table, least=7) is None


def test_fanos_bound_has_its_known_values() -> None:
    assert analysis.most_bits(1.0, 27) == 0
    assert analysis.most_bits(1 / 27, 27) == pytest.approx(math.log2(27))


def test_a_prediction_finds_who_is_hard_and_the_gap_is_between_it_and_the_model() -> None:
    rng = np.random.default_rng(8)
    features = rng.normal(size=(400, 2))
    text, run = np.repeat(np.arange(20), 20), np.repeat(np.arange(20), 20)
    truth = np.clip(0.4 + 0.2 * features[:, 0], 0.02, 0.98)
    guessed = np.arange(0, 400, 2)
    n = np.full(len(guessed), 8.0)
    predicted = priority.predicted_share(features, text, guessed, n, rng.binomial(8, truth[guessed]).astype(float))
    assert np.corrcoef(predicted, truth)[0, 1] > 0.9
    model = np.where(np.isin(run, [3]), 1.0, np.round(truth))
    gaps = priority.gap(np.full(400, 0.5), np.where(run == 3, 1.0, 0.5), run)
    assert gaps.argmax() == 3
    assert np.isfinite(priority.gap(predicted, np.where(run == 5, np.nan, model), run)).all()
    spread = priority.uncertainty(np.full(400, 0.5), run, np.arange(20.0))
    assert (np.diff(spread) < 0).all()
    assert priority.predicted_share(features, text, np.array([], dtype=int), n[:0], n[:0]).tolist() == [0.5] * 400


def test_a_file_is_analysed_and_written(tmp_path: Path) -> None:
    table = small()
    rows = [
        (table.people[who], table.passages[text], at, guess, truth, 1)
        for who, text, at, guess, truth in zip(
            table.person, table.passage, table.position, table.guess, table.truth, strict=True
        )
    ]
    file = written(tmp_path / "own.csv", [*rows, ("p", "a", 9, "", "\n", 0)])
    out = io.StringIO()
    call_command("next_token", guesses=file, out=tmp_path / "out", stdout=out, stderr=io.StringIO())
    assert "People guess 58.3 % [1.8, 99.1] of the tokens right." in out.getvalue()
    figures = json.loads((tmp_path / "out" / "next_token.json").read_text(encoding="utf-8"))
    assert (figures["guesses"], figures["right"], figures["given"]) == (12, 7, 1)
    assert figures["share"]["value"] == round(7 / 12, 6)
    assert (tmp_path / "out" / "next_token_parts.csv").exists()
    assert "Many people together" not in out.getvalue(), "a heading with nothing under it"


@pytest.mark.django_db
def test_models_read_the_texts_that_the_guesses_of_a_file_spell(tmp_path: Path) -> None:
    """People are right half the time, one model always, one never; both come as files of readings."""
    tokens = ["The", " cat", " sat", " on", " the", " mat"] * 20
    text = "".join(tokens)
    rows = [
        (person, "a", place, token if (place + number) % 2 else " x", token, 1)
        for number, person in enumerate(["p", "q", "lazy"])
        for place, token in enumerate(tokens)
        if person != "lazy" or place < 60
    ]
    file = written(tmp_path / "own.csv", rows)
    readings = {}
    for name, chance in (("good", 0.75), ("bad", 0.25)):
        readings[name] = tmp_path / f"{name}.csv"
        with readings[name].open("w", encoding="utf-8", newline="") as opened:
            writer = csv.writer(opened)
            writer.writerow(["text_id", "start", "end", "logprob", "listed"])
            # Its own tokens are words with the space behind them: other tokens than those that people guessed.
            for match in re.finditer(r"\S+ ?|\s+", text):
                listed = {match.group(): math.log(chance), "zzz": math.log(1 - chance)}
                writer.writerow(["a", match.start(), match.end(), math.log(chance), json.dumps(listed)])
    said = io.StringIO()
    call_command(
        "next_token",
        guesses=file,
        model=[f"{name}=file:{path}" for name, path in readings.items()],
        without=["lazy"],
        out=tmp_path / "out",
        stdout=io.StringIO(),
        stderr=said,
    )
    figures = json.loads((tmp_path / "out" / "next_token.json").read_text(encoding="utf-8"))
    shares = {row["who"]: row["share"] for row in figures["figures"]}
    assert (shares["people"], shares["good"]) == (0.5, 1.0) and shares["bad"] < 0.2
    assert [(row["who"], row["people"], row["above"]) for row in figures["above"]] == [("good", 2, 0), ("bad", 2, 2)]
    assert figures["people"] == 2 and "without the guesses of lazy" in said.getvalue()
    assert (tmp_path / "out" / "next_token_people.svg").exists()


def test_a_file_says_what_models_need_to_read_its_texts(tmp_path: Path) -> None:
    gap = [("p", "a", 0, "x", "The", 1), ("p", "a", 2, "x", " sat", 1)]
    with pytest.raises(HunchError, match=r"missing for a at 1.*add a row for each such token"):
        read_guesses(written(tmp_path / "gap.csv", gap)).places(None)
    with pytest.raises(HunchError, match="missing for a at 2"):
        read_guesses(written(tmp_path / "gap.csv", gap)).places({"a": "The cat sat"})
    file = tmp_path / "start.csv"
    file.write_text(
        "person,passage,position,guess,truth,asked,start\np,a,0,x,The,1,0\np,a,2,x, sat,1,7\n", encoding="utf-8"
    )
    ((text, starts),) = read_guesses(file).places({"a": "The cat sat"})
    assert text.text == "The cat sat" and starts == {0: 0, 2: 7}
    with pytest.raises(HunchError, match="has ' dog' at character 7"):
        read_guesses(file).places({"a": "The cat dog"})
    with pytest.raises(FileErrors, match="line 2 has 'The' at the same place"):
        read_guesses(written(tmp_path / "two.csv", [gap[0], ("q", "a", 0, "x", "A", 1)]))
    with pytest.raises(HunchError, match="--without: 'r' is nobody"):
        read_guesses(written(tmp_path / "gap.csv", gap), without=["r"])


def test_people_above_a_model_are_counted_on_their_own_positions() -> None:
    rng = np.random.default_rng(2)
    person = np.repeat(np.arange(40), 60)
    level = rng.uniform(0.2, 0.6, 40)
    right = (rng.random(2400) < level[person]).astype(np.float64)
    model = (rng.random(2400) < 0.4).astype(np.float64)
    table = small(
        person=person,
        passage=np.zeros(2400, dtype=int),
        people=[str(number) for number in range(40)],
        passages=["a"],
        right=right,
        models=[ModelGuesses("m", model, model)],
    )
    count = analysis.people_above(table.models[0], table)
    own = [right[person == who].sum() - model[person == who].sum() for who in range(40)]
    assert (count.people, count.above, count.equal) == (40, sum(d > 0 for d in own), sum(d == 0 for d in own))
    assert count.figure.low < count.above / 40 < count.figure.high
    assert analysis.people_above(table.models[0], table, least=61).people == 0


def practised(rng: np.random.Generator, *, gain: float, people: int = 30) -> GuessTable:
    """People with a level each, of whom the better ones stay longer; `gain` is added with each doubling of guesses."""
    level = rng.uniform(0.1, 0.5, people)
    counts = np.round(25 + 300 * (level - 0.1)).astype(int)
    person = np.repeat(np.arange(people), counts)
    number = analysis.numbers_of(person)
    n = len(person)
    right = (rng.random(n) < level[person] + gain * np.log2(number)).astype(np.float64)
    return small(
        person=person,
        passage=rng.integers(0, 20, n),
        people=[str(name) for name in range(people)],
        passages=[str(name) for name in range(20)],
        position=np.arange(n),
        place=np.zeros(n, dtype=int),
        number=number,
        right=right,
        weight=np.ones(n),
        guess=[""] * n,
        truth=[""] * n,
        models=[],
    )


def test_practice_is_measured_within_people_and_not_by_who_stays() -> None:
    table = practised(np.random.default_rng(4), gain=0.0)
    parts = {part.part: part for part in analysis.practice_by_part(table)}
    by_part = {
        part: analysis.share(table, np.array(analysis.divisions(table)["guess of the person"]) == part)
        for part in ("1 to 20", "101 to 200")
    }
    assert by_part["101 to 200"].figure.value - by_part["1 to 20"].figure.value > 0.05, "who stays is better"
    late = parts["101 to 200"]
    assert late.people < len(table.people) and late.change.low < 0 < late.change.high
    people, slope = analysis.practice_per_doubling(table)
    assert people == 30 and slope.low < 0 < slope.high
    learning = analysis.practice_per_doubling(practised(np.random.default_rng(4), gain=0.04))[1]
    assert learning.low > 0 and learning.low < 0.04 < learning.high
    # By hand: two people, the first guess against the second to fourth.
    one = small()
    changes = [part for part in analysis.practice_by_part(one) if part.people]
    assert [(part.part, part.people, part.guesses) for part in changes] == [("1 to 20", 2, 12)]


@pytest.mark.thorough
@pytest.mark.parametrize("gain", [0.0, 0.03])
def test_intervals_of_practice_hold_the_truth_in_2000_studies(gain: float) -> None:
    """Better people stay longer, and learn nothing, or as much with each doubling."""
    slopes, changes = [], []
    for number in range(2000):
        table = practised(np.random.default_rng(number), gain=gain)
        slopes.append(analysis.practice_per_doubling(table)[1].interval or (math.nan, math.nan))
        changes.append(analysis.practice_by_part(table)[2].change.interval or (math.nan, math.nan))
    logs = np.log2(np.arange(1, 61))
    aim = gain * (logs[40:].mean() - logs[:20].mean())
    for ends, known in ((np.array(slopes), gain), (np.array(changes), aim)):
        cover = float(((ends[:, 0] <= known) & (known <= ends[:, 1])).mean())
        print(f"gain {gain}: {cover:.3f}")
        assert 0.93 <= cover <= 0.97


def test_every_problem_of_a_file_is_named_with_its_line(tmp_path: Path) -> None:
    rows = [("p", "a", -1, "x", "x", 1), ("", "a", 1, "x", "x", 1), ("p", "a", 1, "x", "", 1), ("p", "a", 1, "", "", 2)]
    with pytest.raises(FileErrors) as raised:
        read_guesses(written(tmp_path / "bad.csv", rows))
    assert [(problem.line, problem.field) for problem in raised.value.problems] == [
        (2, "position"),
        (3, "person"),
        (4, "truth"),
        (5, "asked"),
    ]
    with pytest.raises(HunchError, match="no guess was asked for"):
        read_guesses(written(tmp_path / "none.csv", [("p", "a", 1, "", "x", 0)]))
    with pytest.raises(SystemExit):
        call_command("next_token", stderr=io.StringIO())


@pytest.mark.slow
def test_intervals_hold_the_truth_of_simulated_studies() -> None:
    """A small form of `benchmarks/next_token_laws.py`: 40 studies, of which hardly more than a few may miss."""
    plan = GuessPlan(passages=40, runs=1, tokens=6, drawn=(30,), items=3)
    aims = truth(GuessWorld(), plan, rng=np.random.default_rng(1), passages=2_000)
    made = [study(GuessWorld(), plan, rng=np.random.default_rng(number)) for number in range(40)]
    for place, aim in enumerate(aims):
        ends = [(study_figures[place].low, study_figures[place].high) for study_figures in made]
        assert sum(low is not None and high is not None and low <= aim <= high for low, high in ends) >= 34


# By hand


def test_people_are_listed_by_their_share_beside_the_models_where_these_are_known() -> None:
    known = np.tile([1.0, 0, np.nan, 1, 0, 0], 2)
    table = small(models=[ModelGuesses("m", known, known), ModelGuesses("none", known * np.nan, known * np.nan)])
    assert analysis.by_person(table, least=6) == [
        ("p", 6, 4, [pytest.approx(2 / 5), None]),
        ("q", 6, 3, [pytest.approx(2 / 5), None]),
    ]
    assert analysis.by_person(table, least=7) == []
    turned = small(people=["q", "p"], right=1 - small().right)
    assert [row[0] for row in analysis.by_person(turned, least=6)] == ["p", "q"]
    busy = small(
        person=np.repeat([0, 1], [3, 9]), people=["q", "p"], right=np.array([1.0, 1, 0, *[1.0] * 4, *[0.0] * 5])
    )
    assert [row[:3] for row in analysis.by_person(busy, least=3)] == [("q", 3, 2), ("p", 9, 4)]
    assert analysis.numbers_of(np.array([4, 7, 4, 4, 7])).tolist() == [1, 1, 2, 3, 2]


def test_parts_of_runs_of_people_and_of_surprisal_end_where_they_say() -> None:
    table = small(
        place=np.array([1, 5, 6, 10, 11, 15] * 2), number=np.array([1, 20, 21, 40, 41, 60, 61, 100, 101, 5, 5, 5])
    )
    parts = analysis.divisions(table)
    assert parts["place in the run"][:6] == ["1 to 5", "1 to 5", "6 to 10", "6 to 10", "11 to 15", "11 to 15"]
    expected = ["1 to 20"] * 2 + ["21 to 40"] * 2 + ["41 to 60"] * 2 + ["61 to 100"] * 2 + ["101 to 200"]
    assert parts["guess of the person"][:9] == expected
    assert "place in the run" not in analysis.divisions(small(place=np.zeros(12, dtype=int)))
    tenths = analysis._deciles(np.array([*np.arange(20.0)[::-1], np.nan]))
    assert tenths[:3] == ["10 of 10", "10 of 10", "9 of 10"] and tenths[-3:] == ["1 of 10", "1 of 10", ""]
    assert analysis.most_bits(0.5, 3) == pytest.approx(1.5)


def test_an_ensemble_is_of_different_people_and_its_positions_weigh_as_their_guesses() -> None:
    """Five people at one position; at another one of them twice, which makes no five."""
    guess = ["a", "a", "a", "b", "c", "a", "a", "b", "b", "b"]
    person = np.array([0, 1, 2, 3, 4, 0, 0, 1, 2, 3])
    table = small(
        person=person,
        passage=np.repeat([0, 1], 5),
        people=list("pqrst"),
        position=np.zeros(10, dtype=int),
        place=np.ones(10, dtype=int),
        number=np.ones(10, dtype=int),
        right=np.array([guessed == "a" for guessed in guess], dtype=float),
        weight=np.repeat([3.0, 1.0], 5),
        guess=guess,
        truth=["a"] * 10,
        models=[ModelGuesses("m", np.repeat([0.0, 1.0], 5), np.ones(10))],
    )
    ensemble = analysis.ensemble(table)
    assert ensemble is not None and (ensemble.positions, ensemble.ensemble.value, ensemble.models[0].value) == (1, 1, 0)
    both = analysis.ensemble(table, least=4)
    assert both is not None and both.positions == 2
    assert both.ensemble.value == pytest.approx(3 / 4) and both.models[0].value == pytest.approx(1 / 4)
    assert both.person.value == pytest.approx((3 * 3 / 5 + 2 / 5) / 4)
    assert both.difference.value == pytest.approx(both.ensemble.value - both.person.value)


def test_what_the_next_stage_samples_by_is_worked_out_as_written() -> None:
    features, text = np.zeros((4, 1)), np.array([0, 1, 2, 0])
    predicted = priority.predicted_share(
        features, text, np.array([0, 1]), np.array([10.0, 30.0]), np.array([5.0, 27.0])
    )
    # 32 of 40 in all; what a text adds is drawn towards 0 by 40 guesses.
    assert predicted == pytest.approx([0.8 - 3 / 50, 0.8 + 3 / 70, 0.8, 0.8 - 3 / 50])
    model = np.array([1.0, np.nan, 0.0, 1.0])
    assert priority.gap(np.array([0.5, 0.7, 0.2, 0.9]), model, np.array([0, 0, 1, 1])) == pytest.approx([0.5, 0.05])
    uncertainties = priority.uncertainty(np.full(5, 0.5), np.array([0, 0, 0, 0, 1]), np.array([3.0, 0.0]))
    assert uncertainties == pytest.approx([1 / 4 / 2, 0.5])
    columns = np.array([[0.0], [2.0], [np.nan], [4.0], [2.0]])
    filled = priority.predicted_share(
        columns, np.zeros(5, dtype=int), np.array([0, 3]), np.ones(2), np.array([0.0, 1.0])
    )
    assert filled[2] == pytest.approx(filled[1]) and filled[0] < filled[1] < filled[3]


def test_what_guesses_estimate_is_a_ratio_of_all_tokens_and_of_each_kind() -> None:
    """Of two runs: a word at the beginning of the text, its rest, a comma; and a word that begins in the middle."""

    def run(start: int, texts: list[str], right: list[bool]) -> Any:
        tokens = [SimpleNamespace(text=text) for text in texts]
        made = [
            SimpleNamespace(token_guess=SimpleNamespace(place=place, position=start + place, attempt=1, right=is_right))
            for place, is_right in enumerate(right)
        ]
        item = SimpleNamespace(token_run=SimpleNamespace(run_tokens=tokens, text_of=lambda token: token.text))
        return SimpleNamespace(slot=SimpleNamespace(item=item), responses=SimpleNamespace(all=lambda: made))

    answers = [run(0, ["Birds", "s", ","], [True, False, True]), run(9, ["s", " fly"], [True, False])]
    measures = {measure.name: measure for measure in NextTokenEstimates().estimands(answers).measures}
    assert (measures["right"].values.tolist(), measures["right"].per.tolist()) == ([2, 1], [3, 2])
    words = measures["right_begins_a_word"]
    assert (words.values.tolist(), words.where.tolist(), words.per.tolist()) == ([1, 0], [True, True], [1, 1])
    marks = measures["right_punctuation"]
    assert (marks.values.tolist(), marks.where.tolist(), marks.per.tolist()) == ([1, 0], [True, False], [1, 0])
    assert measures["right_goes_on"].values.tolist() == [0, 1]
    assert NextTokenEstimates().outcomes(answers)["right"] == pytest.approx([2 / 3, 1 / 2])


def test_a_means_interval_is_by_person_and_passage_with_the_weights_of_its_guesses() -> None:
    rng = np.random.default_rng(6)
    person, passage = np.tile(np.arange(6), 8), np.repeat(np.arange(8), 6)
    values, weight = rng.random(48), np.where(passage % 2 == 0, 3.0, 1.0)
    names = [str(number) for number in range(8)]
    many = {name: np.ones(48, dtype=int) for name in ("position", "place", "number")}
    table = small(
        person=person, passage=passage, people=names[:6], passages=names, right=values, weight=weight,
        guess=["x"] * 48, truth=["x"] * 48, models=[], **many,
    )  # fmt: skip
    estimate = analysis.mean(values, table, scale="number")
    mean = np.average(values, weights=weight)
    added, share = weight * (values - mean) / weight.sum(), weight / weight.sum()
    variance = bandit.clustered_variance(added, person, passage)
    expected = interval(mean, variance, bandit.clustered_freedom(share, person, passage))
    assert (estimate.value, estimate.low, estimate.high) == pytest.approx((expected.value, expected.low, expected.high))
    of_share = analysis.mean(values, table)
    assert of_share.low is not None and of_share.high is not None
    assert of_share.standard_error == pytest.approx(expected.standard_error)
    logits = [math.log(chance / (1 - chance)) for chance in (of_share.low, mean, of_share.high)]
    assert logits[1] - logits[0] == pytest.approx(logits[2] - logits[1])


def test_people_who_are_always_right_make_the_share_of_several_guesses_uncertain() -> None:
    """Each of six positions has three right guesses of six: by the same three people, or by each person in half."""
    person, passage = np.tile(np.arange(6), 6), np.repeat(np.arange(6), 6)
    shares = []
    for right in (person < 3, (person + passage) % 2 == 0):
        table = small(
            person=person, passage=passage, people=list("pqrstu"), passages=list("abcdef"),
            position=np.zeros(36, dtype=int), place=np.ones(36, dtype=int), number=np.ones(36, dtype=int),
            right=right.astype(float), weight=np.ones(36), guess=["a" if is_right else "b" for is_right in right],
            truth=["a"] * 36, models=[],
        )  # fmt: skip
        figures = analysis.ensemble(table)
        assert figures is not None and figures.person.value == pytest.approx(0.5)
        shares.append(figures.person)
    consistent, mixed = (share.standard_error or 0 for share in shares)
    assert consistent > 0.15 and mixed < 1e-6


def test_practice_ends_with_the_page_that_shows_the_last_guess(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(practice, "registered", lambda _source: None)
    monkeypatch.setattr(practice, "screen_of", lambda _text, _pieces, made, **_how: [guess.right for guess in made])
    screen = practice.NextTokenPractice("", reveal=True).screen
    example, sitting = {"text": "The cat", "next": "·sat|·down"}, Any
    guesses = [{"text": " sat"}, {"text": " up"}]
    after = [screen(sitting=sitting, example=example, given=guesses[:count]) for count in range(3)]
    assert after == [[], [True], [True, False]]
    assert screen(sitting=sitting, example=example, given=[*guesses, {}]) is None
