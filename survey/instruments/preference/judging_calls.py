"""How a language model is asked to judge two replies, and how its score is read. Each template is a named variant with
a version; what was asked under one version is never mixed with another's."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from .models import MIDDLE

SCALE = (
    "1 means that reply 1 is much better, 8 means that reply 2 is much better. 4 leans slightly to reply 1, 5 leans "
    "slightly to reply 2. There is no middle."
)
SHOWN = "Prompt:\n{prompt}\n\nReply 1:\n{reply_1}\n\nReply 2:\n{reply_2}"
ALONE = "alone"
ANY_NUMBER = re.compile(r"\d+(?:[.,]\d+)?")


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
    """The first whole number, if it is from 1 to 8; None where it is not, or where there is none."""
    found = ANY_NUMBER.search(reply)
    return None if found is None or not re.fullmatch("[1-8]", found.group()) else int(found.group())


def towards_first(template: Template, scores: Sequence[int | None]) -> float | None:
    """A rating towards the reply that stood first, -3.5 to 3.5; None if a score could not be read."""
    read = [score for score in scores if score is not None]
    if len(read) < len(scores):
        return None
    return (read[0] - read[1]) / 2 if template.alone else MIDDLE - read[0]


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
