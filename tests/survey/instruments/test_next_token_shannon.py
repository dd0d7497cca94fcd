"""Shannon's game: guesses until a character is right, from its page to the bounds of the uncertainty."""

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.core.management import call_command

from survey.contracts import instruments
from survey.exceptions import FieldErrors, FileErrors, HunchError
from survey.figures import Figure
from survey.instruments.next_token.analysis import shannon
from survey.instruments.next_token.analysis.guesses import GuessTable, numbers_of
from survey.instruments.next_token.forms import form_of
from survey.instruments.next_token.models import TokenGuess
from survey.instruments.next_token.reports.figures import ShannonGame
from survey.instruments.next_token.reports.own_guesses import make, read_guesses
from survey.instruments.next_token.screens import MOST_TRIES
from survey.models import Response, Score, Sitting
from survey.services.answers.counting import study_answers
from survey.services.banks import passages
from survey.services.results import reports
from survey.services.results.export import files
from survey.services.sittings.answering import advance
from survey.services.sittings.flow import current_step
from tests import cast
from tests.survey.instruments.test_next_token import STUDY, begun, opened, play, prepare_tales
from tests.survey.instruments.test_next_token_play import PANEL, arrives

OPTIONS = {"unit": "character", "run": 6, "start": "drawn", "until_right": True}
LETTERS = 27


def played(ranks: np.ndarray, person: np.ndarray, passage: np.ndarray) -> GuessTable:
    n = len(ranks)
    return GuessTable(
        person=person,
        passage=passage,
        people=[str(name) for name in range(person.max() + 1)],
        passages=[str(name) for name in range(passage.max() + 1)],
        position=np.arange(n),
        place=np.zeros(n, dtype=np.int64),
        number=numbers_of(person),
        right=(ranks == 1).astype(np.float64),
        weight=np.ones(n),
        guess=[""] * n,
        truth=[""] * n,
    )


def bounds(ranks: np.ndarray, ended: np.ndarray | None = None) -> shannon.Uncertainty:
    person, passage = np.arange(len(ranks)) % 4, np.arange(len(ranks)) % 5
    tries = shannon.Tries(ranks, np.ones(len(ranks), dtype=bool) if ended is None else ended)
    return shannon.uncertainty(played(ranks, person, passage), tries, characters=LETTERS)


def test_the_bounds_are_shannons() -> None:
    """By hand, for a half, a quarter and two eighths: 1.75 bits at most; sum of i (q_i - q_(i+1)) log i at least."""
    ranks = np.repeat([1, 2, 3, 4], [4000, 2000, 1000, 1000])
    found = bounds(ranks)
    q = [0.5, 0.25, 0.125, 0.125, 0]
    least = sum(i * (q[i - 1] - q[i]) * math.log2(i) for i in range(1, 5))
    assert found.least.number == pytest.approx(least)
    assert found.most.number == pytest.approx(1.75 + 3 / (2 * 8000 * math.log(2)))
    assert found.least.low < least < found.least.high and found.untold == 0
    # Who is always right at once leaves nothing open; who guesses blindly leaves log2 of all letters, both ways.
    assert bounds(np.ones(100, dtype=int)).most.number == 0
    blind = bounds(np.tile(np.arange(1, LETTERS + 1), 2000))
    assert blind.least.number == pytest.approx(math.log2(LETTERS))
    assert blind.most.number == pytest.approx(math.log2(LETTERS), abs=0.001)
    assert shannon.perplexity_of(blind.least, 2.0).number == pytest.approx(LETTERS**2)


def test_characters_that_were_shown_widen_the_bounds_and_never_cross_what_full_games_say() -> None:
    ranks = np.random.default_rng(3).geometric(0.3, size=6000)
    ranks = np.minimum(ranks, LETTERS)
    whole = bounds(ranks)
    for most in (2, 5, 15):
        cut = bounds(np.minimum(ranks, most), ranks <= most)
        assert cut.least.number <= whole.least.number + 1e-9
        assert cut.most.number >= whole.most.number - 0.01
        assert cut.untold == pytest.approx(np.mean(ranks > most))


def test_right_guesses_after_the_fewest_of_a_shown_character_are_not_counted_as_shown() -> None:
    ranks = np.array([2] * 50 + [5] * 10 + [1])
    one_shown = bounds(ranks, np.arange(61) < 60)
    assert one_shown.untold == pytest.approx(1 / 61)


def test_no_upper_bound_where_a_shown_character_leaves_none_to_choose_from() -> None:
    person = np.arange(4)
    tries = shannon.Tries(np.full(4, 2), np.zeros(4, dtype=bool))
    few = shannon.uncertainty(played(tries.number, person, person), tries, characters=3)
    assert few.most.value is None and "3 different characters" in few.most.withheld and few.untold == 1
    assert shannon.perplexity_of(few.most, 5.0).withheld == few.most.withheld
    more = shannon.uncertainty(played(tries.number, person, person), tries, characters=4)
    assert more.most.number == pytest.approx(1)


def test_the_perplexity_of_a_very_long_unit_is_infinite_and_texts_without_blanks_have_no_words() -> None:
    bits = Figure(2.5, 2.4, 2.6)
    assert shannon.perplexity_of(bits, 401).value == shannon.perplexity_of(bits, 1e6).low == math.inf
    assert shannon.perplexity_of(bits, 400).low == pytest.approx(2**960)
    assert math.isnan(shannon.word_length(["x" * 400, "y"])) and math.isnan(shannon.word_length([]))
    game = ShannonGame(bounds(np.tile([1, 2], 20)), {"character": 1.0, "word": math.nan})
    assert game.units() == [("character", 1.0)]


WORLD = {"person": 0.25, "passage": 0.25, "letter": 1.0}


def simulated(rng: np.random.Generator, *, people: int = 20, passages: int = 20) -> tuple[GuessTable, shannon.Tries]:
    """Each person plays 60 characters in each of 5 texts; a guess is right with a chance by person, text and letter."""
    person = np.repeat(np.arange(people), 300)
    passage = np.concatenate([np.repeat(rng.choice(passages, 5, replace=False), 60) for _person in range(people)])
    level = (
        WORLD["person"] * rng.standard_normal(people)[person]
        + WORLD["passage"] * rng.standard_normal(passages)[passage]
    )
    chance = 1 / (1 + np.exp(-(0.3 + level + WORLD["letter"] * rng.standard_normal(len(person)))))
    ranks = np.minimum(rng.geometric(chance), LETTERS)
    return played(ranks, person, passage), shannon.Tries(ranks, np.ones(len(ranks), dtype=bool))


def truth() -> tuple[float, float]:
    """Of very many letters, people and texts, by q_i."""
    rng = np.random.default_rng(0)
    n = 4_000_000
    spread = math.sqrt(WORLD["person"] ** 2 + WORLD["passage"] ** 2 + WORLD["letter"] ** 2)
    ranks = np.minimum(rng.geometric(1 / (1 + np.exp(-(0.3 + spread * rng.standard_normal(n))))), LETTERS)
    q = np.bincount(ranks, minlength=LETTERS + 2)[1:] / n
    i = np.arange(1, LETTERS + 1)
    return float((i * (q[:-1] - q[1:]) * np.log2(i)).sum()), float(-(q[q > 0] * np.log2(q[q > 0])).sum())


@pytest.mark.thorough
def test_intervals_of_both_bounds_hold_the_truth_in_2000_studies() -> None:
    aims = truth()
    ends = []
    for number in range(2000):
        found = shannon.uncertainty(*simulated(np.random.default_rng(number)), characters=LETTERS)
        ends.append((found.least.interval, found.most.interval))
    for place, aim in enumerate(aims):
        low, high = np.array([pair[place] for pair in ends], dtype=float).T
        cover = float(((low <= aim) & (aim <= high)).mean())
        print(f"bound {place}: {aim:.3f}, {cover:.3f}")
        assert 0.93 <= cover <= 0.97


def game_study(*, panel: dict[str, Any] | None = None, **options: Any) -> Any:
    prepare_tales()
    instrument = {"kind": "next_token", "options": {**OPTIONS, **options}}
    others = {} if panel is None else {"panel": panel}
    return cast.study(**{**STUDY, "instrument": instrument, "models": [], "sitting": {"items": 1}, **others})


def guess(sitting: Sitting, text: str) -> Any:
    step = current_step(sitting)
    advance(sitting=sitting, step=step.number, data={"guess": text})
    sitting.refresh_from_db()
    return current_step(sitting).screen


@pytest.mark.django_db
@pytest.mark.slow
def test_a_character_is_guessed_until_it_is_right_and_no_guess_comes_twice() -> None:
    sitting = begun(game_study())
    step = current_step(sitting)
    assert step.assignment is not None and step.screen is not None
    run = step.assignment.slot.item.token_run
    first = run.text_of(run.run_tokens[run.asked_places[0]])
    wrong = [letter for letter in "qzxjkvbpywmcu" if letter != first.casefold()]
    screen = guess(sitting, wrong[0])
    assert screen.name == "guess_1_2" and screen.words["verdict"] == f"Not “{wrong[0]}”. Please guess again."
    with pytest.raises(FieldErrors, match="already"):
        guess(sitting, wrong[0].upper())
    screen = guess(sitting, wrong[1])
    assert screen.words["tried"] == f"Wrong so far: {wrong[0]}  {wrong[1]}"
    assert first not in screen.parts["new"]["value"][-1:] or not screen.parts["new"]["value"]
    screen = guess(sitting, first.swapcase())
    assert screen.name == "guess_2" and "after 3 guesses" in screen.words["verdict"]
    assert [(row.attempt, row.right) for row in TokenGuess.objects.order_by("response__number")] == [
        (1, False),
        (2, False),
        (3, True),
    ]
    assert sum(score.value for score in Score.objects.all()) == 0, "only a first guess is a right one"


@pytest.mark.django_db
def test_what_was_tried_is_in_no_list_and_cannot_be_chosen() -> None:
    passages.register("characters")
    form = form_of(passages.registered("characters"), text="Once", tried=["x"])
    fresh = form({"guess": "qy"})
    assert dict(fresh.fields["choice"].choices) == {str(ord("q")): "q"}  # type: ignore[attr-defined]
    for typed in ("xy", "Xy"):
        tried = form({"guess": typed})
        assert "choice" not in tried.fields and not tried.is_valid()
        chosen = form({"guess": typed, "choice": str(ord(typed[0]))})
        assert not chosen.is_valid() and chosen.errors["guess"]


@pytest.mark.django_db
@pytest.mark.slow
def test_practice_is_played_until_right_too() -> None:
    practice = instruments.of_study(game_study()).practice
    example, given = {"text": "and the child", "next": "r|e"}, []
    seen = []
    for text in ("x", "q", "R", "e"):
        screen = practice.screen(sitting=None, example=example, given=given)
        seen.append((screen.name, screen.words.get("tried", "")))
        given.append({"text": text})
    assert seen == [
        ("guess_1", ""),
        ("guess_1_2", "Wrong so far: x"),
        ("guess_1_3", "Wrong so far: x  q"),
        ("guess_2", ""),
    ]
    assert practice.screen(sitting=None, example=example, given=given).name == "ending"
    assert practice.screen(sitting=None, example=example, given=[*given, {}]) is None


@pytest.mark.django_db
@pytest.mark.slow
def test_after_many_wrong_guesses_the_character_is_shown() -> None:
    sitting = begun(game_study())
    step = current_step(sitting)
    assert step.assignment is not None
    run = step.assignment.slot.item.token_run
    first = run.text_of(run.run_tokens[run.asked_places[0]]).casefold()
    wrong = [letter for letter in "qzxjkvbpywmcudlhgf" if letter != first][:MOST_TRIES]
    for letter in wrong:
        screen = guess(sitting, letter)
    assert screen.name == "guess_2" and f"after {MOST_TRIES} guesses" in screen.words["verdict"]


@pytest.mark.django_db
@pytest.mark.slow
@pytest.mark.parametrize(("pays", "points"), [("minute", [0.5, 0.5, 0, 1]), ("guess", [1, 0, 0, 1])])
def test_all_guesses_of_a_character_together_are_one_point_at_most(pays: str, points: list[float]) -> None:
    study = game_study(panel={**PANEL, "bonus_per_point": 50}, pays=pays)
    opened(study)
    sitting = arrives(study)
    step = current_step(sitting)
    assert step.assignment is not None
    run = step.assignment.slot.item.token_run
    first, second = (run.text_of(run.run_tokens[place]) for place in run.asked_places[:2])
    for letter in [*[letter for letter in "qzx" if letter != first.casefold()][:2], first, second]:
        guess(sitting, letter)
    responses = Response.objects.filter(token_guess__isnull=False).order_by("number")
    for response, milliseconds in zip(responses, [30_000, 40_000, 50_000, 70_000], strict=True):
        Response.objects.filter(pk=response.pk).update(server_ms=milliseconds)
    instrument = instruments.of_study(study)
    assert [float(instrument.score(response).value) for response in responses.all()] == points
    (announced,) = [note.message for note in instrument.remarks() if note.field == "panel.bonus_per_point"]
    assert "3.00 USD at most to a person, for 6 characters" in announced


@pytest.mark.django_db
@pytest.mark.slow
def test_a_game_is_reported_with_perplexities_of_words_and_tokens_and_exported_guess_by_guess(tmp_path: Path) -> None:
    study = game_study()
    passages.cut_texts("pairs:tales", passages.texts_of(list(study.bank.questions.all())))
    begun(study)
    play(study)
    made = reports.make(study, "next_token", {})
    rows = {row["unit"]: row for row in made.data["shannon"]}
    assert set(rows) == {"character", "word", "token of pairs:tales"}
    for row in rows.values():
        assert row["bits_least"] <= row["bits_most"] + 1e-9 and row["length"] >= 1
        assert row["perplexity_most"] == pytest.approx(2 ** row["bits_most"], rel=1e-4)
        assert row["bits_most"] == pytest.approx(rows["character"]["bits_most"] * row["length"], rel=1e-4)
    (share,) = [row for row in made.data["figures"] if row["who"] == "people"]
    assert share["asked"] == sum(len(answer.slot.item.token_run.asked_places) for answer in study_answers(study))
    files.write_export(study, tmp_path)
    with (tmp_path / "guesses.csv").open(encoding="utf-8", newline="") as opened_file:
        exported = [int(row["attempt"]) for row in csv.DictReader(opened_file)]
    assert exported == list(TokenGuess.objects.order_by("response__pk").values_list("attempt", flat=True))
    assert max(exported) > 1
    with (tmp_path / "answers.csv").open(encoding="utf-8", newline="") as opened_file:
        answers = [row for row in csv.DictReader(opened_file) if row["guesses"]]
    live = reports.make(study, "next_token_live", {}).data
    assert [sum(int(row[name]) for row in answers) for name in ("guesses", "right")] == [live["guesses"], live["right"]]
    assert live["guesses"] == share["asked"] == exported.count(1) < len(exported)
    signals = list(instruments.of_study(study).signals.stated_values(Sitting.objects.all()))
    assert len(signals) == exported.count(1)


@pytest.mark.django_db
@pytest.mark.slow
def test_a_game_of_tokens_is_refused() -> None:
    prepare_tales()
    options = {**STUDY["instrument"]["options"], "until_right": True}
    with pytest.raises(FileErrors, match='add unit = "character"'):
        cast.study(**{**STUDY, "instrument": {"kind": "next_token", "options": options}})


def test_a_file_of_guesses_until_right_gives_the_bounds(tmp_path: Path) -> None:
    text, lines = "the cat sat", ["person,passage,position,attempt,guess,truth,asked"]
    for person in "pq":
        for place, letter in enumerate(text):
            tries = place % 3 + 1
            lines += [f"{person},a,{place},{at},x,{letter},1" for at in range(1, tries)]
            lines.append(f"{person},a,{place},{tries},{letter},{letter},1")
    file = tmp_path / "game.csv"
    file.write_text("\n".join(lines), encoding="utf-8")
    out = io.StringIO()
    call_command("next_token", guesses=file, out=tmp_path / "out", stdout=out, stderr=io.StringIO())
    data = json.loads((tmp_path / "out" / "next_token.json").read_text(encoding="utf-8"))
    assert [row["unit"] for row in data["shannon"]] == ["character", "word"]
    assert data["shannon"][1]["length"] == pytest.approx(11 / 3, abs=1e-5)
    assert data["guesses"] == 22 and "the next character holds" in out.getvalue()
    file.write_text("\n".join([*lines, "p,a,0,3,x,t,1"]), encoding="utf-8")
    with pytest.raises(FileErrors, match="3 does not follow a wrong guess 2 there"):
        read_guesses(file)


HEAD = "person,passage,position,attempt,guess,truth,asked,start"


def guessed(path: Path, *lines: str) -> Path:
    path.write_text("\n".join([HEAD, *lines]), encoding="utf-8")
    return path


def test_a_file_of_tokens_that_are_guessed_until_right_is_no_game_of_characters(tmp_path: Path) -> None:
    file = guessed(tmp_path / "tokens.csv", "p,a,0,1,x,The,1,", "p,a,0,2,The,The,1,", "p,a,1,1,a,a,1,")
    game, notes = read_guesses(file).game("")
    assert game is None and "are of characters, and some true tokens are longer" in notes[0]


def test_words_are_as_long_as_in_whole_texts_and_never_as_in_letters_with_gaps(tmp_path: Path) -> None:
    whole = ["p,b,0,1,o,o,1,", "p,b,1,1, , ,1,", "p,b,2,1,k,k,1,"]
    file = guessed(tmp_path / "gaps.csv", "p,a,3,1,x,t,1,", "p,a,3,2,t,t,1,", "p,a,9,1, , ,1,", *whole)
    game, notes = read_guesses(file).game("")
    assert game is not None and game.lengths["word"] == 1.5, "of o k alone"
    assert "as long as in 1 of 2 passages" in notes[0] and "--texts" in notes[0]
    game, notes = read_guesses(file).game("", {"a": "whether it", "b": "o k"})
    assert game is not None and game.lengths["word"] == 13 / 4 and not notes
    alone = guessed(tmp_path / "alone.csv", "p,a,3,1,x,t,1,", "p,a,3,2,t,t,1,")
    game, _notes = read_guesses(alone).game("characters")
    assert game is not None and [unit for unit, _length in game.units()] == ["character"]
    texts = tmp_path / "texts.csv"
    texts.write_text("id,text\na,whether it\n", encoding="utf-8")
    made = make(alone, texts=texts)
    assert made.data["shannon"][1]["length"] == 5
    with pytest.raises(HunchError, match="--texts: is for models that read the texts"):
        make(guessed(tmp_path / "first.csv", "p,a,3,1,x,t,1,"), texts=texts)


def test_the_characters_of_all_guesses_are_to_choose_from_and_capitals_are_others(tmp_path: Path) -> None:
    lines = ["p,a,0,1,q,a,1,", "p,a,0,2,z,a,1,"]
    game, _notes = read_guesses(guessed(tmp_path / "few.csv", *lines)).game("")
    assert game is not None and game.uncertainty.most.value is None
    assert "3 different characters" in game.uncertainty.most.withheld
    assert "no upper bound: 3 different characters are known" in " ".join(make(tmp_path / "few.csv").lines)
    more = guessed(tmp_path / "more.csv", *lines, "p,a,1,1,Q,A,1,", "p,a,1,2,Z,A,1,")
    game, _notes = read_guesses(more).game("")
    assert game is not None and game.uncertainty.most.number == pytest.approx(2), "q, z, a and capitals: 4 left"


def test_rows_that_come_twice_and_starts_that_differ_are_wrong(tmp_path: Path) -> None:
    with pytest.raises(FileErrors, match="attempt 1 of this person at this place stands in line 2: keep one"):
        read_guesses(guessed(tmp_path / "twice.csv", "p,a,0,1,x,t,1,", "p,a,0,1,t,t,1,"))
    late = guessed(tmp_path / "late.csv", "p,a,3,1,x,t,1,", "q,a,3,1,x,t,1,7", "r,a,3,1,x,t,1,")
    assert read_guesses(late).truths == {"a": {3: ("t", 7)}}
    with pytest.raises(FileErrors, match="8: line 3 has 7 at the same place"):
        read_guesses(guessed(tmp_path / "two.csv", "p,a,3,1,x,t,1,", "q,a,3,1,x,t,1,7", "r,a,3,1,x,t,1,8"))
