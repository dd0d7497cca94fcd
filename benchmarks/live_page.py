"""What does the page of a running study cost with 100,000 answers, and what does it cost to make its snapshot?

    python benchmarks/live_page.py [--answers 100000] [--rounds 5] [--database sqlite:///PATH]

A study with twice as many slots is written directly, half of them answered. Then the study page, the part of it that
refreshes by itself, the lists of sittings and answers, and the table of answers are asked for, by a superuser, in this
process. Printed are the median seconds of each and its statements, and the seconds of both halves of the snapshot.
Without --database a PostgreSQL of its own is started.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import flatness
from _servers import ROOT, postgresql

SLUG = "live"
# The table of answers: as it is opened, its last page, narrowed, searched, and sorted by what is summed for each.
TABLES = (
    *("", "?page=100000", "?counts=counts&stage=1", "?counts=not", "?words=17+plus", "?person=r-a"),
    *("?sort=respondent", "?sort=-completed_at", "?sort=-seconds"),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--database", help="such as sqlite:///PATH")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hunch-live-") as folder:
        if options.database:
            return measure(options, options.database, folder)
        with postgresql() as (url, _process):
            return measure(options, url, folder)


def measure(options: argparse.Namespace, url: str, folder: str) -> int:
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
    from django.core.management import call_command
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext, setup_test_environment

    call_command("migrate", verbosity=0, interactive=False)
    setup_test_environment()
    from survey.live import snapshots
    from survey.models import Bank, LiveSnapshot, Study

    if not Bank.objects.filter(name="flat").exists():
        flatness.make_bank()
    if not Study.objects.filter(slug=SLUG).exists():
        flatness.make_study(SLUG, 2 * options.answers)
        flatness.tidy()
    study = Study.objects.get(slug=SLUG)
    client = Client()
    client.force_login(User.objects.filter(is_superuser=True).first() or User.objects.create_superuser("bench"))
    report: dict[str, object] = {"answers": options.answers, "database": connection.vendor}
    LiveSnapshot.objects.all().delete()
    if snapshots.look(study) is None:
        raise RuntimeError("the snapshot was not made")
    row = LiveSnapshot.objects.get(study=study)
    report["making"] = {"quick": round(row.quick_seconds, 2), "slow": round(row.slow_seconds, 2)}
    LiveSnapshot.objects.update(quick_seconds=1000, slow_seconds=1000)  # It is not made again while pages are asked.
    pages = {
        "study page": f"/admin/survey/study/{study.pk}/change/",
        "live part": f"/admin/survey/study/{study.pk}/live/",
        "sittings": f"/admin/survey/sitting/?study={SLUG}",
        "answers": f"/admin/survey/assignment/?study={SLUG}",
        **{f"answers as a table{query}": f"/admin/survey/study/{study.pk}/answers/{query}" for query in TABLES},
    }
    for name, address in pages.items():
        times, statements = [], 0
        for _round in range(options.rounds + 1):
            begun = time.perf_counter()
            with CaptureQueriesContext(connection) as captured:
                if client.get(address).status_code != 200:
                    raise RuntimeError(f"{address} failed")
            times.append(time.perf_counter() - begun)
            statements = len(captured)
        report[name] = {"seconds": round(statistics.median(times[1:]), 3), "statements": statements}
        print(f"{name}: {report[name]}", flush=True)
    print(json.dumps(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
