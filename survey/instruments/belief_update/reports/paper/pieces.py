"""The paper's tables 1 to 5 and its figures 2, 3 and 5 from plain data, each with n, interval and the paper's number.
Figures 4, 6 and 7 are in `paper_figures`.

What cannot be made is a `Piece` with a sentence in place of its figure. Imports no rows: a study and files feed it.
"""

import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from itertools import pairwise
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

import bandit
from bandit.errors import DesignError
from predictors.errors import PredictorError
from predictors.evaluation import auc_by_group, evaluate_with_intervals, rank_curve, rows_by_rank
from survey.contracts.reports import Picture, ReportFile, ReportResult
from survey.exceptions import HunchError
from survey.figures import Column, Figure, FigureColumn, Table, TableView
from survey.figures.charts import Axis, Bar, HistogramChart, Line, LineChart
from survey.figures.rendering import latex, markdown, sheets_of
from survey.figures.words import percent, short
from survey.services.results.people_and_models.unreadable_replies import UNREADABLE

from ..alignment.scores import ModelScore, threshold_of

METRICS = {"nll": "NLL", "auc": "AUC"}
PARTS = {"overall": "", "previous_correct": " correct", "previous_incorrect": " incorrect"}
# Table 1 of the paper: NLL overall, after correct, after incorrect; AUC likewise.
PAPER_TABLE_1: Mapping[str, tuple[float, ...]] = {
    "previous_correct": (0.666, 0.638, 0.694, 0.599, 0.500, 0.500),
    "same_task": (0.637, 0.598, 0.675, 0.688, 0.680, 0.556),
    "embedding_xgboost": (0.629, 0.589, 0.669, 0.682, 0.627, 0.690),
    "bert": (0.593, 0.545, 0.640, 0.812, 0.855, 0.775),
    "llama2_7b": (0.652, 0.620, 0.690, 0.755, 0.827, 0.668),
    "llama2_13b": (0.624, 0.591, 0.663, 0.787, 0.867, 0.772),
    "gpt35_turbo": (0.912, 0.911, 1.094, 0.537, 0.528, 0.418),
    "gpt4": (0.789, 0.705, 0.873, 0.640, 0.585, 0.566),
}
PAPER_ALPHAS = (1.0, 19.0, 50.0, 99.0)
# Tables 2 and 5, by alpha 1, 19, 50 and 99; names as in the released answers.
PAPER_TABLE_2: Mapping[str, tuple[float, ...]] = {
    "alpaca-7b": (0.466, 0.397, 0.393, 0.392),
    "llama-2-7b-chat": (0.494, 0.396, 0.390, 0.388),
    "StripedHyena-Nous-7B": (0.495, 0.393, 0.386, 0.384),
    "Mistral-7B-Instruct": (0.517, 0.393, 0.387, 0.384),
    "llama-2-13b-chat": (0.499, 0.395, 0.388, 0.386),
    "llama-2-70b-chat": (0.512, 0.393, 0.384, 0.381),
    "gpt-3.5-turbo": (0.528, 0.397, 0.386, 0.382),
    "gpt-4": (0.569, 0.408, 0.386, 0.379),
}
PAPER_TABLE_5: Mapping[str, tuple[float, ...]] = {
    "alpaca-7b": (0.788, 0.929, 0.936, 0.938),
    "llama-2-7b-chat": (0.733, 0.933, 0.945, 0.950),
    "StripedHyena-Nous-7B": (0.733, 0.942, 0.956, 0.960),
    "Mistral-7B-Instruct": (0.689, 0.935, 0.954, 0.960),
    "llama-2-13b-chat": (0.725, 0.937, 0.951, 0.956),
    "llama-2-70b-chat": (0.701, 0.945, 0.963, 0.969),
    "gpt-3.5-turbo": (0.668, 0.935, 0.958, 0.965),
    "gpt-4": (0.588, 0.917, 0.962, 0.977),
}
# Tables 3 and 4, of BERT, by the tasks generalized from and to; empty where the group has all of them.
PAPER_TABLE_3: Mapping[tuple[str, str], float] = {
    ("bbh_logical_deduction_seven_objects", ""): 1.00,
    ("mmlu_miscellaneous", ""): 1.00,
    ("mmlu_high_school_psychology", ""): 1.00,
    ("mmlu_college_medicine", ""): 1.00,
    ("mmlu_college_chemistry", ""): 0.50,
    ("mmlu_conceptual_physics", ""): 0.50,
    ("bbh_web_of_lies", ""): 0.48,
    ("bbh_penguins_in_a_table", ""): 0.08,
    ("", "bbh_ruin_names"): 1.00,
    ("", "mmlu_high_school_psychology"): 1.00,
    ("", "bbh_logical_deduction_three_objects"): 0.91,
    ("", "mmlu_astronomy"): 0.89,
    ("", "mmlu_moral_scenarios"): 0.50,
    ("", "mmlu_college_biology"): 0.48,
    ("", "bbh_movie_recommendation"): 0.44,
    ("", "bbh_sports_understanding"): 0.20,
}
PAPER_TABLE_4: Mapping[tuple[str, str], float] = {
    ("bbh_tracking_shuffled_objects_five_objects", "bbh_logical_deduction_three_objects"): 1.00,
    ("mmlu_clinical_knowledge", "mmlu_clinical_knowledge"): 1.00,
    ("bbh_tracking_shuffled_objects_five_objects", "bbh_tracking_shuffled_objects_five_objects"): 0.83,
    ("bbh_logical_deduction_five_objects", "bbh_logical_deduction_five_objects"): 0.69,
    ("mmlu_high_school_biology", "mmlu_college_biology"): 0.67,
    ("mmlu_high_school_biology", "mmlu_clinical_knowledge"): 0.67,
}
_OTHER_NAMES = re.compile(r"(?:-hf|-v0\.1)$", re.IGNORECASE)
# Mean predicted change over uniform pairs, after an incorrect and after a correct answer (figures 2 and 6).
PAPER_PREDICTED = {0: 0.46, 1: 0.32}
EXTREMES = "These rows are extremes of the predictions, so that no figure on them is one of all pairs."
FEWEST = 30
GROUP_SAMPLES = 300
OUTCOMES = {1: "after a correct answer", 0: "after an incorrect answer"}

VALUE = FigureColumn(
    "value",
    "number",
    "The figure.",
    digits=3,
    prefix="",
    low="Lower end of its 95 % interval; empty where there is none.",
)
N = Column("n", "number", "How many rows it rests on.")
PAPER = Column("paper", "number", "The paper's own number; empty where it has none that is known here.", digits=3)
TABLE_1 = (
    Column("predictor", "text", "The predictor."),
    Column("metric", "text", "nll: negative log-likelihood, lower is better. auc: area under the ROC curve."),
    Column("part", "text", "overall, previous_correct (after a correct answer) or previous_incorrect."),
    Column("score", "text", "Metric and part in words.", in_file=False),
    N,
    VALUE,
    PAPER,
)
MODELS = (
    Column("llm", "text", "The language model.", heading="model"),
    Column("alpha", "number", "What a wrong deployment weighs against a missed one."),
    Column("threshold", "share", "The deployment threshold that alpha stands for: alpha / (1 + alpha)."),
    replace(N, heading="pairs"),
    VALUE,
    PAPER,
    UNREADABLE,
)
GROUPS = (
    Column("evidence_task", "text", "The task generalized from; empty where it is any.", heading="from"),
    Column("target_task", "text", "The task generalized to; empty where it is any.", heading="to"),
    replace(N, heading="rows"),
    replace(VALUE, heading="AUC"),
    PAPER,
)
FIGURE_2 = (
    Column("outcome", "0 or 1", "1: after a correct answer. 0: after an incorrect one."),
    Column("after", "text", "The outcome in words.", heading="outcome", in_file=False),
    Column(
        "figure",
        "text",
        "mean, highest or lowest predicted probability of a change; most unlike: of the pair whose predictions under "
        "the two outcomes differ most.",
    ),
    N,
    replace(VALUE, heading="predicted change"),
    PAPER,
    Column("q1", "text", "The evidence question of that pair; empty for means.", heading="evidence"),
    Column("q2", "text", "Its target question.", heading="target"),
)
DISTRIBUTION = (
    Column("what", "text", "prior, posterior or change."),
    Column("from", "percentage points", "Lower end of the bin, included."),
    Column("to", "percentage points", "Its upper end, included in the last bin alone; equal: exactly this."),
    replace(N, heading="answers"),
    replace(VALUE, heading="share"),
)
RANKS = (
    Column("line", "text", "Which predictor on which answers."),
    Column("rank", "share", "The share of rows that are predicted lower, at the middle of the point."),
    replace(N, heading="rows"),
    replace(VALUE, heading="share that changed"),
)


def as_figure(value: float | None, ends: Sequence[float | None] | None = None, n: int = 0) -> Figure:
    """A figure of n rows with its interval, as far as it has one. Ends that are equal are no interval: every resample
    gave the same."""
    known = [end for end in ends or () if end is not None and np.isfinite(end)]
    return Figure.between(value, known if len(set(known)) == 2 else None, answers=n)


@dataclass(frozen=True, eq=False)
class Piece:
    """A table or a figure of the paper. `missing`: the sentence that stands in its place; empty if it is there."""

    name: str
    title: str
    table: Table | None = None
    picture: Picture | None = None
    missing: str = ""


def tried(name: str, title: str, make: Callable[[], Piece]) -> Piece:
    """The piece, or the sentence that says why there is none: one that fails does not harm the others."""
    try:
        return replace(make(), name=name, title=title)
    except HunchError as exc:
        return Piece(name, title, missing=exc.message.replace("\n", "; "))
    except (PredictorError, DesignError, ValueError) as exc:
        return Piece(name, title, missing=str(exc))


def sentence(text: str) -> Piece:
    """No piece, and why."""
    return Piece("", "", missing=text)


# Tables


def table_1(figures: Mapping[str, Mapping[tuple[str, str], Figure]], note: str) -> Piece:
    """`figures`: by predictor, then by metric and part; a predictor may have none."""
    rows: list[list[Any]] = []
    for name, own in figures.items():
        for place, (metric, part) in enumerate((metric, part) for metric in METRICS for part in PARTS):
            paper = PAPER_TABLE_1[name][place] if name in PAPER_TABLE_1 else None
            figure = own.get((metric, part), Figure(answers=0))
            rows.append([name, metric, part, METRICS[metric] + PARTS[part], figure.answers, figure, paper])
    title = "Table 1: how well predictors foresee changes"
    return Piece(
        "", "", Table("table1", title, TABLE_1, rows, note=note, views=_beside_paper(["predictor"], "score", rows))
    )


def _beside_paper(
    names: Sequence[str], across: str, rows: Sequence[Sequence[Any]], headings: Mapping[Any, str] | None = None
) -> list[TableView]:
    """The figures, and below them the paper's own numbers where it has some, which stand last in the rows."""
    headings = headings or {}
    known = [place for place, row in enumerate(rows) if row[-1] is not None]
    views = [TableView(names, across=across, cells="value", headings=headings)]
    if known:
        title = "The paper's own numbers"
        views.append(TableView(names[:1], title, rows=known, across=across, cells="paper", headings=headings))
    return views


def model_tables(
    scores: Sequence[ModelScore], unreadable: Mapping[str, int] | None = None
) -> Iterator[tuple[str, Piece]]:
    """Tables 2 and 5 by name. `unreadable`: how many of each model's replies could not be read; None where its answers
    are a file's."""
    for name, measure, title, paper in (
        ("table2", "accuracy", "Table 2: weighted accuracy, higher is better", PAPER_TABLE_2),
        ("table5", "cross_entropy", "Table 5: weighted binary cross-entropy, lower is better", PAPER_TABLE_5),
    ):
        rows: list[list[Any]] = []
        for score in scores:
            own = _of_paper(paper, score.name)
            for place, alpha in enumerate(score.alphas.tolist()):
                ends = getattr(score, f"{measure}_interval")[place].tolist()
                figure = as_figure(float(getattr(score, measure)[place]), ends)
                of_paper = own[PAPER_ALPHAS.index(alpha)] if own and alpha in PAPER_ALPHAS else None
                rows.append([score.name, alpha, float(threshold_of(alpha)[0]), score.pairs, figure, of_paper])
        headings = {
            alpha: f"alpha {short(alpha)} ({percent(threshold_of(alpha)[0], 0)})" for alpha in scores[0].alphas.tolist()
        }
        views = _beside_paper(["llm", "n"], "alpha", rows, headings)
        rows = [[*row, (unreadable or {}).get(row[0])] for row in rows]
        note = (
            "Intervals are over pairs. The paper heads these columns 50, 90, 95 and 99 %; its numbers "
            "are those of alpha 1, 19, 50 and 99. For Mistral Instruct at alpha 19 table 2 prints 0.393; the released "
            "answers give 0.397."
        )
        yield name, Piece("", "", Table(name, title, MODELS, rows, note=note, views=views))


def _of_paper(paper: Mapping[str, tuple[float, ...]], name: str) -> tuple[float, ...] | None:
    """The paper's numbers of a model, under its name in the released answers or on the hub."""
    plain = _OTHER_NAMES.sub("", name.rpartition("/")[2]).lower()
    return next((numbers for known, numbers in paper.items() if known.lower() == plain), None)


def group_table(
    name: str,
    title: str,
    labels: NDArray[np.float64],
    scores: NDArray[np.float64],
    groupings: Sequence[Sequence[tuple[str, str]]],
    *,
    note: str,
    weights: NDArray[np.float64] | None = None,
    cluster: NDArray[np.int64] | None = None,
) -> Piece:
    """The AUC in groups of rows, highest first. `groupings`: for each of the n rows its task generalized from and to,
    empty where the group has all of them. `weights` of the rows, and what is resampled together, (n,) each; without
    them every row counts alike and is resampled by itself. The paper's own numbers are those of its table of this name.

    Raises:
        ValueError: no group has five rows of both classes.
    """
    rows: list[list[Any]] = []
    left_out = 0
    paper = {"table3": PAPER_TABLE_3, "table4": PAPER_TABLE_4}[name]
    weights = np.ones(len(labels)) if weights is None else weights
    cluster = np.arange(len(labels)) if cluster is None else cluster
    for groups in groupings:
        areas = auc_by_group(labels, scores, groups, sample_weight=weights)
        left_out += areas["too_small"] + areas["one_class"]
        for group, group_area in areas["groups"].items():
            inside = np.array([own == group for own in groups], dtype=bool) & (weights > 0)
            area = _area_of(labels[inside], scores[inside], weights[inside], cluster[inside], group_area["auc"])
            rows.append([*_tasks(group), area.answers, area, paper.get(_tasks(group))])
    if not rows:
        raise ValueError("no group has five rows and both labels")
    note = f"{note} {left_out} groups are left out, of under five rows or of one class. The paper's numbers are BERT's."
    if any("" in row[:2] for row in rows):
        note += " Where no task is named, it is any."
    return Piece("", "", Table(name, title, GROUPS, rows, note=note))


def _tasks(group: Hashable) -> tuple[str, str]:
    first, second = cast(tuple[str, str], group)
    return first, second


def _area_of(
    labels: NDArray[np.float64],
    scores: NDArray[np.float64],
    weights: NDArray[np.float64],
    cluster: NDArray[np.int64],
    value: float,
) -> Figure:
    rng = np.random.default_rng(0)
    evaluation = evaluate_with_intervals(
        labels, scores, sample_weight=weights, cluster=cluster, rng=rng, samples=GROUP_SAMPLES
    )
    return as_figure(value, evaluation["intervals"]["auc"]["overall"], len(labels))


# Figures


@dataclass(frozen=True, eq=False)
class ScoredPairs:
    """Uniform pairs with the predicted probability of a change after one outcome, (n,), and a function that gives the
    texts of both questions of a row."""

    score: NDArray[np.float64]
    texts: Callable[[int], tuple[str, str]]


def figure_2(pairs: Mapping[int, ScoredPairs], note: str, *, same_pairs: bool) -> Piece:
    """Mean, highest and lowest predicted change by outcome. `same_pairs`: each row stands under both outcomes, so that
    there is a pair whose prediction differs most between them."""
    rows: list[list[Any]] = []
    lines = []
    edges = np.linspace(0, 1, 21)
    for outcome, words in OUTCOMES.items():
        of_outcome = pairs.get(outcome)
        if of_outcome is None or not len(of_outcome.score):
            continue
        score, n = of_outcome.score, len(of_outcome.score)
        mean, error = float(score.mean()), float(score.std(ddof=1)) / n**0.5 if n > 1 else 0.0
        ends = bandit.student_interval(mean, error, n - 1, within=(0.0, 1.0)) if n > 1 else None
        rows.append([outcome, words, "mean", n, as_figure(mean, ends), PAPER_PREDICTED[outcome], None, None])
        for which, place in (("highest", int(score.argmax())), ("lowest", int(score.argmin()))):
            rows.append([outcome, words, which, n, Figure(score[place]), None, *of_outcome.texts(place)])
        share = np.histogram(score, bins=edges)[0] / n
        lines.append(Line.steps(words, edges.tolist(), share.tolist()))
    if not lines:
        raise ValueError("no pair has a prediction")
    if same_pairs:
        farthest = int(np.abs(pairs[1].score - pairs[0].score).argmax())
        for outcome, words in OUTCOMES.items():
            score = pairs[outcome].score
            texts = pairs[outcome].texts(farthest)
            rows.append([outcome, words, "most unlike", len(score), Figure(score[farthest]), None, *texts])
    x = Axis("predicted probability of a change", includes=(0.0, 1.0))
    y = Axis("pairs", share=True, includes=(0.0,))
    title = "Predicted change over uniform pairs"
    return Piece(
        "",
        "",
        Table(
            "figure2",
            f"Figure 2: {title.lower()}",
            FIGURE_2,
            rows,
            note=note,
            views=[TableView(["after", "figure", "value", "paper", "q1", "q2"])],
        ),
        drawn("figure2", title, x, y, lines),
    )


@dataclass(frozen=True, eq=False)
class FirstStage:
    """Beliefs of the first stage in percentage points, (n,) each, whose they are, and the design's weights."""

    prior: NDArray[np.float64]
    posterior: NDArray[np.float64]
    respondent: NDArray[np.int64]
    weight: NDArray[np.float64]


def figure_3_left(stage: FirstStage) -> Piece:
    """The distribution of changes."""
    edges = [*np.arange(-100, 0, 20).tolist(), 0, 0, *np.arange(20, 101, 20).tolist()]
    rows = _distribution("change", stage.posterior - stage.prior, edges, stage)
    return _distribution_piece("figure3_left", "Changes of belief after the first stage", {"change": rows}, stage)


def figure_5(stage: FirstStage) -> Piece:
    """The distributions of prior and posterior beliefs, and of their difference."""
    beliefs = np.arange(0, 101, 10).tolist()
    changes = [*np.arange(-100, 0, 20).tolist(), 0, 0, *np.arange(20, 101, 20).tolist()]
    rows = {
        "prior": _distribution("prior", stage.prior, beliefs, stage),
        "posterior": _distribution("posterior", stage.posterior, beliefs, stage),
        "change": _distribution("change", stage.posterior - stage.prior, changes, stage),
    }
    return _distribution_piece("figure5", "Beliefs and changes after the first stage", rows, stage)


def _distribution(what: str, values: NDArray[np.float64], edges: Sequence[float], stage: FirstStage) -> list[list[Any]]:
    """The weighted share of each bin, with an interval over respondents. A bin of no width is exactly its value."""
    probability = stage.weight.min() / stage.weight
    rows = []
    for low, high in pairwise(edges):
        if low == high:
            inside = values == low
        elif what == "change":  # Exactly 0 has a bin of its own.
            inside = (values < high) & (values >= low) if high <= 0 else (values > low) & (values <= high)
        else:
            inside = (values >= low) & ((values < high) if high < edges[-1] else (values <= high))
        share = bandit.hajek(values=inside.astype(float), probability=probability, cluster=stage.respondent, share=True)
        ends = share.interval if share.n_clusters > 1 and np.isfinite(share.interval).all() else (None, None)
        rows.append([what, low, high, int(inside.sum()), Figure.between(share.value, ends)])
    return rows


def _distribution_piece(name: str, title: str, rows: Mapping[str, list[list[Any]]], stage: FirstStage) -> Piece:
    people = len(np.unique(stage.respondent))
    note = f"{len(stage.prior)} answers of {people} people, by the design's weights; intervals are over people."
    if people < FEWEST:
        note += f" {people} people are too few for the intervals to be reliable."
    panels = {
        what: [Bar(low, high, share.value, share.interval) for _what, low, high, _n, share in of_one]
        for what, of_one in rows.items()
    }
    number = "Figure 3, left" if name == "figure3_left" else "Figure 5"
    chart = HistogramChart(title=title, x="percentage points", y="answers", panels=panels)
    return Piece(
        "",
        "",
        Table(name, f"{number}: {title}", DISTRIBUTION, [row for of_one in rows.values() for row in of_one], note),
        Picture.of(name, title, f"{title}: a histogram of each, with 95 % intervals.", chart),
    )


@dataclass(frozen=True, eq=False)
class Ranked:
    """A line of figure 3, right: labels, predictions that had not seen them, and, where they are known, weights and
    whose answers they are, or of which pair; (n,) each."""

    name: str
    labels: NDArray[np.float64]
    scores: NDArray[np.float64]
    weights: NDArray[np.float64] | None = None
    respondent: NDArray[np.int64] | None = None


def figure_3_right(
    lines: Sequence[Ranked], note: str, name: str = "figure3_right", number: str = "Figure 3, right"
) -> Piece:
    """The rank of the prediction against the share that changed, a line for each predictor and its answers. Where it
    is known whose answers they are, the bands take answers of one person as dependent."""
    rows: list[list[Any]] = []
    drawn_lines = []
    for line in lines:
        points = rank_curve(line.labels, line.scores, sample_weight=line.weights)
        for point, ends in zip(points, _bands_over_people(line), strict=False):
            point["interval"] = ends
        figures = [(point["rank"], as_figure(point["observed"], point["interval"])) for point in points]
        rows += [[line.name, rank, point["n"], figure] for point, (rank, figure) in zip(points, figures, strict=True)]
        label = f"{line.name} (n = {len(line.labels)})"
        drawn_lines.append(Line.of(label, [(100 * rank, figure) for rank, figure in figures]))
    x = Axis("percentile of the predicted probability of change", includes=(0.0, 100.0))
    y = Axis("beliefs that changed", share=True, includes=(0.0,))
    title = "Changes by rank of prediction"
    return Piece(
        "",
        "",
        Table(name, f"{number}: {title.lower()}", RANKS, rows, note),
        drawn(name, title, x, y, drawn_lines),
    )


def _bands_over_people(ranked: Ranked) -> Iterator[list[float]]:
    """The interval of each point; nothing where it is not known whose answers they are. Without two people in a point
    its ends are NaN."""
    if ranked.respondent is None:
        return
    weights = np.ones(len(ranked.labels)) if ranked.weights is None else ranked.weights
    for rows in rows_by_rank(ranked.scores, weights):
        inside = np.zeros(len(ranked.labels), dtype=bool)
        inside[rows] = True
        yield share_over_people(ranked.labels, weights, ranked.respondent, inside)


def share_over_people(
    values: NDArray[np.float64],
    weights: NDArray[np.float64],
    respondent: NDArray[np.int64],
    inside: NDArray[np.bool_],
) -> list[float]:
    """The 95 % interval of a weighted mean of values in [0, 1] over the rows `inside`, which allows any dependence
    between the answers of a person. Wilson's, at the effective number of answers, where the values are 0 and 1 and one
    of them is rare. NaN without two people. All arguments are (n,)."""
    weighted = weights > 0
    if len(np.unique(respondent[inside & weighted])) < 2:
        return [float("nan"), float("nan")]
    estimate = bandit.hajek(
        values=values[weighted],
        probability=weights[weighted].min() / weights[weighted],
        cluster=respondent[weighted],
        domain=inside[weighted],
        share=bool(np.isin(values[inside], (0, 1)).all()),
    )
    return [min(1.0, max(0.0, end)) for end in estimate.interval]


def drawn(name: str, title: str, x: Axis, y: Axis, lines: Sequence[Line]) -> Picture:
    words = f"{title}: {'; '.join(line.name for line in lines)}."
    return Picture.of(name, title, words, LineChart(title=title, x=x, y=y, lines=lines))


# All of it


def report_result(title: str, pieces: Sequence[Piece], notes: Sequence[str] = ()) -> ReportResult:
    """Every piece; the tables also as LaTeX and Markdown, and a page that shows all of it."""
    tables = [piece.table for piece in pieces if piece.table is not None]
    missing = [f"{piece.title}: {piece.missing}" for piece in pieces if piece.missing]
    files = [
        file
        for piece in pieces
        if piece.table is not None and piece.name.startswith("table")
        for file in (
            ReportFile(f"{piece.name}.md", partial(str.encode, markdown(piece.table))),
            ReportFile(f"{piece.name}.tex", partial(str.encode, latex(piece.table))),
        )
    ]
    page = html_page(title, pieces, notes)
    return ReportResult(
        title=title,
        tables=tables,
        pictures=[piece.picture for piece in pieces if piece.picture is not None],
        files=[*files, ReportFile("index.html", partial(str.encode, page))],
        notes=[*notes, *missing],
        data={"pieces": [{"name": piece.name, "title": piece.title, "missing": piece.missing} for piece in pieces]},
    )


# On a narrow screen each row of a table is a block, with the column's name before each cell: nothing is wider than it.
STYLE = (
    "body{font-family:sans-serif;max-width:75em;margin:2em auto;padding:0 1em;overflow-wrap:anywhere}"
    "table{border-collapse:collapse;margin:1em 0}"
    "th,td{border-bottom:1px solid #bbb;padding:.2em .6em;text-align:left;vertical-align:top}img{max-width:100%}"
    "@media (min-width:60.01em){th,td{overflow-wrap:break-word}td.text{overflow-wrap:anywhere;min-width:12em}}"
    "@media (max-width:60em){thead{position:absolute;clip-path:inset(50%);width:1px;height:1px;overflow:hidden}"
    "table,tbody,tr,td{display:block}tr{border-bottom:1px solid #777;padding:.4em 0}td{border:0;padding:.1em 0}"
    "td:not(:empty)::before{content:attr(data-label) ': ';font-weight:bold}details{display:inline}}"
)
LONGEST = 160  # characters of a cell that are shown at once
A_TEXT = 40  # A cell of more characters may break anywhere; of others, words stay whole where there is room.


def html_page(title: str, pieces: Sequence[Piece], notes: Sequence[str]) -> str:
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title>",
        f"<style>{STYLE}</style>",
        f"</head><body><h1>{escape(title)}</h1>",
        *(f"<p>{escape(note)}</p>" for note in notes),
    ]
    for piece in pieces:
        heading = piece.title if piece.table is None else piece.table.title
        parts.append(f'<section id="{piece.name}"><h2>{escape(heading)}</h2>')
        if piece.missing:
            parts.append(f"<p>Not here: {escape(piece.missing)}.</p>")
        if piece.picture is not None:
            parts.append(f'<img src="{piece.picture.name}.svg" alt="{escape(piece.picture.text)}">')
        if piece.table is not None:
            parts += _html_table(piece.table)
        parts.append("</section>")
    return "\n".join([*parts, "</body></html>", ""])


def _html_table(table: Table) -> Iterator[str]:
    for sheet in sheets_of(table):
        if sheet.title:
            yield f"<h3>{escape(sheet.title)}</h3>"
        head = "".join(f'<th scope="col">{escape(title)}</th>' for title in sheet.header)
        yield f"<table><thead><tr>{head}</tr></thead><tbody>"
        for row in sheet.texts():
            cells = (
                f'<td data-label="{escape(name)}"{_class_of(text)}>{_html_cell(text)}</td>'
                for name, text in zip(sheet.header, row, strict=True)
            )
            yield f"<tr>{''.join(cells)}</tr>"
        yield "</tbody></table>"
        if sheet.note:
            yield f"<p>{escape(sheet.note)}</p>"
    if table.note:
        yield f"<p>{escape(table.note)}</p>"


def _class_of(text: str) -> str:
    return ' class="text"' if len(text) > A_TEXT else ""


def _html_cell(text: str) -> str:
    """A cell; of a long text its beginning, which opens to the whole."""
    if len(text) <= LONGEST:
        return escape(text)
    return f"<details><summary>{escape(text[:LONGEST])}…</summary>{escape(text)}</details>"
