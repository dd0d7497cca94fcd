"""Which errors say that the database, the disk or the storage of files cannot be used for now. Imports exceptions.

Such an error is nobody's mistake: the same request or the same work succeeds later. Errors of a statement or of its
values are never among them.
"""

import errno
import os
import re

from django.db import Error, InterfaceError, InternalError, OperationalError

from survey.exceptions import StorageAway

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
# numpy says only this where a disk took a part of an array.
NUMPY_SHORT = re.compile(r"^\d+ requested and \d+ written$")
# SQLite's primary result codes: busy, locked, no memory, read-only, input or output, full, cannot open, protocol.
SQLITE_AWAY = {5, 6, 7, 8, 10, 13, 14, 15}
# PostgreSQL calls these internal errors: a standby that only reads, and transactions that took too long.
POSTGRESQL_AWAY = {"25006", "25P03", "25P04"}
# A limit of PostgreSQL that a value exceeds, such as the size of an index row: the same value fails again.
POSTGRESQL_LIMIT = "54"


def is_outage(exc: BaseException) -> bool:
    """Whether this error says that the database, the disk or the storage of files cannot be used for now."""
    return isinstance(exc, StorageAway) or is_full_disk(exc) or _is_of_database(exc)


def is_full_disk(exc: BaseException) -> bool:
    """Whether nothing more can be written. Libraries with a writer of their own only say it in their message."""
    if isinstance(exc, OSError) and (exc.errno in FULL or NUMPY_SHORT.search(str(exc))):
        return True
    return not isinstance(exc, Error) and os.strerror(errno.ENOSPC) in str(exc)


def _is_of_database(exc: BaseException) -> bool:
    if not isinstance(exc, OperationalError | InterfaceError | InternalError):
        return False
    cause = exc.__cause__
    if (code := getattr(cause, "sqlite_errorcode", None)) is not None:
        return code & 0xFF in SQLITE_AWAY
    state = getattr(cause, "sqlstate", None)
    if isinstance(exc, InternalError):
        return state in POSTGRESQL_AWAY
    return not (state or "").startswith(POSTGRESQL_LIMIT)
