"""What a database can hold of a text from outside. Imports nothing."""


def can_be_stored(text: str) -> bool:
    """PostgreSQL cannot store NUL, nor half a surrogate pair, which JSON can carry."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\x00" not in text
