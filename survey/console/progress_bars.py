"""Progress bars on stderr. Those for the work between stages read the database only."""

import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from tqdm import tqdm

from survey.exceptions import HunchError
from survey.figures.words import integer
from survey.models import JobStep, Sitting, Stage, Study
from survey.services.stages import lifecycle

LOOK_EVERY = 0.5  # seconds
STILL_AFTER = 20.0  # seconds without any movement, after which the workers may not be running


class StepsFailed(HunchError):
    """A step failed or lacks its input, and a person must decide; the message says what to do."""

    code = "steps_failed"
    status = 500


def bar(*, total: int, name: str, unit: str = "") -> Any:
    """A bar on stderr; in a log file it writes a line now and then."""
    watched = sys.stderr.isatty()
    return tqdm(
        total=total,
        desc=f"{name:<22}",
        unit=unit,
        dynamic_ncols=True,
        mininterval=0.2 if watched else 10.0,
        bar_format=None if unit else "{l_bar}{bar}| {n_fmt}/{total_fmt} [{elapsed}]",
    )


def read_with_bar(
    read_models: Callable[..., Mapping[str, int]], study: Study, *, noun: str, say: Callable[[str], object]
) -> None:
    """Let the models of a study's file read its texts behind a bar, and say how many each has read.

    Args:
        read_models: takes `progress`, called as progress(model, done, total); returns the numbers by model.
    """
    if not study.config.models:
        raise HunchError(f"{study.slug}: names no model; add [[models]] with name and source to its file")
    with bar(total=0, name=noun) as progress_bar:

        def progress(model: str, done: int, total: int) -> None:
            progress_bar.set_description(model[:22])
            progress_bar.total = total
            progress_bar.update(done - progress_bar.n)

        counts = read_models(progress=progress)
    for model, count in counts.items():
        say(f"{model}: {integer(count)} {noun} read now")


def wait_for_pipeline(
    stage: Stage, *, say: Callable[[str], None], check: Callable[[], None] = lambda: None, own_workers: bool = False
) -> None:
    """Show the steps that follow the closing of a stage until all are done. They go on if nobody watches.

    Args:
        say: called with the likely reason when nothing moves.
        check: called now and then; raises to stop waiting (the process manager has given up).
        own_workers: the caller runs the workers, so that nobody has to start any.

    Raises:
        StepsFailed: with the error of each failed step; or the next stage waits for a person's choice.
    """
    bars: dict[int, Any] = {}
    moved_at, seen, warned = time.monotonic(), "", False
    try:
        while True:
            check()
            stage.refresh_from_db()
            done = lifecycle.pipeline_is_done(stage)
            steps = lifecycle.pipeline_status(stage)
            for step in steps:
                _show(bars, step)
            if done:
                return
            if failed := [step for step in steps if step.state == JobStep.State.FAILED]:
                raise StepsFailed(
                    "\n".join(f"{step.title} ({step.stage}): {step.error}" for step in failed)
                    + f"\nfix the cause, then run: hunch retry_steps {stage.study.slug}"
                )
            following = stage.following()
            if following is not None and lifecycle.waits_for_a_choice(following):
                raise StepsFailed(lifecycle.choice_to_make(stage.study.slug, following.index))
            now = str([(step.pk, step.state, step.attempt, step.progress_done) for step in steps])
            if now != seen:
                moved_at, seen = time.monotonic(), now
            elif time.monotonic() - moved_at > STILL_AFTER and not warned:
                say(_why_nothing_moves(stage, own_workers=own_workers))
                warned = True
            time.sleep(LOOK_EVERY)
    finally:
        for bar in bars.values():
            bar.close()


def _show(bars: dict[int, Any], step: JobStep) -> None:
    shown_bar = bars.get(step.pk)
    if shown_bar is None:
        if step.state == JobStep.State.QUEUED:
            return
        shown_bar = bars[step.pk] = bar(total=max(1, step.progress_total), name=step.title)
    if shown_bar.disable:  # Closed: the step was done when we last looked.
        return
    shown_bar.total = max(1, step.progress_total)
    done = shown_bar.total if step.state == JobStep.State.DONE else min(step.progress_done, shown_bar.total)
    if done < shown_bar.n:  # A new attempt begins at 0 again.
        shown_bar.reset(total=shown_bar.total)
    shown_bar.update(done - shown_bar.n)
    if step.state == JobStep.State.DONE:
        shown_bar.close()


def _why_nothing_moves(stage: Stage, *, own_workers: bool) -> str:
    live = stage.sittings.filter(state=Sitting.State.LIVE).count()
    if stage.state == Stage.State.CLOSING and live:
        slug = stage.study.slug
        return f"Waiting for {live} people who are still inside. To stop waiting for them: `close_stage {slug} --now`."
    if own_workers:
        return "Nothing has moved for a while; the workers are running. A busy machine takes longer: please wait."
    return "Nothing has moved for a while. Are the workers running? (`hunch up` starts them.)"
