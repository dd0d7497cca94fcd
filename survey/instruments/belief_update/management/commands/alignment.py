"""`manage.py alignment`: do language models perform as people expect? Tables 2 and 5, from files or of a study.

With --study it is the same as the report `alignment`.
"""

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from survey.console.command import add_condition
from survey.console.reports import ReportCommand
from survey.contracts.reports import Findings
from survey.exceptions import HunchError
from survey.instruments.belief_update.reports import aligning
from survey.instruments.belief_update.reports.alignment import (
    PAPER_ALPHAS,
    PAPER_AVERAGES,
    AlignmentComparison,
    Averages,
)
from survey.instruments.belief_update.reports.alignment_files import match, read_answers, read_questions, read_sample
from survey.instruments.belief_update.reports.alignment_tables import (
    accuracy_picture,
    differences_table,
    scores_table,
)
from survey.services.banks import importing as question_banks
from survey.services.studies import finding

FILE_SAMPLES = 10_000


def alphas_of(text: str) -> list[float]:
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a list of numbers such as 1,19,50,99") from None
    if not all(np.isfinite(value) and value >= 0 for value in values):
        raise ArgumentTypeError(f"{text!r}: an alpha is a finite number of 0 or more; 19 is a threshold of 95 %")
    return values


class Command(ReportCommand):
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
        parser.add_argument("--seed", type=int, metavar="N", help="of the resamples, with --sample (0)")
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
        seed: int | None,
        out: Path | None,
        **options: Any,
    ) -> None:
        beliefs = {name: options[name] for name in ("prior", "posterior_correct", "posterior_incorrect")}
        if study is not None:
            self._refuse(
                "is for files: a study has its own", answers=answers, questions=questions, bank=bank, **beliefs
            )
            self._refuse("is for files: a study's resamples follow from its own seed", seed=seed)
            self._of_study(
                study, alpha=alpha, samples=aligning.SAMPLES if samples is None else samples, out=out, **options
            )
            return
        if options["condition"]:
            raise HunchError("--condition: is for --study: files have no conditions")
        if answers is None or (questions is None and bank is None):
            raise HunchError("--sample: needs --answers FILE and, for the ids, --questions FILE or --bank NAME")
        source = read_questions(questions) if questions else self._of_bank(str(bank))
        try:
            page = _from_files(
                str(sample),
                answers,
                source,
                alphas=alpha,
                beliefs={name: value for name, value in beliefs.items() if value is not None},
                samples=FILE_SAMPLES if samples is None else samples,
                seed=seed or 0,
            )
        except ValueError as exc:
            raise HunchError(str(exc)) from exc
        self.show_findings(page, out=out)

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
        given = {
            "alpha": [repr(value) for value in alpha],
            "threshold": [str(threshold)],
            "samples": [str(samples)],
            "failures": [str(failures)],
            "task": [task],
            "condition": condition,
        }
        self.show(finding.find_study(slug), "alignment", given, out=out)

    def _refuse(self, why: str, **given: Any) -> None:
        for name, value in given.items():
            if value is not None:
                raise HunchError(f"--{name.replace('_', '-')}: {why}")

    def _of_bank(self, name: str) -> Iterator[tuple[str, str, str]]:
        self.require_database()
        bank = question_banks.find_bank(name)
        rows = bank.questions.order_by("position").values_list("external_id", "task__name", "text")
        return rows.iterator(chunk_size=2000)


def _from_files(
    sample: str,
    answers: str,
    questions: Iterator[tuple[str, str, str]],
    *,
    alphas: list[float],
    beliefs: Mapping[str, float],
    samples: int,
    seed: int,
) -> Findings:
    pairs = read_sample(sample)
    given = read_answers(answers)
    matched = match(pairs, questions, given)
    comparison = AlignmentComparison(
        matched.trials,
        change_if_correct=pairs.change_if_correct,
        change_if_incorrect=pairs.change_if_incorrect,
        averages=Averages(**{**asdict(PAPER_AVERAGES), **beliefs}),
        samples=samples,
        rng=np.random.default_rng(seed),
    )
    names = list(comparison.trials)
    differences = []
    for place, first in enumerate(names):
        for second in names[place + 1 :]:
            with suppress(ValueError):  # The two models have no pair in common to compare.
                differences.append(comparison.difference(first, second, alphas))
    return Findings(
        title="Do language models perform as people expect?",
        tables=[
            scores_table(
                [comparison.score(name, alphas) for name in names],
                pairs=len(pairs),
                note="In brackets: 95 % intervals, pairs resampled; predictions and mean beliefs as given.",
            ),
            differences_table(differences, alphas),
        ],
        pictures=[accuracy_picture(comparison)],
        notes=matched.notes,
    )
