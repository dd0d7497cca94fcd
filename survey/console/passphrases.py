"""The passphrase of a backup: from a file, the environment or the terminal, never from the command line."""

import getpass
import sys
from argparse import ArgumentParser
from pathlib import Path

from django.conf import settings

from survey.exceptions import HunchError

SHORTEST = 12


def add_passphrase(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--passphrase-file",
        type=Path,
        metavar="FILE",
        help="its first line is the passphrase; without it HUNCH_BACKUP_PASSPHRASE is taken, or you are asked",
    )


def passphrase_for(file: Path | None, *, new: bool = False) -> str:
    """
    Raises:
        HunchError: there is none, or it is too short for a new backup.
    """
    passphrase = _read(file) if file else settings.HUNCH_BACKUP_PASSPHRASE or _ask(new)
    if new and len(passphrase) < SHORTEST:
        raise HunchError(
            f"the passphrase has {len(passphrase)} characters: use at least {SHORTEST}, and keep a copy elsewhere"
        )
    return str(passphrase)


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").partition("\n")[0].strip()
    except (OSError, UnicodeDecodeError) as exc:
        raise HunchError(f"--passphrase-file: {file} cannot be read: {exc}") from exc


def _ask(new: bool) -> str:
    if not sys.stdin.isatty():
        raise HunchError("there is no passphrase: name a file with --passphrase-file, or set HUNCH_BACKUP_PASSPHRASE")
    passphrase = getpass.getpass("Passphrase of the backup: ")
    if new and getpass.getpass("Once more: ") != passphrase:
        raise HunchError("the two passphrases differ; nothing was written")
    return passphrase
