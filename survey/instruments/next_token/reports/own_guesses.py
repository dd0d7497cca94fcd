"""`next_token --guesses FILE`: the analysis of guesses that somebody has, without a study, with models that read the
same texts now."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import ValidationInfo, field_validator

from predictors.errors import PredictorError
from predictors.readings import Source, Text
from predictors.readings.by_characters import ChanceOfSpan, chances_of_spans
from survey.contracts.reports import ReportFile, ReportResult
from survey.exceptions import HunchError
from survey.figures.words import integer
from survey.input_tables import cells
from survey.input_tables.problems import Problems
from survey.input_tables.rows import TableRow, column, declared, read_rows
from survey.instruments.next_token.analysis import shannon
from survey.instruments.next_token.analysis.guesses import GuessTable, ModelGuesses, numbers_of
from survey.services.banks import passages, text_files
from survey.services.banks.readings import open_reader

from .figures import ShannonGame, report_result
from .study_report import at_common_positions

Asked = Annotated[bool, cells.choice({"1": True, "0": False}, "{} is neither 1 nor 0 (a token that was given)")]
LISTED_IN_MESSAGE = 5


@declared
class GuessRow(TableRow):
    """A guess of the next token. It is right where it is the true token, letter for letter."""

    is_strict = True
    read_by = "`next_token --guesses FILE`"
    person: Annotated[str, cells.text("give every guess one", keeps_space=True)] = column("Who guessed.")
    passage: Annotated[str, cells.text("give every guess one", keeps_space=True)] = column("The text's name.")
    position: cells.Position = column("The token's place in the text, from 0.")
    guess: str = column("The guess.")
    attempt: Annotated[int, cells.position_from(1)] = column(
        "Which guess of this token it is, from 1, where people guess until it is right: Shannon's game.", 1
    )
    asked: Asked = column("1; 0 where the token was given and nobody guessed.")
    truth: str = column("The true token; empty only where nobody guessed.")
    start: cells.PositionIfKnown = column(
        "Where the true token begins in its text, in characters from 0; for models, where tokens before it have no "
        "row.",
        None,
    )

    @field_validator("truth")
    @classmethod
    def _is_known(cls, truth: str, info: ValidationInfo) -> str:
        if not truth and info.data.get("asked"):
            raise ValueError("is empty: give the true token, or 0 in asked")
        return truth


@dataclass(frozen=True, eq=False)
class OwnGuesses:
    """The guesses of a file, and the true tokens that it names with where they begin, if it says: by passage, and there
    by position. `typed`: the characters of all guesses."""

    table: GuessTable
    truths: Mapping[str, Mapping[int, tuple[str, int | None]]]
    tries: shannon.Tries | None = None
    typed: frozenset[str] = frozenset()

    def game(self, tokenizer: str, texts: Mapping[str, str] | None = None) -> tuple[ShannonGame | None, list[str]]:
        """What Shannon's game says, for characters, words and the tokens of a tokenizer, and notes; None unless it was
        played with characters.

        Args:
            texts: whole passages by name. Without them the lengths of words and tokens are those of passages whose
                true tokens are all known.
        """
        if self.tries is None:
            return None, []
        if any(len(truth) != 1 for truth in self.table.truth):
            return None, ["Shannon's bounds are of characters, and some true tokens are longer; they are left out"]
        whole, notes = self._whole_texts(texts or {}), []
        if len(whole) < len(self.table.passages):
            notes.append(
                f"words and tokens are as long as in {integer(len(whole))} of {integer(len(self.table.passages))} "
                "passages: the others have positions without a row; give whole texts with --texts"
            )
        lengths = {"character": 1.0, "word": shannon.word_length(whole)}
        if tokenizer and whole:
            cutter = passages.open_tokenizer(tokenizer)
            lengths[f"token of {tokenizer}"] = sum(map(len, whole)) / sum(len(cutter.cut(text)) for text in whole)
        true = (truth for known in self.truths.values() for truth, _start in known.values())
        characters = len(self.typed.union(*true, *whole))
        return ShannonGame(shannon.uncertainty(self.table, self.tries, characters=characters), lengths), notes

    def _whole_texts(self, texts: Mapping[str, str]) -> list[str]:
        """Of the passages that were guessed, those that are known from beginning to end."""
        whole = []
        for name in self.table.passages:
            known = self.truths[name]
            if name in texts:
                whole.append(texts[name])
            elif len(known) == max(known) + 1:
                whole.append("".join(truth for _at, (truth, _start) in sorted(known.items())))
        return [text for text in whole if text]

    def places(self, texts: Mapping[str, str] | None) -> list[tuple[Text, Mapping[int, int]]]:
        """Each passage with the character at which the token of each position begins.

        Args:
            texts: whole passages by name; without them they are what their tokens spell.

        Raises:
            HunchError: a token of a passage is not known, or does not stand in its text.
        """
        placed: list[tuple[Text, Mapping[int, int]]] = []
        missing = []
        for name in self.table.passages:
            truths = self.truths[name]
            text = "" if texts is None else texts.get(name, "")
            starts: dict[int, int] = {}
            reached: int | None = 0  # None after a token that is not known.
            for position in range(max(truths) + 1):
                truth, start = truths.get(position, ("", None))
                if start is None:
                    start = reached
                if (start is None and truth) or (not truth and texts is None):
                    missing.append(f"{name} at {position}")
                    break
                reached = start + len(truth) if truth and start is not None else None
                if not truth or start is None:
                    continue
                starts[position] = start
                if texts is None:
                    text += truth
                elif text[start : start + len(truth)] != truth:
                    raise HunchError(
                        f"--texts: {name[:60]!r}: has {text[start : start + len(truth)]!r} at character {start}, where "
                        f"{truth!r} was guessed; give the text that was guessed"
                    )
            placed.append((Text(name, text), starts))
        if missing:
            more = f" and {len(missing) - LISTED_IN_MESSAGE} more" if len(missing) > LISTED_IN_MESSAGE else ""
            raise HunchError(
                f"truth: is missing for {', '.join(missing[:LISTED_IN_MESSAGE])}{more}, so that nobody knows where the "
                "tokens stand that models are to read: add a row for each such token, with 0 in asked, or give the "
                "column start, and the whole texts with --texts"
            )
        return placed


def read_guesses(path: Path, *, without: Sequence[str] = ()) -> OwnGuesses:
    """The guesses of a file, a table of `GuessRow`.

    Args:
        without: people whose guesses are left out.

    Raises:
        FileErrors: lists every problem with its line. HunchError: no guess was asked for, or nobody has such a name.
    """
    rows = read_rows(GuessRow, path, Problems(), limits=None)
    guesses: list[tuple[str, str, int, str, str]] = []
    truths: dict[str, dict[int, tuple[str, int | None]]] = {}
    first_line: dict[tuple[str, int], int] = {}
    first_guess: dict[tuple[str, str, int], int] = {}
    first_start: dict[tuple[str, int], tuple[int, int]] = {}
    typed: set[str] = set()
    tries: list[int] = []
    ended_right: list[bool] = []
    given = 0
    people = set()
    for row in rows:
        people.add(row.person)
        if row.truth:
            known, start = truths.setdefault(row.passage, {}).get(row.position, (row.truth, None))
            line = first_line.setdefault((row.passage, row.position), row.line)
            if known != row.truth:
                rows.wrong(row.line, "truth", f"{row.truth!r}: line {line} has {known!r} at the same place")
            if row.start is not None:
                start, line = first_start.setdefault((row.passage, row.position), (row.start, row.line))
                if start != row.start:
                    rows.wrong(row.line, "start", f"{row.start}: line {line} has {start} at the same place")
            truths[row.passage][row.position] = (known, start)
        place = (row.person, row.passage, row.position)
        rows.once(row, "attempt", (*place, row.attempt), f"attempt {row.attempt} of this person at this place stands")
        if row.person in without:
            continue
        if row.asked:
            typed.update(row.guess)
        if row.asked and row.attempt == 1:
            first_guess[place] = len(guesses)
            guesses.append((*place, row.guess, row.truth))
            tries.append(1)
            ended_right.append(row.guess == row.truth)
        elif row.asked:
            at = first_guess.get(place)
            if at is None or tries[at] != row.attempt - 1 or ended_right[at]:
                rows.wrong(row.line, "attempt", f"{row.attempt} does not follow a wrong guess {row.attempt - 1} there")
                continue
            tries[at], ended_right[at] = row.attempt, row.guess == row.truth
        given += not row.asked
    rows.refuse()
    if unknown := [name for name in without if name not in people]:
        raise HunchError(f"--without: {unknown[0][:60]!r} is nobody in {path}: give a name of its column person")
    if not guesses:
        raise HunchError(f"{path}: asked: no guess was asked for; give rows with 1")
    names, of_passage, positions, guess, truth = (list(column) for column in zip(*guesses, strict=True))
    who, person = _coded(names)
    texts, passage = _coded(of_passage)
    table = GuessTable(
        person=person,
        passage=passage,
        people=who,
        passages=texts,
        position=np.array(positions, dtype=np.int64),
        place=np.zeros(len(guesses), dtype=np.int64),
        number=numbers_of(person),
        right=np.array([word == true for word, true in zip(guess, truth, strict=True)], dtype=np.float64),
        weight=np.ones(len(guesses)),
        guess=guess,
        truth=truth,
        given=given,
    )
    played = shannon.Tries(np.array(tries), np.array(ended_right)) if max(tries) > 1 else None
    return OwnGuesses(table, truths, played, frozenset(typed))


def make(
    path: Path,
    *,
    models: Sequence[Source] = (),
    texts: Path | None = None,
    tokenizer: str = "",
    without: Sequence[str] = (),
) -> ReportResult:
    """
    Args:
        models: what reads the same texts. texts: a table of whole texts, for models and for the length of words and
            tokens; without it they are what the true tokens spell. tokenizer: the source of what cut them, if it is
            known.

    Raises:
        FileErrors, HunchError: as `read_guesses` and `OwnGuesses.places`; a model cannot read the texts.
    """
    own = read_guesses(path, without=without)
    notes = [f"without the guesses of {', '.join(without)}"] if without else []
    table = own.table
    if texts is not None and not models and own.tries is None:
        raise HunchError(
            "--texts: is for models that read the texts, and for guesses until right: add --model NAME=SOURCE"
        )
    whole = None if texts is None else {text.id: text.text for text in text_files.read_texts([texts])}
    if models:
        first = _first_token(table, tokenizer)
        read = [_guesses_of(model, table, own.places(whole), first) for model in models]
        read, more = at_common_positions(read)
        table, notes = replace(table, models=read), [*notes, *more]
    game, more = own.game(tokenizer, whole)
    made = report_result(table, title="Guesses of next tokens", notes=[*notes, *more], game=game)
    return replace(made, files=[ReportFile.of_json("next_token.json", made.data)])


def _first_token(table: GuessTable, tokenizer: str) -> Callable[[str], str] | None:
    """What gives the first token of a text: that of a tokenizer, a character where all tokens are characters, or
    nothing that is known."""
    if tokenizer:
        return passages.first_token(passages.open_tokenizer(tokenizer))
    return (lambda text: text[:1]) if all(len(token) == 1 for token in table.truth) else None


def _guesses_of(
    model: Source,
    table: GuessTable,
    places: Sequence[tuple[Text, Mapping[int, int]]],
    first_token: Callable[[str], str] | None,
) -> ModelGuesses:
    """What a model says at each guess."""
    passages.check_lists_text(model)
    wanted: list[dict[int, tuple[int, int]]] = [{} for _passage in places]
    for passage, position, truth in zip(table.passage.tolist(), table.position.tolist(), table.truth, strict=True):
        start = places[passage][1][position]
        wanted[passage][position] = (start, start + len(truth))
    chances: dict[tuple[int, int], ChanceOfSpan] = {}
    texts = [text for text, _starts in places]
    reader = open_reader(model, texts)
    try:
        for passage, reading in reader.each(texts, detail=passages.listed_detail(model)):
            spans = wanted[passage]
            said = chances_of_spans(reading, texts[passage].text, list(spans.values()), first_token=first_token)
            chances |= {(passage, position): chance for position, chance in zip(spans, said, strict=True)}
    except PredictorError as exc:
        raise HunchError(f"--model {model.name}: {exc}") from exc
    said = [chances[key] for key in zip(table.passage.tolist(), table.position.tolist(), strict=True)]
    most = -np.array([chance.least for chance in said])
    is_read = ~np.isnan(most)
    return ModelGuesses(
        model.name,
        np.where(is_read, [float(chance.is_right) for chance in said], np.nan),
        np.where(is_read, most, np.nan),
        np.where(is_read, [-chance.most for chance in said], np.nan),
        unsure=is_read & ~np.array([chance.is_sure for chance in said], dtype=bool),
    )


def _coded(names: Sequence[str]) -> tuple[list[str], np.ndarray]:
    place = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return list(place), np.array([place[name] for name in names], dtype=np.int64)
