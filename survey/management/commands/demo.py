"""`manage.py demo`: a whole study with simulated respondents and real parts, then a site to look at."""

import json
import time
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management import BaseCommand, CommandError, call_command
from django.db import connection

from survey.console.progress_bars import bar, wait_for_pipeline
from survey.contracts.instruments import DemonstrationVerdict
from survey.exceptions import HunchError
from survey.figures.words import number
from survey.models import ApiToken, JobStep, Stage
from survey.processes.process_manager import ServicesError, run_services
from survey.services.base import first_account
from survey.services.stages import lifecycle
from survey.simulator import Crowd
from survey.simulator.demonstration import (
    INSTRUMENT,
    DemoVerdict,
    create_demo_study,
    demonstration_of,
    load_bank,
    make_researcher,
    stage_lines,
    stage_table,
    summary,
    verdict_on,
)

READY_WITHIN = 180.0  # seconds; a first start reads a lot from a cold disk


class Command(BaseCommand):
    help = "Run the demo study from end to end with simulated respondents, then serve it until Ctrl-C."
    requires_system_checks: Any = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--instrument", default=INSTRUMENT, metavar="NAME", help=f"whose demonstration; default: {INSTRUMENT}"
        )
        parser.add_argument("--exit", action="store_true", help="end after the table; the last line is one JSON object")
        parser.add_argument(
            "--null", action="store_true", help="simulated changes do not depend on the pair, so no lift should appear"
        )
        parser.add_argument(
            "--reversal",
            action="store_true",
            help="two made-up language models, one right wherever the other is, and worse where people use it",
        )
        parser.add_argument(
            "--respondents", type=int, metavar="N", help="people in each stage; default: the study file's"
        )
        parser.add_argument(
            "--seed", type=int, metavar="S", help="for the study and its people; default: the study file's"
        )
        parser.add_argument("--port", type=int, default=settings.HUNCH_PORT)

    def handle(
        self,
        *args: Any,
        instrument: str,
        exit: bool,
        null: bool,
        reversal: bool,
        respondents: int | None,
        seed: int | None,
        port: int,
        **options: Any,
    ) -> None:
        if settings.IN_PRODUCTION:
            raise CommandError("the demo makes up respondents and is for one machine; unset HUNCH_ENV to run it")
        if respondents is not None and respondents < 2:
            raise CommandError("--respondents: at least 2 are needed to compare stages")
        started = time.monotonic()
        try:
            demonstration_of(instrument, reversal=reversal)
            self._prepare(instrument=instrument, seed=seed, respondents=respondents, reversal=reversal)
            with run_services(port=port, say=self.stderr.write) as self.services:
                self.stdout.write("Starting web, workers and beat ...")
                self.services.wait_healthy(READY_WITHIN)
                self._run_study(null=null)
                lines = stage_lines(self.study)
                verdict = verdict_on(self.study, null=null, reversal=reversal)
                seconds = time.monotonic() - started
                self.stdout.write("")
                self.stdout.write(stage_table(lines))
                self.stdout.write("")
                self.stdout.write(verdict.sentence)
                self.stdout.write(f"It took {number(seconds, 0)} seconds.")
                if not exit:
                    self._serve()
        except KeyboardInterrupt:
            self.stdout.write("Stopped.")
            raise SystemExit(130) from None
        except HunchError as exc:
            raise CommandError(exc.message) from exc
        except ServicesError as exc:
            raise CommandError(str(exc)) from exc
        if exit:
            self.stdout.write(json.dumps(summary(seconds=seconds, lines=lines, verdict=verdict)))
        self._leave(verdict)

    def _leave(self, verdict: DemoVerdict | DemonstrationVerdict) -> None:
        if not verdict.passed:
            self.stderr.write(verdict.sentence)
            raise SystemExit(1)

    def _prepare(self, *, instrument: str, seed: int | None, respondents: int | None, reversal: bool) -> None:
        call_command("migrate", verbosity=0, interactive=False, skip_checks=False)
        self.stdout.write(f"Database   {connection.settings_dict['NAME']}")
        bank = load_bank(instrument, reversal=reversal)
        self.stdout.write(f"Questions  {bank.question_count} in {bank.tasks.count()} tasks ({bank})")
        self.researcher, password = make_researcher()
        self.study = create_demo_study(
            instrument=instrument, seed=seed, respondents=respondents, owner=self.researcher, reversal=reversal
        )
        stages = self.study.config.stages
        self.stdout.write(f"Study      {self.study.slug}: {len(stages)} stages of {stages[0].sittings} people")
        if waiting := JobStep.objects.filter(state__in=[JobStep.State.QUEUED, JobStep.State.RUNNING]).count():
            self.stdout.write(f"Note       {waiting} unfinished steps of earlier studies are worked off first")
        self.stdout.write(f"Login      {self.researcher.username}, password {password} (shown only now)")

    def _run_study(self, *, null: bool) -> None:
        for stage in self.study.stages.select_related("study__bank").order_by("index"):
            self._run_stage(stage, null=null)

    def _run_stage(self, stage: Stage, *, null: bool) -> None:
        respondents = stage.config.sittings
        lifecycle.open_stage(stage)
        crowd = Crowd(
            study=self.study,
            respondents=respondents,
            base_url=self.services.base_url,
            null=null,
            # Every stage gets the same simulated people, so that a lift cannot come from people who change more easily.
            # The test treats the stages as independent, which is on the safe side: without any effect it rejects in
            # 1 run of 100.
            same_in_every_stage=True,
        )
        with bar(total=respondents, name=f"stage {stage.index}: respondents", unit=" people") as progress_bar:
            outcomes = crowd.run(lambda visit: progress_bar.update())
        if outcomes["completed"] < respondents:
            raise HunchError(f"{stage}: not everybody could finish: {dict(outcomes)}")
        closing = lifecycle.close_stage(stage)
        wait_for_pipeline(closing, say=self.stderr.write, check=self.services.check, own_workers=True)

    def _serve(self) -> None:
        """Print the addresses. The study is over, so a second one stays open for people who want to try it."""
        visit = create_demo_study(
            instrument=self.study.instrument, name=f"{self.study.slug}-open", owner=self.researcher
        )
        lifecycle.open_stage(visit.stages.get(index=1))
        _token, secret = ApiToken.issue(user=self.researcher, name="demo")
        url = self.services.base_url
        answers = f"{url}/api/v1/studies/{self.study.slug}/answers/"
        self.stdout.write("")
        self.stdout.write(f"Take the survey   {url}{visit.get_absolute_url()}")
        self.stdout.write(f"Admin             {url}/admin/ (login above)")
        if first_secret := first_account.offer():
            first = first_account.path(first_secret)
            self.stdout.write(f"First account     {url}{first} (an administrator's; works once, for 24 hours)")
        self.stdout.write(f"API               {url}/api/docs/")
        self.stdout.write(f'                  curl -H "Authorization: Token {secret}" {answers}')
        self.stdout.write(f"Logs              {self.services.logs}")
        self.stdout.write("Ctrl-C ends all of it.")
        try:
            self.services.wait()
        except KeyboardInterrupt:
            self.stdout.write("Stopped.")
