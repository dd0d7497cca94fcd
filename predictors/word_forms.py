"""How words are compared and measured: punctuation, case, apostrophes. Standard library."""

import unicodedata

APOSTROPHES = str.maketrans(dict.fromkeys("‘’ʼ´`＇", "'"))


def is_outer(character: str) -> bool:
    """Whether a character is taken off both ends of a word: punctuation, symbols, and marks that nobody sees."""
    category = unicodedata.category(character)
    return category[0] in "PSZ" or category in ("Cf", "Cc")


def stripped(word: str) -> str:
    """The word without the punctuation around it; the word itself where nothing else is left."""
    start, end = 0, len(word)
    while start < end and is_outer(word[start]):
        start += 1
    while end > start and is_outer(word[end - 1]):
        end -= 1
    return word[start:end] or word


def normalised(word: str) -> str:
    """NFC, case folded, straight apostrophes, without punctuation around it."""
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", word).casefold())
    return stripped(folded.translate(APOSTROPHES).strip())
