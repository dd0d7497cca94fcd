"""The questions made from templates: every key is computed, every number drawn from a fixed seed.

Dependency rule: the standard library and `drafts` only.

A task is a generator of eight drafts, each worded differently, at one of two levels. Both levels
together make a task of sixteen questions; half of them keep their wrong options, half are asked without.
"""

from calendar import monthrange
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction
from itertools import pairwise
from math import isqrt
from random import Random

from .drafts import Draft, Row, lay_out, seeded

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
DIRECTIONS = ("north", "northeast", "east", "southeast", "south", "southwest", "west", "northwest")
MAIN_DIRECTIONS = DIRECTIONS[::2]
PEOPLE = ("Ana", "Ben", "Cem", "Dia", "Eli", "Fay", "Gus", "Hana", "Ivo", "June", "Kai", "Lea", "Max", "Nia", "Oto")
SHORT_WORDS = (
    "banana", "kettle", "pepper", "rabbit", "window", "garden", "butter", "coffee", "letter", "yellow", "silver",
    "summer", "pocket", "tomato", "balloon", "cheese", "planet", "bridge", "carpet", "orange", "ladder", "mirror",
)  # fmt: skip
LONG_WORDS = (
    "assessment", "bookkeeper", "committee", "parallelogram", "millennium", "possessions", "unnecessarily",
    "rhododendron", "mathematician", "embarrassment", "characteristic", "refrigerator", "entrepreneur",
    "onomatopoeia", "kindergarten", "perseverance", "accommodation", "architecture", "constellation",
    "thermometer", "independence", "hippopotamus",
)  # fmt: skip


def _number(value: int | Fraction) -> str:
    """Digits without grouping; a fraction with a finite decimal expansion as a decimal."""
    return str(int(value)) if value == int(value) else f"{float(value):.10g}"


def _wrong_numbers(rng: Random, right: int | Fraction, *mistakes: int | Fraction) -> tuple[str, ...]:
    """Three wrong numbers: the likely mistakes first, then neighbours of the right one."""
    wrong = [value for value in dict.fromkeys(mistakes) if value != right and value >= 0][:3]
    while len(wrong) < 3:
        value = right + rng.choice((-3, -2, -1, 1, 2, 3) if right < 10 else (-10, -2, -1, 1, 2, 10))
        if value >= 0 and value != right and value not in wrong:
            wrong.append(value)
    rng.shuffle(wrong)
    return tuple(_number(value) for value in wrong)


def _wrong_choices(rng: Random, right: str, pool: Iterable[str]) -> tuple[str, ...]:
    """Up to three others of the pool, in random order."""
    others = [other for other in dict.fromkeys(pool) if other != right]
    return tuple(rng.sample(others, min(3, len(others))))


def _wrong_spellings(rng: Random, right: str) -> tuple[str, ...]:
    """Three wrong spellings, each the right one with two letters swapped that are one or two places apart."""
    swapped = (
        right[:one] + right[two] + right[one + 1 : two] + right[one] + right[two + 1 :]
        for one in range(len(right) - 1)
        for two in range(one + 1, min(one + 3, len(right)))
    )
    return _wrong_choices(rng, right, swapped)


def _ordinal(number: int) -> str:
    """1 -> 1st, 12 -> 12th, 22 -> 22nd."""
    endings = {1: "st", 2: "nd", 3: "rd"} if number % 100 not in (11, 12, 13) else {}
    return f"{number}{endings.get(number % 10, 'th')}"


def _between(rng: Random, low: int, high: int) -> int:
    """A whole number from low to high, both included."""
    return rng.randint(low, high)


# mathematics


def _multi_digit_arithmetic(rng: Random, hard: bool) -> Iterator[Draft]:
    low, high = (112, 989) if hard else (3, 29)
    factor_low, factor_high = (23, 98) if hard else (3, 9)
    a, b = _between(rng, low, high), _between(rng, low, high)
    yield Draft(
        f"What is {a} + {b}?",
        str(a + b),
        f"{a} + {b} = {a + b}.",
        _wrong_numbers(rng, a + b, a + b + 10, a + b - 10, a + b + 1),
    )
    b, a = sorted((_between(rng, low, high), _between(rng, high, 2 * high)))
    yield Draft(
        f"Subtract {b} from {a}.",
        str(a - b),
        f"{a} - {b} = {a - b}.",
        _wrong_numbers(rng, a - b, a - b + 10, a - b - 1, a + b),
    )
    a, b = _between(rng, low, high), _between(rng, factor_low, factor_high)
    yield Draft(
        f"Multiply {a} by {b}.",
        str(a * b),
        f"{a} * {b} = {a * b}.",
        _wrong_numbers(rng, a * b, a * b + a, a * b - 10, a * b + 10),
    )
    a, b = _between(rng, 5 * low, 5 * high), _between(rng, factor_low, factor_high)
    yield Draft(
        f"What remainder does {a} leave when divided by {b}?",
        str(a % b),
        f"{a} = {a // b} * {b} + {a % b}.",
        _wrong_numbers(rng, a % b, a // b, (a + 1) % b),
    )
    a, b, c = _between(rng, high, 2 * high), _between(rng, low, high), _between(rng, low, high)
    yield Draft(
        f"Work out {a} - {b} + {c}.",
        str(a - b + c),
        f"From left to right: {a - b} + {c} = {a - b + c}.",
        _wrong_numbers(rng, a - b + c, a - b - c, a + b + c, a - b + c + 10),
    )
    a, b = _between(rng, factor_low, factor_high), _between(rng, factor_low, factor_high)
    yield Draft(
        f"Find the product of {a} and {b}.",
        str(a * b),
        f"{a} * {b} = {a * b}.",
        _wrong_numbers(rng, a * b, a + b, a * b + 10, a * (b - 1)),
    )
    a, b = _between(rng, low, high), _between(rng, factor_low, factor_high)
    yield Draft(
        f"{a * b} divided by {b} equals which whole number?",
        str(a),
        f"{b} * {a} = {a * b}.",
        _wrong_numbers(rng, a, a + 1, a - 1, a + 10),
    )
    a, b, c = _between(rng, low, high), _between(rng, low, high), _between(rng, factor_low, factor_high)
    yield Draft(
        f"Calculate ({a} + {b}) * {c}.",
        str((a + b) * c),
        f"{a + b} * {c} = {(a + b) * c}.",
        _wrong_numbers(rng, (a + b) * c, a + b * c, a * c + b, (a + b) * c + 10),
    )


def _linear_equations(rng: Random, hard: bool) -> Iterator[Draft]:
    top = 40 if hard else 9

    def numbers() -> tuple[int, int, int]:
        return _between(rng, 2, top), _between(rng, 2, top), _between(rng, 2, top)

    a, b, x = numbers()
    yield Draft(
        f"Solve {a}x + {b} = {a * x + b} for x.",
        str(x),
        f"{a}x = {a * x}, so x = {x}.",
        _wrong_numbers(rng, x, x + 1, x + b, a * x),
    )
    a, b, x = numbers()
    yield Draft(
        f"If {a}y - {b} = {a * x - b}, what is y?",
        str(x),
        f"{a}y = {a * x}, so y = {x}.",
        _wrong_numbers(rng, x, x - 1, x + b, x + 2),
    )
    a, b, x = numbers()
    yield Draft(
        f"{a} times a number, plus {b}, makes {a * x + b}. Which number is it?",
        str(x),
        f"{a * x + b} - {b} = {a * x}, and {a * x} / {a} = {x}.",
        _wrong_numbers(rng, x, x + 1, x - 1, a * x),
    )
    x, y = _between(rng, top + 1, 2 * top), _between(rng, 1, top)
    yield Draft(
        f"x + y = {x + y} and x - y = {x - y}. What is x?",
        str(x),
        f"Adding both gives 2x = {2 * x}, so x = {x} (and y = {y}).",
        _wrong_numbers(rng, x, y, 2 * x, x + y),
    )
    a, c, x = _between(rng, 6, 9), _between(rng, 2, 5), _between(rng, 2, top)
    b = _between(rng, 1, top)
    yield Draft(
        f"For which x is {a}x + {b} = {c}x + {b + (a - c) * x}?",
        str(x),
        f"{a - c}x = {(a - c) * x}, so x = {x}.",
        _wrong_numbers(rng, x, x + 1, x + b, x - 1),
    )
    a, x = _between(rng, 3, 9), _between(rng, 2, top)
    limit = a * x + _between(rng, 1, a - 1)
    yield Draft(
        f"What is the largest whole number n with {a}n < {limit}?",
        str(x),
        f"{a} * {x} = {a * x} < {limit}, but {a} * {x + 1} = {a * (x + 1)} is not.",
        _wrong_numbers(rng, x, x + 1, x - 1, x + 2),
    )
    half, b = _between(rng, 2, top), _between(rng, 2, top)
    yield Draft(
        f"Half of a number is {b} less than {half + b}. What is the number?",
        str(2 * half),
        f"Half of it is {half + b} - {b} = {half}, so the number is 2 * {half} = {2 * half}.",
        _wrong_numbers(rng, 2 * half, half, 2 * (half + b), 2 * half + b),
    )
    w, length = _between(rng, 2, top), _between(rng, top + 1, 2 * top)
    around = 2 * (w + length)
    yield Draft(
        f"A rectangle is {w} cm wide and {around} cm around. How many cm long is it?",
        str(length),
        f"{around} / 2 - {w} = {length}.",
        _wrong_numbers(rng, length, around - w, around - 2 * w, around // 2),
    )


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % divisor for divisor in range(2, isqrt(number) + 1))


def _number_sequences(rng: Random, hard: bool) -> Iterator[Draft]:
    top = 30 if hard else 6
    a, d, n = _between(rng, 1, 9), _between(rng, 2, top), _between(rng, 12, 40) if hard else _between(rng, 4, 6)
    right = a + (n - 1) * d
    yield Draft(
        f"A list starts with {a}; each number is {d} more than the one before. What is the {_ordinal(n)} number?",
        str(right),
        f"{a} + {n - 1} * {d} = {right}.",
        _wrong_numbers(rng, right, a + n * d, right - d, n * d),
    )
    a, n = _between(rng, 2, 5), _between(rng, 8, 10) if hard else _between(rng, 3, 4)
    right = a * 2**n
    yield Draft(
        f"Start with {a} and double it {n} times. What do you get?",
        str(right),
        f"{a} * 2 to the power {n} = {right}.",
        _wrong_numbers(rng, right, right // 2, right * 2, 2 * a * n),
    )
    a, b = _between(rng, 1, top), _between(rng, 1, top)
    terms = [a, b]
    while len(terms) < (8 if hard else 5):
        terms.append(terms[-1] + terms[-2])
    yield Draft(
        f"Each number is the sum of the two before it: {a}, {b}, and so on. What is the {_ordinal(len(terms))} number?",
        str(terms[-1]),
        f"The list runs {', '.join(map(str, terms))}.",
        _wrong_numbers(rng, terms[-1], terms[-2], terms[-1] + terms[-2], terms[-1] + 1),
    )
    a, m, c, n = _between(rng, 2, 5), _between(rng, 2, 3), _between(rng, 1, 7), 4 if hard else 2
    steps = [a]
    while len(steps) <= n:
        steps.append(steps[-1] * m + c)
    yield Draft(
        f"Take {a} and do this {n} times in a row: multiply by {m}, then add {c}. What results?",
        str(steps[-1]),
        f"The values are {', '.join(map(str, steps))}.",
        _wrong_numbers(rng, steps[-1], steps[-2], steps[-1] + c, steps[-1] * m + c),
    )
    n = _between(rng, 25, 60) if hard else _between(rng, 4, 9)
    right = n * (n + 1) // 2
    yield Draft(
        f"Add up all whole numbers from 1 to {n}. What is the sum?",
        str(right),
        f"{n} * {n + 1} / 2 = {right}.",
        _wrong_numbers(rng, right, n * (n - 1) // 2, n * (n + 1), right + n + 1),
    )
    n = _between(rng, 40, 300) if hard else _between(rng, 4, 12)
    yield Draft(
        f"What is the {_ordinal(n)} odd number, counting 1 as the first?",
        str(2 * n - 1),
        f"2 * {n} - 1 = {2 * n - 1}.",
        _wrong_numbers(rng, 2 * n - 1, 2 * n + 1, 2 * n, n),
    )
    n = _between(rng, 90, 180) if hard else _between(rng, 8, 20)
    right = next(k for k in range(n + 1, 2 * n) if _is_prime(k))
    yield Draft(
        f"What is the smallest prime number greater than {n}?",
        str(right),
        f"{right} is prime and no number between {n} and {right} is.",
        _wrong_numbers(rng, right, right + 2, right - 2, right + 4),
    )
    a, b = _between(rng, 2, 40), _between(rng, 100, 900) if hard else _between(rng, 45, 60)
    yield Draft(
        f"How many whole numbers are there from {a} to {b}, both included?",
        str(b - a + 1),
        f"{b} - {a} + 1 = {b - a + 1}.",
        _wrong_numbers(rng, b - a + 1, b - a, b - a - 1, b - a + 2),
    )


# language


def _letter_counting(rng: Random, hard: bool) -> Iterator[Draft]:
    words = rng.sample(LONG_WORDS if hard else SHORT_WORDS, 16)

    def repeated(word: str) -> str:
        """A letter that the word has more than once, where it has one."""
        return max(sorted(set(word)), key=word.count)

    word, letter = words[0], repeated(words[0])
    yield Draft(
        f"How many times does the letter '{letter}' occur in '{word}'?",
        str(word.count(letter)),
        f"Spelled out: {'-'.join(word)}.",
        _wrong_numbers(rng, word.count(letter), word.count(letter) + 1, word.count(letter) - 1),
    )
    word = words[1]
    yield Draft(
        f"How many letters does the word '{word}' have?",
        str(len(word)),
        f"Spelled out: {'-'.join(word)}.",
        _wrong_numbers(rng, len(word), len(word) + 1, len(word) - 1, len(set(word))),
    )
    word = words[2]
    vowels = [letter for letter in word if letter in "aeiou"]
    yield Draft(
        f"Count the vowels (a, e, i, o, u) in '{word}', repeats included.",
        str(len(vowels)),
        f"The vowels are {', '.join(vowels)}.",
        _wrong_numbers(rng, len(vowels), len(vowels) + 1, len(vowels) - 1, len(word) - len(vowels)),
    )
    letter = rng.choice("ent")
    ranked = sorted(words[3:9], key=lambda other: other.count(letter))
    winner, beaten = ranked[-1], [other for other in ranked if other.count(letter) < ranked[-1].count(letter)]
    yield Draft(
        f"Which of these words has the most letters '{letter}'?",
        winner,
        f"'{winner}' has {winner.count(letter)}, the others have fewer.",
        _wrong_choices(rng, winner, beaten),
    )
    word = words[9]
    yield Draft(
        f"How many different letters are used to write '{word}'?",
        str(len(set(word))),
        f"They are {', '.join(sorted(set(word)))}.",
        _wrong_numbers(rng, len(set(word)), len(word), len(set(word)) - 1, len(set(word)) + 1),
    )
    word, letter = words[10], repeated(words[10])
    rest = len(word) - word.count(letter)
    yield Draft(
        f"If every '{letter}' is crossed out of '{word}', how many letters remain?",
        str(rest),
        f"{len(word)} letters less {word.count(letter)} leave {rest}.",
        _wrong_numbers(rng, rest, len(word), rest + 1, rest - 1),
    )
    trio, letter = words[11:14], rng.choice("aeo")
    total = sum(word.count(letter) for word in trio)
    yield Draft(
        f"How often does '{letter}' appear in the three words {', '.join(trio)} taken together?",
        str(total),
        " + ".join(str(word.count(letter)) for word in trio) + f" = {total}.",
        _wrong_numbers(rng, total, total + 1, total + 2, total - 1),
    )
    first, second = words[14:16]
    shared = sorted(set(first) & set(second))
    yield Draft(
        f"How many different letters occur in both '{first}' and '{second}'?",
        str(len(shared)),
        f"They share {', '.join(shared) or 'none'}.",
        _wrong_numbers(rng, len(shared), len(shared) + 1, len(shared) - 1, len(shared) + 2),
    )


def _letter_editing(rng: Random, hard: bool) -> Iterator[Draft]:
    words = rng.sample(LONG_WORDS if hard else SHORT_WORDS, 18)
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    word = words[0]
    yield Draft(
        f"Write the word '{word}' backwards.",
        word[::-1],
        f"Spelled out: {'-'.join(word)}.",
        _wrong_spellings(rng, word[::-1]),
    )
    word = words[1]
    place = _between(rng, 6, len(word)) if hard else _between(rng, 2, 4)
    yield Draft(
        f"What is letter number {place} of the word '{word}'?",
        word[place - 1],
        f"Spelled out: {'-'.join(word)}.",
        _wrong_choices(rng, word[place - 1], sorted(set(word))),
    )
    word = words[2]
    letter = max(sorted(set(word)), key=word.count)
    left = word.replace(letter, "")
    yield Draft(
        f"Remove every '{letter}' from '{word}'. What is left?",
        left,
        f"Spelled out: {'-'.join(word)}; '{letter}' occurs {word.count(letter)} times.",
        _wrong_spellings(rng, left),
    )
    steps = _between(rng, 8, 13) if hard else _between(rng, 2, 4)
    start = _between(rng, 0, 25 - steps)
    right = alphabet[start + steps]
    yield Draft(
        f"Which letter stands {steps} places after {alphabet[start]} in the English alphabet?",
        right,
        f"Counting on: {alphabet[start : start + steps + 1]}.",
        _wrong_choices(rng, right, alphabet[start + 1 : start + steps + 4] + "AZ"),
    )
    word = words[3]
    ordered = "".join(sorted(word))
    yield Draft(
        f"Put the letters of '{word}' in alphabetical order.",
        ordered,
        f"The {len(word)} letters in order are {'-'.join(ordered)}.",
        _wrong_spellings(rng, ordered),
    )
    group = words[4 : 9 if hard else 8]
    initials = "".join(word[0] for word in group)
    yield Draft(
        f"Join the {'last' if hard else 'first'} letters of these words: {', '.join(group)}.",
        "".join(word[-1] for word in group) if hard else initials,
        f"Taken in the order given, the {'last' if hard else 'first'} letters are joined.",
        _wrong_spellings(rng, "".join(word[-1] for word in group) if hard else initials),
    )
    word = words[9]
    swapped = word[-1] + word[1:-1] + word[0]
    yield Draft(
        f"Swap the first and the last letter of '{word}'. What do you get?",
        swapped,
        f"'{word[0]}' and '{word[-1]}' change places.",
        _wrong_spellings(rng, swapped),
    )
    group = sorted(words[10:14])
    place = len(group) - 1 if hard else 0
    yield Draft(
        f"Which of these words comes {'last' if hard else 'first'} in a dictionary?",
        group[place],
        f"In order: {', '.join(group)}.",
        _wrong_choices(rng, group[place], group),
    )


# everyday life


def _day(day: date) -> str:
    return f"{day.day} {MONTHS[day.month - 1]}"


def _no_whole_weeks(days: int) -> int:
    """Adds a day if the days are whole weeks, since the answer would then be the weekday just named."""
    return days + (days % 7 == 0)


def _month_length(year: int, month: int) -> int:
    """In days; months count from 1."""
    return monthrange(year, month)[1]


def _days_between(start: date, end: date) -> str:
    """The sum, month by month, of the days from one date to a later one of the same year."""
    if start.month == end.month:
        return f"{end.day} - {start.day} = {end.day - start.day}."
    left = f"({_month_length(start.year, start.month)} - {start.day})"
    whole = [str(_month_length(start.year, month)) for month in range(start.month + 1, end.month)]
    return (
        f"Month by month from {MONTHS[start.month - 1]} to {MONTHS[end.month - 1]}: "
        f"{' + '.join([left, *whole, str(end.day)])} = {(end - start).days}."
    )


def _calendar_dates(rng: Random, hard: bool) -> Iterator[Draft]:
    first, weekday = _between(rng, 1, 6), rng.choice(WEEKDAYS)
    gap = _no_whole_weeks(_between(rng, 15, 24) if hard else _between(rng, 2, 9))
    right = WEEKDAYS[(WEEKDAYS.index(weekday) + gap) % 7]
    yield Draft(
        f"Day {first} of a month is a {weekday}. Which weekday is day {first + gap} of that month?",
        right,
        f"{gap} = {gap // 7} * 7 + {gap % 7}.",
        _wrong_choices(rng, right, WEEKDAYS),
    )
    start = date(2023, 3, 1) + timedelta(days=_between(rng, 0, 60))
    gap = _between(rng, 70, 160) if hard else _between(rng, 5, 25)
    end = start + timedelta(days=gap)
    yield Draft(
        f"How many days after {_day(start)} is {_day(end)} of the same year?",
        str(gap),
        _days_between(start, end),
        _wrong_numbers(rng, gap, gap + 1, gap - 1, gap + 2),
    )
    year = 2024 if hard else 2023
    start = date(year, 2, _between(rng, 20, 26)) if hard else date(year, 4, _between(rng, 1, 9))
    gap = _between(rng, 30, 60) if hard else _between(rng, 5, 18)
    end = start + timedelta(days=gap)
    near = [_day(end + timedelta(days=shift)) for shift in (-2, -1, 1, 2)]
    yield Draft(
        f"Which date comes {gap} days after {_day(start)} {year}?",
        _day(end),
        f"February {year} has {28 + hard} days; counting on {gap} days gives {_day(end)}."
        if hard
        else f"{start.day} + {gap} = {end.day}, still in {MONTHS[end.month - 1]}.",
        _wrong_choices(rng, _day(end), near),
    )
    leap = rng.choice((1600, 2000)) if hard else rng.choice((1996, 2016, 2024))
    plain = ("1700", "1800", "1900", "2100") if hard else ("1997", "2015", "2018", "2021")
    yield Draft(
        "Which of these is a leap year in the Gregorian calendar?",
        str(leap),
        f"{leap} is divisible by 400; other full centuries are not leap years."
        if hard
        else f"{leap} is divisible by 4 and not a full century.",
        _wrong_choices(rng, str(leap), plain),
    )
    weekday, gap = rng.choice(WEEKDAYS), _no_whole_weeks(_between(rng, 50, 400) if hard else _between(rng, 3, 12))
    right = WEEKDAYS[(WEEKDAYS.index(weekday) + gap) % 7]
    yield Draft(
        f"Today is {weekday}. What weekday will it be in {gap} days?",
        right,
        f"{gap} = {gap // 7} * 7 + {gap % 7}.",
        _wrong_choices(rng, right, WEEKDAYS),
    )
    number = _between(rng, 100, 300) if hard else _between(rng, 33, 50)
    day = date(2023, 1, 1) + timedelta(days=number - 1)
    near = [_day(day + timedelta(days=shift)) for shift in (-2, -1, 1, 2)]
    yield Draft(
        f"With 1 January as day 1, which date is day {number} of a year that is not a leap year?",
        _day(day),
        f"Day {number - day.day + 1} is 1 {MONTHS[day.month - 1]}.",
        _wrong_choices(rng, _day(day), near),
    )
    if hard:
        begin = _between(rng, 2, 6)
        asked = MONTHS[begin : begin + 3]
    else:
        asked = ("April", "May")
    lengths = [_month_length(2023, MONTHS.index(month) + 1) for month in asked]
    total = sum(lengths)
    yield Draft(
        f"How many days do {', '.join(asked[:-1])} and {asked[-1]} have together?",
        str(total),
        " + ".join(map(str, lengths)) + f" = {total}.",
        _wrong_numbers(rng, total, total - 1, total + 1, 30 * len(asked)),
    )
    month, gap = rng.choice(MONTHS), _between(rng, 20, 70) if hard else _between(rng, 2, 5)
    right = MONTHS[(MONTHS.index(month) + gap) % 12]
    yield Draft(
        f"Which month comes {gap} months after {month}?",
        right,
        f"{gap} = {gap // 12} * 12 + {gap % 12}.",
        _wrong_choices(rng, right, MONTHS),
    )


def _time(minutes: int) -> str:
    """Minutes after midnight as a time of day, 24-hour clock."""
    return f"{minutes // 60 % 24:02}:{minutes % 60:02}"


def _clock_times(rng: Random, hard: bool) -> Iterator[Draft]:
    def wrong_times(right: int, *mistakes: int) -> tuple[str, ...]:
        near = [_time(right + shift) for shift in (*mistakes, 60, -60, 10, -10)]
        return tuple([other for other in dict.fromkeys(near) if other != _time(right)][:3])

    start = 60 * _between(rng, 14, 19) + 5 * _between(rng, 1, 11)
    length = 5 * _between(rng, 17, 41) + 2 if hard else 30 * _between(rng, 1, 3)
    yield Draft(
        f"A film starts at {_time(start)} and lasts {length} minutes. When does it end?",
        _time(start + length),
        f"{length} minutes are {length // 60} h {length % 60} min.",
        wrong_times(start + length),
    )
    start = 60 * _between(rng, 6, 10) + _between(rng, 31, 58)
    gap = _between(rng, 190, 560) if hard else 10 * _between(rng, 2, 9)
    yield Draft(
        f"How many minutes pass from {_time(start)} to {_time(start + gap)} on one day?",
        str(gap),
        f"That is {gap // 60} h {gap % 60} min.",
        _wrong_numbers(rng, gap, gap + 40, gap - 40, gap + 60),
    )
    end = 60 * _between(rng, 12, 15) + _between(rng, 2, 20)
    gap = _between(rng, 135, 295) if hard else 5 * _between(rng, 5, 9)
    yield Draft(
        f"What time was it {gap} minutes before {_time(end)}?",
        _time(end - gap),
        f"{gap} minutes are {gap // 60} h {gap % 60} min.",
        wrong_times(end - gap, 40),
    )
    start = 60 * _between(rng, 21, 23) + (_between(rng, 3, 55) if hard else 0)
    gap = _between(rng, 370, 590) if hard else 60 * _between(rng, 6, 9)
    yield Draft(
        f"A night train runs from {_time(start)} to {_time(start + gap)} the next morning in the same time zone. "
        "How many minutes is the journey?",
        str(gap),
        f"It takes {gap // 60} h {gap % 60} min.",
        _wrong_numbers(rng, gap, gap - 60, gap + 60, gap + 40),
    )
    gain, hours = (_between(rng, 6, 14), _between(rng, 5, 9)) if hard else (2, _between(rng, 2, 5))
    shown_minutes = 60 * (12 + hours) + gain * hours
    yield Draft(
        f"A clock gains {gain} minutes every hour and is set right at 12:00. What does it show when it is "
        f"really {_time(60 * (12 + hours))}?",
        _time(shown_minutes),
        f"It gains {hours} * {gain} = {gain * hours} minutes.",
        wrong_times(shown_minutes, -2 * gain * hours),
    )
    here, there = (_between(rng, 5, 9), _between(rng, 3, 8)) if hard else (_between(rng, 2, 3), 0)
    now = 60 * (_between(rng, 6, 9) if hard else _between(rng, 12, 20)) + 15
    away = now - 60 * (here + there)
    zone = f"UTC-{there}" if hard else "UTC"
    yield Draft(
        f"It is {_time(now)} at UTC+{here}. What time is it at {zone}?",
        _time(away),
        f"{zone} is {here + there} hours behind UTC+{here}, so it is {_time(away)}"
        f"{' the day before' if away < 0 else ''}.",
        wrong_times(away, 120 * here),
    )
    hour, minute = (_between(rng, 1, 11), 10 * _between(rng, 1, 5)) if hard else (_between(rng, 1, 5), 0)
    apart = abs(Fraction(60 * hour + minute, 2) - 6 * minute)
    angle = min(apart, 360 - apart)
    yield Draft(
        f"A dial clock shows {hour}:{minute:02}. How many degrees is the smaller angle between its hands?",
        _number(angle),
        f"Hour hand at {_number(Fraction(60 * hour + minute, 2))}, minute hand at {6 * minute}.",
        _wrong_numbers(rng, angle, abs(30 * hour - 6 * minute), angle + 5, angle + 30),
    )
    hour, minute = (12, _between(rng, 10, 50)) if hard else (_between(rng, 2, 10), 10 * _between(rng, 1, 5))
    half = "a.m." if hard else "p.m."
    right = minute if hard else 60 * (hour + 12) + minute
    yield Draft(
        f"Write {hour}:{minute:02} {half} in 24-hour time, as HH:MM.",
        _time(right),
        "The hour after midnight is 00." if hard else f"{hour} + 12 = {hour + 12}.",
        wrong_times(right, 720),
    )


# computing


def _in_base(number: int, base: int) -> str:
    """The digits of a positive whole number in a base from 2 to 9."""
    return (_in_base(number // base, base) if number >= base else "") + str(number % base)


def _powers_of_two(number: int) -> str:
    """The powers of two that add up to a positive whole number, greatest first, as a sum."""
    return " + ".join(str(1 << k) for k in range(number.bit_length() - 1, -1, -1) if number >> k & 1)


def _number_bases(rng: Random, hard: bool) -> Iterator[Draft]:
    low, high = (70, 250) if hard else (5, 15)
    n = _between(rng, low, high)
    places = ", ".join(str(1 << k) for k in range(n.bit_length() - 1, -1, -1))
    yield Draft(
        f"Write the decimal number {n} in binary.",
        f"{n:b}",
        f"{n} = {_powers_of_two(n)}; in the places {places} this is {n:b}.",
        _wrong_choices(rng, f"{n:b}", (f"{n + 1:b}", f"{n - 1:b}", f"{n ^ 2:b}", f"{n + 4:b}")),
    )
    n = _between(rng, low, high)
    yield Draft(
        f"Which decimal number is written {n:b} in binary?",
        str(n),
        f"{_powers_of_two(n)} = {n}.",
        _wrong_numbers(rng, n, n + 1, n - 1, n + 2),
    )
    n = _between(rng, 160, 4000) if hard else _between(rng, 17, 40)
    yield Draft(
        f"What is hexadecimal {n:X} in decimal?",
        str(n),
        " + ".join(
            f"{int(digit, 16)} * {16**k}" for k, digit in zip(range(len(f"{n:X}") - 1, -1, -1), f"{n:X}", strict=True)
        )
        + f" = {n}.",
        _wrong_numbers(rng, n, n + 16, n - 1, n - 10),
    )
    n = _between(rng, 160, 4000) if hard else _between(rng, 10, 31)
    yield Draft(
        f"Convert decimal {n} to hexadecimal (digits 0-9 and A-F).",
        f"{n:X}",
        f"{n} = {n // 16} * 16 + {n % 16}.",
        _wrong_choices(rng, f"{n:X}", (f"{n + 1:X}", f"{n - 1:X}", f"{n + 16:X}", f"{n + 6:X}")),
    )
    a, b = _between(rng, low, high), _between(rng, low, high)
    yield Draft(
        f"Add the binary numbers {a:b} and {b:b}. Answer in binary.",
        f"{a + b:b}",
        f"In decimal: {a} + {b} = {a + b}.",
        _wrong_choices(rng, f"{a + b:b}", (f"{a + b + 1:b}", f"{a + b - 2:b}", f"{a + b + 2:b}")),
    )
    n = _between(rng, low, high)
    ones = f"{n:b}".count("1")
    yield Draft(
        f"How many ones appear when decimal {n} is written in binary?",
        str(ones),
        f"{n} is {n:b}.",
        _wrong_numbers(rng, ones, ones + 1, ones - 1, ones + 2),
    )
    top = 128 if hard else 8
    a, b = top + _between(rng, 1, top - 2), top + _between(rng, 1, top - 2)
    yield Draft(
        f"What is the bitwise AND, {a:b} & {b:b}, in binary?",
        f"{a & b:b}",
        "Only places with a 1 in both numbers keep their 1.",
        _wrong_choices(rng, f"{a & b:b}", (f"{a | b:b}", f"{(a & b) ^ 1:b}", f"{(a & b) ^ 2:b}", f"{(a & b) ^ 4:b}")),
    )
    base, n = (_between(rng, 5, 7), _between(rng, 60, 200)) if hard else (3, _between(rng, 4, 8))
    digits = _in_base(n, base)
    yield Draft(
        f"How is the decimal number {n} written in base {base}?",
        digits,
        " + ".join(f"{digit} * {base**k}" for k, digit in zip(range(len(digits) - 1, -1, -1), digits, strict=True))
        + f" = {n}.",
        _wrong_choices(rng, digits, (_in_base(n + shift, base) for shift in (-2, -1, 1, base))),
    )


# reasoning


def _compass_turns(rng: Random, hard: bool) -> Iterator[Draft]:
    def turned(direction: str, eighths: int) -> str:
        return DIRECTIONS[(DIRECTIONS.index(direction) + eighths) % 8]

    def swept(direction: str, eighths: int) -> str:
        """All directions a turn passes, quarter turn by quarter turn, from the first to the last."""
        quarter = 2 if eighths > 0 else -2
        return " to ".join(turned(direction, part) for part in (*range(0, eighths, quarter), eighths))

    def wrong(right: str) -> tuple[str, ...]:
        pool = MAIN_DIRECTIONS if right in MAIN_DIRECTIONS else DIRECTIONS[1::2]
        return _wrong_choices(rng, right, pool)

    facing, turns = rng.choice(MAIN_DIRECTIONS), [rng.choice(("left", "right")) for _ in range(5 if hard else 2)]
    if turns.count("left") == turns.count("right"):
        turns.append("left")
    net = turns.count("right") - turns.count("left")
    right = turned(facing, 2 * net)
    yield Draft(
        f"You face {facing} and make quarter turns: {', '.join(turns)}. Which way do you face now?",
        right,
        f"{turns.count('left')} left and {turns.count('right')} right turns leave {abs(net)} to the "
        f"{'right' if net > 0 else 'left'}: from {swept(facing, 2 * net)}.",
        wrong(right),
    )
    a, b, c = _between(rng, 6, 9), _between(rng, 2, 9), _between(rng, 2, 5)
    if hard:
        stem = (
            f"On flat ground you walk {a} km north, {b} km east, {c} km south and {b} km west. "
            "How many km are you from the start?"
        )
        yield Draft(
            stem,
            str(a - c),
            f"East and west cancel; {a} - {c} = {a - c}.",
            _wrong_numbers(rng, a - c, a + c, a + 2 * b + c, 0),
        )
    else:
        stem = (
            f"On flat ground you walk {a} km north, {b} km east and {a} km south. How many km are you from the start?"
        )
        yield Draft(stem, str(b), "North and south cancel.", _wrong_numbers(rng, b, 2 * a + b, a + b, 0))
    x, y, z = rng.choice(((20, 21, 29), (9, 40, 41), (12, 35, 37))) if hard else (3, 4, 5)
    yield Draft(
        f"On a flat field a cat runs {x} metres east, then {y} metres south. "
        "How many metres long is the straight way back?",
        str(z),
        f"{x} squared plus {y} squared is {z} squared.",
        _wrong_numbers(rng, z, x + y, y - x, z + 1),
    )
    facing, degrees = rng.choice(MAIN_DIRECTIONS), rng.choice((450, 810, 1125, 1350)) if hard else rng.choice((90, 270))
    whole, rest = divmod(degrees, 360)
    right = turned(facing, -degrees // 45)
    yield Draft(
        f"A robot that points {facing} turns {degrees} degrees anticlockwise. Where does it point?",
        right,
        (f"{degrees} = {whole} * 360 + {rest}, and " if whole else "")
        + f"{rest} degrees anticlockwise lead from {swept(facing, -rest // 45)}.",
        wrong(right),
    )
    one, two, three = rng.sample(("mill", "church", "school", "well", "farm", "tower"), 3)
    way = rng.choice(MAIN_DIRECTIONS)
    if hard:
        side = turned(way, rng.choice((2, -2)))
        right = turned(way, 1 if side == turned(way, -2) else -1)
        stem = (
            f"The {one} is 1 km {way} of the {two}. The {three} is 1 km {side} of the {two}. "
            f"In which direction from the {three} is the {one}?"
        )
        reason = f"From the {three} one goes equally far {turned(side, 4)} and {way}."
    else:
        right = turned(way, 4)
        stem = (
            f"The {one} is {way} of the {two}, and the {two} is {way} of the {three}. "
            f"In which direction from the {one} is the {three}?"
        )
        reason = f"Coming from the {three} one goes {way}, so the way back goes {right}."
    yield Draft(stem, right, reason, wrong(right))
    behind, hand = rng.choice(DIRECTIONS[1::2] if hard else MAIN_DIRECTIONS), rng.choice(("left", "right"))
    right = turned(behind, 4 + (2 if hand == "right" else -2))
    yield Draft(
        f"You stand with your back to the {behind}. Which direction is on your {hand}?",
        right,
        f"You face {turned(behind, 4)}.",
        wrong(right),
    )
    source = rng.choice(DIRECTIONS[1::2] if hard else MAIN_DIRECTIONS)
    right = turned(source, 4)
    yield Draft(
        f"The wind comes from the {source}. In which direction does it carry a balloon?",
        right,
        f"It blows away from the {source}.",
        wrong(right),
    )
    x, y, up, left = (_between(rng, 20, 60) if hard else _between(rng, 3, 6) for _ in range(4))
    goal = (x - left, y + up)
    yield Draft(
        f"x points right, y points upward. From ({x}, {y}) move {left} left and {up} up. Where are you?",
        f"({goal[0]}, {goal[1]})",
        f"{x} - {left} = {goal[0]} and {y} + {up} = {goal[1]}.",
        tuple(f"({p}, {q})" for p, q in ((x + left, y + up), (x - left, y - up), (x + left, y - up))),
    )


def _ranking_puzzles(rng: Random, hard: bool) -> Iterator[Draft]:
    size = 4 if hard else 3

    def people(count: int = size) -> list[str]:
        return rng.sample(PEOPLE, count)

    def comparisons(order: Sequence[str], more: str, less: str) -> str:
        """Sentences that fix the order, greatest first. In the hard version they are shuffled and some are reversed."""
        pairs = list(pairwise(order))
        sentences = [f"{one} {more} {two}." for one, two in pairs]
        if hard:
            sentences = [
                f"{two} {less} {one}." if place % 2 else sentences[place] for place, (one, two) in enumerate(pairs)
            ]
            rng.shuffle(sentences)
        return " ".join(sentences)

    def others(order: Sequence[str], right: str) -> tuple[str, ...]:
        return tuple(name for name in rng.sample(sorted(order), len(order)) if name != right)

    def listed(order: Sequence[str]) -> str:
        return f"In order: {', '.join(order)}."

    order = people()
    yield Draft(
        f"{comparisons(order, 'is taller than', 'is shorter than')} Who is the shortest?",
        order[-1],
        listed(order),
        others(order, order[-1]),
    )
    order = people()
    yield Draft(
        f"{comparisons(order, 'is older than', 'is younger than')} Who is the second oldest?",
        order[1],
        listed(order),
        others(order, order[1]),
    )
    order = people()
    yield Draft(
        f"In a race of {size}: {comparisons(order, 'beat', 'lost to')} Who came third?",
        order[2],
        listed(order),
        others(order, order[2]),
    )
    count, place = (
        (_between(rng, 60, 120), _between(rng, 20, 50)) if hard else (_between(rng, 7, 9), _between(rng, 2, 3))
    )
    yield Draft(
        f"In a queue of {count} people, {rng.choice(PEOPLE)} is number {place} from the front. "
        "Which number is that from the back?",
        str(count - place + 1),
        f"{count} - {place} + 1 = {count - place + 1}.",
        _wrong_numbers(rng, count - place + 1, count - place, count - place + 2, place),
    )
    order = rng.sample(("red", "blue", "green", "white", "black", "yellow"), size)
    clues = comparisons([f"The {colour} book" for colour in order], "is left of", "is right of").replace(
        "of The", "of the"
    )
    yield Draft(
        f"{clues} Which book is second from the left?",
        order[1],
        f"From the left: {', '.join(order)}.",
        others(order, order[1]),
    )
    one, two, three = people(3)
    x, y = (_between(rng, 11, 29), _between(rng, 11, 29)) if hard else (_between(rng, 2, 4), _between(rng, 5, 8))
    yield Draft(
        f"{one} is {x} years older than {two} and {y} years younger than {three}. "
        f"By how many years is {three} older than {two}?",
        str(x + y),
        f"{x} + {y} = {x + y}.",
        _wrong_numbers(rng, x + y, abs(x - y), y, x),
    )
    one, two, three = people(3)
    x, y = (_between(rng, 12, 20), _between(rng, 3, 9)) if hard else (_between(rng, 4, 6), _between(rng, 1, 2))
    yield Draft(
        f"{one} lives {x} floors above {two}. {three} lives {y} floors below {one}. "
        f"How many floors above {two} does {three} live?",
        str(x - y),
        f"{x} - {y} = {x - y}.",
        _wrong_numbers(rng, x - y, x + y, x, y),
    )
    order = rng.sample(("box", "bag", "vase", "lamp", "drum", "stone"), size)
    clues = comparisons([f"The {thing}" for thing in order], "is heavier than", "is lighter than").replace(
        "than The", "than the"
    )
    yield Draft(f"{clues} Which of them is the lightest?", order[-1], listed(order), others(order, order[-1]))


TABLES = (
    ("Visitors", "day", ("Mon", "Tue", "Wed", "Thu", "Fri")),
    ("Rain in mm", "month", ("Jan", "Feb", "Mar", "Apr", "May")),
    ("Cakes sold", "shop", ("North", "East", "South", "West", "Central")),
    ("Goals", "team", ("Reds", "Blues", "Greens", "Whites", "Golds")),
    ("Pages read", "pupil", ("Ana", "Ben", "Cem", "Dia", "Eli")),
)


def _small_tables(rng: Random, hard: bool) -> Iterator[Draft]:
    size = 5 if hard else 4

    def table(turn: int, *, divisible: bool = False) -> tuple[str, str, dict[str, int]]:
        """Its text, the word for one entry, and the figures (all different; their sum divisible where asked)."""
        title, entry, names = TABLES[(turn + 2 * hard) % len(TABLES)]
        while True:
            values = rng.sample(range(15, 99) if hard else range(2, 13), size)
            if not divisible or sum(values) % size == 0:
                break
        figures = dict(zip(names, values, strict=False))
        return f"{title}: {', '.join(f'{name} {value}' for name, value in figures.items())}.", entry, figures

    def rises(figures: dict[str, int]) -> list[tuple[int, str]]:
        """How much each entry after the first lies above the one before it, greatest rise first."""
        return sorted(((figures[two] - figures[one], two) for one, two in pairwise(figures)), reverse=True)

    def names_by_value(figures: dict[str, int]) -> list[str]:
        return sorted(figures, key=lambda name: -figures[name])

    text, entry, figures = table(0)
    ranked = names_by_value(figures)
    yield Draft(
        f"{text} Which {entry} has the highest figure?",
        ranked[0],
        f"{figures[ranked[0]]} is the highest.",
        _wrong_choices(rng, ranked[0], ranked),
    )
    text, entry, figures = table(1)
    ranked = names_by_value(figures)
    yield Draft(
        f"Which {entry} has the second highest figure? {text}",
        ranked[1],
        f"Only {ranked[0]} is above {figures[ranked[1]]}.",
        _wrong_choices(rng, ranked[1], ranked),
    )
    text, entry, figures = table(2)
    total = sum(figures.values())
    yield Draft(
        f"{text} What is the total?",
        str(total),
        " + ".join(map(str, figures.values())) + f" = {total}.",
        _wrong_numbers(rng, total, total + 10, total - 10, total + 1),
    )
    text, entry, figures = table(3, divisible=True)
    mean = sum(figures.values()) // size
    yield Draft(
        f"Find the mean per {entry}. {text}",
        str(mean),
        f"{sum(figures.values())} / {size} = {mean}.",
        _wrong_numbers(rng, mean, mean + 1, mean - 1, sorted(figures.values())[size // 2]),
    )
    text, entry, figures = table(4)
    low, high = min(figures.values()), max(figures.values())
    yield Draft(
        f"{text} By how much does the highest figure exceed the lowest?",
        str(high - low),
        f"{high} - {low} = {high - low}.",
        _wrong_numbers(rng, high - low, high, low, high + low),
    )
    text, entry, figures = table(5)
    limit = sorted(figures.values())[rng.choice((1, 2))]
    above = sum(value > limit for value in figures.values())
    yield Draft(
        f"{text} How many {entry}s have more than {limit}?",
        str(above),
        f"{limit} itself does not count; {above} figures are larger.",
        _wrong_numbers(rng, above, above + 1, above - 1, above + 2),
    )
    text, _, figures = table(6)
    while (steps := rises(figures))[0][0] <= 0 or steps[0][0] == steps[1][0]:
        text, _, figures = table(6)
    rise, right = steps[0]
    yield Draft(
        f"Reading from left to right, where is the biggest rise over the entry before? {text}",
        right,
        f"It rises by {rise} there.",
        _wrong_choices(rng, right, figures),
    )
    text, entry, figures = table(7)
    one, two = rng.sample(sorted(figures), 2)
    total = figures[one] + figures[two]
    thing, done = text.partition(":")[0].lower().split()  # the series here are "Cakes sold" and "Pages read"
    yield Draft(
        f"{text} How many {thing} were {done} by {one} and {two} together?",
        str(total),
        f"{figures[one]} + {figures[two]} = {total}.",
        _wrong_numbers(rng, total, abs(figures[one] - figures[two]), total + 1, total + 10),
    )


# science


def _unit_conversion(rng: Random, hard: bool) -> Iterator[Draft]:
    def scaled(stem: str, right: Fraction | int, reason: str) -> Draft:
        return Draft(
            stem,
            _number(right),
            reason,
            _wrong_numbers(rng, right, Fraction(right) * 10, Fraction(right) / 10, Fraction(right) * 100),
        )

    tenths = Fraction(_between(rng, 1013, 9987), 1000) if hard else Fraction(_between(rng, 2, 9))
    yield scaled(f"How many metres are {_number(tenths)} kilometres?", tenths * 1000, "1 km is 1000 m.")
    n = _between(rng, 61, 240) if hard else _between(rng, 2, 6)
    yield Draft(
        f"Convert {n} minutes to seconds.",
        str(60 * n),
        f"{n} * 60 = {60 * n}.",
        _wrong_numbers(rng, 60 * n, 100 * n, 60 * n + 60, 30 * n),
    )
    hours, minutes = (_between(rng, 13, 40), _between(rng, 11, 58)) if hard else (_between(rng, 1, 3), 30)
    right = 60 * hours + minutes
    yield Draft(
        f"{hours} h {minutes} min: how many minutes is that in all?",
        str(right),
        f"{hours} * 60 + {minutes} = {right}.",
        _wrong_numbers(rng, right, 100 * hours + minutes, right + 60, right - 10),
    )
    n = _between(rng, 11, 95) if hard else 1000 * _between(rng, 2, 9)
    yield scaled(f"Express {n} grams in kilograms.", Fraction(n, 1000), f"{n} / 1000 = {_number(Fraction(n, 1000))}.")
    speed = 18 * _between(rng, 3, 9) if hard else 36
    right = speed * 5 // 18
    yield Draft(
        f"A car drives at {speed} km/h. What is its speed in metres per second?",
        str(right),
        f"{speed} / 3.6 = {right}.",
        _wrong_numbers(rng, right, speed * 18 // 5, speed * 10 // 6, right + 5),
    )
    celsius = 5 * _between(rng, 3, 30) if hard else rng.choice((0, 100))
    right = celsius * 9 // 5 + 32
    yield Draft(
        f"What is {celsius} degrees Celsius in degrees Fahrenheit?",
        str(right),
        f"{celsius} * 9 / 5 + 32 = {right}.",
        _wrong_numbers(rng, right, celsius * 9 // 5, 2 * celsius + 30, celsius + 32),
    )
    n = _between(rng, 2, 9)
    shape, power = ("cubic", 3) if hard else ("square", 2)
    yield scaled(
        f"How many {shape} centimetres are there in {n} {shape} {'metres' if n > 1 else 'metre'}?",
        n * 100**power,
        f"1 {shape} metre is {100**power} {shape} centimetres.",
    )
    n = _between(rng, 9, 40) if hard else _between(rng, 2, 4)
    yield Draft(
        f"How many hours are there in {n} full days of 24 hours?",
        str(24 * n),
        f"{n} * 24 = {24 * n}.",
        _wrong_numbers(rng, 24 * n, 12 * n, 24 * n + 12, 20 * n),
    )


TASKS: dict[str, tuple[str, Callable[[Random, bool], Iterator[Draft]]]] = {
    "multi_digit_arithmetic": ("mathematics", _multi_digit_arithmetic),
    "linear_equations": ("mathematics", _linear_equations),
    "number_sequences": ("mathematics", _number_sequences),
    "letter_counting": ("language", _letter_counting),
    "letter_editing": ("language", _letter_editing),
    "calendar_dates": ("everyday_life", _calendar_dates),
    "clock_times": ("everyday_life", _clock_times),
    "number_bases": ("computing", _number_bases),
    "compass_turns": ("reasoning", _compass_turns),
    "ranking_puzzles": ("reasoning", _ranking_puzzles),
    "small_tables": ("reasoning", _small_tables),
    "unit_conversion": ("science", _unit_conversion),
}


def rows() -> list[Row]:
    """All questions from templates, laid out, task by task."""
    laid_out: list[Row] = []
    for task, (domain, make) in TASKS.items():
        rng = seeded(task)
        drafts = [
            draft if (place + hard) % 2 == 0 or _needs_options(draft) else replace(draft, wrong=())
            for hard in (False, True)
            for place, draft in enumerate(make(rng, hard))
        ]
        laid_out += lay_out(task=task, domain=domain, drafts=drafts)
    return laid_out


def _needs_options(draft: Draft) -> bool:
    return draft.stem.startswith("Which of these")
