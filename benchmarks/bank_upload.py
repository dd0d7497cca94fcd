"""What does a bank of 100,000 questions cost that somebody uploads in the admin?

    python benchmarks/bank_upload.py [--questions 100000] [--database sqlite:///PATH]

A CSV file just below the largest that is taken is sent, looked at and stored through the pages, in this process.
Printed are the seconds of each of the three requests, and the largest memory of the process before and after. Without
--database it is a new SQLite file.
"""

import argparse
import csv
import io
import json
import os
import random
import re
import resource
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORDS = 9  # of a question, so that 100,000 stay below the largest file


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=100_000)
    parser.add_argument("--database", help="such as sqlite:///PATH")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hunch-upload-") as folder:
        return measure(options.questions, options.database or f"sqlite:///{folder}/upload.sqlite3", folder)


def file_of(questions: int) -> bytes:
    """A table of different questions in 50 tasks. One in a hundred is nearly the same as another."""
    chance = random.Random(1)
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(3, 11))) for _one in range(20_000)]
    text = io.StringIO()
    rows = csv.writer(text)
    rows.writerow(["id", "source", "question", "answer"])
    asked: list[str] = []
    for number in range(questions):
        if number % 100 == 99:
            asked.append(f"{chance.choice(asked)} now")
        else:
            asked.append(" ".join(chance.choices(words, k=WORDS)))
        rows.writerow([f"q{number}", f"task {number % 50}", f"Which is {asked[-1]}?", chance.choice(words)])
    return text.getvalue().encode()


def peak() -> float:
    """MiB that this process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(questions: int, url: str, folder: str) -> int:
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "survey.settings",
        "HUNCH_VAR": folder,
        "DATABASE_URL": url,
        "HUNCH_LOG_LEVEL": "ERROR",
    }
    sys.path.insert(0, str(ROOT))
    import django

    django.setup()
    from django.contrib.auth.models import User
    from django.core.files.uploadedfile import SimpleUploadedFile
    from django.core.management import call_command
    from django.db import connection
    from django.test import Client
    from django.test.utils import setup_test_environment

    call_command("migrate", verbosity=0, interactive=False)
    setup_test_environment()
    client = Client()
    client.force_login(User.objects.create_superuser("bench"))
    content = file_of(questions)
    report: dict[str, object] = {"questions": questions, "MB": round(len(content) / 1e6, 1)}
    report["database"] = connection.vendor
    client.get("/admin/survey/bank/add/")
    report["MiB before"] = round(peak())

    def timed(name: str, address: str, form: dict[str, object]) -> object:
        begun, processor = time.perf_counter(), time.process_time()
        response = client.post(address, form) if form else client.get(address)
        seconds = [round(time.perf_counter() - begun, 1), round(time.process_time() - processor, 1)]
        report[name] = {"seconds": seconds[0], "of a processor": seconds[1], "MiB at most": round(peak())}
        print(f"{name}: {report[name]}", flush=True)
        return response

    sent = timed("send", "/admin/survey/bank/add/", {"file": SimpleUploadedFile("large.csv", content)})
    address = sent["Location"]  # type: ignore[index]
    page = timed("look", address, {}).content.decode()  # type: ignore[attr-defined]
    fields = dict(re.findall(r'<input type="(?:text|hidden)" name="(\w+)" value="([^"]*)"', page))
    fields |= {f"column_{name}": name for name in ("id", "source", "question", "answer")}
    stored = timed("store", address, {**fields, "encoding": "utf_8", "delimiter": ",", "store": "1"})
    if stored.status_code != 302:  # type: ignore[attr-defined]
        raise RuntimeError("the bank was not stored")
    print(json.dumps(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
