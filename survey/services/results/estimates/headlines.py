"""The main figures in words, each with its unit, its interval and what the plain figure would say."""

from collections.abc import Iterator, Sequence

from survey.contracts.measures import Measure
from survey.figures import Figure
from survey.figures.words import in_unit, is_share

from .study_figures import StudyFigure

HEADLINES = 3  # sentences


def sentences(figures: Sequence[StudyFigure], measures: Sequence[Measure]) -> tuple[str, ...]:
    """Of figures with their measures, by place: those that have a sentence, or the first ones where none has."""
    pairs = list(zip(figures, measures, strict=True))
    chosen = [pair for pair in pairs if pair[1].sentence] or pairs
    return tuple(_sentences(chosen[:HEADLINES]))


def _sentences(chosen: Sequence[tuple[StudyFigure, Measure]]) -> Iterator[str]:
    for figure, measure in chosen:
        if figure.combined is None:
            continue
        weighted = Figure.of(figure.combined, figure.unit)
        template = measure.sentence or f"“{figure.title}” is {{}}"
        said = template.replace("{}", str(Figure(weighted.value, unit=figure.unit)), 1)
        if weighted.interval and weighted.has_width:
            low, high = (in_unit(end, figure.unit).removesuffix(" %") for end in weighted.interval)
            said += f" ({low} to {high})"
        if figure.naive is not None:
            plain = Figure(figure.naive.value, unit=figure.unit)
            said += f"; the plain {'share' if is_share(figure.unit) else 'mean'} would say {plain}"
        yield f"{said[:1].upper()}{said[1:]}."
