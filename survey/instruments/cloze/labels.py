"""What counts of a person's answer to an item: the last word that was typed, by the newest rule that judged it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .analysis.normalising import RULES, Match, normalised

if TYPE_CHECKING:
    from survey.models import Assignment, Question

    from .models import WordScore, WrittenWord

# Attribute of an answer whose word was read without its responses.
KNOWN = "_known_word"
BATCH_SIZE = 5000  # rows: databases limit the number of values in one statement


@dataclass(frozen=True, slots=True)
class JudgedWord:
    """The word that counts as it was compared, and whether it is the sentence's own."""

    normalised: str
    exact: bool
    lenient: bool


def first_word(text: str) -> str:
    return text.split()[0]


def is_several(text: str) -> bool:
    return len(text.split()) > 1


def written_word_of(assignment: "Assignment") -> "WrittenWord | None":
    """The word that counts: the last one that was typed; None if there is none (yet)."""
    words = [response.written_word for response in assignment.responses.all() if hasattr(response, "written_word")]
    return words[-1] if words else None


def score_of(word: "WrittenWord | None") -> "WordScore | None":
    """How it was judged by the newest rule; None where it was not judged."""
    scores = [] if word is None else list(word.scores.all())
    return max(scores, key=lambda score: score.rule) if scores else None


def judged_word_of(assignment: "Assignment") -> "JudgedWord | WordScore | None":
    """The word that counts, by the newest rule that judged it; None if there is none (yet), or it was not judged."""
    if KNOWN in assignment.__dict__:
        known: JudgedWord | None = assignment.__dict__[KNOWN]
        return known
    return score_of(written_word_of(assignment))


def read_words(answers: "Sequence[Assignment]") -> None:
    """Give each answer its judged word, without its responses."""
    from .models import WrittenWord

    for start in range(0, len(answers), BATCH_SIZE):
        part = answers[start : start + BATCH_SIZE]
        # In the order of screens and rules, so that the last row of an answer is the one that counts.
        rows = (
            WrittenWord.objects.filter(response__assignment__in=[answer.pk for answer in part])
            .order_by("response__number", "scores__rule")
            .values_list("response__assignment", "scores__normalised", "scores__exact", "scores__lenient")
        )
        words = {
            answer: None if word is None else JudgedWord(word, exact, lenient) for answer, word, exact, lenient in rows
        }
        for assignment in part:
            assignment.__dict__[KNOWN] = words.get(assignment.pk)


def judged(text: str, question: "Question", target: str, rule: int) -> tuple[str, Match]:
    """The first word of a text as it is compared, and whether it is the target."""
    from .vocabulary import stands_in_bank

    typed = first_word(text)
    word = normalised(typed)
    match = RULES[str(rule)](typed, target, known=())
    # The bank's words are looked up only where they decide: a word of the bank is no slip.
    if match.lenient and not match.exact and stands_in_bank(word, question.bank_id):
        match = Match(exact=False, lenient=False)
    return word, match
