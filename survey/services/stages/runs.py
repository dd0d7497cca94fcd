"""Which trainings of predictors a stage has, and which ones its answers judge."""

from survey.contracts import instruments
from survey.models import PredictorRun, Stage, Study


def last_planned(study: Study) -> int:
    """The number of the last stage that has a plan; 0 if none has."""
    planned = study.stages.exclude(state=Stage.State.DRAFT).order_by("index").last()
    return planned.index if planned else 0


def main_run(stage: Stage) -> PredictorRun | None:
    """The training of the study's predictor on the answers up to and with this stage."""
    return stage.predictor_runs.filter(role=PredictorRun.Role.MAIN).order_by("created_at").last()


def ready_run(stage: Stage) -> PredictorRun | None:
    """The same training if it succeeded."""
    run = main_run(stage)
    return run if run is not None and run.is_ready else None


def needs_predictor(stage: Stage) -> bool:
    """Whether a stage can only be drawn with a predictor: it is not uniform, and its scores need a predictor."""
    if stage.config.design.kind == "uniform":
        return False
    priority = instruments.of_study(stage.study).priority
    return priority is None or priority.needs_predictor


def runs_in_force(stage: Stage) -> list[PredictorRun]:
    """The predictors that this stage's answers judge: the newest ones trained before it, the main one first."""
    ready = PredictorRun.objects.filter(stage__study=stage.study_id, stage__index__lt=stage.index).exclude(
        ready_at=None
    )
    newest = ready.order_by("-stage__index").values_list("stage__index", flat=True).first()
    runs = list(ready.filter(stage__index=newest).select_related("stage__study").order_by("pk")) if newest else []
    return sorted(runs, key=lambda run: run.role != PredictorRun.Role.MAIN)
