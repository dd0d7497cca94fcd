"""`manage.py jobs`: list jobs, ask for one, cancel one, or fetch its files."""

import shutil
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from survey.console.command import HunchCommand, by_argument
from survey.exceptions import HunchError
from survey.models import Job
from survey.services.base import job_kinds, jobs
from survey.services.base.writing import replace_file
from survey.services.studies import lookup

NEWEST = 20


class Command(HunchCommand):
    help = (
        "List the newest jobs. `jobs ask KIND SLUG` asks for one, which a worker does; `jobs cancel NUMBER` ends one; "
        "`jobs fetch NUMBER --out DIR` writes its files; `jobs kinds` says what can be asked for."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        does = parser.add_subparsers(dest="what", metavar="WHAT")
        does.add_parser("list", help=f"the {NEWEST} newest; so does no word at all")
        does.add_parser("kinds", help="what can be asked for, with its arguments")
        ask = does.add_parser("ask", help="ask for one")
        ask.add_argument("kind", metavar="KIND")
        ask.add_argument("slug", metavar="SLUG")
        ask.add_argument("given", metavar="ARGUMENT=VALUE", nargs="*")
        ask.add_argument("--now", action="store_true", help="do it in this process, without a worker")
        cancel = does.add_parser("cancel", help="end one that is not over")
        cancel.add_argument("number", metavar="NUMBER", type=int)
        fetch = does.add_parser("fetch", help="write the files of one that is done")
        fetch.add_argument("number", metavar="NUMBER", type=int)
        fetch.add_argument("--out", metavar="DIR", type=Path, required=True, help="the folder to write to")

    def handle(self, *args: Any, what: str | None, **options: Any) -> None:
        if what == "kinds":
            self._kinds()
        elif what == "ask":
            self._ask(options["kind"], options["slug"], options["given"], now=options["now"])
        elif what == "cancel":
            job = jobs.find_job(options["number"])
            if not jobs.cancel(job):
                raise HunchError(f"job {job.pk} is over: {job.get_state_display()}")
            self.stdout.write(f"job {job.pk} is cancelled")
        elif what == "fetch":
            self._fetch(jobs.find_job(options["number"]), options["out"])
        else:
            for job in Job.objects.select_related("study", "asked_by").order_by("-pk")[:NEWEST]:
                self.stdout.write(_line(job))

    def _kinds(self) -> None:
        for kind in job_kinds.all_kinds():
            self.stdout.write(f"{kind.name}: {kind.summary}")
            for argument in kind.arguments:
                marks = [word for word, holds in (("required", argument.required), ("several", argument.many)) if holds]
                marks += [f"default {argument.default}"] if argument.default else []
                further = f" ({', '.join(marks)})" if marks else ""
                self.stdout.write(f"  {argument.name}=...  {argument.help}{further}")

    def _ask(self, kind: str, slug: str, arguments: list[str], *, now: bool) -> None:
        job, is_new = jobs.ask(lookup.find_study(slug), kind, by_argument(arguments))
        if now:
            jobs.run(job.pk)
            job.refresh_from_db()
            if job.state == Job.State.FAILED:
                raise HunchError(f"job {job.pk}: {job.error}")
        self.stdout.write(_line(job) if is_new else f"asked for before: {_line(job)}")

    def _fetch(self, job: Job, out: Path) -> None:
        for name in [file["name"] for file in job.files] or [""]:
            jobs.file_of(job, name)
            try:
                out.mkdir(parents=True, exist_ok=True)
                with (
                    replace_file(out / name) as temporary,
                    jobs.opened(job, name) as source,
                    temporary.open("wb") as target,
                ):
                    shutil.copyfileobj(source, target)
            except OSError as exc:
                raise HunchError(f"{out}: cannot be written: {exc.strerror}") from exc
            jobs.record_download(job, name, by=None, via="command")
            self.stdout.write(f"wrote {out / name}")


def _line(job: Job) -> str:
    further = f", {job.percent} %" if job.state == Job.State.RUNNING and job.percent is not None else ""
    error = f": {job.error}" if job.error else ""
    return f"{job.pk}  {job.kind} of {job.study.slug}  {job.get_state_display()}{further}{error}"
