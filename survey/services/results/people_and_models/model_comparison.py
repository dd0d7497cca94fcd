"""Models next to each other: one table of what is known of each, what goes with what over models, means by group.

Of a finished table that somebody has, such as a published one, and of the models of a report. A model is one
observation: correlations and lines are over models, unweighted, and their intervals are about such models.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import numpy as np

import bandit
from bandit.correlation import correlation_interval
from bandit.student import student_t_quantile
from predictors.cell_numbers import number_of
from survey.contracts.reports import Argument, Picture, ReportResult
from survey.exceptions import HunchError
from survey.figures import Column, Figure, FigureColumn, Table
from survey.figures.charts import Axis, PointChart, ScatterPoint
from survey.figures.words import counted, short
from survey.input_tables import cells
from survey.input_tables.problems import Problems
from survey.input_tables.rows import RowFile, TableRow, column, declared, read_rows
from survey.study_file.language_models import LanguageModelConfig

FEWEST = 4  # models of a correlation
GROUPS = ("corpus", "architecture", "size")
# Known measures in words; a table may have others.
TITLES = {
    "perplexity": "perplexity",
    "normalised_perplexity": "perplexity / vocabulary",
    "pnc": "PNC",
    "delta_log_likelihood": "delta log-likelihood",
    "training_mb": "megabytes of training text",
}
ON_A_LOG_AXIS = frozenset({"perplexity", "normalised_perplexity", "training_mb"})
# What a report explains by the others; in this order they stand in its table.
OF_REPORTS = ("training_mb", "normalised_perplexity", "perplexity", "pnc")

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
OVER_TITLE = "What goes with what over models"
ONE_OBSERVATION = (
    "A model is one observation here. Models of one kind are alike, so that intervals, which take them as drawn by "
    "themselves, are too narrow; whatever else differs between models goes with what is compared."
)


@declared
class ModelRow(TableRow):
    """A model with what is known of it. Every further column with numbers is a measure."""

    read_by = "`compare_models FILE`"
    model: Annotated[str, cells.text("name the model")] = column("The model.")
    corpus: cells.Stripped = column("What it was trained on.", "")
    architecture: cells.Stripped = column("Its kind, such as transformer.", "")
    size: cells.Stripped = column("Its size, in units of one's own.", "")


ABOVE = Argument(
    "above",
    "correlations and lines over models also among those with at least so much of a measure",
    label="Also among models with",
    example="pnc=0.4",
)


@dataclass(frozen=True)
class ModelFacts:
    """What is known of a model beside its figures. size: in units of one's own; training_mb: of text that it learnt
    from; vocabulary: how many tokens it knows."""

    corpus: str = ""
    architecture: str = ""
    size: str = ""
    training_mb: float | None = None
    vocabulary: int | None = None

    @classmethod
    def of_config(cls, config: LanguageModelConfig) -> "ModelFacts":
        """Of a model of the study file."""
        return cls(config.corpus, config.architecture, config.size, config.training_mb, config.vocabulary)

    @classmethod
    def of_row(cls, row: Any, file: "RowFile[Any]") -> "ModelFacts":
        """Of a row that has these columns as texts; notes in the file what is no number above 0, or no whole one."""
        training_mb, vocabulary = (_above_0(row, name, file) for name in ("training_mb", "vocabulary"))
        if vocabulary is not None and not vocabulary.is_integer():
            file.wrong(row.line, "vocabulary", f"{row.vocabulary[:20]!r} is no whole number of tokens")
            vocabulary = None
        whole = None if vocabulary is None else int(vocabulary)
        return cls(row.corpus, row.architecture, row.size, training_mb, whole)


NOTHING_KNOWN = ModelFacts()


def _above_0(row: Any, name: str, file: "RowFile[Any]") -> float | None:
    """A number above 0; None where it is not known."""
    text = getattr(row, name)
    if text.casefold() in cells.UNKNOWN:
        return None
    value = number_of(text)
    if value is None or not value > 0:
        file.wrong(row.line, name, f"{text[:20]!r} is no number above 0")
        return None
    return value


@dataclass(frozen=True)
class ComparedModel:
    """`measures`: its numbers by name; NaN where one is not known. All models of a comparison have the same ones."""

    name: str
    facts: ModelFacts
    measures: Mapping[str, float]

    @classmethod
    def of_report(
        cls, name: str, facts: ModelFacts, *, perplexity: float | None, pnc: float | None, deltas: Mapping[str, float]
    ) -> "ComparedModel":
        """A model of a report: its perplexity, its PNC where there are norms, and delta log-likelihoods by name."""
        normalised = None if perplexity is None or facts.vocabulary is None else perplexity / facts.vocabulary
        values = (facts.training_mb, normalised, perplexity, pnc)
        known = zip(OF_REPORTS, (math.nan if value is None else value for value in values), strict=True)
        return cls(name, facts, {**dict(known), **deltas})


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
                f"above: {text!r} is no measure with a number, such as pnc=0.4; measures are {', '.join(measures)}"
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
        of_group = {name: texts.get(name, {}).get(row.line, getattr(row, name)).strip() for name in GROUPS}
        file.once(row, "model", (row.model, *of_group.values()), "this model stands")
        own = {name: values.get(row.line, math.nan) for name, values in measures.items()}
        models.append(ComparedModel(row.model, ModelFacts(**of_group), own))
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


@dataclass(frozen=True)
class Comparison:
    """Models with the measures that any of them has. titles: of measures with another name than their own. above: also
    among models with so much. explained: the only measures that are explained by others, and not by each other, but by
    PNC; without it all are."""

    models: Sequence[ComparedModel]
    above: Threshold | None = None
    titles: Mapping[str, str] = field(default_factory=dict)
    explained: Sequence[str] = ()

    @cached_property
    def measures(self) -> list[str]:
        names = [*self.models[0].measures] if self.models else []
        return [name for name in names if any(math.isfinite(model.measures[name]) for model in self.models)]

    def title(self, measure: str) -> str:
        return self.titles.get(measure) or _title(measure)

    def varies(self, group: str) -> bool:
        return len({getattr(model.facts, group) for model in self.models}) > 1

    def pairs(self) -> list[tuple[str, str]]:
        """Each two measures, the one that stands first in the table as x."""
        return [
            (x, y)
            for place, x in enumerate(self.measures)
            for y in self.measures[place + 1 :]
            if not self.explained or (y in self.explained and (x == "pnc" or x not in self.explained))
        ]

    def grouped(self) -> list[ComparedModel]:
        """Corpora in the order of the models, inside them architectures, and inside these sizes from small to large."""
        orders = [list(dict.fromkeys(getattr(model.facts, group) for model in self.models)) for group in GROUPS]

        def place(model: ComparedModel) -> tuple[int, int, float, int]:
            corpus, architecture, size = (
                order.index(getattr(model.facts, group)) for order, group in zip(orders, GROUPS, strict=True)
            )
            number = number_of(model.facts.size)
            return corpus, architecture, math.inf if number is None else number, size

        return sorted(self.models, key=place)

    def tables(self) -> list[Table]:
        """All models; what goes with what, where there are models enough; means by what differs between them."""
        over = [*self._over_models()]
        enough = any(isinstance(row[4], Figure) and row[4].is_defined for row in over)
        return [
            self._models_table(),
            *([Table("over_models", OVER_TITLE, OVER_MODELS, over, note=ONE_OBSERVATION)] if enough else []),
            *(self._means_table(group) for group in GROUPS if self.varies(group)),
        ]

    def sentences(self) -> Iterator[str]:
        """Each correlation: of all models, and of those above the threshold."""
        for y, x, among, n, correlation, *_rest in self._over_models():
            if isinstance(correlation, Figure) and correlation.is_defined:
                which = f"all {n} models" if among == "all" else f"{n} models with {among}"
                yield f"{self.title(str(x))} and {self.title(str(y))}, {which}: r = {correlation.in_words(3)}"

    def pictures(self) -> Iterator[Picture]:
        """A picture of each pair. Those with the same y have the same axis, so that they can be compared side by
        side."""
        group = next((name for name in GROUPS if self.varies(name)), "corpus")
        for x, y in self.pairs():
            points = [
                ScatterPoint(model.measures[x], model.measures[y], model.name, getattr(model.facts, group))
                for model in self.models
                if math.isfinite(model.measures[x]) and math.isfinite(model.measures[y])
            ]
            if not points:
                continue
            values = [model.measures[y] for model in self.models if math.isfinite(model.measures[y])]
            title = f"{self.title(y)} against {self.title(x)}"
            title = title[0].upper() + title[1:]
            log = x in ON_A_LOG_AXIS and min(point.x for point in points) > 0
            yield Picture.of(
                f"{x}_{y}",
                title,
                f"{title}, one point per model.",
                PointChart(
                    title=title,
                    x=Axis(self.title(x), log=log),
                    y=Axis(self.title(y), includes=(min(values), max(values))),
                    points=points,
                ),
            )

    def _models_table(self) -> Table:
        columns = (
            Column("corpus", "text", "What it was trained on."),
            Column("architecture", "text", "Its kind."),
            Column("size", "text", "Its size, in units of one's own."),
            Column("model", "text", "The model."),
            *(Column(name, "number", "The measure.", heading=self.title(name), digits=3) for name in self.measures),
        )
        rows = [
            [*(getattr(model.facts, group) for group in GROUPS), model.name, *self._cells(model)]
            for model in self.grouped()
        ]
        return Table("models_compared", "All models", columns, rows)

    def _cells(self, model: ComparedModel) -> list[float | None]:
        values = (model.measures[name] for name in self.measures)
        return [value if math.isfinite(value) else None for value in values]

    def _over_models(self) -> Iterator[list[object]]:
        sets = [("all", list(self.models))]
        if (above := self.above) is not None:
            sets.append((str(above), [model for model in self.models if model.measures[above.measure] >= above.least]))
        for (x, y), (among, some) in product(self.pairs(), sets):
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

    def _means_table(self, group: str) -> Table:
        rows: list[list[object]] = []
        for label in dict.fromkeys(getattr(model.facts, group) for model in self.grouped()):
            own = [model for model in self.models if getattr(model.facts, group) == label]
            means = []
            for name in self.measures:
                values = [model.measures[name] for model in own if math.isfinite(model.measures[name])]
                means.append(sum(values) / len(values) if values else None)
            rows.append([label, len(own), *means])
        columns = (
            Column(group, "text", "The group."),
            Column("models", "number", "How many models it has.", whole=True),
            *(
                Column(name, "number", "Mean over its models.", heading=self.title(name), digits=3)
                for name in self.measures
            ),
        )
        return Table(f"by_{group}", f"Means by {group}", columns, rows)


def compare_models(models: Sequence[ComparedModel], *, above: Threshold | None = None) -> ReportResult:
    """Models of a finished table: one table of all, what goes with what over them, means by group, and a picture of
    each two measures."""
    comparison = Comparison(models, above)
    measures = counted(len(comparison.measures), "measure")
    return ReportResult(
        title="Models next to each other",
        lines=[f"{counted(len(models), 'model')}, {measures}", *comparison.sentences()],
        tables=comparison.tables(),
        pictures=[*comparison.pictures()],
    )


def _title(measure: str) -> str:
    return TITLES.get(measure, measure.replace("_", " "))


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
