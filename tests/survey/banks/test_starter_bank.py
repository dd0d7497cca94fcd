"""The starter bank: its shape, its spread, and every templated key computed a second time from the question's text."""

import csv
import io
import re
from calendar import monthrange
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from difflib import SequenceMatcher
from itertools import combinations, permutations
from string import ascii_uppercase

import pytest

from tools.starter_bank import handwritten, templates
from tools.starter_bank.build import STARTER_BANK, bank_text
from tools.starter_bank.drafts import Draft, Row, lay_out

HEADER = ["id", "source", "question", "answer", "domain", "reason"]
SHIPPED: list[Row] = list(csv.DictReader(io.StringIO(STARTER_BANK.read_text(encoding="utf-8"), newline="")))
TEMPLATED = [row for row in SHIPPED if row["source"] in templates.TASKS]
HANDWRITTEN = [row for row in SHIPPED if row["source"] in handwritten.DOMAINS]


def plain(question: str) -> str:
    """The question as it is read: lines for breaks, no bold."""
    return question.replace("<br>", "\n").replace("<b>", "").replace("</b>", "")


def stem(question: str) -> str:
    return plain(question).split("\n")[0]


def options(question: str) -> dict[str, str]:
    """The options by letter, empty where the answer is to be typed."""
    return {line[1]: line[4:] for line in plain(question).split("\n")[1:] if line}


def right_answer(row: Row) -> str:
    """What the key stands for: the text of the right option, or the short answer itself."""
    listed = options(row["question"])
    return listed[row["answer"]] if listed else row["answer"]


def words(row: Row) -> int:
    return len(plain(row["question"]).split())


# the file


def test_it_ships_exactly_what_the_build_makes():
    assert STARTER_BANK.read_bytes() == bank_text().encode("utf-8")
    assert bank_text() == bank_text()


def test_its_header_is_that_of_a_bank_file_plus_domain_and_reason():
    assert STARTER_BANK.read_text(encoding="utf-8").split("\n")[0] == ",".join(HEADER)


def test_it_numbers_the_questions_of_each_task_from_one():
    for task in {row["source"] for row in SHIPPED}:
        numbers = [row["id"] for row in SHIPPED if row["source"] == task]
        assert numbers == [f"{task}:{number}" for number in range(1, len(numbers) + 1)]


def test_it_is_large_and_mostly_handwritten():
    assert len(SHIPPED) >= 420
    assert len(HANDWRITTEN) >= 215
    assert len(HANDWRITTEN) + len(TEMPLATED) == len(SHIPPED)
    assert len(TEMPLATED) <= len(SHIPPED) / 2


def test_it_covers_many_tasks_and_domains():
    per_task = Counter(row["source"] for row in SHIPPED)
    per_domain = Counter(row["domain"] for row in SHIPPED)
    assert len(per_task) >= 18 and min(per_task.values()) >= 10
    assert len(per_domain) >= 6 and min(per_domain.values()) >= 20
    assert len({(row["source"], row["domain"]) for row in SHIPPED}) == len(per_task), "a task belongs to one domain"


def test_it_mixes_multiple_choice_and_short_answers():
    short = sum(not options(row["question"]) for row in SHIPPED)
    assert 100 <= short <= len(SHIPPED) - 200


def test_it_mostly_offers_four_options():
    sizes = Counter(len(options(row["question"])) for row in SHIPPED if options(row["question"]))
    assert sizes[4] >= 0.8 * sizes.total()


# the texts


def layout_faults(row: Row) -> list[str]:
    """What is wrong with the form of a question, in words."""
    question, listed, faults = row["question"], options(row["question"]), []
    if not re.fullmatch(r"<b>(?:(?!</?b>|<br>).)+(?:</b>|<br></b>\(A\) (?:(?!</?b>).)+)", question):
        faults.append("not a bold stem, alone or with options after a line break")
    if "".join(listed) != ascii_uppercase[: len(listed)] or len(listed) == 1:
        faults.append("options not lettered A, B, ...")
    if len({option.casefold() for option in listed.values()}) != len(listed):
        faults.append("two options alike")
    if listed and row["answer"] not in listed:
        faults.append("the key is none of the letters")
    if not listed and len(row["answer"].split()) not in (1, 2, 3):
        faults.append("a short answer has one to three words")
    if any(text != text.strip() or not text for text in (stem(question), *listed.values(), *row.values())):
        faults.append("an empty text, or blanks around one")
    if not row["reason"].endswith(".") or "\n" in row["reason"]:
        faults.append("the reason is not one sentence on one line")
    return faults


def test_it_lays_every_question_out_as_a_bold_stem_and_lettered_options():
    assert {row["id"]: faults for row in SHIPPED if (faults := layout_faults(row))} == {}


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"question": "Bare?<br></b>(A) one<br>(B) two"}, "not a bold stem"),
        ({"question": "<b>Nested <b>bold</b>?<br></b>(A) one<br>(B) two"}, "not a bold stem"),
        ({"question": "<b>Skipping?<br></b>(A) one<br>(C) two"}, "not lettered"),
        ({"question": "<b>Alike?<br></b>(A) one<br>(B) One"}, "two options alike"),
        ({"answer": "C"}, "none of the letters"),
        ({"question": "<b>Typed?</b>", "answer": "a rather long short answer"}, "one to three words"),
        ({"domain": ""}, "empty text"),
        ({"reason": "Because"}, "not one sentence"),
    ],
)
def test_it_sees_a_fault_in_the_layout(changes, fault):
    sound = Row(
        id="x:1", source="x", question="<b>Sound?<br></b>(A) one<br>(B) two", answer="A", domain="d", reason="R."
    )
    assert layout_faults(sound) == []
    (message,) = layout_faults(sound | changes)
    assert fault in message


def test_it_keeps_questions_short():
    assert sum(words(row) <= 30 for row in SHIPPED) >= 360
    assert max(words(row) for row in SHIPPED) <= 50


def test_it_contains_characters_that_a_careless_page_would_take_for_markup():
    texts = [plain(row["question"]) for row in SHIPPED]
    for character in "<>&$":
        assert sum(character in text for text in texts) >= 3, character
    assert any("<a>" in text for text in texts) and any("&lt;" in text for text in texts)


def test_no_letter_betrays_the_right_option():
    for size in (3, 4):
        keys = Counter(row["answer"] for row in SHIPPED if len(options(row["question"])) == size)
        expected = keys.total() / size
        assert all(abs(keys[letter] - expected) <= 0.15 * expected + 2 for letter in ascii_uppercase[:size]), keys


# repetition


SMALL_WORDS = re.compile(
    r"\b(?:an?|the|of|is|are|in|on|to|by|and|or|what|which|who|how|many|much|does|do|its?|for|with)\b"
)


def content(text: str) -> set[str]:
    """The words that carry the question, without words that are in every question."""
    return set(re.findall(r"[\w'+*/<>&$.-]+", SMALL_WORDS.sub("", text.lower())))


def test_no_two_questions_have_the_same_text():
    assert len({row["question"].casefold() for row in SHIPPED}) == len(SHIPPED)
    assert len({stem(row["question"]).casefold() for row in HANDWRITTEN}) == len(HANDWRITTEN)


@pytest.mark.thorough
@pytest.mark.slow
def test_no_two_handwritten_questions_are_nearly_the_same():
    stems = [(row["id"], stem(row["question"]).lower()) for row in HANDWRITTEN]
    alike = []
    for (first_id, first), (two, second) in combinations(stems, 2):
        shared, joined = content(first) & content(second), content(first) | content(second)
        matcher = SequenceMatcher(None, first, second, autojunk=False)
        if len(shared) > 0.45 * len(joined) or (matcher.quick_ratio() > 0.8 and matcher.ratio() > 0.8):
            alike.append((first_id, two))
    assert alike == []


def test_each_templated_task_asks_in_at_least_eight_wordings():
    for task in templates.TASKS:
        asked = {
            frozenset(w for w in re.findall(r"[a-z]{2,}", re.sub(r"'[^']*'|: .*", "", stem(row["question"]).lower())))
            for row in TEMPLATED
            if row["source"] == task
        }
        assert len(asked) >= 8, task


# laying out


def test_it_refuses_a_wrong_option_that_equals_the_answer():
    with pytest.raises(ValueError, match="wrong: must differ"):
        Draft("What is 2 + 2?", "4", "2 + 2 = 4.", ("4", "5"))


def test_it_refuses_more_options_than_there_are_letters():
    with pytest.raises(ValueError, match="wrong: at most 3"):
        Draft("What is 2 + 2?", "4", "2 + 2 = 4.", ("1", "2", "3", "5"))


def test_it_deals_every_letter_once_before_any_comes_again():
    drafts = [Draft(f"Pick {n}.", "right", "Because.", ("no", "never", "not")) for n in range(8)]
    keys = [row["answer"] for row in lay_out(task="letters", domain="none", drafts=drafts)]
    assert sorted(keys[:4]) == sorted(keys[4:]) == list("ABCD")


# every templated key, computed again from the text alone

DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
MONTHS = [
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
]
HEADINGS = {"north": (0, 1), "east": (1, 0), "south": (0, -1), "west": (-1, 0)}
HEADINGS |= {a + b: (HEADINGS[a][0] + HEADINGS[b][0], HEADINGS[a][1] + HEADINGS[b][1])
             for a in ("north", "south") for b in ("east", "west")}  # fmt: skip


def heading(step: tuple[int, int]) -> str:
    """The name of a direction given as a step east and a step north, of any length."""
    signs = tuple((part > 0) - (part < 0) for part in step)
    return next(name for name, unit in HEADINGS.items() if unit == signs)


def turn(name: str, degrees: int) -> str:
    """The direction after a turn clockwise by a multiple of 45 degrees."""
    for _ in range(degrees % 360 // 45):
        east, north = HEADINGS[name]
        name = heading((east + north, north - east))
    return name


def brute(holds: Callable[[int], bool]) -> int:
    """The only whole number up to 3,000 that meets the condition."""
    (solution,) = [number for number in range(3001) if holds(number)]
    return solution


def divisors(number: int) -> int:
    return sum(number % divisor == 0 for divisor in range(1, number + 1))


def length_of(month: int, year: int = 2023) -> int:
    return monthrange(year, month)[1]


def day_number(text: str, year: int = 2023) -> int:
    """'3 March' -> 62; 2023 is not a leap year."""
    day, month = text.split()
    return sum(length_of(before, year) for before in range(1, MONTHS.index(month) + 1)) + int(day)


def day_text(number: int, year: int = 2023) -> str:
    month = 1
    while number > length_of(month, year):
        number -= length_of(month, year)
        month += 1
    return f"{number} {MONTHS[month - 1]}"


def minutes(text: str) -> int:
    hour, minute = text.split(":")
    return int(hour) * 60 + int(minute)


def clock(total: int) -> str:
    hour, minute = divmod(total % 1440, 60)
    return f"{hour:02d}:{minute:02d}"


def digits_in(base: int, number: int) -> str:
    """Digits found by taking the greatest power away first."""
    power = max(power for power in range(20) if base**power <= number)
    text = ""
    for exponent in range(power, -1, -1):
        digit, number = divmod(number, base**exponent)
        text += "0123456789ABCDEF"[digit]
    return text


def rank(text: str) -> list[str]:
    """All who are compared in the text, greatest (first, leftmost) first, by trying every order."""
    greater, less = ["taller", "older", "beat", "left", "heavier"], ["shorter", "younger", "lost", "right", "lighter"]
    sentences = re.findall(
        r"(?:The )?(\w+)(?: book)? (?:is )?(\w+) ?(?:than|of|to)? ?(?:the )?(\w+)(?: book)?\.", text.split(": ")[-1]
    )
    above = [(first, two) if how in greater else (two, first) for first, how, two in sentences]
    assert all(how in greater + less for _, how, _ in sentences) and len(sentences) == text.count(".")
    names = sorted({name for pair in above for name in pair})
    (order,) = [
        order for order in permutations(names) if all(order.index(higher) < order.index(two) for higher, two in above)
    ]
    return list(order)


def figures(text: str) -> dict[str, int]:
    return {name: int(value) for name, value in re.findall(r"(\w+) (\d+)(?=[,.])", text)}


def top(text: str, place: int) -> str:
    table = figures(text)
    return sorted(table, key=table.__getitem__)[-place]


def biggest_rise(text: str) -> str:
    names = list(figures(text))
    rises = {names[i]: figures(text)[names[i]] - figures(text)[names[i - 1]] for i in range(1, len(names))}
    assert sorted(rises.values())[-1] > sorted(rises.values())[-2]
    return max(rises, key=rises.__getitem__)


def most_of(letter: str, candidates: list[str]) -> str:
    counts = {word: len(re.findall(letter, word)) for word in candidates}
    (winner,) = [word for word in candidates if counts[word] == max(counts.values())]
    return winner


def repeat(value: int, times: int, step: Callable[[int], int]) -> int:
    for _ in range(times):
        value = step(value)
    return value


def fibonacci_like(a: int, b: int, place: int) -> int:
    while place > 1:
        a, b, place = b, a + b, place - 1
    return a


def hands_apart(hour: int, minute: int) -> Decimal:
    """Both hands stepped on from noon, minute by minute: 12 and 1 half degrees at a time."""
    long = short = 0
    for _ in range(hour * 60 + minute):
        long, short = (long + 12) % 720, (short + 1) % 720
    return Decimal(min((long - short) % 720, (short - long) % 720)) / 2


def walked(text: str) -> Decimal:
    """The distance from the start after legs such as '7 km north'."""
    east = north = 0
    for length, unit in re.findall(r"(\d+) (?:km|metres) (\w+)", text):
        east, north = east + int(length) * HEADINGS[unit][0], north + int(length) * HEADINGS[unit][1]
    return Decimal(east**2 + north**2).sqrt()


def seen_from_third(text: str) -> str:
    (first, way, two), (three, side, again) = re.findall(r"The (\w+) is 1 km (\w+) of the (\w+)\.", text)
    assert two == again and text.endswith(f"from the {three} is the {first}?")
    return heading((HEADINGS[way][0] - HEADINGS[side][0], HEADINGS[way][1] - HEADINGS[side][1]))


N = r"(\d+)"
NTH = r"(\d*(?:1\d(?=th)|(?<!1)1(?=st)|(?<!1)2(?=nd)|(?<!1)3(?=rd)|[04-9](?=th)))(?:st|nd|rd|th)"
W = r"'(\w+)'"
T = r"(\d+:\d\d)"
D = r"(\d+ [A-Z]\w+)"

# One wording a line: what the question says, and how to answer it from the captured words. Lists of options come last.
SECOND_OPINIONS: list[tuple[str, Callable[..., object]]] = [
    (rf"What is {N} \+ {N}\?", lambda a, b: brute(lambda r: r - int(a) == int(b))),
    (rf"Subtract {N} from {N}\.", lambda b, a: brute(lambda r: r + int(b) == int(a))),
    (rf"(?:Multiply|Find the product of) {N} (?:by|and) {N}\.", lambda a, b: sum(int(a) for _ in range(int(b)))),
    (rf"What remainder does {N} leave when divided by {N}\?", lambda a, b: repeat(
        int(a), int(a) // int(b), lambda left: left - int(b))),
    (rf"Work out {N} - {N} \+ {N}\.", lambda a, b, c: int(a) + int(c) - int(b)),
    (rf"{N} divided by {N} equals which whole number\?", lambda a, b: brute(lambda r: r * int(b) == int(a))),
    (rf"Calculate \({N} \+ {N}\) \* {N}\.", lambda a, b, c: int(a) * int(c) + int(b) * int(c)),
    (rf"Solve {N}x \+ {N} = {N} for x\.", lambda a, b, c: brute(lambda x: int(a) * x + int(b) == int(c))),
    (rf"If {N}y - {N} = {N}, what is y\?", lambda a, b, c: brute(lambda y: int(a) * y - int(b) == int(c))),
    (rf"{N} times a number, plus {N}, makes {N}\. Which number is it\?", lambda a, b, c: brute(
        lambda x: int(a) * x + int(b) == int(c))),
    (rf"x \+ y = {N} and x - y = {N}\. What is x\?", lambda s, d: brute(lambda x: x - (int(s) - x) == int(d))),
    (rf"For which x is {N}x \+ {N} = {N}x \+ {N}\?", lambda a, b, c, d: brute(
        lambda x: int(a) * x + int(b) == int(c) * x + int(d))),
    (rf"What is the largest whole number n with {N}n < {N}\?", lambda a, b: brute(
        lambda n: int(a) * n < int(b) <= int(a) * (n + 1))),
    (rf"Half of a number is {N} less than {N}\. What is the number\?", lambda b, c: brute(
        lambda x: Decimal(x) / 2 + int(b) == int(c))),
    (rf"A rectangle is {N} cm wide and {N} cm around\. How many cm long is it\?", lambda w, p: brute(
        lambda x: x + x + int(w) + int(w) == int(p))),
    (rf"A list starts with {N}; each number is {N} more than the one before\. What is the {NTH} number\?",
        lambda a, d, n: repeat(int(a), int(n) - 1, lambda v: v + int(d))),
    (rf"Start with {N} and double it {N} times\. What do you get\?", lambda a, n: repeat(
        int(a), int(n), lambda v: v + v)),
    (rf"Each number is the sum of the two before it: {N}, {N}, and so on\. What is the {NTH} number\?",
        lambda a, b, n: fibonacci_like(int(a), int(b), int(n))),
    (rf"Take {N} and do this {N} times in a row: multiply by {N}, then add {N}\. What results\?",
        lambda a, n, m, c: repeat(int(a), int(n), lambda v: v * int(m) + int(c))),
    (rf"Add up all whole numbers from 1 to {N}\. What is the sum\?", lambda n: sum(range(int(n) + 1))),
    (rf"What is the {NTH} odd number, counting 1 as the first\?", lambda n: list(range(1, 1000, 2))[int(n) - 1]),
    (rf"What is the smallest prime number greater than {N}\?", lambda n: next(
        k for k in range(int(n) + 1, 1000) if divisors(k) == 2)),
    (rf"How many whole numbers are there from {N} to {N}, both included\?", lambda a, b: len(
        range(int(a), int(b) + 1))),
    (rf"How many times does the letter '(\w)' occur in {W}\?", lambda x, w: Counter(w)[x]),
    (rf"How many letters does the word {W} have\?", lambda w: Counter(w).total()),
    (rf"Count the vowels \(a, e, i, o, u\) in {W}, repeats included\.", lambda w: len(re.findall("[aeiou]", w))),
    (r"Which of these words has the most letters '(\w)'\?", most_of),
    (rf"How many different letters are used to write {W}\?", lambda w: len(Counter(w))),
    (rf"If every '(\w)' is crossed out of {W}, how many letters remain\?", lambda x, w: len(re.sub(x, "", w))),
    (r"How often does '(\w)' appear in the three words (\w+, \w+, \w+) taken together\?", lambda x, ws: Counter(ws)[x]),
    (rf"How many different letters occur in both {W} and {W}\?", lambda a, b: len(Counter(a).keys() & b)),
    (rf"Write the word {W} backwards\.", lambda w: "".join(reversed(w))),
    (rf"What is letter number {N} of the word {W}\?", lambda n, w: dict(enumerate(w, start=1))[int(n)]),
    (rf"Remove every '(\w)' from {W}\. What is left\?", lambda x, w: "".join(y for y in w if y != x)),
    (rf"Which letter stands {N} places after (\w) in the English alphabet\?", lambda n, x: chr(ord(x) + int(n))),
    (rf"Put the letters of {W} in alphabetical order\.", lambda w: "".join(
        x * w.count(x) for x in map(chr, range(97, 123)))),
    (r"Join the first letters of these words: (.*)\.", lambda ws: "".join(re.findall(r"\b\w", ws))),
    (r"Join the last letters of these words: (.*)\.", lambda ws: "".join(re.findall(r"\w\b", ws))),
    (rf"Swap the first and the last letter of {W}\. What do you get\?", lambda w: re.sub(
        r"^(.)(.*)(.)$", r"\3\2\1", w)),
    (r"Which of these words comes (first|last) in a dictionary\?", lambda end, ws: (
        min(ws) if end == "first" else max(ws))),
    (rf"Day {N} of a month is a (\w+)\. Which weekday is day {N} of that month\?", lambda a, day, b: repeat(
        DAYS.index(day), int(b) - int(a), lambda d: (d + 1) % 7)),
    (rf"Today is (\w+)\. What weekday will it be in {N} days\?", lambda day, n: repeat(
        DAYS.index(day), int(n), lambda d: (d + 1) % 7)),
    (rf"How many days after {D} is {D} of the same year\?", lambda a, b: day_number(b) - day_number(a)),
    (rf"Which date comes {N} days after {D} {N}\?", lambda n, day, year: day_text(
        day_number(day, int(year)) + int(n), int(year))),
    (r"Which of these is a leap year in the Gregorian calendar\?", lambda years: next(
        y for y in years if monthrange(int(y), 2)[1] == 29)),
    (rf"With 1 January as day 1, which date is day {N} of a year that is not a leap year\?", lambda n: day_text(
        int(n))),
    (r"How many days do ([\w, ]+) have together\?", lambda ms: sum(
        length_of(MONTHS.index(m) + 1) for m in re.findall(r"[A-Z]\w+", ms))),
    (rf"Which month comes {N} months after (\w+)\?", lambda n, m: MONTHS[repeat(
        MONTHS.index(m), int(n), lambda k: (k + 1) % 12)]),
    (rf"A film starts at {T} and lasts {N} minutes\. When does it end\?", lambda t, n: clock(minutes(t) + int(n))),
    (rf"How many minutes pass from {T} to {T} on one day\?", lambda a, b: minutes(b) - minutes(a)),
    (rf"What time was it {N} minutes before {T}\?", lambda n, t: clock(minutes(t) - int(n))),
    (rf"A night train runs from {T} to {T} the next morning in the same time zone\. How many minutes is the journey\?",
        lambda a, b: 1440 - minutes(a) + minutes(b)),
    (rf"A clock gains {N} minutes every hour and is set right at {T}\. What does it show when it is really {T}\?",
        lambda gain, a, b: clock(minutes(b) + int(gain) * (minutes(b) - minutes(a)) // 60)),
    (rf"It is {T} at UTC\+{N}\. What time is it at UTC(?:-{N})?\?", lambda t, here, there: clock(
        minutes(t) - 60 * int(here) - 60 * int(there or 0))),
    (rf"A dial clock shows {N}:{N}\. How many degrees is the smaller angle between its hands\?",
        lambda h, m: hands_apart(int(h), int(m))),
    (rf"Write {T} (a|p)\.m\. in 24-hour time, as HH:MM\.", lambda t, half: clock(
        minutes(t) % 720 + (720 if half == "p" else 0))),
    (rf"Write the decimal number {N} in binary\.", lambda n: digits_in(2, int(n))),
    (r"Which decimal number is written ([01]+) in binary\?", lambda b: int(b, 2)),
    (r"What is hexadecimal ([0-9A-F]+) in decimal\?", lambda h: int(h, 16)),
    (rf"Convert decimal {N} to hexadecimal \(digits 0-9 and A-F\)\.", lambda n: digits_in(16, int(n))),
    (r"Add the binary numbers ([01]+) and ([01]+)\. Answer in binary\.", lambda a, b: digits_in(
        2, int(a, 2) + int(b, 2))),
    (rf"How many ones appear when decimal {N} is written in binary\?", lambda n: Counter(digits_in(2, int(n)))["1"]),
    (r"What is the bitwise AND, ([01]+) & ([01]+), in binary\?", lambda a, b: "".join(
        "1" if x == y == "1" else "0" for x, y in zip(a, b, strict=True))),
    (rf"How is the decimal number {N} written in base {N}\?", lambda n, base: digits_in(int(base), int(n))),
    (r"You face (\w+) and make quarter turns: ([a-z, ]+)\. Which way do you face now\?", lambda d, turns: turn(
        d, 90 * turns.count("right") - 90 * turns.count("left"))),
    (r"(On flat ground you walk .*)\. How many km are you from the start\?", walked),
    (r"(On a flat field a cat runs .*)\. How many metres long is the straight way back\?",
        lambda legs: walked(legs.replace(", then", " and"))),
    (rf"A robot that points (\w+) turns {N} degrees anticlockwise\. Where does it point\?", lambda d, n: turn(
        d, -int(n))),
    (r"The (\w+) is (\w+) of the (\w+), and the \3 is \2 of the (\w+)\. In which direction from the \1 is the \4\?",
        lambda a, d, b, c: turn(d, 180)),
    (r"(The \w+ is 1 km .*)", seen_from_third),
    (r"You stand with your back to the (\w+)\. Which direction is on your (left|right)\?", lambda d, side: turn(
        d, 270 if side == "right" else 90)),
    (r"The wind comes from the (\w+)\. In which direction does it carry a balloon\?", lambda d: turn(d, 180)),
    (rf"x points right, y points upward\. From \({N}, {N}\) move {N} left and {N} up\. Where are you\?",
        lambda x, y, left, up: f"({int(x) - int(left)}, {int(y) + int(up)})"),
    (r"(.* is (?:taller|shorter) than .*\.) Who is the shortest\?", lambda text: rank(text)[-1]),
    (r"(.* is (?:older|younger) than .*\.) Who is the second oldest\?", lambda text: rank(text)[1]),
    (r"In a race of \d: (.*\.) Who came third\?", lambda text: rank(text)[2]),
    (r"(The \w+ book .*\.) Which book is second from the left\?", lambda text: rank(text)[1]),
    (r"(The .* is (?:heavier|lighter) than .*\.) Which of them is the lightest\?", lambda text: rank(text)[-1]),
    (rf"In a queue of {N} people, \w+ is number {N} from the front\. Which number is that from the back\?",
        lambda n, place: list(range(int(n), 0, -1))[int(place) - 1]),
    (rf"(\w+) is {N} years older than (\w+) and {N} years younger than (\w+)\. By how many years is \5 older than \3\?",
        lambda a, x, b, y, c: 100 + int(y) - (100 - int(x))),
    (rf"(\w+) lives {N} floors above (\w+)\. (\w+) lives {N} floors below \1\. How many floors above \3 does \4 live\?",
        lambda a, x, b, c, y: len(range(int(x))[int(y):])),
    (r"(.*\.) Which \w+ has the highest figure\?", lambda t: top(t, 1)),
    (r"Which \w+ has the second highest figure\? (.*)", lambda t: top(t, 2)),
    (r"(.*\.) What is the total\?", lambda t: sum(figures(t).values())),
    (r"Find the mean per \w+\. (.*)", lambda t: Decimal(sum(figures(t).values())) / len(figures(t))),
    (r"(.*\.) By how much does the highest figure exceed the lowest\?", lambda t: max(figures(t).values()) - min(
        figures(t).values())),
    (rf"(.*\.) How many \w+s have more than {N}\?", lambda t, limit: len(
        [v for v in figures(t).values() if v > int(limit)])),
    (r"Reading from left to right, where is the biggest rise over the entry before\? (.*)", biggest_rise),
    (r"((\w+) (\w+): .*\.) How many (?i:\2) were \3 by (\w+) and (\w+) together\?",
        lambda t, thing, done, a, b: figures(t)[a] + figures(t)[b]),
    (r"How many metres are ([\d.]+) kilometres\?", lambda x: Decimal(x) * 1000),
    (rf"Convert {N} minutes to seconds\.", lambda n: int(n) * 60),
    (rf"{N} h {N} min: how many minutes is that in all\?", lambda h, m: minutes(f"{h}:{m}")),
    (rf"Express {N} grams in kilograms\.", lambda n: Decimal(n).scaleb(-3)),
    (rf"A car drives at {N} km/h\. What is its speed in metres per second\?", lambda v: Decimal(v) * 1000 / 3600),
    (rf"What is {N} degrees Celsius in degrees Fahrenheit\?", lambda c: brute(lambda f: (f - 32) * 5 == int(c) * 9)),
    (rf"How many square centimetres are there in {N} square metres\?", lambda n: int(n) * 100 * 100),
    (rf"How many cubic centimetres are there in {N} cubic metres\?", lambda n: int(n) * 100 * 100 * 100),
    (rf"How many hours are there in {N} full days of 24 hours\?", lambda n: int(n) * 24),
]  # fmt: skip


def second_opinion(row: Row) -> str:
    asked, listed = stem(row["question"]), list(options(row["question"]).values())
    (match, answer), *others = [
        (match, answer) for wording, answer in SECOND_OPINIONS if (match := re.fullmatch(wording, asked))
    ]
    assert not others, f"two wordings fit {asked!r}"
    solution = answer(*match.groups(), *([listed] if asked.startswith("Which of these") else []))
    if "weekday" in asked:
        return DAYS[int(str(solution))]
    if isinstance(solution, Decimal):
        return f"{solution.normalize():f}"
    return str(solution)


@pytest.mark.thorough
@pytest.mark.parametrize("row", TEMPLATED, ids=lambda row: row["id"])
def test_a_templated_key_can_be_computed_again_from_the_text(row):
    assert right_answer(row) == second_opinion(row)


def test_every_wording_that_can_be_recomputed_is_in_the_bank():
    asked = [stem(row["question"]) for row in TEMPLATED]
    unused = [wording for wording, _ in SECOND_OPINIONS if not any(re.fullmatch(wording, text) for text in asked)]
    assert unused == []
