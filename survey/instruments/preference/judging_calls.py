"""How a language model is asked to judge two replies, and how its score is read. What was asked by one version of a
template is never mixed with another's."""

import math
import re
from collections.abc import Sequence

from predictors.prompts import Template
from survey.services.banks.answer_checking import LONGEST_REPLY
from survey.services.banks.answer_cleaning import answer_part, light, tidy
from survey.services.banks.answer_quantities import CURRENCIES, quantities_in, words_in

from .models import MIDDLE

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
# Of the rules by which a score is read; a verdict is stored with it.
SCORE_RULES_VERSION = "3"
WORDS = "one|two|three|four|five|six|seven|eight"
DIGIT = rf"(?:\d|(?:{WORDS})\b)"
# "from 1 to 8", "(out of 8)", "8 means that reply 2 is much better", "1 = worst, 8 = best".
SCALE_ITSELF = re.compile(
    r"\((?:from )?(?:1|one) ?(?:-|to|through|bis|\.\.+) ?(?:8|eight)\)|"
    r"(?<![\d.,/-])\b(?:1|one) ?(?:-|to|through|and|bis|\.\.+) ?(?:8(?![\d.,]\d|\d)|eight\b)|"
    r"\((?:out )?of (?:8|eight)\)|\bout of (?:8|eight)\b(?= ?[:=])|"
    r"\b[1-8] (?:means|stands for|leans)\b[^.,;\n]*|"
    r"\b1 ?=[^.,;\n\d]+(?:reply 1)?[^.,;\n\d]*[,;] ?8 ?=[^.,;\n\d)]+(?:reply 2)?[^.,;\n\d)]*",
    re.IGNORECASE,
)
OF_EIGHT = re.compile(
    rf"(?<![\d.,/-])(\d+|(?:{WORDS})\b) ?(?:/|out of|of|on) ?(?:8(?![\d/]|[.,]\d)|eight\b)", re.IGNORECASE
)
OF_ANOTHER = re.compile(rf"{DIGIT} ?(?:/ ?\d|out of (?:\d|nine|ten|twelve|twenty|a? ?hundred))", re.IGNORECASE)
# What the two replies are called is no score: "Reply 2 is better". A score next to such a name is that of one reply.
NAME = r"\b(?:repl(?:y|ies)|responses?|texts?|candidates?|assistants?|options?) (?:no\. ?|number |#)?(?:[12]|one|two)\b"
NAMED_REPLY = re.compile(rf"{NAME}(?:'s)?(?: (?:and|or|&) (?:[12]|one|two)\b)?|\banswer [12](?= [a-z])", re.IGNORECASE)
SCORE_OF_ONE = re.compile(
    rf"{NAME}(?: ?[:=]| (?:scores?|gets?|deserves?|rates?|is|as|with))?(?: ?[:=])? ?(?:an? )?{DIGIT}", re.IGNORECASE
)
CALLED = re.compile(
    r"\b(?:rating|score|grade|verdict|number|result|answer|"
    r"i(?: would|'d)? (?:rate|give|score|choose|pick)(?: this| it| a)*)\b"
    rf"(?: (?:is|of|would be|this|it|a|an))* ?(?:[:=]+|- )?\s*"
    rf"(?=(?P<said>-?[$(\[]?{DIGIT}[^\n]*))",
    re.IGNORECASE,
)
ALONE_IN_LINE = re.compile(rf"\W*(?:\d+|{WORDS})\W*", re.IGNORECASE)
# A number in words is a score at the end of what is said; elsewhere "one" is hardly ever a number.
LAST_WORD = re.compile(
    rf"(?<!\bthis )(?<!\bthat )(?<!\bfirst )(?<!\bsecond )(?<!\bno )(?<!\bany )(?<!\beach )(?<!\bwhich )(?<!\bneither )"
    rf"(?<!\bthe )(?<!\bother )(?<!\bthan )\b(?:{WORDS})\W*\Z|\b(?:an?|about) (?:{WORDS})\b",
    re.IGNORECASE,
)
JOINED = re.compile(
    r"\s*(?:[-+/,;&]|\bor\b|\band\b|\bto\b)?\s*(?:maybe |perhaps |even )?(?:an? )?|"
    r"\s*\(?(?:or|maybe|perhaps|possibly)\b[ ,]*(?:an? )?",
    re.IGNORECASE,
)
DENIED = re.compile(
    rf"(?:\bnot|n't|\bnever|\bcannot|\b(?:anything|everything) but) (?:[a-z]+ ){{0,3}}{DIGIT}|"
    rf"(?:\b(?:less|more|higher|lower) than|\bat (?:least|most)|\bunder|\bover|\babove|\bbelow|\bup to|[<>]) ?"
    rf"(?:an? )?{DIGIT}|"
    r"\d(?:\+|-)(?=\s*(?:$|\n))|\d ?%|\d(?:st|nd|rd|th)\b",
    re.IGNORECASE,
)


def calls_for(template: Template, *, question: str, prompt: str, first: str, second: str) -> list[str]:
    """What is sent for one item in one order; of a template that rates replies alone one text for each reply."""
    words = {"question": question, "prompt": prompt}
    if template.use == "rate":
        return [template.filled(**words, reply_1=reply) for reply in (first, second)]
    return [template.filled(**words, reply_1=first, reply_2=second)]


def ranking_call(template: Template, *, question: str, prompt: str, replies: Sequence[str]) -> str:
    """What is sent for all replies to a prompt, which are named by letters in this order."""
    letters = LETTERS[: len(replies)]
    named = "\n\n".join(f"Reply {letter}:\n{reply}" for letter, reply in zip(letters, replies, strict=True))
    return template.filled(question=question, prompt=prompt, replies=named, letters=", ".join(letters))


def ranks_of(reply: str, count: int) -> list[float] | None:
    """The rank of each of the replies, 0 for the best, ties in the middle; None unless a line, the first or the last of
    what is said, has every letter once: "B > A = C" or "B, A, C"."""
    lines = [line.strip() for line in answer_part(reply).splitlines() if line.strip()]
    rankings = {tuple(ranks) for line in (*lines[:1], *lines[-1:]) if (ranks := _ranks_in(line, count)) is not None}
    return list(rankings.pop()) if len(rankings) == 1 else None


def _ranks_in(line: str, count: int) -> list[float] | None:
    line = re.sub(r"[*_`\"'\[\]().]|\b(?:ranking|answer|result) ?:|\brepl(?:y|ies)\b", " ", line, flags=re.IGNORECASE)
    groups = [re.split(r"\s*=\s*", part.strip()) for part in line.split(">" if ">" in line else ",")]
    letters = [letter for group in groups for letter in group]
    if sorted(letters) != list(LETTERS[:count]):
        return None
    ranks, before = [0.0] * count, 0
    for group in groups:
        for letter in group:
            ranks[LETTERS.index(letter)] = before + (len(group) - 1) / 2
        before += len(group)
    return ranks


def score_of(reply: str) -> int | None:
    """The whole number from 1 to 8 that a reply gives as its score; None where it gives none, two, or another one.

    A number called the score ("Rating: 8", "I rate this 6") counts before others; then one that is alone in the first
    or the last line; then the only one of the reply, in digits or words. Reasoning and the scale itself ("from 1 to 8",
    "of 8") are no scores.
    """
    text = tidy(light(answer_part(reply)))
    if len(text) > LONGEST_REPLY:
        return None
    text = OF_EIGHT.sub(r"\1", SCALE_ITSELF.sub(" ", text))
    if SCORE_OF_ONE.search(text) or OF_ANOTHER.search(text):
        return None
    text = NAMED_REPLY.sub("it", text)
    called = [_score_in(match.group("said"), first=True) for match in CALLED.finditer(text)]
    if called:
        return called[0] if len(set(called)) == 1 else None
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    alone = {_score_in(line) for line in (*lines[:1], *lines[-1:]) if ALONE_IN_LINE.fullmatch(line)}
    if alone:
        return alone.pop() if len(alone) == 1 else None
    return _score_in(text)


def _score_in(text: str, *, first: bool = False) -> int | None:
    """The only number of a text; with `first` the one that it begins with, if no other is joined to it."""
    numbers = quantities_in(text)
    values = [quantity.value if quantity is not None and not quantity.percent else None for quantity, _s, _e in numbers]
    if any(quantity is not None and quantity.unit in CURRENCIES.values() for quantity, _start, _end in numbers):
        return None
    if not values:
        values = list(words_in(text)) if first or LAST_WORD.search(text) else []
    elif first:
        end = numbers[0][2]
        if len(numbers) == 1 or not JOINED.fullmatch(text[end : numbers[1][1]]):
            values, text = values[:1], text[: end + 2]
    if len(set(values)) != 1 or DENIED.search(text):
        return None
    value = values[0]
    return int(value) if value is not None and value.denominator == 1 and 1 <= value <= 8 else None


def towards_first(template: Template, replies: Sequence[str]) -> float | None:
    """What a judge's replies say as a rating towards the reply that stood first, -3.5 to 3.5; None if a score could not
    be read."""
    read = [score for reply in replies if (score := _score_by(template, reply)) is not None]
    if len(read) < len(replies):
        return None
    return (read[0] - read[1]) / 2 if template.use == "rate" else MIDDLE - read[0]


def _score_by(template: Template, reply: str) -> int | None:
    """A template that asks for reasons first has its number on the last line."""
    if template.score == "last":
        lines = [line for line in answer_part(reply).splitlines() if line.strip()]
        return score_of(lines[-1]) if lines else None
    return score_of(reply)


def by_probabilities(tokens: Sequence[tuple[str, float]]) -> tuple[float, float] | None:
    """The mean score and the chance of 5 to 8, from the likeliest tokens and their log-probabilities at the place of
    the number; None where none of the eight digits is among them."""
    mass = dict.fromkeys(range(1, 9), 0.0)
    for token, log_probability in tokens:
        if token.strip() in {str(score) for score in mass}:
            mass[int(token.strip())] += math.exp(log_probability)
    total = sum(mass.values())
    if total <= 0:
        return None
    return sum(score * part for score, part in mass.items()) / total, sum(mass[score] for score in range(5, 9)) / total
