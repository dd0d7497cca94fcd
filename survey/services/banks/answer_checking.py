"""Is a language model's reply the right answer? Finds what a reply states, in the many ways that models write it.

The rules, each with cases for and against, stand in `answer_rules.py`; this module
reads by them. Replies may be untidy. One that states no answer, or two, is unreadable: it is not right, the verdict
says why, and it is counted. What kind of answer is looked for follows from the key.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from predictors.markup import plain_text

from .answer_cleaning import answer_part, bare, light, tidy
from .answer_quantities import UNITS, Quantity, quantities_in, quantity_of, words_in

# Of the rules. A verdict is stored with it; raise it with every change that can change a verdict.
RULES_VERSION = "3"

LETTERS = "ABCDEFGHIJKLMNOPQR"
WORD_PAIRS = (("yes", "no"), ("valid", "invalid"), ("true", "false"))
LONGEST_REPLY = 20_000  # characters, without reasoning


@dataclass(frozen=True)
class CheckedAnswer:
    """`stated` is the answer that was read, in a standard spelling; if none was, it is empty and `reason` says why."""

    correct: bool
    stated: str
    reason: str = ""

    @property
    def is_readable(self) -> bool:
        return bool(self.stated)


@dataclass(frozen=True)
class ReplyReading:
    """What a reply states: one answer, or none and the reason. `is_right` compares it with the key."""

    stated: str = ""
    reason: str = ""
    is_right: bool = False


def kind_of(key: str) -> str:
    """The kind of a key, as a person or a model is asked for it: `letter`, `number`, `yes/no`, `valid/invalid`,
    `true/false` or `text`."""
    text = key.strip()
    if re.fullmatch(rf"\(?[{LETTERS}]\)?\.?", text):
        return "letter"
    for pair in WORD_PAIRS:
        if text.casefold() in pair:
            return "/".join(pair)
    is_plain = re.fullmatch(r"[+\-\u2212]? ?[$\u20ac\u00a3]?[+\-\u2212]?[\d.,/' ]*\d(?:[eE][+-]?\d+)? ?%?", text)
    return "number" if is_plain and quantity_of(light(text)) is not None else "text"


def check_answer(response: str, key: str, *, question: str = "") -> CheckedAnswer:
    """Compare a reply with the key.

    Args:
        question: the question's text. Its options, "(A) ...", are read from it: so a letter that is not an option is
            refused, and a reply with an option's words instead of its letter is understood.

    Raises:
        ValueError: the key is empty.
    """
    wanted = bare(light(key))
    if not wanted:
        raise ValueError("key: is empty; a question without a key cannot be checked")
    if not light(response):
        return CheckedAnswer(False, "", "the reply is empty")
    if _is_equal(bare(light(response)), wanted):  # Also where the key looks like a mark of reasoning.
        return CheckedAnswer(True, _standard(wanted))
    part = answer_part(response)
    if len(part) > LONGEST_REPLY:
        return CheckedAnswer(False, "", f"the reply has more than {LONGEST_REPLY:,} characters")
    text = light(part)
    if not text:
        return CheckedAnswer(False, "", "the reply holds its reasoning and no answer")
    whole = bare(text)
    if _is_equal(whole, wanted):
        return CheckedAnswer(True, _standard(wanted))
    reading = _read(text, wanted, question)
    return CheckedAnswer(reading.is_right, reading.stated, reading.reason)


def _is_equal(whole: str, wanted: str) -> bool:
    if whole == wanted:
        return True
    return _squeezed(whole) == _squeezed(wanted) and not _case_matters(wanted) and bool(re.search(r"\w", wanted))


def _squeezed(text: str) -> str:
    """In small letters, without white space but where it parts words or numbers."""
    return re.sub(r"(?<!\w) | (?!\w)", "", re.sub(r"\s+", " ", text.casefold()))


def _key_words(wanted: str) -> str:
    """A key without marks of LaTeX, which replies lose too."""
    return tidy(wanted) if re.search(r"[\\^]", wanted) and re.search(r"\w", wanted) else wanted


def _standard(wanted: str) -> str:
    """A key in the spelling in which what is read off a reply is stored."""
    wanted = _key_words(wanted)
    kind = kind_of(wanted)
    if kind == "letter":
        return wanted.strip("(). ")
    if kind == "number":
        return str(_key_quantity(wanted).value)
    if kind != "text":
        return wanted.casefold()
    return plain(wanted) if re.search(r"\w", wanted) else wanted


def _read(text: str, wanted: str, question: str) -> ReplyReading:
    wanted = _key_words(wanted)
    kind = kind_of(wanted)
    if not re.search(r"\w", wanted):
        return _signs(text, wanted)
    cleaned = tidy(text)
    if not _ROUNDABOUT.search(wanted):
        cleaned = _ROUNDABOUT.sub("not", cleaned)
    if kind == "letter":
        return _judged(_letter(cleaned, _options_of(question)), wanted.strip("(). "))
    if kind not in ("number", "text"):
        return _judged(_word(cleaned, kind.split("/")), wanted.casefold())
    if kind == "number":
        return _number(cleaned, _key_quantity(wanted))
    for reader in (_list, _clock, _date, _quantity, _roman):
        if (reading := reader(cleaned, wanted)) is not None:
            return reading
    return _text(cleaned, wanted)


def _judged(reading: ReplyReading, wanted: str) -> ReplyReading:
    return ReplyReading(reading.stated, reading.reason, reading.stated == wanted)


def _key_quantity(wanted: str) -> Quantity:
    quantity = quantity_of(wanted)
    if quantity is None:
        raise ValueError(f"key: {wanted!r} is no number")
    return quantity


def options_of(question: str) -> dict[str, str]:
    """Letter to words of the options that a question's text lists as "(A) words", separated by markup or line ends."""
    return dict(_options_of(question))


@lru_cache(maxsize=256)
def _options_of(question: str) -> Mapping[str, str]:
    text = plain_text(question)
    return {
        letter: words.strip() for letter, words in re.findall(rf"^\s*\(([{LETTERS}])\)\s*(.*)$", text, re.MULTILINE)
    }


# What introduces an answer

# "The answer is", "Answer:", "the correct option is therefore", "#### " and the like; the reply's answer follows.
LEAD = (
    r"(?:#### ?|\b(?:(?:the|my|a|so|final|best|most likely|correct|right) +){0,6}"
    r"(?:answer|choice|option|solution|result)(?: +choice)?"
    r" *(?:\b(?:is|was|would be|will be|must be|should be|has to be)\b|:|=)"
    r"\s*(?:\b(?:therefore|thus|clearly|definitely|option|choice|answer)\b)? *:? *)"
)
LEADS = re.compile(LEAD, re.IGNORECASE)
# Doubts; "no doubt" and "without a doubt" are none.
_DOUBT = (
    r"(?<!\bno )(?<!\ba )(?<!\bany )(?<!\ball )(?<!\bwithout )(?<!\bbeyond )(?<!\breasonable )"
    r"\bdoubt(?:s|ed|ful|fully)?\b"
)
NOT = re.compile(
    r"\b(?:not|never|neither|nor|except|incorrect|wrong|cannot|unlikely|used to be|refuse|decline|no such|"
    rf"no (?:option|choice|answer))\b|n't\b|{_DOUBT}",
    re.IGNORECASE,
)
# What says "not" in other words. "All but certain" is something else: it says nearly.
_ROUNDABOUT = re.compile(
    r"\b(?:(?:anything|everything) but|all (?:options |of them |answers )?but(?= [(\[]?[A-R]\b)|by no means|"
    r"(?:fails?|failed) to be)\b",
    re.IGNORECASE,
)
OR = r"(?:\s*(?:,|/|;|&|\+|\||\bor\b|\band\b)\s*(?:\b(?:or|and|also|even|maybe|perhaps|possibly|both|else)\b\s*)*)"


def _boxes(text: str) -> list[str]:
    return [inner.strip() for inner in re.findall(r"\\?\bboxed ?\{([^{}]*)\}", text)]


def _statements(text: str) -> list[str]:
    """What follows each "the answer is", to the end of its line; only the ones called final if there are any."""
    matches = list(LEADS.finditer(text))
    ends = [*(match.start() for match in matches[1:]), len(text)][: len(matches)]
    said = [
        (
            text[match.end() : end].split("\n", 1)[0].strip(),
            "final" in match.group().casefold() or "####" in match.group(),
        )
        for match, end in zip(matches, ends, strict=True)
    ]
    final = [rest for rest, is_final in said if is_final and rest]
    return final or [rest for rest, _is_final in said if rest]


def _one_of(values: Sequence[str], what: str) -> ReplyReading:
    """The value, if all agree on one."""
    distinct = list(dict.fromkeys(values))
    if len(distinct) == 1:
        return ReplyReading(distinct[0])
    return ReplyReading(reason=f"the reply states more than one {what}: {', '.join(distinct[:5])}")


def _marked(text: str, read: Callable[[str], ReplyReading], what: str) -> ReplyReading | None:
    """What boxes state; if there are none, what "the answer is" introduces. Each must state the same one answer."""
    for parts in (_boxes(text), _statements(text)):
        readings = [read(part) for part in parts]
        if unclear := next((reading for reading in readings if reading.reason), None):
            return unclear
        if stated := [reading.stated for reading in readings if reading.stated]:
            return _one_of(stated, what)
    return None


# Letters

_L = rf"[{LETTERS}]"
_NAMED = rf"(?:\b(?:option|choice|answer) )?[(\[]?({_L})[)\]]?(?![\w'+#-])"
_LIST = rf"[(\[]?{_L}[)\]]?(?:{OR}[(\[]?{_L}[)\]]?(?![\w'+#])){{0,9}}"
_NEGATED = (
    rf"(?:(?:n't|\b(?:not|cannot|never|neither|nor|rather than|instead of|except|excluding|exclude|"
    rf"eliminate|rule out|discard|unlikely)|(?:\bI )?{_DOUBT})"
    rf"(?: (?:be|the|an?|option|choice|answer|either|both|options|choices|answers|that|it|is|it's|to))* "
    rf"(?:options? |choices? )?)({_LIST}(?: nor [(\[]?{_L}[)\]]?(?![\w'+#]))*)(?![\w'+#])"
)
_WRONG = (
    rf"(?<![\w'])({_LIST})(?:(?: [A-Za-z]+)? ?(?:(?:is|are|was|were|be|can|could|would|does|do|must|seems?) ?"
    rf"(?:not\b|n't)|cannot\b|can't\b)|(?: [A-Za-z]+)? (?:is|are|was|were|seems?|"
    r"(?:must|can|could|should|may|would) be) (?:(?:clearly|both|all|also|definitely|obviously|too|the) )*"
    r"(?:incorrect|wrong|false|out|eliminated|excluded|ruled out)\b)[^.,;\n]*"
)


_ALSO = (
    r"(?:is|are|was|could be|may be|might be|would be|can be|seems?|works?)\b[^.,;\n]*?"
    r"\b(?:also|too|as well|equally|possible|plausible|right|correct)\b"
)


def _letter(text: str, options: Mapping[str, str]) -> ReplyReading:
    reading = _by_equal_words(text, options) or _letter_of(text)
    if reading is None and options:
        reading = _by_words(text, options)
    if reading is None:
        return ReplyReading(reason="the reply names no option")
    if reading.stated and options and reading.stated not in options:
        return ReplyReading(reason=f"the question has no option {reading.stated}")
    if reading.stated and (other := _contradicting_words(text, reading.stated, options)):
        return ReplyReading(reason=f"the reply names option {reading.stated} with the words of option {other}")
    return reading


def _letter_of(text: str) -> ReplyReading | None:
    marked = _marked(text, _stated_letter, "option")
    if marked is not None:
        return marked
    rest, negated = _without_negated(text)
    for read in (_listed, _whole_letter, _said_to_be_right, _leading_letter, _bracketed, _alone):
        reading = read(rest)
        if reading is not None:
            return _unless_negated(reading, negated)
    if negated:
        return ReplyReading(reason=f"the reply names option {', '.join(negated)} and a negation")
    return None


def _stated_letter(said: str) -> ReplyReading:
    """The letter that what follows "the answer is" begins with; no more of it counts but a list, "B or C"."""
    rest, negated = _without_negated(said)
    rest = re.sub(r"^(?:but|rather|instead|so|it is|it's)\b\W*", "", rest) if negated else rest
    reading = _listed(rest) or _whole_letter(rest) or _first_letter(rest)
    if reading is not None:
        return _unless_negated(reading, negated)
    if negated:
        return ReplyReading(reason=f"the reply names option {', '.join(negated)} and a negation")
    return ReplyReading()


def _unless_negated(reading: ReplyReading, negated: Sequence[str]) -> ReplyReading:
    if reading.stated in negated:
        return ReplyReading(reason=f"the reply both names and rejects option {reading.stated}")
    return reading


def _without_negated(text: str) -> tuple[str, list[str]]:
    """The text without the options that it rejects, "not A", "(B) is wrong", or only asks about, "A?"; and their
    letters."""
    negated: list[str] = []
    text = re.sub(r"\bnot (?:only|just) (.+?),? but (?:also )?", r"\1 and ", text, flags=re.IGNORECASE)

    def reject(match: re.Match[str]) -> str:
        negated.extend(re.findall(rf"(?<![\w'])({_L})(?![\w'])", match.group(1)))
        return " "

    for pattern in (_WRONG, _NEGATED, rf"(?<![\w'])((?:[Oo]ption )?[(\[]?{_L}[)\]]?) ?\?"):
        flags = re.IGNORECASE if pattern is _NEGATED else re.NOFLAG
        text = re.sub(_capital_only(pattern), reject, text, flags=flags)
    return re.sub(r"[^\S\n]+", " ", text).strip(" ,;"), negated


def _capital_only(pattern: str) -> str:
    """Letters of options are capitals, also where the words around them may be written either way."""
    return pattern.replace(_L, f"(?-i:{_L})")


def _listed(text: str) -> ReplyReading | None:
    """Two options or more at the beginning: "A, B", "A. B.", "(A) or (B)", "B, C and D", "A B", "A/B"."""
    small = rf"[{LETTERS}{LETTERS.lower()}]"
    match = re.match(
        rf"(?:both |either |options? |choices? )*[(\[]?({_L})[)\]]?(?![\w'+#])"
        rf"((?:(?:{OR}|\s*\.\s*|\s+|\s*-\s*|(?=[(\[]))[(\[]?{_L}[)\]]?(?![\w'+#])(?!\s+(?!(?:and|or)\b)[a-z]))+)",
        text,
        re.IGNORECASE
        if re.fullmatch(rf"[\s(\[]*{small}(?:[\s,;/.()\[\]]|\bor\b|\band\b|{small})*", text)
        else re.NOFLAG,
    )
    if match is None:
        return None
    letters = [match.group(1), *re.findall(rf"(?<![\w'])({_L})(?![\w'])", match.group(2), re.IGNORECASE)]
    return _one_of([letter.upper() for letter in letters], "option")


def _whole_letter(text: str) -> ReplyReading | None:
    match = re.fullmatch(rf"(?:option|choice|answer)? ?[(\[{{]?({_L})[)\]}}]?\s*[.:,;!)]*", text, re.IGNORECASE)
    return ReplyReading(match.group(1).upper()) if match else None


def _first_letter(said: str) -> ReplyReading | None:
    # A small letter counts only in brackets or at an end: "the answer is a bit long" states nothing.
    small = LETTERS.lower()
    match = re.match(
        rf"(?:option |choice )?(?:[(\[]([{LETTERS}{small}])[)\]]|({_L})(?![\w'+#])(?! [a-z])|([B-HJ-R])(?![\w'+#])|"
        rf"([{small}])(?= ?(?:[.,;:)]|$)))",
        said,
        re.NOFLAG,
    )
    if match is None:
        return None
    letter = next(group for group in match.groups() if group).upper()
    return _with_others(letter, said[match.end() :])


def _with_others(letter: str, rest: str) -> ReplyReading:
    """A letter, unless another marked one is joined to it in the same line: "(A) Lyon or (B) Paris"."""
    line = re.split(r"\n|\.\s", rest, maxsplit=1)[0]
    joined = re.match(
        rf"\s*(?:,|/|&|;|\|)?\s*(?:or|and)?\s*(?:maybe|also|perhaps|possibly|even|alternatively|otherwise|else)?,?\s*"
        rf"[(\[]?({_L})(?![\w'+#])(?! [a-z])",
        line,
    )
    marked = re.findall(rf"(?:\bor|\band|/|,|&|;) *(?:\w+ )?(?:[(\[]({_L})[)\]]|({_L})\))", line)
    others = [first or second for first, second in marked]
    starts = r"\s*(?:,|/|&|;|\||(?:or|and|maybe|also|perhaps|possibly|alternatively|otherwise)\b)"
    if joined and re.match(starts, line):
        others.append(joined.group(1))
    others += re.findall(rf"(?<![\w'])[(\[]?({_L})[)\]]? {_ALSO}", line)
    return _one_of([letter, *others], "option")


def _said_to_be_right(text: str) -> ReplyReading | None:
    letters = re.findall(
        rf"(?<![\w'])[(\[]?({_L})[)\]]? (?:is|would be|must be) (?:the )?(?:correct|right|best)\b", text
    )
    return _one_of(letters, "option") if letters else None


def _leading_letter(text: str) -> ReplyReading | None:
    """ "B. Paris", "(B) Paris", "B) Paris", "B: Paris", "B, because", "B because"; not "A dog" or "I think"."""
    match = re.match(
        rf"(?:[(\[]([{LETTERS}{LETTERS.lower()}])[)\]]|([{LETTERS}{LETTERS.lower()}])\s*(?:[.):,;\n]|-(?=\s))(?!\w)|"
        rf"([B-HJ-R])\s+(?:because|since|as|is|-)\b)",
        text,
    )
    if match is None:
        return None
    letter = next(group for group in match.groups() if group).upper()
    rest = text[match.end() :]
    others = {first or second for first, second in re.findall(rf"(?:[(\[]({_L})[)\]]|(?:^|\n) ?({_L})[.)] )", rest)}
    if others - {letter} and _lists_options(text):
        return _one_of([letter, *sorted(others)], "option")
    return _with_others(letter, rest)


def _lists_options(text: str) -> bool:
    """Whether the reply repeats the list of options: two or more lines or parts that begin with a letter."""
    return len(re.findall(rf"(?:^|\n|\s)[(\[]{_L}[)\]]|(?:^|\n) ?{_L}[.)] ", text)) > 1


def _bracketed(text: str) -> ReplyReading | None:
    letters = [letter.upper() for letter in re.findall(rf"(?<!\w)[(\[]({_L})[)\]]", text)]
    if not letters:
        return None
    if len(set(letters)) == 1 and _is_denied(text, letters[0]):
        return ReplyReading(reason=f"the reply names option {letters[0]} and a negation")
    return _one_of(letters, "option")


def _alone(text: str) -> ReplyReading | None:
    """Capital letters that stand alone; "A" and "I" are words too and count only before a mark or the end."""
    letters = re.findall(r"(?<![\w'&.$+-])([B-HJ-R])(?![\w'&+#-]|\.\w)|(?<![\w'&.$])([AI])(?=\s*(?:[.,;:)!]|$))", text)
    named = [first or second for first, second in letters]
    if named:  # Next to another letter they are letters too: "A or B".
        named = sorted({*named, *re.findall(rf"(?<![\w'])([AI])(?={OR}[(\[]?{_L}(?!\w))", text)})
    if not named:
        return None
    if len(set(named)) == 1 and _is_denied(text, named[0]):
        return ReplyReading(reason=f"the reply names option {named[0]} and a negation")
    return _one_of(named, "option")


def _is_denied(text: str, letter: str) -> bool:
    """Whether a negation stands in the same part of a sentence as a letter."""
    clauses = re.split(r"[.,;:!\n]\s|\n|\bbut\b", text)
    return any(
        NOT.search(clause) for clause in clauses if re.search(rf"(?<![\w']){letter}(?![\w'])", clause, re.IGNORECASE)
    )


def _by_equal_words(text: str, options: Mapping[str, str]) -> ReplyReading | None:
    """The option whose words are the whole reply, or all that "the answer is" introduces."""
    for said in (text, *_boxes(text), *_statements(text)):
        if re.match(rf"[(\[]?{_L}[)\].:]|{_L}$", said):
            continue
        same = [letter for letter, words in options.items() if plain(words) and plain(words) == plain(said)]
        if len(same) == 1:
            return ReplyReading(same[0])
        if same:
            return ReplyReading(reason=f"options {', '.join(same)} have the same words")
    return None


def _by_words(text: str, options: Mapping[str, str]) -> ReplyReading | None:
    """The only option whose words a reply holds outside of the words of others."""
    words = {letter: plain(option) for letter, option in options.items() if plain(option)}
    for pair in WORD_PAIRS:
        if len(words) == 2 and set(words.values()) == set(pair):
            reading = _word(text, pair)
            letter = next((letter for letter, word in words.items() if word == reading.stated), "")
            return ReplyReading(letter, reading.reason)
    said = plain(_said(text))
    rest, named = said, []
    # "New York City" also holds "New York": the longest one is meant, unless others appear outside of it.
    for letter, option in sorted(words.items(), key=lambda pair: -len(pair[1])):
        if holds(rest, option):
            named.append(letter)
            rest = re.sub(rf"(?<![\w+#]){re.escape(option)}(?![\w+#])", " | ", rest)
    if len(named) > 1:
        return ReplyReading(reason=f"the reply holds the words of more than one option: {', '.join(sorted(named)[:5])}")
    if named and NOT.search(rest):
        return ReplyReading(reason=f"the reply holds the words of option {named[0]} and a negation")
    return ReplyReading(named[0]) if named else None


def _contradicting_words(text: str, letter: str, options: Mapping[str, str]) -> str:
    """The option whose words directly follow a letter that is not its own: "A. Paris" where Paris is B."""
    match = re.search(rf"(?<![\w'])[(\[]?{letter}[)\]]?\s*[.:),-]?\s+([^\n]+?)\s*[.!]?(?:\n|$)", text)
    if match is None:
        return ""
    words = plain(match.group(1))
    same = [other for other, option in options.items() if plain(option) == words]
    return same[0] if same and letter not in same else ""


# Numbers

_FILLER = (
    r"(?:(?:about|approximately|around|roughly|exactly|precisely|only|just|simply|equal to|the number|~|[a-z] ?=|=)"
    r"\s*)*"
)
_MORE = re.compile(
    r"\b(?:less|more|fewer|greater|higher|lower|larger|smaller) than\b|\bat (?:least|most)\b|\b(?:over|under|above|"
    r"below|up to|almost|nearly)\b|[<>\u2264\u2265]",
    re.IGNORECASE,
)
_IS_REJECTED = re.compile(
    r"(?:\b(?:not|never|rather than|instead of)\b|n't\b)(?: the number| equal to| be)? $", re.IGNORECASE
)
_OR_MORE = re.compile(
    r"\+(?!\s*\d)| ?(?:[A-Za-z]+ )?(?:or|and) (?:more|less|fewer|higher|lower|above|below|greater|over|up|upwards?|"
    r"older|younger|later|earlier)\b",
    re.IGNORECASE,
)
_AND_A_HALF = re.compile(r" and (?:an? )?(?:half|third|quarter)\b", re.IGNORECASE)
_IS_DOUBTED = re.compile(
    rf"(?:{_DOUBT}|\b(?:unlikely|wrong|incorrect|false|impossible)\b)"
    r"(?: (?:that|it|is|it's|be|to|say|the|answer|number|result|could|would|was))* $",
    re.IGNORECASE,
)
_IS_DENIED_AFTER = re.compile(
    r"(?: [A-Za-z]+)? (?:(?:is|are|was|were|seems?|(?:must|can|could|should|may|would) be) "
    r"(?:\w+ly |also )?(?:not|wrong|incorrect|false|ruled out|impossible|excluded)\b|"
    r"(?:is|are|was|were|does|do|can|could|would)(?:n't| not)\b|cannot\b)| ?\?(?=\s*\w)",
    re.IGNORECASE,
)
_GOES_ON = re.compile(
    r"\s*(?:[-+*/^=]|\bto\b|\bor\b|\band\b|,|;|&)\s*(?:maybe |perhaps |possibly |even |about )?$", re.IGNORECASE
)


@dataclass(frozen=True)
class _Stated:
    """A number that is stated, or why none is; neither where nothing is said about it."""

    quantity: Quantity | None = None
    reason: str = ""


def _number(text: str, key: Quantity) -> ReplyReading:
    """A number, whichever of the ways to write it; two that differ are none."""
    text = re.sub(r"\b(?:negative|minus) +(?=[$\d.])", "-", text, flags=re.IGNORECASE)
    stated = _of_marks(text) or _of_text(text)
    if stated.quantity is None:
        return ReplyReading(reason=stated.reason)
    is_right = stated.quantity.is_same(key)
    return ReplyReading(str(stated.quantity.value if is_right else stated.quantity), "", is_right)


def _of_marks(text: str) -> _Stated | None:
    """What boxes state; if there are none, what "the answer is" introduces."""
    for parts in (_boxes(text), _statements(text)):
        said = [stated for part in parts if (stated := _introduced(part)) is not None]
        if said:
            return _agreed(said)
    return None


def _agreed(said: Sequence[_Stated]) -> _Stated:
    if unclear := next((stated for stated in said if stated.quantity is None), None):
        return unclear
    distinct = list(dict.fromkeys(str(stated.quantity) for stated in said))
    if len({stated.quantity.value for stated in said if stated.quantity is not None}) == 1:
        return said[0]
    return _Stated(reason=f"the reply states more than one number: {', '.join(distinct[:5])}")


def _introduced(part: str) -> _Stated | None:
    """The number at the beginning of what an answer's lead introduces, or behind the last = of its calculation."""
    whole = bare(part)
    if (quantity := quantity_of(whole)) is not None:
        return _Stated(quantity)
    numbers = quantities_in(part)
    if not numbers:
        return _of_words(part) if words_in(part) else None
    quantity, start, end = numbers[0]
    if not re.fullmatch(_FILLER, part[:start].lstrip(" ("), re.IGNORECASE):
        return None
    between = part[end : numbers[1][1]].strip(" )") if len(numbers) > 1 else "-"
    if len(numbers) > 1 and (not between or _GOES_ON.fullmatch(between)):
        return _behind_equals(part) or _Stated(reason=_several(numbers))
    if quantity is None:
        return _Stated(reason="the reply holds digits that are no number")
    return _unless_open(part, end) or _Stated(_known_unit(quantity))


def _unless_open(text: str, end: int) -> _Stated | None:
    """Why a number that ends here is none that is stated: it is denied, asked for, or a bound."""
    if _IS_DENIED_AFTER.match(text, end):
        return _Stated(reason="the reply names a number and a negation")
    if _OR_MORE.match(text, end) or _AND_A_HALF.match(text, end):
        return _Stated(reason="the reply states a bound and no number")
    return None


def _behind_equals(text: str) -> _Stated | None:
    """The number behind the last =, if it ends a calculation: "6 * 7 = 42", not "x = 5, y = 3"."""
    variables = set(re.findall(r"(?<![\w)])([A-Za-z]\w?) ?=", text))
    if "=" not in text or len(variables) > 1:
        return None
    tail = text.rsplit("=", 1)[1].strip()
    numbers = quantities_in(tail)
    if len(numbers) != 1 or numbers[0][1] != 0 or numbers[0][0] is None:
        return None
    if not re.fullmatch(r"(?: ?%| ?[$\u20ac\u00a3]| ?\u00b0 ?[CF]?)?(?: ?[A-Za-z]+){0,3}[.!]*", tail[numbers[0][2] :]):
        return None
    return _Stated(_known_unit(numbers[0][0]))


def _known_unit(quantity: Quantity) -> Quantity:
    """Next to a number in a sentence stands any word: "42 is". Only one that is known to be a unit is one."""
    is_known = quantity.percent or quantity.unit in UNITS or not quantity.unit.isalpha()
    return quantity if is_known else Quantity(quantity.value)


def _of_text(text: str) -> _Stated:
    """The only number of a reply, or the result of its calculation."""
    if (quantity := quantity_of(bare(text))) is not None:
        return _Stated(quantity)
    if (result := _behind_equals(text)) is not None:
        return result
    numbers = quantities_in(text)
    stated = [
        number
        for number in numbers
        if not _IS_REJECTED.search(text[: number[1]][-30:])
        and not _IS_DOUBTED.search(text[: number[1]][-60:])
        and not _IS_DENIED_AFTER.match(text, number[2])
    ]
    if numbers and not stated:
        return _Stated(reason="the reply names a number and a negation")
    if not numbers:
        return _of_words(text)
    values = {quantity.value for quantity, _start, _end in stated if quantity is not None}
    values |= {value for value in words_in(text) if value is not None and value > 1}
    if len(values) > 1:
        return _Stated(reason=_several(stated))
    quantity, start, end = stated[0]
    if any(unread is None for unread, _start, _end in stated) or quantity is None:
        return _Stated(reason="the reply holds digits that are no number")
    if _MORE.search(text[max(0, start - 20) : start]):
        return _Stated(reason="the reply states a bound and no number")
    return _unless_open(text, end) or _Stated(_known_unit(quantity))


def _several(numbers: Sequence[tuple[Quantity | None, int, int]]) -> str:
    distinct = list(dict.fromkeys(str(quantity) for quantity, _start, _end in numbers if quantity is not None))
    return f"the reply states more than one number: {', '.join(distinct[:5])}"


def _of_words(text: str) -> _Stated:
    values = words_in(text)
    if not values:
        return _Stated(reason="the reply holds no number")
    value = values[0]
    if value is None or len(set(values)) > 1:
        return _Stated(reason="the reply states more than one number in words")
    if NOT.search(text) or _MORE.search(text) or _OR_MORE.search(text):
        return _Stated(reason="the reply names a number and a negation or a bound")
    unit = next((word for word in re.findall(r"[a-z]+|%", text.casefold())[::-1] if word in ("percent", "%")), "")
    return _Stated(Quantity(value, percent=bool(unit)))


# Keys that are numbers in another way: lists, times, dates, units, Roman numerals


def _parts_said(text: str) -> list[str]:
    return _boxes(text) or _statements(text) or [text]


def _list(text: str, wanted: str) -> ReplyReading | None:
    key = _numbers_of_list(wanted)
    if key is None:
        return None
    for part in (*_parts_said(text), text.split("\n", 1)[0]):
        said = _numbers_of_list(part)
        if said is not None:
            stated = ", ".join(str(quantity) for quantity in said)
            is_right = len(said) == len(key) and all(map(Quantity.is_same, said, key))
            return ReplyReading(stated, "", is_right)
        if (alone := quantity_of(bare(part))) is not None:
            return ReplyReading(str(alone))
    return ReplyReading(reason="the reply holds no list of numbers")


def _numbers_of_list(text: str) -> list[Quantity] | None:
    """ "2, 3", "(2, 3)", "2 and 3", "x = 2 or x = 3", "1,5; 2,5": two numbers or more, and nothing else."""
    inner = re.sub(r"^[(\[{\\]+|[)\]}\\.]+$", "", text.strip()).strip()
    separator = ";" if ";" in inner else r",(?=\s)|\band\b|\bor\b" if re.search(r",\s|\band\b|\bor\b", inner) else ","
    parts = [re.sub(r"^[A-Za-z]\w? ?= ?", "", part.strip()) for part in re.split(separator, inner) if part.strip()]
    numbers = [quantity_of(part) for part in parts]
    return [number for number in numbers if number is not None] if len(parts) > 1 and None not in numbers else None


_CLOCK = re.compile(r"(?<![\d:])(\d{1,2}):([0-5]\d)(?::([0-5]\d))?(?![\d:])(?: ?([ap])\.?m\b\.?)?", re.IGNORECASE)


def _clock(text: str, wanted: str) -> ReplyReading | None:
    key = _CLOCK.fullmatch(wanted)
    if key is None:
        return None
    for part in _parts_said(text):
        times = [_time_of(match) for match in _CLOCK.finditer(part)]
        if times:
            reading = _one_of(times, "time")
            return _judged(reading, _time_of(key))
    return ReplyReading(reason="the reply holds no time of day")


def _time_of(match: re.Match[str]) -> str:
    hour, minute, second, half = match.groups()
    hours = int(hour)
    if half:
        hours = hours % 12 + (12 if half.casefold() == "p" else 0)
    return f"{hours:02d}:{minute}:{second or '00'}"


MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = rf"(?P<month>{'|'.join(MONTHS)})[a-z]*\.?"
_DATES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?<!\d)(?P<year>\d{4})[-/.](?P<number>\d{1,2})[-/.](?P<day>\d{1,2})(?!\d)",
        rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? {_MONTH},? (?P<year>\d{{4}})\b",
        rf"\b{_MONTH} (?P<day>\d{{1,2}})(?:st|nd|rd|th)?,? (?P<year>\d{{4}})\b",
        # Day and month in which order? Such dates are compared as they are written.
        r"(?<!\d)(?P<first>\d{1,2})[-/.](?P<second>\d{1,2})[-/.](?P<year>\d{4})(?!\d)",
    )
)


def _date(text: str, wanted: str) -> ReplyReading | None:
    key = _dates_in(wanted)
    if len(key) != 1 or not any(pattern.fullmatch(wanted) for pattern in _DATES):
        return None
    for part in _parts_said(text):
        if dates := _dates_in(part):
            return _judged(_one_of(dates, "date"), key[0])
    return ReplyReading(reason="the reply holds no date")


def _dates_in(text: str) -> list[str]:
    return [_date_of(match.groupdict()) for pattern in _DATES for match in pattern.finditer(text)]


def _date_of(parts: Mapping[str, str]) -> str:
    if "first" in parts:
        return f"{int(parts['first']):02d}/{int(parts['second']):02d}/{parts['year']}"
    month = int(parts["number"]) if "number" in parts else MONTHS.index(parts["month"][:3].casefold()) + 1
    return f"{parts['year']}-{month:02d}-{int(parts['day']):02d}"


def _quantity(text: str, wanted: str) -> ReplyReading | None:
    """ "5 km", "10^5", a half. An unknown unit must stand apart: "3D" is a word."""
    key = quantity_of(wanted)
    if key is None or (key.unit and _known_unit(key) != key and not re.search(r"\d [A-Za-z]+$", wanted)):
        return None
    return _number(text, key)


_ROMAN = re.compile(r"M{0,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})")
ROMAN_SIGNS = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}


def _roman(text: str, wanted: str) -> ReplyReading | None:
    """A key of two Roman numerals or more: a reply may write the number in digits. The other way round it may not."""
    if len(wanted) < 2 or not _ROMAN.fullmatch(wanted) or not quantities_in(text):
        return None
    values = [ROMAN_SIGNS[sign] for sign in wanted]
    value = sum(-own if own < after else own for own, after in zip(values, [*values[1:], 0], strict=True))
    return _number(text, Quantity(Fraction(value)))


# One of two words

_NEG = r"(?:\b(?:not|never|cannot|no longer|hardly|neither|nor|far from)\b|n't\b)"
_BETWEEN = (
    r"(?: (?:an?|the|at all|in fact|be|been|being|is|it|this|that|always|really|quite|entirely|completely|strictly|"
    r"necessarily|considered|think|believe|say|find|consider|agree|call|\w+ly|case|argument|statement|"
    r"inference)\b){0,7} "
)
_PARTLY = r"\b(?:all but|partly|partially|half|sometimes|mostly|almost|nearly|not only|either)\b[\w ]{0,12} "


_WRONG_TO = (
    rf"(?:{_DOUBT}|\b(?:wrong|incorrect|mistaken?|false|impossible|unlikely|refuse|decline|hesitate) (?:to|that)\b|"
    r"\bden(?:y|ies)\b)"
)
_IS_WRONG = r"\b(?:is|are|was|would be|must be|seems?) (?:\w+ly |also )?(?:wrong|incorrect|mistaken|false|untrue)\b"


def _word(text: str, pair: Sequence[str]) -> ReplyReading:
    first, second = pair
    opposite = {first: second, second: first}
    lowered = re.sub(r"\bcan not\b", "cannot", text.casefold())
    lowered = lowered.replace("untrue", "false") if first == "true" else lowered
    either = rf"\b({first}|{second})\b"
    lowered = re.sub(rf"^\W*{either} ?(?:/|\bor\b) ?{either} ?:", " ", lowered)
    # What is only asked is not said: "Valid? No."
    lowered = re.sub(r"[^.!?;:\n]{0,300}\?(?=\s*\w)", " ", lowered) if "?" in lowered else lowered
    if re.search(_PARTLY + either, lowered):
        return ReplyReading(reason=f"the reply says neither {first} nor {second} without a reserve")
    if both := _both_words(lowered, pair):
        lowered_rest = re.sub(both, " ", lowered)
        if not [part for part in _statements(lowered_rest) if re.match(either, part)]:
            return ReplyReading(reason=f"the reply names both {first} and {second}")
        lowered = lowered_rest
    if first == "yes":
        lowered = re.sub(rf"{_NEG}{_BETWEEN}{either}", " ", lowered)
    else:
        lowered = re.sub(rf"{_NEG}({_BETWEEN}){either}", lambda match: f" {opposite[match.group(2)]}", lowered)
        lowered = re.sub(rf"\bnon[- ]?{either}", lambda match: opposite[match.group(1)], lowered)
        lowered = re.sub(
            rf"{either} ?[:=] ?(?:no|false)(?=\s*(?:[.,;\n]|$))", lambda match: opposite[match.group(1)], lowered
        )
        for clause in re.split(
            r"[.,;:!?\n]|\b(?:but|because|since|as|and|so|(?:al|even )?though|while|(?:even )?if)\b", lowered
        ):
            if re.search(rf"{_NEG}.*{either}|{_WRONG_TO}.{{0,200}}{either}|{either}.{{0,200}}?{_IS_WRONG}", clause):
                return ReplyReading(reason=f"the reply has {first} or {second} and a negation that may belong to it")
    turned = re.search(
        rf"{either}[^\n]{{0,100}}?\b(?:but|actually|wait|sorry|rather|correction)\b[^\n]{{0,100}}?{either}(?=\s*(?:[.,;:!\n]|$))",
        lowered,
    )
    if turned and turned.group(1) != turned.group(2) and not LEADS.search(lowered):
        return ReplyReading(reason=f"the reply names both {first} and {second}")
    boxed = [match.group(1) for inner in _boxes(lowered) if (match := re.match(either, inner))]
    if boxed:
        return _one_of(boxed, "word")
    stated = [match.group(1) for part in _statements(lowered) if (match := re.match(either, part))]
    if not _is_final(lowered):
        # The first word of a line is the answer, unless "no" belongs to what follows it.
        stated += re.findall(rf"^\W*{either}(?! (?:one|doubt|idea|matter|reason|way to)\b)", lowered, re.MULTILINE)
    if stated:
        return _one_of(stated, "word")
    # Inside a sentence "no" often belongs to another word ("no reason"): it counts only before a mark or at the end.
    ending = r"(?=\s*(?:[.,;:!]|$))" if first == "yes" else ""
    named = re.findall(either + ending, lowered)
    if named:
        return _one_of(named, "word")
    return ReplyReading(reason=f"the reply says neither {first} nor {second}")


def _both_words(text: str, pair: Sequence[str]) -> str:
    """A pattern of both words joined, "yes or no", "true, false"; empty if they are not."""
    first, second = pair
    either = rf"\b(?:{first}|{second})\b"
    joined = (
        rf"{either} ?(?:/|\||\u2192|[-=]>|\bvs\b\.?|\bor\b|\band\b|\bnor\b) ?(?:also )?{either}|"
        rf"{either} ?[,;.] ?{either}(?= ?(?:[.,;:!?]|$))"
    )
    match = re.search(joined, text)
    words = re.findall(either, match.group()) if match else []
    return joined if len(set(words)) == 2 else ""


def _is_final(text: str) -> bool:
    return bool(re.search(r"\bfinal answer\b", text))


# Texts and signs

_ELEMENTS = re.findall(
    r"[A-Z][a-z]?",
    "HHeLiBeBCNOFNeNaMgAlSiPSClArKCaScTiVCrMnFeCoNiCuZnGaGeAsSeBrKrRbSrYZrNbMoTcRuRhPdAgCdInSnSbTeIXeCsBaLaCeHfTaWReOs"
    "IrPtAuHgTlPbBiPoAtRnFrRaAcThPaUNpPu",
)
_ELEMENT = "|".join(sorted(_ELEMENTS, key=len, reverse=True))


def _case_matters(wanted: str) -> bool:
    """Whether other capitals make another answer: a formula that can be read in two ways (CO, Co), a unit or a code
    that begins small and goes on with a capital (mW, pH)."""
    if re.fullmatch(rf"(?:(?:{_ELEMENT})\d*)+", wanted):
        return _ways_to_read(wanted.casefold()) > 1
    return any(re.fullmatch(r"[\d.,]*(?:[a-z]{1,2}[A-Z][A-Za-z]{0,2}|M[WVHJN][a-z]?)", word) for word in wanted.split())


def _ways_to_read(formula: str) -> int:
    symbols = {symbol.casefold() for symbol in _ELEMENTS}
    ways = [1] + [0] * len(formula)
    for end in range(1, len(formula) + 1):
        if formula[end - 1].isdigit():
            ways[end] += ways[end - 1]
        for length in (1, 2):
            if end >= length and formula[end - length : end] in symbols:
                ways[end] += ways[end - length]
    return ways[-1]


# Marks that belong to a number, a time or a name: 1,5 and 8:12 and -3 and .NET and node.js and Na-.
_WITHIN = re.compile(
    r"(?<!\w)[.,](?=\d)|(?<=\d)[.,:-](?=\d)|(?<!\S)-(?=\d)|(?<!\w)\.(?=\w)|(?<=\w)\.(?=\w)|(?<=^[a-z][a-z])-$"
)
_HELD = 0xE000  # Such marks wait in the area for private use while others are taken out.


def plain(text: str) -> str:
    """The text in small letters without a leading article and without marks that only part sentences, with single
    spaces. Signs that carry meaning stay: C#, C++, 5%, a/b."""
    plain_text = re.sub(r"(?<=\b\w)\.(?=\w\b)", "", light(text).casefold())
    plain_text = re.sub(r" & ", " and ", plain_text)
    plain_text = _WITHIN.sub(lambda match: chr(_HELD + ord(match.group())), plain_text)
    plain_text = re.sub(rf"[^\w\s+#%$\u20ac\u00a3&@/\\=<>^~|{chr(_HELD)}-{chr(_HELD + 127)}]", " ", plain_text)
    plain_text = re.sub(
        rf"[{chr(_HELD)}-{chr(_HELD + 127)}]", lambda match: chr(ord(match.group()) - _HELD), plain_text
    )
    words = re.sub(r"\s+", " ", plain_text).strip()
    return re.sub(r"^(?:the|a|an) (?=\S)", "", words)


def holds(text: str, words: str) -> bool:
    return re.search(rf"(?<![\w+#]){re.escape(words)}(?![\w+#])", text) is not None


def _said(text: str) -> str:
    """What follows the last "the answer is", up to the end of its sentence; else the whole reply."""
    statements = _statements(text)
    return re.split(r"\.(?:\s|$)", statements[-1], maxsplit=1)[0] if statements else text


_SET_ASIDE = (
    r"\b(?:instead of|rather than|unlike|other than|apart from|excluded?|excluding|eliminated?|ruled? out|rejected?|"
    r"discard(?:ed)?)"
)
LONGEST_SENTENCE = 12
SHORT = 2  # words of a part of a reply that is an answer of its own: "Paris. London."


def _text(text: str, wanted: str) -> ReplyReading:
    key = plain(wanted)
    if boxes := _boxes(text):
        return _judged(_one_of([plain(inner) for inner in boxes], "answer"), key)
    said = _said(text)
    words = plain(said)
    if not words:
        return ReplyReading(reason="the reply holds no words")
    matters = _case_matters(wanted)
    spelled = rf"(?<![\w+#]){re.escape(wanted)}(?![\w+#])"
    if matters and not re.search(spelled, said):
        return ReplyReading(words[:200])
    if words == key or _as_list(words) == _as_list(key):
        return ReplyReading(key, "", True)
    if not holds(words, key):
        return ReplyReading(words[:200])
    clauses = [clause for clause in re.split(r"[.,;:!\n]\s|\n|\bbut\b", said) if clause.strip()]
    naming = [clause for clause in clauses if holds(plain(clause), key)] or [said]
    if re.search(rf"(?<![\w+#]){re.escape(key)}\W{{0,3}}\?\s*\w", light(said).casefold()):
        return ReplyReading(reason="the reply asks for the key")
    aside = rf"{_SET_ASIDE} (?:.* )?{re.escape(key)}(?![\w+#])"
    if any(NOT.search(clause) or re.search(aside, plain(clause)) for clause in naming):
        return ReplyReading(reason="the reply holds the key and a negation")
    if re.search(r"\b(?:or|either|maybe|perhaps)\b", words):
        return ReplyReading(reason="the reply names alternatives")
    joins = r"(?:\band\b|/|\+|&|[<>|])"
    if re.search(
        rf"(?<![\w+#]){re.escape(key)} ?{joins} ?\w|\w ?{joins} ?{re.escape(key)}(?![\w+#])",
        words,
    ):
        return ReplyReading(reason="the reply joins the key to another answer")
    if _has_another_short_part(said, key) or _is_in_a_list(said, key):
        return ReplyReading(reason="the reply states more than one answer")
    if len(words.split()) > LONGEST_SENTENCE and not _leads_with(said, key):
        return ReplyReading(reason="the reply is too long to say which of its words are the answer")
    return ReplyReading(key, "", True)


def _as_list(words: str) -> str:
    return re.sub(r" (?:and|&) ", " ", words)


def _has_another_short_part(said: str, key: str) -> bool:
    parts = [plain(part) for part in re.split(r"[.!]\s|[;\n]", said)]
    return any(part and len(part.split()) <= SHORT and not holds(part, key) and not holds(key, part) for part in parts)


def _is_in_a_list(said: str, key: str) -> bool:
    """Whether short names stand next to each other: "apple, banana". A town may have its country behind it."""
    if "," in key:
        return False
    parts = [part.strip(" .!") for part in said.split(",")]
    if len(parts) < 2 or not all(0 < len(part.split()) <= SHORT for part in parts) or key not in map(plain, parts):
        return False
    is_beside = parts[-1].islower() and parts[0].islower() and not re.search(r"ly$|^of ", parts[-1])
    return len(parts) > 2 or plain(parts[0]) != key or is_beside


def _leads_with(said: str, key: str) -> bool:
    """Whether the key is a line or a sentence of its own at the beginning: "Paris\n\nIt has been the capital ..."."""
    return plain(re.split(r"[.!]\s|[;\n]", said, maxsplit=1)[0]) == key


def _signs(text: str, wanted: str) -> ReplyReading:
    """A key without letters and digits is compared sign by sign; white space does not count."""
    key = "".join(wanted.split())
    parts = [text, *_boxes(text), *_statements(text)]
    candidates = ["".join(bare(part).split()) for part in parts]
    if key in candidates or any(bare(part.removesuffix(".")) == key for part in candidates):
        return ReplyReading(wanted, "", True)
    said = candidates[-1]
    if re.search(r"\w", said):
        return ReplyReading(reason="the reply does not consist of signs")
    return ReplyReading(said[:200])
