"""Logos of institutions: checked by their content, never by a file's name, and stored as a PNG that holds the picture
alone. Only PNG: an SVG is a document that can carry programs.
"""

import hashlib
import re
import struct
import zlib
from typing import Any

from django.db import IntegrityError, transaction

from survey.exceptions import HunchError
from survey.models import Logo
from survey.services.base.auditing import record

LARGEST = 100_000  # bytes
LONGEST_SIDE = 2000  # pixels
NAME = re.compile(r"^[a-z0-9][a-z0-9-]{0,59}$")
SIGNATURE = b"\x89PNG\r\n\x1a\n"
KEPT = (b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND")  # All else, such as where and with what it was made, is left out.
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # By the colour type.
# Adam7: where each pass begins and how far it steps, across and down.
PASSES = ((0, 8, 0, 8), (4, 8, 0, 8), (0, 4, 4, 8), (2, 4, 0, 4), (0, 2, 2, 4), (1, 2, 0, 2), (0, 1, 1, 2))


class LogoRefused(HunchError):
    """The file is no picture that is safe to show."""

    code = "logo_refused"
    status = 422


def store(content: bytes, *, name: str, by: Any = None, via: str = "command") -> Logo:
    """Store a logo under a name. The same picture under the same name again is the one that is there.

    Raises:
        LogoRefused: the file, or the name, cannot be taken.
    """
    if not NAME.match(name):
        raise LogoRefused(f"name: {name[:60]!r}: write small letters, digits and hyphens, at most 60")
    picture, width, height = picture_of(content)
    sha256 = hashlib.sha256(picture).hexdigest()
    try:
        with transaction.atomic():
            logo, is_new = Logo.objects.get_or_create(
                name=name,
                defaults={
                    "sha256": sha256,
                    "content": picture,
                    "width": width,
                    "height": height,
                    "created_by": by if getattr(by, "is_authenticated", False) else None,
                },
            )
            if is_new:
                record("store_logo", name, by=by, via=via, sha256=sha256)
    except IntegrityError:  # Somebody took the name meanwhile.
        logo = Logo.objects.get(name=name)
    if logo.sha256 != sha256:
        raise LogoRefused(
            f"name: another logo is called {name!r}, and studies may show it: choose another name, such as {name}-2"
        )
    return logo


def picture_of(content: bytes) -> tuple[bytes, int, int]:
    """The picture of a PNG without anything else, its width and its height.

    Raises:
        LogoRefused: it is none, is broken or too large, with what to do.
    """
    if len(content) > LARGEST:
        raise LogoRefused(f"file: {too_large(len(content))}")
    if not content.startswith(SIGNATURE):
        is_svg = b"<svg" in content[:2000].lower()
        why = "an SVG can carry programs" if is_svg else "its content is not that of a PNG, whatever its name says"
        raise LogoRefused(f"file: {why}: save the logo as a PNG and send that")
    chunks = _chunks(content)
    width, height, depth, colour, _compression, _filter, interlaced = struct.unpack(">IIBBBBB", chunks[0][1])
    if not (1 <= width <= LONGEST_SIDE and 1 <= height <= LONGEST_SIDE):
        raise LogoRefused(f"file: {width} by {height} pixels; at most {LONGEST_SIDE} a side: save it smaller")
    if colour not in CHANNELS or depth not in (1, 2, 4, 8, 16) or interlaced not in (0, 1):
        raise LogoRefused("file: a PNG of an unknown kind: save it again from a program for pictures")
    packed = b"".join(data for kind, data in chunks if kind == b"IDAT")
    _refuse_other_length(packed, _length(width, height, depth * CHANNELS[colour], bool(interlaced)))
    return SIGNATURE + b"".join(_chunk(kind, data) for kind, data in chunks if kind in KEPT), width, height


def too_large(size: int) -> str:
    return f"has {size:,} bytes; a logo has at most {LARGEST:,}: save it smaller"


def _chunks(content: bytes) -> list[tuple[bytes, bytes]]:
    chunks, at = [], len(SIGNATURE)
    while at + 12 <= len(content):
        (length,) = struct.unpack_from(">I", content, at)
        kind, data = content[at + 4 : at + 8], content[at + 8 : at + 8 + length]
        if at + 12 + length > len(content) or content[at + 8 + length : at + 12 + length] != _crc(kind + data):
            break
        chunks.append((kind, data))
        at += 12 + length
        if kind == b"IEND":
            break
    if not chunks or chunks[0][0] != b"IHDR" or len(chunks[0][1]) != 13 or chunks[-1][0] != b"IEND":
        raise LogoRefused("file: the PNG is broken: save it again")
    return chunks


def _crc(data: bytes) -> bytes:
    return struct.pack(">I", zlib.crc32(data))


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + _crc(kind + data)


def _length(width: int, height: int, bits: int, is_interlaced: bool) -> int:
    """The bytes of the unpacked picture: each row with a byte for its filter."""
    sizes = [(width, height)]
    if is_interlaced:
        sizes = [(-(-(width - x) // dx), -(-(height - y) // dy)) for x, dx, y, dy in PASSES]
    return sum(rows * (1 + (columns * bits + 7) // 8) for columns, rows in sizes if columns > 0 and rows > 0)


def _refuse_other_length(packed: bytes, wanted: int) -> None:
    unpacking = zlib.decompressobj()
    try:
        unpacked = len(unpacking.decompress(packed, wanted + 1))
    except zlib.error:
        unpacked = -1
    if unpacked != wanted:
        raise LogoRefused("file: the PNG is broken: save it again")
