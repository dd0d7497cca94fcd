"""Questions of a table that stand in it twice, or nearly, and options that do: shown before anything is stored.

The work is bounded for any size of bank. Two texts are compared only where they share one of their rarest words; texts
that differ in a number are different questions.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from predictors.markup import plain_text

from .importing import QuestionRow

RAREST = 4  # words of a question that it is looked up by
MAX_WITH_A_WORD = 60  # questions; a word that more of them have says little
MAX_COMPARED = 200_000  # pairs of texts
LONGEST_COMPARED = 2000  # characters of each text
NEAR = 90.0  # percent
MAX_SHOWN = 50
# Options that a text lists, in its lines or within one.
LISTED = (re.compile(r"\(([A-Z])\)\s*"), re.compile(r"^\s*([A-Z])[.):]\s+", re.MULTILINE))
WORD = re.compile(r"[^\W\d_]+|\d+(?:[.,]\d+)*")


@dataclass(frozen=True)
class AlikePair:
    """Two rows with the same question, or with nearly the same. `percent` of their letters agree, in order."""

    first: QuestionRow
    second: QuestionRow
    percent: int
    same_answer: bool


@dataclass(frozen=True)
class Alike:
    """`same`: one question under two ids. `near`: nearly one. `is_whole`: every pair that may be near was compared."""

    same: Sequence[AlikePair]
    near: Sequence[AlikePair]
    same_count: int
    near_count: int
    is_whole: bool = True

    @property
    def count(self) -> int:
        return self.same_count + self.near_count


def alike(rows: Sequence[QuestionRow]) -> Alike:
    """The pairs of rows whose texts are the same, up to case, spaces and marks, or nearly the same."""
    words = [_words(row) for row in rows]
    same, places = _same(rows, words)
    compared, near, is_whole = 0, [], True
    from rapidfuzz import fuzz  # Only banks need it.

    for first, second in _candidates(words, places):
        if compared >= MAX_COMPARED:
            is_whole = False
            break
        compared += 1
        if _numbers(words[first]) != _numbers(words[second]):
            continue
        texts = (" ".join(words[place])[:LONGEST_COMPARED] for place in (first, second))
        percent = fuzz.ratio(*texts, score_cutoff=NEAR)
        if percent:
            near.append(_pair(rows[first], rows[second], min(99, round(percent))))
    near.sort(key=lambda pair: (-pair.percent, pair.first.line))
    return Alike(same[:MAX_SHOWN], near[:MAX_SHOWN], len(same), len(near), is_whole)


def same_questions(rows: Sequence[QuestionRow]) -> Alike:
    """The pairs of rows whose texts are the same alone: of a published benchmark, which nobody corrects."""
    same, _places = _same(rows, [_words(row) for row in rows])
    return Alike(same[:MAX_SHOWN], [], len(same), 0)


def _words(row: QuestionRow) -> list[str]:
    return WORD.findall(plain_text(row.question).casefold())


def _same(rows: Sequence[QuestionRow], words: Sequence[Sequence[str]]) -> tuple[list[AlikePair], list[int]]:
    """The pairs of rows with the same words, and the places of the others."""
    first_of: dict[tuple[str, ...], int] = {}
    same = []
    for place, own in enumerate(words):
        first = first_of.setdefault(tuple(own), place)
        if first != place and own:
            same.append(_pair(rows[first], rows[place], 100))
    return same, sorted(first_of.values())


def equal_options(rows: Sequence[QuestionRow]) -> list[str]:
    """What is said of questions in which the key's option has the same words as another: nobody can choose rightly."""
    said = []
    for row in rows:
        options = options_of(plain_text(row.question))
        key = row.answer.strip().strip("().")
        words = options.get(key, key)
        letters = [letter for letter, own in options.items() if own == words]
        if len(letters) > 1:
            said.append(
                f"{row.file}:{row.line}: {row.text_column}: the options {' and '.join(letters)} of {row.id[:60]} have "
                f"the same words, {words[:40]!r}, and one of them is the key"
            )
    return said if len(said) <= MAX_SHOWN else [*said[:MAX_SHOWN], f"and {len(said) - MAX_SHOWN:,} more such options"]


def options_of(text: str) -> dict[str, str]:
    """The words of each lettered option of a text, spaces made one; empty where it lists none from A on."""
    for pattern in LISTED:
        marks = list(pattern.finditer(text))
        # A letter in brackets may stand in the question itself; the options are the last run from A on.
        first = max((number for number, mark in enumerate(marks) if mark[1] == "A"), default=len(marks))
        options = {}
        for number, mark in enumerate(marks[first:]):
            if ord(mark[1]) != ord("A") + number:
                break
            end = marks[first + number + 1].start() if first + number + 1 < len(marks) else len(text)
            options[mark[1]] = " ".join(text[mark.end() : end].split())
        if len(options) > 1:
            return options
    return {}


def _candidates(words: Sequence[Sequence[str]], places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Pairs of places that share a rare word, each once, the nearest in length first where there are too many."""
    in_how_many = Counter(word for place in places for word in set(words[place]))
    with_word: dict[str, list[int]] = defaultdict(list)
    for place in places:
        rarest = sorted(set(words[place]), key=lambda word: (in_how_many[word], word))[:RAREST]
        for word in rarest:
            with_word[word].append(place)
    seen: set[tuple[int, int]] = set()
    for word in sorted(with_word, key=lambda word: (len(with_word[word]), word)):
        held = with_word[word][:MAX_WITH_A_WORD]
        for index, second in enumerate(held):
            for first in held[:index]:
                lengths = sorted((len(words[first]), len(words[second])))
                if lengths[0] < 0.7 * lengths[1] or (first, second) in seen:
                    continue
                seen.add((first, second))
                yield first, second


def _numbers(words: Sequence[str]) -> list[str]:
    return [word for word in words if word[0].isdigit()]


def _pair(first: QuestionRow, second: QuestionRow, percent: int) -> AlikePair:
    return AlikePair(first, second, percent, first.answer.strip().casefold() == second.answer.strip().casefold())
