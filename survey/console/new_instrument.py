"""Writes the folder of a new instrument: an installable package with all its places filled in, which works as it is.

The files lie in `instrument_files`, with INSTRUMENT in place of the name and Instrument_ in that of the class.
"""

import keyword
import re
from importlib.util import find_spec
from pathlib import Path

from survey.contracts import instruments
from survey.exceptions import HunchError

FILES = Path(__file__).with_name("instrument_files")
NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
LONGEST = 30
TEMPLATE = "-tpl"  # So that nobody takes them for code of ours.


def write(name: str, folder: Path) -> Path:
    """Write the package NAME into `folder` and return its own folder.

    Raises:
        HunchError: the name cannot be used, or the folder is there already or cannot be written.
    """
    if not NAME.fullmatch(name) or keyword.iskeyword(name) or len(name) > LONGEST:
        raise HunchError(
            f"NAME: {name!r} is no name for a package: use small letters, digits and _, at most {LONGEST}, such as "
            "word_order"
        )
    if instruments.is_known(name) or find_spec(name) is not None:
        raise HunchError(f"NAME: something that is installed is called {name}: take another name")
    target = folder / name
    if target.exists():
        raise HunchError(f"{target}: is there already: take another name, or another folder with --out")
    class_name = "".join(part.capitalize() for part in name.split("_"))
    try:
        for source in sorted(path for path in FILES.rglob("*") if path.is_file()):
            place = [name if part in ("package", "INSTRUMENT") else part for part in source.relative_to(FILES).parts]
            written = target.joinpath(*place)
            written = written.with_name(written.name.removesuffix(TEMPLATE).replace("INSTRUMENT", name))
            written.parent.mkdir(parents=True, exist_ok=True)
            if source.name.endswith(TEMPLATE):
                text = source.read_text(encoding="utf-8").replace("Instrument_", class_name).replace("INSTRUMENT", name)
                written.write_text(text, encoding="utf-8")
            else:
                written.write_bytes(source.read_bytes())
    except OSError as exc:
        raise HunchError(f"{target}: cannot be written ({exc.strerror}): choose another folder with --out") from exc
    return target
