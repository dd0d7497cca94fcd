"""What to look at first, as a picture: an adaptive design shows more of what a study looks for, and the weighted figure
stays where it is."""

from collections.abc import Iterator

from survey.contracts.reports import Picture
from survey.figures import Figure
from survey.figures.charts import Axis, ForestChart, ForestRow
from survey.figures.words import is_share

from .study_estimates import StudyEstimates
from .study_figures import StudyFigure

SERIES = ("weighted: of all candidates", "plain: of the answers as they were drawn")


def picture(report: StudyEstimates) -> Picture | None:
    """The first figure, weighted and plain, by stage and together; None where no stage has one."""
    if not report.figures or report.figures[0].combined is None:
        return None
    figure = report.figures[0]
    rows = [*_stage_rows(report, figure)]
    together = Figure.of(figure.combined, figure.unit)
    naive = Figure.of(figure.naive, figure.unit)
    rows.append(ForestRow("All stages together", [together, naive], together.in_words()))
    title = f"{figure.title[:1].upper()}{figure.title[1:]}, with 95 % intervals"
    share = is_share(figure.unit)
    chart = ForestChart(
        title=title,
        x=Axis(figure.unit if not share else "share", share=share),
        rows=rows,
        series=SERIES,
    )
    described = "; ".join(f"{row.name}: weighted {row.figures[0].in_words()}, plain {row.figures[1]}" for row in rows)
    return Picture.of("headline", title, f"{described}.", chart)


def _stage_rows(report: StudyEstimates, figure: StudyFigure) -> Iterator[ForestRow]:
    for stage in figure.stages:
        part = next((part for part in report.parts if (part.stage, part.role) == (stage.stage, stage.role)), None)
        if stage.role != "sampled" or stage.estimate is None or part is None:
            continue
        answers = sum(line.answered for line in part.strata)
        total = sum(line.mean * line.answered for line in part.strata if line.mean is not None)
        plain = Figure(total / answers if answers else None, unit=figure.unit)
        weighted = Figure.of(stage.estimate, figure.unit)
        yield ForestRow(f"Stage {stage.stage}, {part.design.replace('_', ' ')}", [weighted, plain], weighted.in_words())
