"""How a language model is asked to judge two replies, and how its score is read. Each template is a named variant with
a version; what was asked under one version is never mixed with another's."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from survey.services.banks.answer_checking import LONGEST_REPLY
from survey.services.banks.answer_cleaning import answer_part, light, tidy
from survey.services.banks.answer_quantities import quantities_in, words_in

from .models import MIDDLE

SCALE = (
    "1 means that reply 1 is much better, 8 means that reply 2 is much better. 4 leans slightly to reply 1, 5 leans "
    "slightly to reply 2. There is no middle."
)
SHOWN = "Prompt:\n{prompt}\n\nReply 1:\n{reply_1}\n\nReply 2:\n{reply_2}"
ALONE = "alone"
# Of the rules by which a score is read; a verdict is stored with it.
SCORE_RULES_VERSION = "2"
SCALE_ITSELF = re.compile(
    r"\((?:from )?1 ?(?:-|to|through|\.\.+) ?8\)|"
    r"(?<![\d.,/-])1 ?(?:-|to|through|and|\.\.+) ?8(?![\d.,]\d|\d)",
    re.IGNORECASE,
)
OF_EIGHT = re.compile(r"(?<![\d.,/-])(\d+) ?(?:/|out of|of|on) ?8(?![\d/]|[.,]\d)", re.IGNORECASE)
DIGIT = r"(?:\d|one|two|three|four|five|six|seven|eight)"
CALLED = re.compile(
    r"\b(?:rating|score|grade|verdict|number|result|answer|"
    r"i(?: would|'d)? (?:rate|give|score|choose|pick)(?: this| it| a)*)\b"
    rf"(?: (?:is|of|would be|this|it|a|an))* ?[:=]*\s*(?=(?P<said>-?[$(\[]?{DIGIT}[^\n]*))",
    re.IGNORECASE,
)
ALONE_IN_LINE = re.compile(r"\W*(?:\d+|one|two|three|four|five|six|seven|eight)\W*", re.IGNORECASE)
JOINED = re.compile(r"\s*(?:[-+/,;&]|\bor\b|\band\b|\bto\b)?\s*(?:maybe |perhaps |even )?", re.IGNORECASE)
DENIED = re.compile(rf"(?:\bnot|n't|\bnever|\b(?:less|more|higher|lower) than|[<>]) (?:an? )?{DIGIT}", re.IGNORECASE)


@dataclass(frozen=True)
class Template:
    """One way of asking. `alone`: each reply is rated by itself, and the difference of both scores counts."""

    name: str
    version: str
    words: str
    max_tokens: int
    alone: bool = False


TEMPLATES = {
    one.name: one
    for one in (
        Template(
            "score_first",
            "1",
            f"Two replies to the same prompt follow. Which one is more {{question}}?\n{SCALE}\n"
            "Write one whole number from 1 to 8 on the first line, and nothing else on it. Do not prefer a reply for "
            f"its length or for its place.\n\n{SHOWN}\n\nNumber:",
            16,
        ),
        Template(
            "reason_first",
            "1",
            f"Two replies to the same prompt follow. Which one is more {{question}}?\n{SCALE}\n"
            "First compare them in at most three sentences. Spell numbers in these sentences as words. Then write, on "
            f"a last line of its own, one whole number from 1 to 8.\n\n{SHOWN}\n\nComparison:",
            400,
        ),
        Template(
            ALONE,
            "1",
            "A reply to a prompt follows. How {question} is it? 1 means not at all, 8 means as much as a reply can be."
            "\nWrite one whole number from 1 to 8 on the first line, and nothing else on it.\n\n"
            "Prompt:\n{prompt}\n\nReply:\n{reply_1}\n\nNumber:",
            16,
            alone=True,
        ),
        Template(
            "procedure",
            "1",
            "Role: you are a careful reader who is paid to compare the work of two writers. You do not know who they "
            "are and it makes no difference to you.\n"
            "Task: both writers were given the same prompt. Decide whose reply is more {question}.\n"
            "Criteria: does it do what was asked, all of it and nothing else; is what it says right; could the person "
            "who asked use it as it stands. Length is no merit, nor is the order in which you read them.\n"
            f"Scale: {SCALE}\n"
            f"Result: one whole number from 1 to 8 on the first line.\n\n{SHOWN}\n\nResult:",
            16,
        ),
    )
}


def calls_for(template: Template, *, question: str, prompt: str, first: str, second: str) -> list[str]:
    """What is sent for one item in one order; of a template that rates replies alone one text for each reply."""
    words = {"question": question, "prompt": prompt}
    if template.alone:
        return [_filled(template.words, {**words, "reply_1": reply}) for reply in (first, second)]
    return [_filled(template.words, {**words, "reply_1": first, "reply_2": second})]


def _filled(words: str, values: dict[str, str]) -> str:
    """Placeholders are replaced once: braces in a reply stay as they are."""
    return re.sub(r"\{(\w+)\}", lambda found: values[found.group(1)], words)


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
    values = [quantity.value if quantity is not None else None for quantity, _start, _end in quantities_in(text)]
    if not values:
        values = list(words_in(text))
    elif first:
        numbers = quantities_in(text)
        between = text[numbers[0][2] : numbers[1][1]] if len(numbers) > 1 else "."
        values = values[:1] if not JOINED.fullmatch(between) else values
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
    return (read[0] - read[1]) / 2 if template.alone else MIDDLE - read[0]


def _score_by(template: Template, reply: str) -> int | None:
    """A template that asks for reasons first has its number on the last line."""
    if template.name == "reason_first":
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
