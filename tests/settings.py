"""Settings of the tests: the real ones, with every run-time file in a temporary folder, one for each xdist worker.

The folder is named in the environment, so that processes which a test starts share it.
"""

import atexit
import base64
import hashlib
import os
import shutil
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

if "HUNCH_TEST_FOLDER" not in os.environ:
    folder = tempfile.mkdtemp(prefix="hunch-tests-")
    os.environ["HUNCH_TEST_FOLDER"] = folder
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
os.environ["HUNCH_VAR"] = str(Path(os.environ["HUNCH_TEST_FOLDER"], worker))
# The same keys for all workers: what one of them has sealed, another one opens (tests/kept.py).
Path(os.environ["HUNCH_VAR"]).mkdir(mode=0o700, parents=True, exist_ok=True)
for name in ("identity_key", "secret_key"):
    if not (key := Path(os.environ["HUNCH_VAR"], name)).exists():
        key.write_text(base64.urlsafe_b64encode(hashlib.sha256(f"{name} of the tests".encode()).digest()).decode())
        key.chmod(0o600)
redis_url = os.environ.setdefault("HUNCH_TEST_REDIS_URL", os.environ.get("REDIS_URL", ""))
if redis_url.startswith("redis://"):
    # Two workers on one Redis would take each other's tasks: each gets a database of its own.
    number = 0 if worker == "main" else int(worker.removeprefix("gw"))
    number += int(os.environ.get("HUNCH_TEST_FIRST_REDIS", "0"))
    os.environ["REDIS_URL"] = urlsplit(redis_url)._replace(path=f"/{number}").geturl()

from tests import packages  # noqa: E402

# Other people's packages, as if they were installed: before Django looks for entry points.
packages.install_all(Path(os.environ["HUNCH_TEST_FOLDER"], "packages"))

from survey.settings import *  # noqa: E402, F403
from survey.settings import DATABASES  # noqa: E402

if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    # A test database need not survive a power cut, and a file is shared with processes that a test starts.
    options = DATABASES["default"]["OPTIONS"]
    options["init_command"] = options["init_command"].replace("synchronous=FULL", "synchronous=OFF")
    options["init_command"] += "PRAGMA temp_store=MEMORY; PRAGMA cache_size=-32000;"
else:
    DATABASES["default"]["CONN_MAX_AGE"] = 0  # an idle connection would hold the test database at its end

HUNCH_LIVE_SECONDS = 0  # Each look makes the picture again: tests change rows between two looks.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
