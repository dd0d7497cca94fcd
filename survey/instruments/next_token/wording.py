"""How tokens are shown and typed. People type words: the page sets the space before a word where a tick says that a new
word begins. Study files and researchers write that space as a raised dot."""

from django.utils.translation import gettext as _

from survey.services.banks.passages import HARD_BLANKS, RAISED_DOT, Vocabulary

DOT = RAISED_DOT
CLOSING = ".,;:!?)]}%…’”"
"""Marks that never have a space before them."""


def shown_token(token: str) -> str:
    """Blanks at the beginning of a token as raised dots: for researchers."""
    rest = token.lstrip(" ")
    return DOT * (len(token) - len(rest)) + rest


def typed_token(text: str) -> str:
    """What was typed, as a token: a raised dot at the beginning, and other blanks, mean a space."""
    for hard_blank in HARD_BLANKS:
        text = text.replace(hard_blank, " ")
    rest = text.lstrip(DOT)
    return " " * (len(text) - len(rest)) + rest


def meant_token(text: str, *, new_word: bool, vocabulary: Vocabulary) -> str:
    """What somebody means who typed this text, with or without the tick that a new word begins. frontend/tokens.js does
    the same."""
    typed = typed_token(text)
    if not new_word or not typed or typed[0] in CLOSING + " ":
        return typed
    spaced = " " + typed
    goes_on = not vocabulary.beginning_with(spaced) and bool(vocabulary.beginning_with(typed))
    return typed if goes_on else spaced


def word_for_people(token: str) -> str:
    """A token for people: without the space at its beginning, which they see in the text."""
    return token.strip(" ") or _("(only a space)")
