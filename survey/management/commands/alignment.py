"""`manage.py alignment --sample FILE --answers FILE`: do language models perform as people expect? Tables 2 and 5."""

import csv
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from survey.analysis.alignment import PAPER_ALPHAS, PAPER_AVERAGES, Averages, Comparison, Score, threshold_of
from survey.analysis.alignment_files import FileProblem, match, read_answers, read_questions, read_sample
from survey.exceptions import HunchError
from survey.management.command import HunchCommand
from survey.management.tables import decimal, percent, table
from survey.services import questions as question_banks
from survey.services.writing import replace_file

COLUMNS = (
    *("llm", "alpha", "threshold", "accuracy", "cross_entropy"),
    *("accuracy_low", "accuracy_high", "cross_entropy_low", "cross_entropy_high", "pairs"),
)


def alphas_of(text: str) -> list[float]:
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a list of numbers such as 1,19,50,99") from None
    if not all(np.isfinite(value) and value >= 0 for value in values):
        raise ArgumentTypeError(f"{text!r}: an alpha is a finite number of 0 or more; 19 is a threshold of 95 %")
    return values


class Command(HunchCommand):
    help = "Score language models by how well they do what people expect of them, from files."
    needs_database = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--sample", required=True, metavar="FILE", help="pairs with a predictor's two predictions")
        parser.add_argument("--answers", required=True, metavar="FILE", help="llm, question_id, correct")
        source = parser.add_mutually_exclusive_group(required=True)
        source.add_argument("--questions", metavar="FILE", help="id, source, question: whose ids the answers use")
        source.add_argument("--bank", metavar="NAME", help="the same, from an imported bank (NAME or NAME@VERSION)")
        parser.add_argument("--alpha", type=alphas_of, default=list(PAPER_ALPHAS), metavar="A,B,...")
        for name, default in (
            ("prior", PAPER_AVERAGES.prior),
            ("posterior-correct", PAPER_AVERAGES.posterior_correct),
            ("posterior-incorrect", PAPER_AVERAGES.posterior_incorrect),
        ):
            parser.add_argument(f"--{name}", type=float, default=default, metavar="P", help=f"mean belief ({default})")
        parser.add_argument("--samples", type=int, default=10_000, metavar="N", help="bootstrap resamples")
        parser.add_argument("--seed", type=int, default=0)
        parser.add_argument("--out", type=Path, metavar="DIR", help="write tables as CSV and the figure")

    def handle(
        self,
        *args: Any,
        sample: str,
        answers: str,
        questions: str | None,
        bank: str | None,
        alpha: list[float],
        prior: float,
        posterior_correct: float,
        posterior_incorrect: float,
        samples: int,
        seed: int,
        out: Path | None,
        **options: Any,
    ) -> None:
        try:
            pairs = read_sample(sample)
            given = read_answers(answers)
            matched = match(pairs, read_questions(questions) if questions else self._of_bank(str(bank)), given)
            comparison = Comparison(
                matched.trials,
                change_if_correct=pairs.change_if_correct,
                change_if_incorrect=pairs.change_if_incorrect,
                averages=Averages(prior, posterior_correct, posterior_incorrect),
                samples=samples,
                rng=np.random.default_rng(seed),
            )
        except (FileProblem, ValueError) as exc:
            raise HunchError(str(exc)) from exc
        for note in matched.notes:
            self.stderr.write(f"note: {note}")
        scores = [comparison.score(trial.name, alpha) for trial in matched.trials]
        self._print(scores, alpha, len(pairs))
        if out is not None:
            self._write(out, comparison, scores, alpha)

    def _of_bank(self, name: str) -> Iterator[tuple[str, str, str]]:
        self.refuse_old_database()
        bank = question_banks.find_bank(name)
        rows = bank.questions.order_by("position").values_list("external_id", "task__name", "text")
        return rows.iterator(chunk_size=2000)

    def _print(self, scores: list[Score], alphas: list[float], n: int) -> None:
        header = ["model", "pairs", *[f"{alpha:g} ({percent(threshold_of(alpha)[0])})" for alpha in alphas]]
        for title, value, interval in (
            ("Weighted generalized accuracy (higher is better)", "accuracy", "accuracy_interval"),
            ("Weighted binary cross-entropy (lower is better)", "cross_entropy", "cross_entropy_interval"),
        ):
            rows = []
            for score in scores:
                cells = [
                    f"{shown(point)} [{shown(low)}, {shown(high)}]"
                    for point, (low, high) in zip(getattr(score, value), getattr(score, interval), strict=True)
                ]
                rows.append([score.name, str(score.pairs), *cells])
            self.stdout.write(f"\n{title}, by alpha (deployment threshold alpha / (1 + alpha)); {n} pairs")
            self.stdout.write(table(header, rows))
        self.stdout.write("\nIn brackets: 95 % intervals, pairs resampled; predictions and mean beliefs as given.")

    def _write(self, folder: Path, comparison: Comparison, scores: list[Score], alphas: list[float]) -> None:
        from survey.analysis.alignment_figures import accuracy_curves

        try:
            folder.mkdir(parents=True, exist_ok=True)
            with replace_file(folder / "alignment.csv") as path, path.open("w", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(COLUMNS)
                for score in scores:
                    for index, alpha in enumerate(score.alphas):
                        numbers = [
                            score.accuracy[index],
                            score.cross_entropy[index],
                            *score.accuracy_interval[index],
                            *score.cross_entropy_interval[index],
                        ]
                        threshold = repr(float(score.thresholds[index]))
                        writer.writerow([score.name, f"{alpha:g}", threshold, *map(cell, numbers), score.pairs])
            with replace_file(folder / "differences.csv") as path, path.open("w", newline="") as file:
                self._write_differences(csv.writer(file), comparison, [score.name for score in scores], alphas)
            with replace_file(folder / "alignment.svg") as path:
                accuracy_curves(comparison, path)
        except OSError as exc:
            raise HunchError(f"--out {folder}: cannot be written ({exc.strerror}): choose another folder") from exc
        for name in ("alignment.csv", "differences.csv", "alignment.svg"):
            self.stdout.write(f"wrote {folder / name}")

    @staticmethod
    def _write_differences(writer: Any, comparison: Comparison, names: list[str], alphas: list[float]) -> None:
        measures = ("accuracy", "cross_entropy")
        parts = [f"{measure}{part}" for measure in measures for part in ("_difference", "_low", "_high", "_p")]
        writer.writerow(["first", "second", "pairs", "alpha", *parts])
        for place, first in enumerate(names):
            for second in names[place + 1 :]:
                try:
                    found = comparison.difference(first, second, alphas)
                except ValueError:  # No pair in common: there is nothing to compare.
                    continue
                for index, alpha in enumerate(found.alphas):
                    values = [
                        value
                        for measure in measures
                        for value in (
                            getattr(found, measure)[index],
                            *getattr(found, f"{measure}_interval")[index],
                            getattr(found, f"{measure}_p")[index],
                        )
                    ]
                    writer.writerow([first, second, found.pairs, f"{alpha:g}", *map(cell, values)])


def shown(value: float) -> str:
    return decimal(float(value), 3) if np.isfinite(value) else "-"


def cell(value: float) -> str:
    """Every digit; empty where the measure is not defined."""
    return repr(float(value)) if np.isfinite(value) else ""
