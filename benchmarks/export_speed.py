"""How long does the export of a large study take, and how much memory?

    python benchmarks/export_speed.py [--answers 100000] [--formats csv,jsonl,parquet] [--kept FOLDER]

A study with so many answers lies in a fresh PostgreSQL on this machine. A process of its own makes the export as a
worker does, all files in one ZIP, and nothing else. Printed are its seconds by the clock and of the processor (its own
and PostgreSQL's), and the most memory that it held (VmHWM). The goal for 100,000 answers is 10 s and 200 MiB above what
the process holds when it has loaded Hunch.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from _servers import ROOT, postgresql, processor_seconds

SLUG = "large"
CLIENT = {
    "shown_ms": 181,
    "first_touch_ms": 4120,
    "submitted_ms": 9876,
    "hidden_ms": 0,
    "focus_losses": 0,
    "copies": 0,
    "pastes": 0,
    "changes": 3,
    "first_value": 50,
}
VARIANT = "answerer=model; models=unsaid; evidence=hypothetical; language=en; edition=1"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=int, default=100_000)
    parser.add_argument("--formats", default="csv")
    parser.add_argument("--tables", default="answers", help="with commas; empty: all of them")
    parser.add_argument("--profile", action="store_true", help="print where the time goes")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        return inside(options)
    with tempfile.TemporaryDirectory(prefix="hunch-export-") as folder, postgresql() as (url, server):
        os.environ |= {
            "DJANGO_SETTINGS_MODULE": "survey.settings",
            "HUNCH_VAR": folder,
            "DATABASE_URL": url,
            "HUNCH_LOG_LEVEL": "ERROR",
        }
        fill(options.answers)
        before = processor_seconds(server)
        asked = ["--formats", options.formats, "--tables", options.tables, *(["--profile"] if options.profile else [])]
        subprocess.run([sys.executable, __file__, "--inside", *asked], check=True)
        print(f"PostgreSQL: {processor_seconds(server) - before:.1f} s of processor time")
    return 0


def fill(answers: int) -> None:
    sys.path.insert(0, str(ROOT))
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0, interactive=False)
    import flatness

    from survey.instruments.belief_update.models import Belief
    from survey.models import Response, Slot

    flatness.make_bank()
    flatness.make_study(SLUG, 2 * answers)
    Slot.objects.filter(assignments__isnull=True).delete()  # Every slot has its answer.
    # What browsers measure and how numbers are entered, as in a real study.
    Response.objects.update(client=CLIENT)
    Belief.objects.update(entered_by="track", first_value=50, value_changes=3, variant=VARIANT)
    flatness.tidy()


def inside(options: argparse.Namespace) -> int:
    sys.path.insert(0, str(ROOT))
    import django

    django.setup()
    from survey.models import Job
    from survey.services.base import jobs
    from survey.services.studies.lookup import find_study

    query = {"format": options.formats.split(",")}
    if options.tables:
        query["table"] = options.tables.split(",")
    job, _is_new = jobs.ask(find_study(SLUG), "export", query)
    loaded = most_memory()
    begun, processor = time.perf_counter(), time.process_time()
    if options.profile:
        import cProfile
        import pstats

        profile = cProfile.Profile()
        profile.runcall(jobs.run, job.pk)
        pstats.Stats(profile).sort_stats("cumulative").print_stats(45)
    else:
        jobs.run(job.pk)
    job = Job.objects.get(pk=job.pk)
    report = {
        "seconds": round(time.perf_counter() - begun, 1),
        "processor_seconds": round(time.process_time() - processor, 1),
        "mib_above_start": round((most_memory() - loaded) / 1024),
        "mib_in_all": round(most_memory() / 1024),
        "state": job.state,
        "error": job.error,
        "files": job.files,
        "result": job.result,
    }
    print(json.dumps(report, indent=1))
    return 0 if job.state == "done" else 1


def most_memory() -> int:
    """The most memory that this process has held, in KiB. `ru_maxrss` would begin with what the parent held."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1])
    raise RuntimeError("/proc/self/status has no VmHWM")


if __name__ == "__main__":
    raise SystemExit(main())
