"""Is a language model's reply the right answer? Finds what a reply states, in the many ways that models write it.

Replies may be untidy. One that states no answer, or two, is wrong, and the verdict says
why. The kind of answer follows from the key: a letter (A to R), a number, one of two words (yes or no, valid or
invalid, true or false), or a short text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from predictors.markup import plain_text

LETTERS = "ABCDEFGHIJKLMNOPQR"
WORD_PAIRS = (("yes", "no"), ("valid", "invalid"), ("true", "false"))


@dataclass(frozen=True)
class CheckedAnswer:
    """`stated` is the answer that was found, in a standard spelling; if none was, it is empty and `reason` says why."""

    correct: bool
    stated: str
    reason: str = ""


@dataclass(frozen=True)
class Found:
    """What a reply states: one answer, or none and the reason."""

    stated: str = ""
    reason: str = ""


def kind_of(key: str) -> str:
    """The kind of a key: `letter`, `number`, `yes/no`, `valid/invalid`, `true/false` or `text`."""
    text = key.strip()
    if re.fullmatch(rf"\(?[{LETTERS}]\)?\.?", text):
        return "letter"
    for pair in WORD_PAIRS:
        if text.casefold() in pair:
            return "/".join(pair)
    if _number(text.lstrip("$€£").rstrip("%")) is not None:
        return "number"
    return "text"


def check_answer(response: str, key: str, *, question: str = "") -> CheckedAnswer:
    """Compare a reply with the key.

    Args:
        question: the question's text. Its options, "(A) ...", are read from it: so a letter that is not an option is
            refused, and a reply with an option's words instead of its letter is understood.

    Raises:
        ValueError: the key is empty.
    """
    if not key.strip():
        raise ValueError("key: is empty; a question without a key cannot be checked")
    text = tidy(response)
    if not text:
        return CheckedAnswer(False, "", "the reply is empty")
    kind = kind_of(key)
    if kind == "letter":
        wanted = key.strip().strip("().")
        found = _letter(text, options_of(question))
    elif kind == "number":
        wanted = str(_number(key.strip().lstrip("$€£").rstrip("%")))
        found = _stated_number(text)
    elif kind == "text":
        wanted = _plain(key)
        found = _stated_text(text, wanted)
    else:
        wanted = key.strip().casefold()
        found = _word(text, kind.split("/"))
    return CheckedAnswer(found.stated == wanted, found.stated, found.reason)


def tidy(response: str) -> str:
    """The reply without meaningless marks of markdown and LaTeX; a box is kept as `\\boxed{...}`."""
    text = unicodedata.normalize("NFKC", response).replace("\u2212", "-").replace("\u2013", "-").replace("\u2019", "'")
    text = re.sub(r"\\(?:text|mathrm|mathbf|textbf|mathit)\s*\{([^{}]*)\}", r"\1", text)
    text = re.sub(r"\\[()\[\]]", " ", text).replace("\\,", "").replace("\\%", "%").replace("\\$", "$")
    text = re.sub(r"\$\s*(\(?[A-Za-z]\)?)\s*\$", r"\1", text)  # A letter as a formula.
    text = re.sub(r"</?[A-Za-z|_]+\s*/?>|<\|\w+\|>", " ", text)  # Tags, and marks of a chat's end.
    text = re.sub(r"(?<!\w)['\"]([^'\"\n]+)['\"](?!\w)", r"\1", text)
    text = re.sub(r"[*`#>]+|(?<!\w)_+|_+(?!\w)", "", text)
    return text.strip().strip("\"'").strip()


def options_of(question: str) -> dict[str, str]:
    """Letter to words of the options that a question's text lists as "(A) words", separated by markup or line ends."""
    text = plain_text(question)
    return {
        letter: words.strip() for letter, words in re.findall(rf"^\s*\(([{LETTERS}])\)\s*(.*)$", text, re.MULTILINE)
    }


# "The answer is", "Answer:", "the correct option is therefore" and the like; the reply's answer follows.
LEAD = (
    r"\b(?:(?:the|my|a|so|final|best|most likely|correct|right)\s+)*"
    r"(?:answer|choice|option|solution|result)(?:\s+choice)?"
    r"\s*(?:\b(?:is|was|would be|will be|must be|should be|has to be)\b|:|=)"
    r"\s*(?:\b(?:therefore|thus|clearly|definitely|option|choice|answer)\b)?\s*:?\s*"
)
NOT = re.compile(r"\b(?:not|n't|isn't|never|neither|except|incorrect|wrong)\b", re.IGNORECASE)


def _boxes(text: str) -> list[str]:
    return [inner.strip() for inner in re.findall(r"\\?\bboxed\s*\{([^{}]*)\}", text)]


def _statements(text: str, answer: str) -> list[str]:
    """What follows each "the answer is"; only the ones called final if there are any."""
    found = [
        (match.group(1), "final" in match.group(0).casefold())
        for match in re.finditer(LEAD + answer, text, re.IGNORECASE)
    ]
    final = [value for value, is_final in found if is_final]
    return final or [value for value, _final in found]


def _one_of(values: Sequence[str], what: str) -> Found:
    """The value, if all agree on one."""
    distinct = list(dict.fromkeys(values))
    if len(distinct) == 1:
        return Found(distinct[0])
    return Found(reason=f"the reply states more than one {what}: {', '.join(distinct[:5])}")


def _first(text: str, *readings: Callable[[str], Found | None]) -> Found | None:
    for reading in readings:
        found = reading(text)
        if found is not None:
            return found
    return None


# Letters


def _letter(text: str, options: dict[str, str]) -> Found:
    found = _first(text, _boxed_letter, _whole_letter, _stated_letter, _leading_letter, _bracketed, _alone)
    if found is None and options:
        found = _by_words(text, options)
    if found is None:
        return Found(reason="the reply names no option")
    if found.stated and options and found.stated not in options:
        return Found(reason=f"the question has no option {found.stated}")
    return found


def _boxed_letter(text: str) -> Found | None:
    letters = [
        match.group(1).upper()
        for inner in _boxes(text)
        if (match := re.match(rf"\(?([{LETTERS}])(?:\)|\.|:|\s|$)", inner, re.IGNORECASE))
    ]
    return _one_of(letters, "option") if letters else None


def _whole_letter(text: str) -> Found | None:
    match = re.fullmatch(rf"(?:option|choice|answer)?\s*[(\[]?([{LETTERS}])[)\]]?\s*[.:,;!]?", text, re.IGNORECASE)
    return Found(match.group(1).upper()) if match else None


def _stated_letter(text: str) -> Found | None:
    # A small letter counts only in brackets or at an end: "the answer is a bit long" states nothing.
    answer = (
        rf"((?-i:[(\[][{LETTERS}{LETTERS.lower()}][)\]])|(?-i:[{LETTERS}])(?![\w'])(?!\s+[a-z])|"
        rf"(?-i:[B-HJ-R])(?![\w'])|(?-i:[{LETTERS.lower()}])(?=\s*(?:[.,;:)]|$)))"
    )
    letters = [value.strip("()[]").upper() for value in _statements(text, answer)]
    if letters:
        listed = re.findall(
            LEAD + rf"[(\[]?[{LETTERS}][)\]]?\s*(?:,|/|or|and)\s*[(\[]?([{LETTERS}])(?!\w)", text, re.IGNORECASE
        )
        return _one_of([*letters, *map(str.upper, listed)], "option")
    said = re.findall(
        rf"(?<![\w'])[(\[]?([{LETTERS}])[)\]]?\s+(?:is|would be|must be)\s+(?:the\s+)?(?:correct|right|best)\b",
        text,
    )
    return _one_of(said, "option") if said else None


def _leading_letter(text: str) -> Found | None:
    """ "B. Paris", "(B) Paris", "B) Paris", "B: Paris", "B, because", "B because"; not "A dog" or "I think"."""
    match = re.match(
        rf"(?:[(\[]([{LETTERS}{LETTERS.lower()}])[)\]]|([{LETTERS}{LETTERS.lower()}])\s*[.):,;\n-](?!\w)|"
        rf"([B-HJ-R])\s+(?:because|since|as|is|-)\b)",
        text,
    )
    if match is None:
        return None
    letter = next(group for group in match.groups() if group).upper()
    others = set(re.findall(rf"[(\[]([{LETTERS}])[)\]]", text)) - {letter}
    rest = text[match.end() :]
    if re.match(r"\s*(?:or|and|/)\s*[(\[]?[A-R][)\]]?(?!\w)", rest) or (others and _lists_options(text)):
        return _one_of([letter, *sorted(others or set(re.findall(r"\b[A-R]\b", rest)))], "option")
    if re.match(r"\s*(?:is|would be)\s+(?:not\b|incorrect|wrong)", rest):
        return None
    return Found(letter)


def _lists_options(text: str) -> bool:
    """Whether the reply repeats the list of options: two or more lines or parts that begin with a letter."""
    return len(re.findall(rf"(?:^|\n|\s)[(\[][{LETTERS}][)\]]", text)) > 1


def _bracketed(text: str) -> Found | None:
    letters = [letter.upper() for letter in re.findall(rf"(?<!\w)[(\[]([{LETTERS}])[)\]]", text)]
    if not letters:
        return None
    if len(set(letters)) == 1 and NOT.search(text):
        return Found(reason=f"the reply names option {letters[0]} and a negation")
    return _one_of(letters, "option")


def _alone(text: str) -> Found | None:
    """Capital letters that stand alone; "A" and "I" are words too and count only before a mark or the end."""
    letters = re.findall(r"(?<![\w'&.$])([B-HJ-R])(?![\w'&]|\.\w)|(?<![\w'&.$])([AI])(?=\s*(?:[.,;:)!]|$))", text)
    named = [first or second for first, second in letters]
    if named:  # Beside another letter they are letters too: "A or B".
        joined = rf"\s*(?:,|/|\bor\b|\band\b)\s*(?:\bor\b|\band\b)?\s*[{LETTERS}](?!\w)"
        named = sorted({*named, *re.findall(rf"(?<![\w'])([AI])(?={joined})", text)})
    if not named:
        return None
    if len(set(named)) == 1 and NOT.search(text):
        return Found(reason=f"the reply names option {named[0]} and a negation")
    return _one_of(named, "option")


def _by_words(text: str, options: dict[str, str]) -> Found | None:
    """The option whose words are the whole reply, or the only option in a short reply."""
    said = _plain(_after_lead(text))
    same = [letter for letter, words in options.items() if _plain(words) and _plain(words) == said]
    if len(same) == 1:
        return Found(same[0])
    if same:
        return Found(reason=f"options {', '.join(same)} have the same words")
    within = [letter for letter, words in options.items() if _plain(words) and _holds(said, _plain(words))]
    # "New York City" also holds "New York": the longest one is meant, unless others appear outside of it.
    longest = [
        letter
        for letter in within
        if not any(other != letter and _holds(_plain(options[other]), _plain(options[letter])) for other in within)
    ]
    if len(longest) == 1 and not NOT.search(text):
        return Found(longest[0])
    if len(longest) > 1:
        return Found(reason=f"the reply holds the words of more than one option: {', '.join(longest[:5])}")
    return None


# Numbers

NUMBER = r"(?:(?<![\w.,])-\s?)?[$€£]?\s?(?:\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?(?:\s?/\s?\d+)?|\.\d+)"
ONES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
TEENS = ("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen")
UNITS = {word: value for value, word in enumerate((*ONES, *TEENS))}
TENS = {
    word: 10 * value
    for value, word in enumerate(
        ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"), start=2
    )
}


def _number(text: str) -> Fraction | None:
    cleaned = re.sub(r"[\s,$€£]", "", text)
    try:
        return Fraction(cleaned)
    except (ValueError, ZeroDivisionError):
        return None


def _stated_number(text: str) -> Found:
    text = re.sub(r"\b(?:negative|minus)\s+(?=\d)", "-", text, flags=re.IGNORECASE)
    text = re.sub(r"\\d?frac\s*\{(\d+)\}\s*\{(\d+)\}", r"\1/\2", text)
    for values in (
        [inner for inner in _boxes(text) if _number(inner.rstrip("%")) is not None],
        _statements(text, rf"({NUMBER})"),
    ):
        if values:
            return _one_of([str(_number(value.rstrip("%"))) for value in values], "number")
    if result := re.search(rf"=\s*({NUMBER})\s*%?\s*\.?$", text):
        return Found(str(_number(result.group(1))))
    numbers = [str(value) for found in re.findall(NUMBER, text) if (value := _number(found)) is not None]
    if numbers:
        return _one_of(numbers, "number")
    if words := _numbers_in_words(text):
        return _one_of([str(value) for value in words], "number")
    return Found(reason="the reply holds no number")


def _numbers_in_words(text: str) -> list[int]:
    found = []
    ones = "|".join(sorted(UNITS, key=len, reverse=True))
    tens = "|".join(TENS)
    for sign, ten, unit, alone in re.findall(
        rf"\b(minus |negative )?(?:({tens})(?:[\s-]({ones}))?|({ones}))\b", text.casefold()
    ):
        value = TENS.get(ten, 0) + UNITS.get(unit or alone, 0)
        found.append(-value if sign else value)
    return found


# One of two words


def _word(text: str, pair: Sequence[str]) -> Found:
    first, second = pair
    lowered = text.casefold()
    if first == "valid":
        lowered = re.sub(r"\b(?:not|n't|isn't)\s+(?:\w+ly\s+)?valid\b", "invalid", lowered)
        lowered = re.sub(r"\b(?:not|n't|isn't)\s+(?:\w+ly\s+)?invalid\b", "valid", lowered)
    elif first == "true":
        lowered = re.sub(r"\b(?:not|n't|isn't)\s+true\b", "false", lowered)
        lowered = re.sub(r"\b(?:not|n't|isn't)\s+false\b", "true", lowered)
    either = rf"\b({first}|{second})\b"
    if re.search(rf"\b{first}\b\s*(?:/|or|and)\s*\b{second}\b|\b{second}\b\s*(?:/|or|and)\s*\b{first}\b", lowered):
        lowered_rest = re.sub(rf"\b(?:{first}|{second})\b\s*(?:/|or|and)\s*\b(?:{first}|{second})\b", " ", lowered)
        if not _statements(lowered_rest, either):
            return Found(reason=f"the reply names both {first} and {second}")
        lowered = lowered_rest
    boxed = [match.group(1) for inner in _boxes(lowered) if (match := re.match(either, inner))]
    if boxed:
        return _one_of(boxed, "word")
    stated = _statements(lowered, either)
    if not _final(lowered):
        # The first word of a line is the answer, unless "no" belongs to what follows it.
        stated += re.findall(rf"^\W*{either}(?!\s+(?:one|doubt|idea|matter))", lowered, re.MULTILINE)
    if stated:
        return _one_of(stated, "word")
    # Inside a sentence "no" often belongs to another word ("no reason"): it counts only before a mark or at the end.
    ending = r"(?=\s*(?:[.,;:!]|$))" if first == "yes" else ""
    named = re.findall(either + ending, lowered)
    if named:
        return _one_of(named, "word")
    return Found(reason=f"the reply says neither {first} nor {second}")


def _final(text: str) -> bool:
    return bool(re.search(r"\bfinal answer\b", text))


# Texts


def _plain(text: str) -> str:
    """The text in small letters, without marks or a leading article, with single spaces."""
    kept = re.sub(r"[^\w\s]", " ", unicodedata.normalize("NFKC", text).casefold())
    words = re.sub(r"\s+", " ", kept).strip()
    return re.sub(r"^(?:the|a|an) (?=\S)", "", words)


def _after_lead(text: str) -> str:
    """What follows the last "the answer is", up to the end of its sentence; else the whole reply."""
    found = list(re.finditer(LEAD + r"([^\n]+?)(?=\.(?:\s|$)|\n|$)", text, re.IGNORECASE))
    return found[-1].group(1) if found else text


def _holds(text: str, words: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text) is not None


LONGEST_SENTENCE = 12


def _stated_text(text: str, wanted: str) -> Found:
    boxes = _boxes(text)
    if boxes:
        return _one_of([_plain(inner) for inner in boxes], "answer")
    said = _plain(_after_lead(text))
    if said == wanted:
        return Found(wanted)
    if not said:
        return Found(reason="the reply holds no words")
    if not _holds(said, wanted):
        return Found(said[:200])
    if NOT.search(text):
        return Found(reason="the reply holds the key and a negation")
    if re.search(r"\b(?:or|either|maybe)\b", said):
        return Found(reason="the reply names alternatives")
    if len(said.split()) > LONGEST_SENTENCE:
        return Found(reason="the reply is too long to say which of its words are the answer")
    return Found(wanted)
