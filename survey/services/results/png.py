"""Pictures of reports as PNG, for what takes no SVG. Commands alone draw them: only then is the library loaded."""

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from survey.exceptions import HunchError
from survey.figures.charts import FONTS

SCALE = 3  # pixels for each unit of the drawing: sharp in print
WORD = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><text y="8" font-family="{FONTS}">M</text></svg>'
Writer = tuple[str, Callable[[Path], None]]


def with_png(writers: Sequence[Writer]) -> list[Writer]:
    """The same files, and for each NAME.svg a NAME.png, black on white.

    Raises:
        HunchError: nothing can be drawn on this machine; says what to install.
    """
    draw = drawer()
    pictures = [(name.removesuffix(".svg"), write) for name, write in writers if name.endswith(".svg")]
    return [*writers, *((f"{name}.png", partial(_write, draw, write)) for name, write in pictures)]


def drawer() -> Callable[[str], bytes]:
    """What makes a PNG of an SVG.

    Raises:
        HunchError: the library is missing, or a font.
    """
    try:
        library: Any = import_module("resvg_py")
    except ImportError as exc:
        raise HunchError("--png: needs the package resvg-py; install it with: pip install resvg-py") from exc

    def draw(svg: str) -> bytes:
        return bytes(library.svg_to_bytes(svg_string=svg, background="white", zoom=SCALE))

    # Without a font the library leaves out every word and says nothing.
    if draw(WORD) == draw(WORD.replace(">M<", "><")):
        raise HunchError(
            f"--png: finds none of the fonts {FONTS}; install one (on Debian: apt-get install fonts-dejavu-core)"
        )
    return draw


def _write(draw: Callable[[str], bytes], write: Callable[[Path], None], path: Path) -> None:
    write(path)
    try:
        content = draw(path.read_text(encoding="utf-8"))
    except ValueError as exc:
        raise HunchError(f"--png: the picture cannot be drawn as PNG: {exc}; leave --png out to get its SVG") from exc
    path.write_bytes(content)
