"""`manage.py study_status SLUG`: stages, answers and the work steps between stages."""

from argparse import ArgumentParser
from typing import Any

from survey.console.command import HunchCommand
from survey.figures.rendering import aligned
from survey.figures.words import number, percent
from survey.live.people import QuotaLine, quota_lines
from survey.models import JobStep
from survey.services.results.estimates.outcome_table import StageTable, outcome_table
from survey.services.sittings.capacity import free_capacity
from survey.services.stages import lifecycle
from survey.services.stages.progress import stages_progress
from survey.services.studies import lookup


class Command(HunchCommand):
    help = "Show the progress of a study."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", metavar="SLUG")

    def handle(self, *args: Any, slug: str, **options: Any) -> None:
        study = lookup.find_study(slug)
        rows: list[list[str]] = []
        steps: list[JobStep] = []
        waiting: list[int] = []
        stages = list(study.stages.select_related("study__bank").order_by("index"))
        counts = stages_progress(stages)
        for stage in stages:
            progress = counts[stage.pk]
            stage_table = outcome_table(stage)
            rows.append(
                [
                    f"{stage.index} (pilot)" if stage.is_pilot else str(stage.index),
                    stage.state,
                    str(sum(progress.sittings.values())),
                    str(progress.live),
                    str(max(0, free_capacity(stage))),
                    f"{progress.in_time} of {progress.slots}",
                    str(progress.counted),
                    _mean(stage_table),
                ]
            )
            steps += lifecycle.pipeline_status(stage)
            if lifecycle.waits_for_a_choice(stage):
                waiting.append(stage.index)
        self.stdout.write(f"{study.slug}: {study.title} ({study.bank})")
        header = ["stage", "state", "sittings", "live", "free places", "in time", "counted", "share"]
        self.stdout.write(aligned(header, rows))
        if quotas := quota_lines(study, stages):
            self.stdout.write("")
            header = ["quota: cell", "stage", "places", "inside", "done", "found it full"]
            self.stdout.write(aligned(header, [_quota_row(line) for line in quotas]))
        if steps:
            self.stdout.write("")
            self.stdout.write(
                aligned(["stage", "step", "state", "progress", "seconds", "error"], [_row(s) for s in steps])
            )
        for index in waiting:
            self.stdout.write("")
            self.stdout.write(lifecycle.choice_to_make(study.slug, index))


def _mean(stage_table: StageTable | None) -> str:
    if stage_table is None or stage_table.is_share:
        return percent(stage_table.share if stage_table else None)
    return number(stage_table.share)


def _quota_row(line: QuotaLine) -> list[str]:
    places = "-" if line.places is None else str(line.places)
    who = [str(number) for number in (line.inside, line.complete, line.found_full)]
    return [f"{line.quota}: {line.cell or 'in none'}", str(line.stage), places, *who]


def _row(step: JobStep) -> list[str]:
    progress = f"{step.progress_done} of {step.progress_total}" if step.progress_total else ""
    seconds = "" if step.seconds is None else number(step.seconds, 1)
    return [str(step.stage.index), step.title, step.state, progress, seconds, " ".join(step.error.split())[:80]]
