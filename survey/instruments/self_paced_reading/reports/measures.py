"""Several times of the same words side by side, such as first fixation, gaze and total time of eye-tracking."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from survey.contracts.reports import Picture, ReportResult
from survey.figures import Column, FigureColumn, Table, TableView
from survey.figures.charts import Axis, ForestChart, ForestRow
from survey.instruments.self_paced_reading.analysis.figures import ReadingOfModel

from .material import ReadingMaterial
from .reading_results import LINEAR, MODELS, SHOWN, SLOPES, in_ms, make, models_of, next_to, row_of

MEASURE = Column("measure", "text", "The column of times that the row is about.")
SLOPE = next(column for column in SLOPES if isinstance(column, FigureColumn))
BY_MEASURE = (
    MEASURE,
    *MODELS,
    replace(SLOPE, description="Milliseconds per nat of surprisal, of this word and those before it together."),
)


def make_measures(
    materials: Mapping[str, ReadingMaterial], *, title: str, lines: Sequence[str], fit: str = LINEAR
) -> ReportResult:
    """One table and one picture of all measures, then what `make` says of each. materials: by the measure's name."""
    models = {measure: models_of(material) for measure, material in materials.items()}
    reports = {
        measure: make(material, fit=fit, title="", lines=(), notes=(), models=models[measure])
        for measure, material in materials.items()
    }
    rows = [[measure, *row_of(model), model.total] for measure, of_measure in models.items() for model in of_measure]
    note = f"{next_to(next(iter(materials.values())))} Intervals are by person and passage."
    tables = [report.tables for report in reports.values()]
    return ReportResult(
        title=title,
        lines=[*lines, *(f"{measure}: {line}" for measure, report in reports.items() for line in _said(report))],
        tables=[
            Table("reading_measures", "What surprisal adds, by measure", BY_MEASURE, rows, note=note),
            *_with_measures(tables, list(materials)),
        ],
        pictures=[
            *_slopes(materials, {(measure, model.name): model for measure in models for model in models[measure]}),
            *(
                replace(picture, name=f"{picture.name}_{place}", title=f"{picture.title}: {measure}")
                for place, (measure, report) in enumerate(reports.items(), 1)
                for picture in report.pictures
                if picture.name != "slopes"
            ),
        ],
        notes=list(dict.fromkeys(note for report in reports.values() for note in report.notes)),
        data={"measures": {measure: report.data for measure, report in reports.items()}},
    )


def _said(report: ReportResult) -> Iterator[str]:
    if report.headline:
        yield report.headline.removesuffix(".")
    yield from report.lines


def _slopes(
    materials: Mapping[str, ReadingMaterial], models: Mapping[tuple[str, str], ReadingOfModel]
) -> Iterator[Picture]:
    if not any(model.total.is_defined for model in models.values()):
        return
    names = list(dict.fromkeys(name for _measure, name in models))
    chart = ForestChart(
        title="Milliseconds per nat of surprisal, by measure",
        x=Axis("ms per nat of this word and those before it, with 95 % intervals"),
        series=list(materials),
        rows=[ForestRow(name, [models[measure, name].total for measure in materials]) for name in names],
        mark_at=0.0,
    )
    text = "; ".join(f"{name}, {measure}: {in_ms(model.total)}" for (measure, name), model in models.items())
    yield Picture.of("slopes_by_measure", "Milliseconds per nat of surprisal, by measure", text, chart)


def _with_measures(tables: Sequence[Sequence[Table]], measures: Sequence[str]) -> Iterator[Table]:
    """The tables of one name as one, with the measure before each row."""
    for of_name in zip(*tables, strict=True):
        first = of_name[0]
        if first.name == "reading_models":  # Its rows stand in the table by measure.
            continue
        rows = [[measure, *row] for measure, table in zip(measures, of_name, strict=True) for row in table.rows]
        views = [TableView(most=SHOWN)] if first.views else []
        yield Table(first.name, first.title, (MEASURE, *first.columns), rows, note=first.note, views=views)
