"""The bytes of a file that somebody made, as its text: one place for every reader of tables, texts and study files.

A mark of the byte order is no part of a text. Nothing is dropped in silence: a file in which some bytes are of another
encoding, or which holds control characters, is refused with these lines.
"""

import json
import math
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from survey.exceptions import FileErrors, Problem
from survey.letters import CONTROL, control_character

# Where no mark at the file's beginning tells, these are tried. The first one is preferred.
ENCODINGS = {
    "utf_8": "UTF-8",
    "utf_16_le": "UTF-16",
    "utf_16_be": "UTF-16",
    "utf_32_le": "UTF-32",
    "utf_32_be": "UTF-32",
    "cp1252": "Windows-1252 (Latin-1)",
    "cp1250": "Windows-1250 (Central Europe)",
    "cp1251": "Windows-1251 (Cyrillic)",
    "mac_roman": "Mac Roman",
}
OLDER = ("cp1252", "cp1250", "cp1251", "mac_roman")
# The mark of UTF-32 begins like that of UTF-16.
MARKS = (
    (b"\xef\xbb\xbf", "utf_8"),
    (b"\xff\xfe\0\0", "utf_32_le"),
    (b"\0\0\xfe\xff", "utf_32_be"),
    (b"\xff\xfe", "utf_16_le"),
    (b"\xfe\xff", "utf_16_be"),
)
MARK = "\ufeff"
LINE_END = re.compile(r"\r\n|\r|\n")
PROBLEMS_KEPT = 200
LONGEST_INTEGER = 30  # digits


@dataclass(frozen=True)
class DecodedText:
    text: str
    encoding: str
    is_guess: bool = False
    """Whether another encoding would give other letters."""


def read_bytes(
    path: Path | str, *, largest: int | None = None, too_large: Callable[[int], str] = "has {:,} bytes".format
) -> bytes:
    """
    Args:
        too_large: what is said of a file of so many bytes.

    Raises:
        FileErrors: the file cannot be read, or is larger than `largest` bytes; then it is not read at all.
    """
    try:
        size = Path(path).stat().st_size
        if largest is not None and size > largest:
            raise FileErrors([Problem(str(path), None, "file", too_large(size))])
        return Path(path).read_bytes()
    except OSError as exc:
        raise FileErrors([Problem(str(path), 1, "file", f"cannot be read ({exc.strerror}): check the path")]) from exc


def decode(content: bytes, file: str, *, encoding: str = "", guesses: bool = False) -> DecodedText:
    """
    Args:
        file: what the file is called in messages.
        encoding: the one that somebody named; empty: find out.
        guesses: whether a file that is no Unicode is taken for the likeliest of the older encodings.

    Raises:
        FileErrors: with every line that is wrong.
    """
    made = _decoded(content, file, encoding, guesses=guesses)
    # Where files were joined, a mark stands at the beginning of a line.
    text = re.sub(rf"(\A|[\r\n]){MARK}+", r"\1", made.text)
    if problems := list(_control_characters(text, file)):
        raise FileErrors(problems[:PROBLEMS_KEPT], shown=20)
    return DecodedText(text, made.encoding, made.is_guess)


def toml_text(content: bytes, file: str) -> str:
    """The text of a study or budget file. TOML knows no line that ends as on old Macs: it ends as elsewhere.

    Raises:
        FileErrors: with every line that is wrong.
    """
    return without_mac_ends(decode(content, file).text)


def json_of(text: str) -> Any:
    """The value that a JSON text stands for.

    Raises:
        ValueError: says what is wrong: it is no JSON, nests too deep, gives one name two values, or holds a number that
            JSON has not or that is too large.
    """
    try:
        return json.loads(
            text, parse_constant=_refuse_constant, parse_float=_finite, parse_int=_short, object_pairs_hook=_named_once
        )
    except RecursionError:
        raise ValueError("it nests too deep") from None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


def _finite(digits: str) -> float:
    if not math.isfinite(value := float(digits)):
        raise ValueError(f"{digits[:20]} is too large a number")
    return value


def _short(digits: str) -> int:
    if len(digits) > LONGEST_INTEGER:
        raise ValueError(f"{digits[:20]}... is too large a number")
    return int(digits)


def _named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _value in pairs]
    if twice := next((name for name in names if names.count(name) > 1), None) if len({*names}) < len(names) else None:
        raise ValueError(f"{twice[:40]!r} stands twice in one object")
    return dict(pairs)


def without_mac_ends(text: str) -> str:
    return re.sub(r"\r(?!\n)", "\n", text)


def _control_characters(text: str, file: str) -> Iterator[Problem]:
    if CONTROL.search(text):
        for number, line in enumerate(LINE_END.split(text), start=1):
            if message := control_character(line):
                yield Problem(file, number, "file", message)


def _decoded(content: bytes, file: str, wanted: str, *, guesses: bool) -> DecodedText:
    for mark, encoding in MARKS:
        if content.startswith(mark) and wanted in ("", encoding):
            return DecodedText(_strictly(content[len(mark) :], encoding, file), encoding)
    if wanted:
        return DecodedText(_strictly(content, wanted, file), wanted)
    if encoding := _wide(content):
        return DecodedText(_strictly(content, encoding, file), encoding, is_guess=True)
    with suppress(UnicodeDecodeError):
        return DecodedText(content.decode(), "utf_8")
    older = _older_encoding(content) if guesses and not _is_mixed(content) else ""
    if older:
        return DecodedText(_strictly(content, older, file), older, is_guess=True)
    lines = list(_not_utf8(content))
    raise FileErrors(
        (
            Problem(file, line, "file", f"byte {at} of this line is not UTF-8, as the rest is: save the file as UTF-8")
            for line, at in lines[:PROBLEMS_KEPT]
        ),
        shown=20,
    )


def _strictly(content: bytes, encoding: str, file: str) -> str:
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as exc:
        line = len(LINE_END.findall(content[: exc.start].decode(encoding, "replace"))) + 1
        message = f"is not {ENCODINGS.get(encoding, encoding)}: choose another encoding, or save the file as UTF-8"
        raise FileErrors([Problem(file, line, "file", message)]) from exc
    except LookupError as exc:
        message = f"there is no encoding {encoding!r}: use one of {', '.join(ENCODINGS)}"
        raise FileErrors([Problem(file, None, "file", message)]) from exc


def _wide(content: bytes) -> str:
    """UTF-32 or UTF-16 without a mark; empty where it is neither. Separators and line ends of any script have NUL
    bytes on one side; a NUL that stands in a text of single bytes does not make one."""
    if content.count(0) < 2:
        return ""
    for encoding, width, side in (
        ("utf_32_le", 4, (1, 2, 3)),
        ("utf_32_be", 4, (0, 1, 2)),
        ("utf_16_le", 2, (1,)),
        ("utf_16_be", 2, (0,)),
    ):
        if len(content) % width:
            continue
        with suppress(UnicodeDecodeError):
            text = content.decode(encoding)
            share = content[:4096].count(0) / len(content[:4096])
            nul_aside = sum(content[place::width].count(0) for place in side)
            if "\0" not in text and nul_aside >= 0.8 * content.count(0) and (LINE_END.search(text) or share > 0.2):
                return encoding
    return ""


def _older_encoding(content: bytes) -> str:
    """The likeliest of the older encodings; the Western one where it fits as well as any."""
    from charset_normalizer import from_bytes  # Not needed by most files, and costs time to load.

    matches = list(from_bytes(content, cp_isolation=list(OLDER)))
    if not matches:
        return ""
    best = min(match.chaos for match in matches)
    for encoding in OLDER:
        if any(encoding in match.could_be_from_charset and match.chaos <= best + 0.05 for match in matches):
            return encoding
    return str(matches[0].encoding)


def _is_mixed(content: bytes) -> bool:
    """Whether a file is UTF-8 but for some bytes. A line of an older encoding that is not plain ASCII is hardly ever
    UTF-8 as a whole; within lines, what is UTF-8 must be more than a rare chance."""
    for line in re.split(rb"\r\n|\r|\n", content):
        with suppress(UnicodeDecodeError):
            if not line.isascii() and line.decode():
                return True
    text = content.decode("utf-8", "surrogateescape")
    broken = sum("\udc80" <= letter <= "\udcff" for letter in text)
    sound = sum(letter > "\x7f" for letter in text) - broken
    return 4 * sound > broken


def _not_utf8(content: bytes) -> Iterator[tuple[int, int]]:
    for number, line in enumerate(re.split(rb"\r\n|\r|\n", content), start=1):
        try:
            line.decode()
        except UnicodeDecodeError as exc:
            yield number, exc.start + 1
