"""`manage.py close_stage SLUG`: end a stage; the workers freeze, train, evaluate, score and plan."""

from argparse import ArgumentParser
from typing import Any

from survey.console.command import HunchCommand
from survey.console.progress_bars import wait_for_pipeline
from survey.models import Stage, Study
from survey.services.stages import lifecycle
from survey.services.stages.progress import stage_progress
from survey.services.studies import lookup


class Command(HunchCommand):
    help = "Close a stage. Freezing, training, evaluating, scoring and planning the next stage follow by themselves."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", metavar="SLUG")
        parser.add_argument("--stage", type=int, metavar="N", help="default: the one that is open, paused or closing")
        parser.add_argument("--now", action="store_true", help="do not wait for people who are still inside")
        parser.add_argument("--wait", action="store_true", help="show progress until the next stage is planned")

    def handle(self, *args: Any, slug: str, stage: int | None, now: bool, wait: bool, **options: Any) -> None:
        closing = lifecycle.close_stage(stage_to_close(lookup.find_study(slug), stage), now=now)
        live = stage_progress(closing).live
        self.stdout.write(f"{closing} is {closing.state}" + (f"; {live} people are still inside" if live else ""))
        if not wait:
            self.stdout.write("the workers do the rest; study_status shows how far they are")
            return
        try:
            wait_for_pipeline(closing, say=self.stderr.write)
        except KeyboardInterrupt:
            self.stderr.write(f"The work goes on without this command; `study_status {slug}` shows how far it is.")
            raise SystemExit(130) from None
        following = closing.following()
        planned = f"; {following} is {following.state}" if following else "; it was the last one"
        self.stdout.write(f"{closing} is {closing.state}{planned}")


def stage_to_close(study: Study, index: int | None) -> Stage:
    """The stage with that number, or else the last that was opened. So one can call the command again to wait on."""
    if index is None:
        opened = study.stages.exclude(state__in=[Stage.State.DRAFT, Stage.State.PLANNED]).order_by("-index").first()
        index = opened.index if opened else 1
    return lookup.find_stage(study, index)
