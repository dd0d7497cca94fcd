"""Models next to each other: one table of what is known of each, what goes with what over models, means by group.

Takes a finished table that somebody has, such as a published one. A model is one observation: correlations and lines
are over models, unweighted, and their intervals are about such models.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated

import numpy as np

import bandit
from bandit.correlation import correlation_interval
from bandit.student import student_t_quantile
from predictors.cell_numbers import number_of
from survey.contracts.reports import Picture, ReportResult
from survey.exceptions import HunchError
from survey.figures import Column, Figure, FigureColumn, Table
from survey.figures.charts import Axis, PointChart, ScatterPoint
from survey.figures.words import counted, short
from survey.input_tables import cells
from survey.input_tables.problems import Problems
from survey.input_tables.rows import RowFile, TableRow, column, declared, read_rows

FEWEST = 4  # models of a correlation
GROUPS = ("corpus", "architecture")
# Known measures in words; a table may have others.
TITLES = {
    "perplexity": "perplexity",
    "normalised_perplexity": "perplexity / vocabulary",
    "pnc": "PNC",
    "training_mb": "megabytes of training text",
    "size": "size",
}
ON_A_LOG_AXIS = frozenset({"perplexity", "normalised_perplexity", "training_mb", "size"})

OVER_MODELS = (
    Column("y", "text", "The measure that is to be explained."),
    Column("x", "text", "The measure that goes with it."),
    Column("among", "text", "Which models: all, or those above a value of a measure."),
    Column("models", "number", "How many models have both.", whole=True),
    FigureColumn(
        "correlation",
        "number",
        "Pearson's correlation over models, with Fisher's interval.",
        digits=3,
        prefix="correlation_",
    ),
    Column("spearman", "number", "The correlation of their ranks.", digits=3),
    FigureColumn(
        "slope",
        "number",
        "Of the line through the models by least squares: what y changes where x is 1 more; Student's interval.",
        digits=3,
        prefix="slope_",
    ),
    Column("intercept", "number", "Of the same line: y where x is 0.", digits=3),
)


@declared
class ModelRow(TableRow):
    """A model with what is known of it. Every further column with numbers is a measure."""

    read_by = "`compare_models FILE`"
    model: Annotated[str, cells.text("name the model")] = column("The model.")
    corpus: cells.Stripped = column("What it was trained on.", "")
    architecture: cells.Stripped = column("Its kind, such as transformer.", "")


@dataclass(frozen=True)
class ComparedModel:
    """`measures`: its numbers by name; NaN where one is not known."""

    name: str
    corpus: str
    architecture: str
    measures: Mapping[str, float]


@dataclass(frozen=True)
class Threshold:
    """Models with at least `least` of a measure."""

    measure: str
    least: float

    @classmethod
    def read(cls, text: str, measures: Sequence[str]) -> "Threshold":
        """From NAME=NUMBER.

        Raises:
            HunchError: it is no measure of the table, or no number.
        """
        name, equals, number = text.partition("=")
        least = number_of(number) if equals else math.nan
        if name not in measures or least is None or not math.isfinite(least):
            raise HunchError(
                f"--above: {text!r} is no measure with a number, such as pnc=0.4; measures are {', '.join(measures)}"
            )
        return cls(name, least)

    def __str__(self) -> str:
        return f"{_title(self.measure)} of {short(self.least)} or more"


def read_models(path: Path, renamed: Mapping[str, str] | None = None) -> list[ComparedModel]:
    """The models of a table.

    Args:
        renamed: by the name of our column what the file calls it.

    Raises:
        FileErrors, HunchError: the file cannot be used; says line and column.
    """
    problems = Problems()
    file = read_rows(ModelRow, path, problems)
    known = {*ModelRow.columns(), *(renamed or {}).values()}
    texts = {
        name: dict(file.column(other)) for name, other in (renamed or {}).items() if _has(file, other, f"--{name}")
    }
    numbers = {name: dict(_numbers(file, name)) for name in file.header if name not in known}
    measures = {name: values for name, values in numbers.items() if values}
    models = []
    for row in file:
        file.once(row, "model", (row.model, texts.get("corpus", {}).get(row.line, row.corpus)), "this model stands")
        of_group = {name: texts.get(name, {}).get(row.line, getattr(row, name)) for name in GROUPS}
        models.append(
            ComparedModel(
                row.model,
                **of_group,
                measures={name: values.get(row.line, math.nan) for name, values in measures.items()},
            )
        )
    file.refuse("has no models" if not models else "")
    if len(measures) < 2:
        raise HunchError(f"{path}: has no two columns of numbers next to each other, such as perplexity and pnc")
    return models


def _has(file: "RowFile[ModelRow]", name: str, option: str) -> bool:
    if file.header and name not in file.header:
        raise HunchError(f"{option}: {file.file} has no column {name}; it has {', '.join(file.header)}")
    return name in file.header


def _numbers(file: "RowFile[ModelRow]", name: str) -> Iterator[tuple[int, float]]:
    """By line, the numbers of a column; nothing of a column of words."""
    read = [(line, cell.strip()) for line, cell in file.column(name)]
    values = [(line, number_of(cell)) for line, cell in read if cell and cell.upper() != "NA"]
    if all(value is None for _line, value in values):
        return
    for line, value in values:
        if value is None or not math.isfinite(value):
            file.wrong(line, name, "is no number, as other cells of its column are; leave out what is not known")
        else:
            yield line, value


def compare_models(models: Sequence[ComparedModel], *, above: Threshold | None = None) -> ReportResult:
    """One table of all models, what goes with what over them, means by group, and a picture of each two measures."""
    measures = [*models[0].measures] if models else []
    over = [*_over_models(models, measures, above)]
    return ReportResult(
        title="Models next to each other",
        lines=[f"{counted(len(models), 'model')}, {counted(len(measures), 'measure')}", *_sentences(over)],
        tables=[
            _models_table(models, measures),
            Table("over_models", "What goes with what over models", OVER_MODELS, over),
            *(_means_table(models, measures, group) for group in GROUPS if _varies(models, group)),
        ],
        pictures=[*_pictures(models, measures)],
        notes=[
            "A model is one observation here. Models of one family are alike, so that intervals, which take them as "
            "drawn by themselves, are too narrow; whatever else differs between models goes with what is compared."
        ],
    )


def _title(measure: str) -> str:
    return TITLES.get(measure, measure.replace("_", " "))


def _varies(models: Sequence[ComparedModel], group: str) -> bool:
    return len({getattr(model, group) for model in models}) > 1


def _models_table(models: Sequence[ComparedModel], measures: Sequence[str]) -> Table:
    """Grouped: corpora in the order of the table, inside them architectures."""
    orders = [list(dict.fromkeys(getattr(model, group) for model in models)) for group in GROUPS]
    ordered = sorted(models, key=lambda model: (orders[0].index(model.corpus), orders[1].index(model.architecture)))
    columns = (
        Column("corpus", "text", "What it was trained on."),
        Column("architecture", "text", "Its kind."),
        Column("model", "text", "The model."),
        *(Column(name, "number", "The measure.", heading=_title(name), digits=3) for name in measures),
    )
    rows = [[model.corpus, model.architecture, model.name, *_cells(model.measures.values())] for model in ordered]
    return Table("models_compared", "All models", columns, rows)


def _cells(values: Iterable[float]) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in values]


def _over_models(
    models: Sequence[ComparedModel], measures: Sequence[str], above: Threshold | None
) -> Iterator[list[object]]:
    sets = [("all", list(models))]
    if above is not None:
        sets.append((str(above), [model for model in models if model.measures[above.measure] >= above.least]))
    for (x, y), (among, some) in product(_pairs(measures), sets):
        both = [(model.measures[x], model.measures[y]) for model in some]
        values = np.array([pair for pair in both if np.isfinite(pair).all()]).reshape(-1, 2)
        n = len(values)
        if n < FEWEST:
            yield [y, x, among, n, Figure(withheld=f"fewer than {FEWEST} models"), None, Figure(), None]
            continue
        coefficient = bandit.weighted_correlation(values[:, 0], values[:, 1])
        ranks = bandit.weighted_correlation(bandit.ranks(values[:, 0]), bandit.ranks(values[:, 1]))
        slope, intercept = _line(values)
        correlation = Figure.between(coefficient, correlation_interval(coefficient, n))
        yield [y, x, among, n, correlation, ranks, slope, intercept]


def _pairs(measures: Sequence[str]) -> list[tuple[str, str]]:
    """Each two measures, the one that stands first in the table as x."""
    return [(x, y) for place, x in enumerate(measures) for y in measures[place + 1 :]]


def _line(values: np.ndarray) -> tuple[Figure, float | None]:
    """The slope by least squares with Student's interval, and the intercept."""
    x, y = values.T
    spread = float(((x - x.mean()) ** 2).sum())
    if not spread > 0:
        return Figure(), None
    slope = float(((x - x.mean()) * (y - y.mean())).sum()) / spread
    intercept = float(y.mean() - slope * x.mean())
    freedom = len(x) - 2
    error = math.sqrt(float(((y - intercept - slope * x) ** 2).sum()) / freedom / spread)
    half = student_t_quantile(0.975, freedom) * error
    return Figure.between(slope, (slope - half, slope + half)), intercept


def _means_table(models: Sequence[ComparedModel], measures: Sequence[str], group: str) -> Table:
    rows: list[list[object]] = []
    for label in dict.fromkeys(getattr(model, group) for model in models):
        own = [model for model in models if getattr(model, group) == label]
        means = []
        for name in measures:
            values = [model.measures[name] for model in own if math.isfinite(model.measures[name])]
            means.append(sum(values) / len(values) if values else None)
        rows.append([label, len(own), *means])
    columns = (
        Column(group, "text", "The group."),
        Column("models", "number", "How many models it has.", whole=True),
        *(Column(name, "number", "Mean over its models.", heading=_title(name), digits=3) for name in measures),
    )
    return Table(f"by_{group}", f"Means by {group}", columns, rows)


def _sentences(over: Sequence[Sequence[object]]) -> Iterator[str]:
    """Each correlation: of all models, and of those above the threshold."""
    for y, x, among, n, correlation, *_rest in over:
        if isinstance(correlation, Figure) and correlation.is_defined:
            which = f"all {n} models" if among == "all" else f"{n} models with {among}"
            yield f"{_title(str(x))} and {_title(str(y))}, {which}: r = {correlation.in_words(3)}"


def _pictures(models: Sequence[ComparedModel], measures: Sequence[str]) -> Iterator[Picture]:
    """A picture of each pair. Those with the same y have the same axis, so that they can be compared side by side."""
    group = next((name for name in GROUPS if _varies(models, name)), "corpus")
    for x, y in _pairs(measures):
        points = [
            ScatterPoint(model.measures[x], model.measures[y], model.name, getattr(model, group))
            for model in models
            if math.isfinite(model.measures[x]) and math.isfinite(model.measures[y])
        ]
        if not points:
            continue
        values = [model.measures[y] for model in models if math.isfinite(model.measures[y])]
        title = f"{_title(y)} against {_title(x)}"
        log = x in ON_A_LOG_AXIS and min(point.x for point in points) > 0
        yield Picture.of(
            f"{x}_{y}",
            title,
            f"{title}, one point per model.",
            PointChart(
                title=title,
                x=Axis(_title(x), log=log),
                y=Axis(_title(y), includes=(min(values), max(values))),
                points=points,
            ),
        )
