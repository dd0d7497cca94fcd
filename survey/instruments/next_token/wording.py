"""How tokens are shown and typed: the space before a word is a raised dot."""

from survey.services.banks.passages import HARD_BLANKS, RAISED_DOT

DOT = RAISED_DOT


def shown_token(token: str) -> str:
    """Blanks at the beginning of a token as raised dots."""
    rest = token.lstrip(" ")
    return DOT * (len(token) - len(rest)) + rest


def typed_token(text: str) -> str:
    """What was typed, as a token: a raised dot at the beginning, and other blanks, mean a space."""
    for hard_blank in HARD_BLANKS:
        text = text.replace(hard_blank, " ")
    rest = text.lstrip(DOT)
    return " " * (len(text) - len(rest)) + rest
