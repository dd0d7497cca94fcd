"""How often people, and models on the very same positions, guess the next token. Numpy alone.

A guess counts with the weight of its run: 1 / the chance with which the run was drawn. A share is a ratio of two sums
over guesses, and its error is clustered by person and by passage at once.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

import bandit
from survey.figures import Figure
from survey.services.results.people_and_models.errors import UNDEFINED, interval

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MIN_OF_PERSON = 50  # guesses that a line of the table by person needs
MIN_OF_ENSEMBLE = 5  # people who guessed a position, where their most frequent guess is taken
KINDS = ("begins a word", "goes on", "digit", "punctuation", "space")
DECILES = 10
NUMBERS = ((1, 20), (21, 40), (41, 60), (61, 100), (101, 200), (201, 500), (501, 1000), (1001, 10**9))


@dataclass(frozen=True, eq=False)
class ModelGuesses:
    """One model at each of n guesses: whether its likeliest token was the true one (0 or 1), and the surprisal of the
    true token in nats; NaN where that is not known. Of a model that lists only its likeliest tokens `surprisal` is the
    most and `least` the least that it can be, and `unsure` are the guesses (n,) at places where tokens that it does not
    list might outweigh the likeliest; both are None where the surprisal is known."""

    name: str
    right: Floats
    surprisal: Floats
    least: Floats | None = None
    unsure: NDArray[np.bool_] | None = None

    def at(self, rows: NDArray[np.bool_]) -> "ModelGuesses":
        """The same at these guesses alone (n,); NaN at the others."""
        right, surprisal = np.where(rows, self.right, np.nan), np.where(rows, self.surprisal, np.nan)
        least = None if self.least is None else np.where(rows, self.least, np.nan)
        unsure = None if self.unsure is None else self.unsure & rows
        return replace(self, right=right, surprisal=surprisal, least=least, unsure=unsure)


@dataclass(frozen=True, eq=False)
class GuessTable:
    """n guesses that were asked for.

    person, passage: codes (n,); people, passages: their names. position: of the token in its passage, from 0. place: in
    the run, from 1; 0 where that is not known. number: the person's guesses so far with this one. guess, truth: texts.
    given: tokens that nobody can type, which were shown without being asked for.
    """

    person: Ints
    passage: Ints
    people: Sequence[str]
    passages: Sequence[str]
    position: Ints
    place: Ints
    number: Ints
    right: Floats
    weight: Floats
    guess: Sequence[str]
    truth: Sequence[str]
    given: int = 0
    models: Sequence[ModelGuesses] = field(default=())

    def __len__(self) -> int:
        return len(self.right)


@dataclass(frozen=True)
class RightShare:
    """The share of guesses that are right, of n: `right` of them, without weights."""

    n: int
    right: int
    figure: Figure


def kind_of(token: str, *, first: bool) -> str:
    """What a token is: the beginning of a word (after a space or at the beginning of the text), its continuation, a
    digit, punctuation or a space."""
    inner = token.strip()
    if not inner:
        return "space"
    if inner[0].isdigit():
        return "digit"
    if not any(character.isalnum() for character in inner):
        return "punctuation"
    return "begins a word" if first or token[0].isspace() else "goes on"


def mean(values: Floats, table: GuessTable, rows: NDArray[np.bool_] | None = None, *, scale: str = "share") -> Figure:
    """The weighted mean of one value per guess, over the guesses for which it is known, with its 95 % interval.

    Args:
        values: (n,), NaN where it is not known.
        rows: only these guesses.
        scale: "share" has an interval between 0 and 1, worked out on the scale of log-odds; "difference" lies between
            -1 and 1; "number" has no bounds.

    Source: the influence of an answer on a ratio, w (y - m) / sum of w; two-way clustering as in
    `bandit.clustered_variance`.
    """
    used = np.isfinite(values) if rows is None else np.isfinite(values) & rows
    if not used.any():
        return UNDEFINED
    weight, value = table.weight[used], values[used]
    clusters = table.person[used], table.passage[used]
    share = weight / weight.sum()
    average = float((weight * value).sum() / weight.sum())
    return interval(
        average,
        bandit.clustered_variance(share * (value - average), *clusters),
        bandit.clustered_freedom(share, *clusters),
        # On the scale of log-odds the ends stay inside 0 and 1, and a share near an end has a longer side.
        scale="share" if scale == "share" else "plain",
        within=(-1.0, 1.0) if scale == "difference" else None,
    )


def share(table: GuessTable, rows: NDArray[np.bool_] | None = None) -> RightShare:
    """People's top-1 accuracy: right guesses over guesses."""
    used = np.ones(len(table), dtype=bool) if rows is None else rows
    return RightShare(int(used.sum()), int(table.right[used].sum()), mean(table.right, table, rows))


def perplexity(model: ModelGuesses, table: GuessTable) -> Figure:
    """exp of the mean surprisal at the positions that were asked for, its interval worked out on the scale of nats.
    Infinite where the model gave a true token no chance."""
    if np.isposinf(model.surprisal).any():
        return Figure(math.inf)
    nats = mean(model.surprisal, table, scale="number")
    if not nats.is_defined:
        return UNDEFINED
    low, high = (None if end is None else math.exp(end) for end in (nats.low, nats.high))
    return Figure(math.exp(nats.number), low, high)


def least_perplexity(model: ModelGuesses, table: GuessTable) -> float | None:
    """What the perplexity is at least, where all that a model does not list counted for the true tokens; None where the
    perplexity itself is known."""
    if model.least is None:
        return None
    nats = mean(model.least, table, scale="number")
    return math.exp(nats.number) if nats.is_defined else None


@dataclass(frozen=True)
class PeopleAbove:
    """Of `people` with enough guesses, those who are right more often than a model on the very same positions, and as
    often. `figure`: the share of those above, with Wilson's interval over people."""

    people: int
    above: int
    equal: int
    figure: Figure


def people_above(model: ModelGuesses, table: GuessTable, *, least: int = MIN_OF_PERSON) -> PeopleAbove:
    """Each person with `least` guesses at positions that the model has read counts once. The texts are taken as they
    are: the interval says what other people who read the same could have given."""
    differences = []
    for code in range(len(table.people)):
        own = (table.person == code) & np.isfinite(model.right)
        if own.sum() >= least:
            differences.append(round(float((table.right[own] - model.right[own]).sum())))
    people, above = len(differences), sum(difference > 0 for difference in differences)
    ends = bandit.wilson_interval(above / people, people) if people > 1 else None
    figure = UNDEFINED if not people else Figure(above / people, *(ends or (None, None)))
    return PeopleAbove(people, above, differences.count(0), figure)


def most_bits(right: float, characters: int) -> float:
    """The most that the uncertainty of the next character can be, in bits, of who guesses this share rightly among so
    many characters: h(p) + (1 - p) log2(K - 1).

    Source: Fano's inequality (Cover and Thomas, "Elements of information theory", theorem 2.10.1).
    """
    wrong = 1 - right
    spread = -sum(chance * math.log2(chance) for chance in (right, wrong) if chance > 0)
    return spread + wrong * math.log2(max(characters - 1, 1))


def divisions(table: GuessTable) -> dict[str, list[str]]:
    """The part that each guess is in, by the division's name; parts in the order in which they are listed first."""
    parts = {"token": [kind_of(token, first=at == 0) for token, at in zip(table.truth, table.position, strict=True)]}
    if (table.place > 0).any():
        parts["place in the run"] = [_fives(int(place)) for place in table.place]
    parts["guess of the person"] = [_numbered(int(number)) for number in table.number]
    known = next((model for model in table.models if np.isfinite(model.surprisal).any()), None)
    if known is not None:
        parts[f"surprisal of {known.name}, in tenths"] = _deciles(known.surprisal)
    return parts


def _fives(place: int) -> str:
    first = 5 * ((place - 1) // 5) + 1
    return f"{first} to {first + 4}"


def _numbered(number: int) -> str:
    first, last = next(pair for pair in NUMBERS if number <= pair[1])
    return f"{first} to {last}" if last < 10**9 else f"{first} and more"


@dataclass(frozen=True)
class PracticePart:
    """People with guesses in this part and in the first one, their guesses in this part, and the mean change of their
    share from the first part to it; undefined for the first part itself."""

    part: str
    people: int
    guesses: int
    change: Figure


def practice_by_part(table: GuessTable) -> list[PracticePart]:
    """How the share of right guesses changes from a person's first guesses on. Each person is compared with themselves,
    and counts once in every part that they reach, so that it does not matter who stays. Student's interval over people
    (by person alone: they meet the texts in different orders)."""
    part_of = np.array([_numbered(int(number)) for number in table.number], dtype=str)
    parts = [_numbered(first) for first, _last in NUMBERS]
    shares: dict[str, dict[int, float]] = {part: {} for part in parts}
    for part in parts:
        inside = part_of == part
        weight = np.bincount(table.person[inside], table.weight[inside], minlength=len(table.people))
        right = np.bincount(table.person[inside], (table.weight * table.right)[inside], minlength=len(table.people))
        shares[part] = {code: right[code] / weight[code] for code in np.flatnonzero(weight).tolist()}
    made = []
    for part in parts:
        both = sorted(shares[part].keys() & shares[parts[0]].keys())
        own = np.isin(table.person, both) & (part_of == part)
        changes = np.array([shares[part][code] - shares[parts[0]][code] for code in both])
        change = UNDEFINED
        if part != parts[0] and len(changes) > 1:
            variance = float(changes.var(ddof=1) / len(changes))
            change = interval(float(changes.mean()), variance, len(changes) - 1, within=(-1.0, 1.0))
        made.append(PracticePart(part, len(both), int(own.sum()), change))
    return made


def practice_per_doubling(table: GuessTable) -> tuple[int, Figure]:
    """People with several guesses, and by how much the share of right guesses changes with each doubling of a person's
    number of guesses.

    The slope of right on log2 of the number, with a level for every person (the within estimator), by design weights;
    its variance is clustered by person and by passage.

    Source: Wooldridge, "Econometric analysis of cross section and panel data", section 10.5; the influence of a guess
    is w x (y - b x) / sum of w x^2, of deviations from the person's means.
    """
    x, w = np.log2(table.number.astype(np.float64)), table.weight
    total = np.bincount(table.person, w)

    def within(values: Floats) -> Floats:
        return np.asarray(values - (np.bincount(table.person, w * values) / total)[table.person], dtype=np.float64)

    x, y = within(x), within(table.right)
    people = int((np.bincount(table.person) > 1).sum())
    square = float((w * x * x).sum())
    if people < 2 or not square > 0:
        return people, UNDEFINED
    slope = float((w * x * y).sum()) / square
    clusters = table.person, table.passage
    variance = bandit.clustered_variance(w * x * (y - slope * x) / square, *clusters)
    return people, interval(slope, variance, bandit.clustered_freedom(w * x * x / square, *clusters))


def _deciles(values: Floats) -> list[str]:
    """The tenth of the guesses that each is in, by rising surprisal; equal values are in the same one."""
    order = np.searchsorted(np.sort(values[~np.isnan(values)]), values, side="left")
    known = max(1, int((~np.isnan(values)).sum()))
    tenth = np.minimum(order * DECILES // known, DECILES - 1) + 1
    return [
        f"{number} of {DECILES}" if not math.isnan(value) else "" for number, value in zip(tenth, values, strict=True)
    ]


def order_of(part: str) -> tuple[float, str]:
    """By which parts of a division are listed."""
    head = part.partition(" ")[0]
    if head.isdigit():
        return int(head), part
    return (KINDS.index(part) if part in KINDS else len(KINDS)), part


def of_the_busy(table: GuessTable, *, least: int = MIN_OF_PERSON) -> NDArray[np.bool_]:
    """Which guesses are of people with enough of them (n,)."""
    enough: NDArray[np.bool_] = np.bincount(table.person, minlength=len(table.people))[table.person] >= least
    return enough


def by_person(table: GuessTable, *, least: int = MIN_OF_PERSON) -> list[tuple[str, int, int, list[float | None]]]:
    """Name, guesses, right ones, and each model's share on the same positions, of people with enough guesses; anyone
    who was right most often comes first."""
    people = []
    for code, name in enumerate(table.people):
        own = table.person == code
        if own.sum() < least:
            continue
        shares = []
        for model in table.models:
            known = own & np.isfinite(model.right)
            shares.append(float(model.right[known].mean()) if known.any() else None)
        people.append((name, int(own.sum()), int(table.right[own].sum()), shares))
    return sorted(people, key=lambda person: (-person[2] / person[1], person[0]))


@dataclass(frozen=True)
class EnsembleFigures:
    """Over positions that several people guessed: how often their most frequent guess is the true token (of tied ones
    each counts in part), how often one of them is, and the models."""

    positions: int
    ensemble: Figure
    person: Figure
    difference: Figure
    models: Sequence[Figure]


def ensemble(table: GuessTable, *, least: int = MIN_OF_ENSEMBLE) -> EnsembleFigures | None:
    """None where no position has `least` people. Intervals are by passage and by person."""
    rows_of: dict[tuple[int, int], list[int]] = {}
    for row, key in enumerate(zip(table.passage.tolist(), table.position.tolist(), strict=True)):
        rows_of.setdefault(key, []).append(row)
    shared = [rows for rows in rows_of.values() if len({int(table.person[row]) for row in rows}) >= least]
    if not shared:
        return None
    most, single = np.empty(len(shared)), np.empty(len(shared))
    of_most, of_single = [], []
    for place, rows in enumerate(shared):
        counts = Counter(table.guess[row] for row in rows)
        hits = {table.guess[row] for row in rows if table.right[row]}
        n = len(rows)
        most[place], single[place] = _credit(counts, hits), float(table.right[rows].mean())
        # What each guess adds: the difference without it, times (n - 1) / n, which for a mean is its influence.
        without = {guess: (most[place] - _credit(counts - Counter([guess]), hits)) * (n - 1) / n for guess in counts}
        of_most += [without[table.guess[row]] for row in rows]
        of_single += [(float(table.right[row]) - single[place]) / n for row in rows]
    first = np.array([rows[0] for rows in shared])
    weight = np.array([float(table.weight[rows].mean()) for rows in shared])
    people = _Crowd(
        table.passage[first],
        weight,
        np.repeat(np.arange(len(shared)), [len(rows) for rows in shared]),
        _codes(table.person[[row for rows in shared for row in rows]]),
    )
    by_most, by_single = np.array(of_most), np.array(of_single)
    return EnsembleFigures(
        len(shared),
        people.figure(most, by_most),
        people.figure(single, by_single),
        people.figure(most - single, by_most - by_single, difference=True),
        [people.figure(model.right[first], None) for model in table.models],
    )


def _credit(counts: Counter[str], hits: set[str]) -> float:
    """Whether the most frequent guess is right; of equally frequent ones each counts in part."""
    highest = max(counts.values())
    tied = [guess for guess, count in counts.items() if count == highest]
    return sum(guess in hits for guess in tied) / len(tied)


@dataclass(frozen=True, eq=False)
class _Crowd:
    """N positions with their passages and weights, and n guesses at them: the position and the person of each."""

    passage: Ints
    weight: Floats
    position: Ints
    person: Ints

    def figure(self, values: Floats, added: Floats | None, *, difference: bool = False) -> Figure:
        """The weighted mean of a value a position (N,), with its interval by passage, and by person where `added` says
        what each guess adds to its position's value (n,)."""
        known = np.isfinite(values)
        if not known.any():
            return UNDEFINED
        value, share, passage = values[known], self.weight[known] / self.weight[known].sum(), self.passage[known]
        mean = float(share @ value)
        variance = bandit.clustered_variance(share * (value - mean), passage)
        if added is not None:
            # What people share over passages is added; what they add within one is in the passage's part already.
            own = added * (self.weight / self.weight.sum())[self.position]
            both = _codes(self.person * (int(self.passage.max()) + 1) + self.passage[self.position])
            by_person, by_both = (bandit.clustered_variance(own, label) for label in (self.person, both))
            variance = float(bandit.crossed_variance(variance, by_person, by_both))
        ends = (-1.0, 1.0) if difference else (0.0, 1.0)
        return interval(mean, variance, bandit.clustered_freedom(share, passage), within=ends)


def _codes(values: Ints) -> Ints:
    """The same groups, numbered from 0 without gaps."""
    return np.unique(values, return_inverse=True)[1].reshape(-1).astype(np.int64)


def numbers_of(person: Ints) -> Ints:
    """The how manieth guess of its person each row is, in the order of the rows, from 1."""
    seen: Counter[int] = Counter()
    numbers = np.empty(len(person), dtype=np.int64)
    for row, code in enumerate(person.tolist()):
        seen[code] += 1
        numbers[row] = seen[code]
    return numbers
