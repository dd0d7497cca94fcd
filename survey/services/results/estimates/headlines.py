"""What to look at first: the first figures in words, and what the product promises as a picture: an adaptive design
shows more of what a study looks for, and the weighted figure stays where it is."""

from collections.abc import Iterator

from survey.contracts.answers import Estimates
from survey.contracts.reports import Picture
from survey.figures import Figure
from survey.figures.charts import Axis, ForestChart, ForestRow
from survey.figures.words import is_share

from .study_estimates import StudyEstimates
from .study_figures import StudyFigure

HEADLINES = 3
SERIES = ("weighted: of all candidates", "plain: of the answers as they were drawn")


def sentences(report: StudyEstimates, estimates: Estimates) -> Iterator[str]:
    """The first figures, each with what the plain figure would say. `estimates`: of the study's instrument."""
    for figure in report.figures[:HEADLINES]:
        if figure.combined is None:
            continue
        words = f"{_named(figure, estimates)}: {Figure.of(figure.combined, figure.unit).in_words()}"
        if figure.naive is not None:
            plain = Figure(figure.naive.value, unit=figure.unit).in_words()
            words += f"; the plain {'share' if is_share(figure.unit) else 'mean'} would say {plain}"
        yield f"{words}."


def picture(report: StudyEstimates, estimates: Estimates) -> Picture | None:
    """The first figure, weighted and plain, by stage and together; None where no stage has one."""
    if not report.figures or report.figures[0].combined is None:
        return None
    figure = report.figures[0]
    rows = [*_stage_rows(report, figure)]
    together = Figure.of(figure.combined, figure.unit)
    naive = Figure.of(figure.naive, figure.unit)
    rows.append(ForestRow("All stages together", [together, naive], together.in_words()))
    title = f"{_named(figure, estimates)}, with 95 % intervals"
    share = is_share(figure.unit)
    chart = ForestChart(
        title=title,
        x=Axis(figure.unit if not share else "share", share=share),
        rows=rows,
        series=SERIES,
    )
    described = "; ".join(f"{row.name}: weighted {row.figures[0].in_words()}, plain {row.figures[1]}" for row in rows)
    return Picture.of("headline", title, f"{described}.", chart)


def _named(figure: StudyFigure, estimates: Estimates) -> str:
    words = estimates.in_words(figure.name, figure.title)
    return f"{words[:1].upper()}{words[1:]}"


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
