"""A stream that is encrypted with a passphrase, piece by piece. Imports cryptography and exceptions.

The key comes from the passphrase by scrypt. Each piece is AES-256-GCM; its nonce holds its number and whether it is the
last one, so that a piece that is changed, missing, repeated or cut off is noticed (the STREAM construction of Hoang,
Reyhanitabar, Rogaway and Vizár, CRYPTO 2015).
"""

import io
import os
import struct
from typing import IO

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from survey.exceptions import HunchError

MAGIC = b"HUNCHBK1"
HEADER = struct.Struct("<8sB16s7s")  # magic, log2 of scrypt's cost, salt, start of every nonce
COST = 17  # 2^17 rounds take about half a second and 128 MiB.
HIGHEST_COST = 20
PIECE = 1 << 20
TAG = 16


class BackupDamaged(HunchError):
    """The file cannot be read to its end as it was written."""

    code = "backup_damaged"


def _aead(passphrase: str, cost: int, salt: bytes) -> AESGCM:
    return AESGCM(Scrypt(salt=salt, length=32, n=1 << cost, r=8, p=1).derive(passphrase.encode()))


class SealedWriter(io.RawIOBase):
    """Encrypts what is written. Without `finish` the file cannot be read."""

    def __init__(self, target: IO[bytes], passphrase: str) -> None:
        salt, self._start = os.urandom(16), os.urandom(7)
        self._header = HEADER.pack(MAGIC, COST, salt, self._start)
        self._aead = _aead(passphrase, COST, salt)
        self._target = target
        self._waiting = bytearray()
        self._number = 0
        target.write(self._header)

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        view = memoryview(data)  # type: ignore[arg-type]
        self._waiting += view
        while len(self._waiting) > PIECE:
            self._seal(bytes(self._waiting[:PIECE]), last=False)
            del self._waiting[:PIECE]
        return view.nbytes

    def finish(self) -> None:
        self._seal(bytes(self._waiting), last=True)
        self._waiting.clear()

    def _seal(self, piece: bytes, *, last: bool) -> None:
        nonce = self._start + struct.pack("<IB", self._number, last)
        self._target.write(self._aead.encrypt(nonce, piece, self._header))
        self._number += 1


class SealedReader(io.RawIOBase):
    """Decrypts a file from its start to its end.

    Raises:
        BackupDamaged: the passphrase is another one, or the file is no backup, was changed or cut off.
    """

    def __init__(self, source: IO[bytes], passphrase: str) -> None:
        header = source.read(HEADER.size)
        if len(header) < HEADER.size or not header.startswith(MAGIC):
            raise BackupDamaged("this is no backup of Hunch, or of a later version")
        _magic, cost, salt, self._start = HEADER.unpack(header)
        if cost > HIGHEST_COST:
            raise BackupDamaged("the start of the backup is damaged: take another copy")
        self._header, self._source = header, source
        self._aead = _aead(passphrase, cost, salt)
        self._number = 0
        self._open = b""
        self._next = source.read(PIECE + TAG)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer)  # type: ignore[arg-type]
        while not self._open and self._next:
            self._open = self._opened_piece()
        taken, self._open = self._open[: len(view)], self._open[len(view) :]
        view[: len(taken)] = taken
        return len(taken)

    def _opened_piece(self) -> bytes:
        piece, self._next = self._next, self._source.read(PIECE + TAG)
        nonce = self._start + struct.pack("<IB", self._number, not self._next)
        self._number += 1
        try:
            return self._aead.decrypt(nonce, piece, self._header)
        except InvalidTag:
            if self._number == 1:
                raise BackupDamaged("the passphrase is another one, or the backup is damaged") from None
            raise BackupDamaged("the backup is damaged or cut off: take another copy") from None
