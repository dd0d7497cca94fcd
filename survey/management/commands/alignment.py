"""`manage.py alignment`: do language models perform as people expect? Tables 2 and 5, from files or of a study."""

import csv
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from survey.console.command import HunchCommand, add_condition
from survey.console.tables import decimal, percent, table
from survey.exceptions import HunchError
from survey.instruments.belief_update.reports import aligning
from survey.instruments.belief_update.reports.alignment import (
    PAPER_ALPHAS,
    PAPER_AVERAGES,
    Averages,
    Comparison,
    Difference,
    Score,
    threshold_of,
)
from survey.instruments.belief_update.reports.alignment_files import match, read_answers, read_questions, read_sample
from survey.services.banks import importing as question_banks
from survey.services.base.writing import replace_file
from survey.services.studies import finding

COLUMNS = (
    *("llm", "alpha", "threshold", "accuracy", "cross_entropy"),
    *("accuracy_low", "accuracy_high", "cross_entropy_low", "cross_entropy_high", "pairs"),
)

FILE_SAMPLES = 10_000


def alphas_of(text: str) -> list[float]:
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a list of numbers such as 1,19,50,99") from None
    if not all(np.isfinite(value) and value >= 0 for value in values):
        raise ArgumentTypeError(f"{text!r}: an alpha is a finite number of 0 or more; 19 is a threshold of 95 %")
    return values


class Command(HunchCommand):
    help = (
        "Score language models by how well they do what people expect of them: from files (--sample, --answers), or by "
        "a study's own answers, averages and predictor (--study)."
    )
    needs_database = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        origin = parser.add_mutually_exclusive_group(required=True)
        origin.add_argument("--sample", metavar="FILE", help="pairs with a predictor's two predictions")
        origin.add_argument(
            "--study", metavar="SLUG", help="a study with a scored stage; answers are the imported ones"
        )
        parser.add_argument("--answers", metavar="FILE", help="llm, question_id, correct (with --sample)")
        source = parser.add_mutually_exclusive_group()
        source.add_argument("--questions", metavar="FILE", help="id, source, question: whose ids the answers use")
        source.add_argument("--bank", metavar="NAME", help="the same, from an imported bank (NAME or NAME@VERSION)")
        parser.add_argument("--alpha", type=alphas_of, default=list(PAPER_ALPHAS), metavar="A,B,...")
        for name, default in (
            ("prior", PAPER_AVERAGES.prior),
            ("posterior-correct", PAPER_AVERAGES.posterior_correct),
            ("posterior-incorrect", PAPER_AVERAGES.posterior_incorrect),
        ):
            parser.add_argument(f"--{name}", type=float, metavar="P", help=f"mean belief (the paper's {default})")
        parser.add_argument("--samples", type=int, metavar="N", help="bootstrap resamples (10000; of a study 2000)")
        parser.add_argument(
            "--threshold", type=float, default=0.5, metavar="P", help="of deployment, with --study (0.5)"
        )
        parser.add_argument("--failures", type=int, default=10, metavar="N", help="pairs to list, with --study (10)")
        parser.add_argument("--task", default="", metavar="NAME", help="only failures to or from this task")
        add_condition(parser)
        parser.add_argument("--seed", type=int, default=0)
        parser.add_argument("--out", type=Path, metavar="DIR", help="write tables as CSV and the figure")

    def handle(
        self,
        *args: Any,
        sample: str | None,
        study: str | None,
        answers: str | None,
        questions: str | None,
        bank: str | None,
        alpha: list[float],
        samples: int | None,
        seed: int,
        out: Path | None,
        **options: Any,
    ) -> None:
        beliefs = {name: options[name] for name in ("prior", "posterior_correct", "posterior_incorrect")}
        if study is not None:
            self._refuse(
                "is for files: a study has its own", answers=answers, questions=questions, bank=bank, **beliefs
            )
            self._of_study(
                study, alpha=alpha, samples=aligning.SAMPLES if samples is None else samples, out=out, **options
            )
            return
        if options["condition"]:
            raise HunchError("--condition: is for --study: files have no conditions")
        if answers is None or (questions is None and bank is None):
            raise HunchError("--sample: needs --answers FILE and, for the ids, --questions FILE or --bank NAME")
        try:
            pairs = read_sample(str(sample))
            given = read_answers(answers)
            matched = match(pairs, read_questions(questions) if questions else self._of_bank(str(bank)), given)
            defaults = asdict(PAPER_AVERAGES)
            comparison = Comparison(
                matched.trials,
                change_if_correct=pairs.change_if_correct,
                change_if_incorrect=pairs.change_if_incorrect,
                averages=Averages(
                    **{name: defaults[name] if value is None else value for name, value in beliefs.items()}
                ),
                samples=FILE_SAMPLES if samples is None else samples,
                rng=np.random.default_rng(seed),
            )
        except ValueError as exc:
            raise HunchError(str(exc)) from exc
        self._notes(matched.notes)
        scores = [comparison.score(trial.name, alpha) for trial in matched.trials]
        self._print(scores, alpha, len(pairs))
        self.stdout.write("\nIn brackets: 95 % intervals, pairs resampled; predictions and mean beliefs as given.")
        if out is not None:
            differences = []
            names = list(comparison.trials)
            for place, first in enumerate(names):
                for second in names[place + 1 :]:
                    with suppress(ValueError):  # No pair in common: there is nothing to compare.
                        differences.append(comparison.difference(first, second, alpha))
            self._write(out, comparison, scores, differences)

    def _of_study(
        self,
        slug: str,
        *,
        alpha: list[float],
        samples: int,
        out: Path | None,
        threshold: float,
        failures: int,
        task: str,
        condition: list[str],
        **_others: Any,
    ) -> None:
        self.require_database()
        study = finding.find_study(slug)
        try:
            found = aligning.alignment_of(
                study, alphas=alpha, threshold=threshold, samples=samples, condition=condition
            )
        except ValueError as exc:
            raise HunchError(str(exc)) from exc
        self._notes(found.notes)
        self._print(list(found.scores), alpha, found.pairs)
        averages = found.averages
        self.stdout.write(
            f"\nBeliefs mix this study's averages ({averages.prior:.3f} before, {averages.posterior_correct:.3f} after "
            f"a correct, {averages.posterior_incorrect:.3f} after an incorrect answer) by the predictions of "
            f"{found.predictor} for stage {found.stage}. In brackets: 95 % intervals, pairs and respondents resampled."
        )
        if found.beliefs is not None:
            low, high = found.beliefs.interval
            self.stdout.write(
                f"\nHow well beliefs are predicted, out of sample (mean squared error, {found.beliefs.n} answers): "
                f"mixture {found.beliefs.mixture:.4f}, regression {found.beliefs.regression:.4f}; difference "
                f"{found.beliefs.improvement:.4f} [{low:.4f}, {high:.4f}]"
            )
        for deployed in found.deployment:
            self._print_deployment(deployed)
        lines = aligning.failures_of(study, task=task, condition=condition)
        if lines and failures:
            self.stdout.write("\nPairs that led people astray: right on the evidence, believed more, then wrong")
            rows = [
                [one.llm, one.evidence.external_id, one.target.external_id, f"+{one.gain:.1f}", str(one.answers)]
                for one in lines[:failures]
            ]
            self.stdout.write(table(["model", "evidence", "target", "points", "answers"], rows))
        if out is not None:
            self._write(out, found.comparison, list(found.scores), list(found.differences))
            self._write_failures(out, lines)

    def _print_deployment(self, deployed: aligning.DeploymentTable) -> None:
        rule = deployed.rule
        how = f"where the belief is above {rule.threshold:g}" if rule.kind == "threshold" else "as often as believed"
        self.stdout.write(f"\nHuman-deployed performance: deployed {how}; beliefs by {deployed.beliefs}")
        if deployed.note:
            self.stdout.write(deployed.note)
        rows = [
            [
                one.name,
                f"{one.mean:.3f} [{one.mean_interval[0]:.3f}, {one.mean_interval[1]:.3f}]",
                percent(one.share),
                f"{one.performance:.3f} [{one.performance_interval[0]:.3f}, {one.performance_interval[1]:.3f}]",
            ]
            for one in deployed.models
        ]
        self.stdout.write(table(["model", "correct", "deployed", "performance"], rows))
        for one in deployed.reversals:
            self.stdout.write(
                f"{one.better} answers more correctly than {one.worse} (by {one.mean_difference:.3f}) and does worse "
                f"when deployed (by {-one.performance_difference:.3f})."
            )

    def _write_failures(self, folder: Path, lines: list[aligning.FailureLine]) -> None:
        with replace_file(folder / "failures.csv") as path, path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(
                ["llm", "evidence_id", "target_id", "evidence_task", "target_task", "gain_points", "answers"]
            )
            writer.writerows(
                [
                    one.llm,
                    one.evidence.external_id,
                    one.target.external_id,
                    one.evidence.task.name,
                    one.target.task.name,
                    repr(one.gain),
                    one.answers,
                ]
                for one in lines
            )
        self.stdout.write(f"wrote {folder / 'failures.csv'}")

    def _notes(self, notes: Sequence[str]) -> None:
        for note in notes:
            self.stderr.write(f"note: {note}")

    def _refuse(self, why: str, **given: Any) -> None:
        for name, value in given.items():
            if value is not None:
                raise HunchError(f"--{name.replace('_', '-')}: {why}")

    def _of_bank(self, name: str) -> Iterator[tuple[str, str, str]]:
        self.require_database()
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

    def _write(self, folder: Path, comparison: Comparison, scores: list[Score], differences: list[Difference]) -> None:
        from survey.instruments.belief_update.figures.accuracy import accuracy_curves

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
                self._write_differences(csv.writer(file), differences)
            with replace_file(folder / "alignment.svg") as path:
                accuracy_curves(comparison, path)
        except OSError as exc:
            raise HunchError(f"--out {folder}: cannot be written ({exc.strerror}): choose another folder") from exc
        for name in ("alignment.csv", "differences.csv", "alignment.svg"):
            self.stdout.write(f"wrote {folder / name}")

    @staticmethod
    def _write_differences(writer: Any, differences: list[Difference]) -> None:
        measures = ("accuracy", "cross_entropy")
        parts = [f"{measure}{part}" for measure in measures for part in ("_difference", "_low", "_high", "_p")]
        writer.writerow(["first", "second", "pairs", "alpha", *parts])
        for found in differences:
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
                writer.writerow([found.first, found.second, found.pairs, f"{alpha:g}", *map(cell, values)])


def shown(value: float) -> str:
    return decimal(float(value), 3) if np.isfinite(value) else "-"


def cell(value: float) -> str:
    """Every digit; empty where the measure is not defined."""
    return repr(float(value)) if np.isfinite(value) else ""
