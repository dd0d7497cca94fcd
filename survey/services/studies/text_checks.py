"""What a study's texts say against the rest of its file: numbers, leftover markup, and the language of its questions.

Only remarks: each rule stays silent where it is not sure.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from survey.study_file import StudyConfig, dotted
from survey.study_file.values import money_for_people, texts_with_values, with_values

Remark = tuple[str, str]
"""A key of the file, and what to look at."""

# From 4 on: two or three questions are often others than those of the items.
FROM_FOUR = (
    "four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen "
    "twenty",
    "vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn "
    "zwanzig",
)
NUMBERS = {word: value for words in FROM_FOUR for value, word in enumerate(words.split(), start=4)}
NUMBER = rf"(?<![\w.,])(\d{{1,4}}|{'|'.join(sorted(NUMBERS, key=len, reverse=True))})"
QUESTIONS = re.compile(rf"{NUMBER}(?:\s+\w+)?\s+(?:questions|items|Fragen)\b", re.IGNORECASE)
MINUTES = re.compile(rf"{NUMBER}\s+(?:minutes|Minuten)\b", re.IGNORECASE)
MONEY = re.compile(
    r"(?:(?P<sign>[$£€])\s?(?P<a>\d+[.,]\d\d)|(?<![\d.,])(?P<b>\d+[.,]\d\d)\s?(?:USD|GBP|EUR|\$|£|€))(?!\d)"
)
AS_IT_STANDS = "people read it as it stands"
TAG = r"</?(?:b|i|em|strong|br|p|a|u|ul|li|h[1-6])\b[^>\n]*>"
MARKUP = (
    (re.compile(r"\*\*|(?<!\w)__(?=\w)"), f"{{found}} makes nothing bold, {AS_IT_STANDS}: remove it"),
    (re.compile(r"^#{1,6} ", re.MULTILINE), f"{{found}} makes no heading, {AS_IT_STANDS}: remove it"),
    (re.compile(r"^[*+] ", re.MULTILINE), '{found} makes no list: begin each line with "- "'),
    (re.compile(r"\[[^\]\n]+\]\(https?://[^)\s]*\)"), "{found} makes no link: write the address alone"),
    (re.compile(TAG, re.IGNORECASE), f"{{found}} is no markup here, {AS_IT_STANDS}: remove it"),
)
LONGEST_QUOTE = 40
FEW = 4


def remarks(config: StudyConfig) -> Iterator[Remark]:
    """Remarks on the texts that people read before and after the items, and on the first page's words."""
    seen = set()
    for place, text in texts_with_values(config.model_dump()):
        for message in (*_numbers(text, config), *_markup(text)):
            if (place, message) not in seen:
                seen.add((place, message))
                yield dotted(place), message


def _numbers(text: str, config: StudyConfig) -> Iterator[str]:
    """Numbers that the file gives in another place, and gives otherwise."""
    blocks = config.blocks
    questions = {
        config.sitting.items,
        *(len(block.checks) for block in blocks),
        *(len(block.fields) for block in blocks),
    }
    questions |= {len(block.all_examples) for block in blocks if block.kind == "practice"}
    minutes = {
        config.texts.minutes,
        config.expected_minutes,
        config.sitting.expires_after_minutes,
        config.sitting.open_place_minutes,
        config.panel.maximum_minutes,
    }
    for match in QUESTIONS.finditer(text):
        if _value(match[1]) >= FEW and _value(match[1]) not in questions:
            yield f'says "{match[0]}", and a sitting has {config.sitting.items} items: write {{items}} for the number'
    for match in MINUTES.finditer(text):
        if _value(match[1]) not in minutes:
            yield f'says "{match[0]}", and texts.minutes is {config.texts.minutes}: write {{minutes}} for the number'
    panel = config.panel
    if panel.reward is None:
        return
    sums = {panel.reward, panel.screen_out_pay, panel.turned_away_pay, panel.bonus_per_point, panel.spending_cap}
    for match in MONEY.finditer(text):
        if round(float((match["a"] or match["b"]).replace(",", ".")) * 100) not in sums:
            reward = money_for_people(panel.reward, panel.currency, config.texts.language)
            yield f'says "{match[0]}", and panel.reward is {reward}: write {{reward}} for the sum'


def _value(number: str) -> int:
    return int(number) if number.isdecimal() else NUMBERS[number.lower()]


def _markup(text: str) -> Iterator[str]:
    for pattern, words in MARKUP:
        if match := pattern.search(with_values(text, {})):
            yield words.format(found=repr(match[0].strip()[:LONGEST_QUOTE]))


# The language of questions

QUESTIONS_READ = 60
LEAST_WORDS = 40
"""Frequent words that a guess needs; with fewer of them nobody can be sure."""
CLEARLY = 4.0
"""So many times as many words of one language as of the other."""
# Words that stand often in one of the two languages and hardly ever in the other.
ENGLISH = (
    "the of and to is that it for on are as with his they at be this have from or had by not but what all were we when "
    "your can there which their if how who about would she him these than been has more no my did do does"
)
GERMAN = (
    "der die und den von zu das mit sich des auf für ist im dem nicht ein eine als auch es werden aus er dass sie nach "
    "wird bei einer um sind noch wie einem über einen zum haben nur oder aber vor zur bis mehr durch sein wurde welche "
    "welcher welches"
)
FREQUENT = {"en": frozenset(ENGLISH.split()), "de": frozenset(GERMAN.split())}


def language_of(texts: Iterable[str]) -> str:
    """`en`, `de`, or empty where nobody can say: by words that stand often in one of the two and in the other never."""
    counts: Counter[str] = Counter()
    for text in texts:
        for word in re.findall(r"[^\W\d_]+", text.lower()):
            counts.update(code for code, words in FREQUENT.items() if word in words)
    likely, other = sorted(FREQUENT, key=lambda code: -counts[code])
    return likely if counts[likely] >= LEAST_WORDS and counts[likely] >= CLEARLY * counts[other] else ""
