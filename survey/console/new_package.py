"""Writes the folder of a new instrument or panel: an installable package with all its places filled in, which works as
it is.

The files lie in `instrument_files` and `panel_files`. INSTRUMENT and PANEL stand there for the name, Instrument_ and
Panel_ for it as the beginning of a class, and IN_CAPITALS_ for it as the beginning of a variable of the environment.
"""

import keyword
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from survey.contracts import instruments, panels
from survey.exceptions import HunchError

NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
LONGEST = 30
TEMPLATE = "-tpl"  # So that nobody takes them for code of ours.


@dataclass(frozen=True)
class Kind:
    """What can be written: its files, the word that stands for its name in them, and which names are taken."""

    files: Path
    word: str
    such_as: str
    is_taken: Callable[[str], bool]


INSTRUMENT = Kind(Path(__file__).with_name("instrument_files"), "INSTRUMENT", "word_order", instruments.is_known)
PANEL = Kind(Path(__file__).with_name("panel_files"), "PANEL", "crowdly", lambda name: name in panels.names())


def write(kind: Kind, name: str, folder: Path) -> Path:
    """Write the package NAME into `folder` and return its own folder.

    Raises:
        HunchError: the name cannot be used, or the folder is there already or cannot be written.
    """
    if not NAME.fullmatch(name) or keyword.iskeyword(name) or len(name) > LONGEST:
        raise HunchError(
            f"NAME: {name!r} is no name for a package: use small letters, digits and _, at most {LONGEST}, such as "
            f"{kind.such_as}"
        )
    if kind.is_taken(name) or find_spec(name) is not None:
        raise HunchError(f"NAME: something that is installed is called {name}: take another name")
    target = folder / name
    if target.exists():
        raise HunchError(f"{target}: is there already: take another name, or another folder with --out")
    words = {
        "IN_CAPITALS_": f"{name.upper()}_",
        f"{kind.word.capitalize()}_": "".join(part.capitalize() for part in name.split("_")),
        kind.word: name,
    }
    try:
        for source in sorted(path for path in kind.files.rglob("*") if path.is_file()):
            parts = source.relative_to(kind.files).parts
            written = target.joinpath(*(name if part in ("package", kind.word) else part for part in parts))
            written = written.with_name(written.name.removesuffix(TEMPLATE).replace(kind.word, name))
            written.parent.mkdir(parents=True, exist_ok=True)
            if source.name.endswith(TEMPLATE):
                text = source.read_text(encoding="utf-8")
                for word, replacement in words.items():
                    text = text.replace(word, replacement)
                written.write_text(text, encoding="utf-8")
            else:
                written.write_bytes(source.read_bytes())
    except OSError as exc:
        raise HunchError(f"{target}: cannot be written ({exc.strerror}): choose another folder with --out") from exc
    return target
