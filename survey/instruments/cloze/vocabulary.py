"""The words of a bank, as answers are compared. A process keeps those of the last banks it needed."""

import threading

from survey.models import Bank, Question

from .analysis.normalising import letters, normalised

MAX_KNOWN = 2  # banks; 100,000 sentences have some ten thousand words
BATCH_SIZE = 5000
_KNOWN: dict[str, frozenset[str]] = {}
_LOCK = threading.Lock()


def stands_in_bank(word: str, bank_id: int) -> bool:
    """Whether a word, normalised, is one of the bank's."""
    return word in words_of(bank_id)


def words_of(bank_id: int) -> frozenset[str]:
    """The bank's words, normalised; what has no letter is no word. Known by the hash of the bank's rows."""
    sha256 = Bank.objects.values_list("sha256", flat=True).get(pk=bank_id)
    words = _KNOWN.get(sha256)
    if words is not None:
        return words
    with _LOCK:  # A thread that comes meanwhile waits, and does not read the bank again.
        if sha256 not in _KNOWN:
            read = _read(bank_id)
            while len(_KNOWN) >= MAX_KNOWN:
                del _KNOWN[next(iter(_KNOWN))]
            _KNOWN[sha256] = read
        return _KNOWN[sha256]


def _read(bank_id: int) -> frozenset[str]:
    texts = Question.objects.filter(bank=bank_id).order_by().values_list("text", flat=True)
    parts: set[str] = set()
    for text in texts.iterator(BATCH_SIZE):
        parts.update(text.split())
    return frozenset(normalised(part) for part in parts if letters(part))
