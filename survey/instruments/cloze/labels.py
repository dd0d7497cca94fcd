"""What counts of a person's answer to an item: the last word that was typed, by the newest rule that judged it."""

from typing import TYPE_CHECKING

from django.db.models import Q

from .analysis.normalising import RULES, Match, letters, normalised

if TYPE_CHECKING:
    from survey.models import Assignment, Question

    from .models import WordScore, WrittenWord


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


def judged(text: str, question: "Question", target: str, rule: int) -> tuple[str, Match]:
    """The first word of a text as it is compared, and whether it is the target."""
    typed = first_word(text)
    one = normalised(typed)
    match = RULES[str(rule)](typed, target, known=())
    # The bank's words are looked up only where they decide: a word of the bank is no slip.
    if match.lenient and not match.exact and _stands_in_bank(one, question):
        match = Match(exact=False, lenient=False)
    return one, match


def _stands_in_bank(word: str, question: "Question") -> bool:
    from survey.models import Question

    spelt = Q(text__icontains=word)
    for other in (word.capitalize(), word.upper(), word.replace("'", "’")):
        spelt |= Q(text__contains=other)
    texts = Question.objects.filter(spelt, bank=question.bank_id).values_list("text", flat=True)
    return any(normalised(part) == word for text in texts for part in text.split() if letters(part))
