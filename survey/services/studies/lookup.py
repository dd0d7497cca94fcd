"""Studies and stages by name and number."""

from survey.exceptions import NotFound, StateRefused
from survey.models import Stage, Study


def find_study(slug: str) -> Study:
    """
    Raises:
        NotFound: there is none; lists the studies that exist.
    """
    study = Study.objects.select_related("bank").filter(slug=slug).first()
    if study is None:
        slugs = list(Study.objects.real().values_list("slug", flat=True)[:10])
        raise NotFound(f"no study is called {slug!r}; there are: {', '.join(slugs) or 'none yet'}")
    return study


def find_stage(study: Study, index: int | None = None) -> Stage:
    """The stage with that number, or the next one: the first that is not frozen.

    Raises:
        NotFound: the study has no such stage.
        StateRefused: every stage is frozen.
    """
    stages = study.stages.select_related("study__bank").order_by("index")
    if index is None:
        stage = stages.exclude(state=Stage.State.FROZEN).first()
        if stage is None:
            raise StateRefused(f"every stage of {study.slug} is frozen: the study is over")
        return stage
    stage = stages.filter(index=index).first()
    if stage is None:
        raise NotFound(f"{study.slug} has no stage {index}; it has stages 1 to {stages.count()}")
    return stage
