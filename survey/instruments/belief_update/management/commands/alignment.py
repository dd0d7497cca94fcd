"""`manage.py alignment`: do language models perform as people expect? Tables 2 and 5, from files or of a study.

With --study it is a short name of the report `alignment`: its options are the report's arguments.
"""

from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from survey.console.reports import ReportCommand, add_report_arguments, report_arguments_from
from survey.contracts.reports import ReportArguments, ReportResult
from survey.exceptions import HunchError
from survey.instruments.belief_update.reports.alignment.aligning import model_rows, rules_of
from survey.instruments.belief_update.reports.alignment.domination import (
    DeploymentGap,
    Domination,
    deployment_gaps,
    dominations,
    resampled_pairs,
)
from survey.instruments.belief_update.reports.alignment.domination_report import deployed_table, pairs_table
from survey.instruments.belief_update.reports.alignment.files import match, read_answers, read_questions, read_sample
from survey.instruments.belief_update.reports.alignment.report import LARGEST_ALPHA, MAX_SAMPLES, AlignmentReport
from survey.instruments.belief_update.reports.alignment.scores import (
    PAPER_ALPHAS,
    PAPER_AVERAGES,
    AlignmentComparison,
    Averages,
    Trial,
)
from survey.instruments.belief_update.reports.alignment.tables import (
    accuracy_picture,
    differences_table,
    scores_table,
)
from survey.services.banks import importing as question_banks
from survey.services.studies import lookup

FILE_SAMPLES = 10_000
OF_FILES = ("alpha", "samples", "threshold")  # The report's arguments that files have too.


def alphas_of(texts: Sequence[str]) -> list[float]:
    """
    Raises:
        HunchError: one is not a number of 0 or more.
    """
    arguments = ReportArguments(alpha=tuple(texts))
    return arguments.numbers("alpha", lowest=0, highest=LARGEST_ALPHA) or list(PAPER_ALPHAS)


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
        for name, default in (
            ("prior", PAPER_AVERAGES.prior),
            ("posterior-correct", PAPER_AVERAGES.posterior_correct),
            ("posterior-incorrect", PAPER_AVERAGES.posterior_incorrect),
        ):
            parser.add_argument(f"--{name}", type=float, metavar="P", help=f"mean belief (the paper's {default})")
        parser.add_argument("--seed", type=int, metavar="N", help="of the resamples, with --sample (0)")
        add_report_arguments(parser, AlignmentReport)
        self.add_output_arguments(parser)

    def handle(
        self,
        *args: Any,
        sample: str | None,
        study: str | None,
        answers: str | None,
        questions: str | None,
        bank: str | None,
        seed: int | None,
        out: Path | None,
        **options: Any,
    ) -> None:
        beliefs = {name: options[name] for name in ("prior", "posterior_correct", "posterior_incorrect")}
        asked = report_arguments_from(AlignmentReport, options, lists=["alpha"])
        if study is not None:
            self._refuse(
                "is for files: a study has its own", answers=answers, questions=questions, bank=bank, **beliefs
            )
            self._refuse("is for files: a study's resamples follow from its own seed", seed=seed)
            self.require_database()
            self.show(lookup.find_study(study), "alignment", asked, out=out)
            return
        of_a_study = {name: texts for name, texts in asked.items() if name not in OF_FILES}
        self._refuse("is for --study: files have nothing of it", **of_a_study)
        if answers is None or (questions is None and bank is None):
            raise HunchError("--sample: needs --answers FILE and, for the ids, --questions FILE or --bank NAME")
        defaults = {"samples": (str(FILE_SAMPLES),), "threshold": ("0.5",)}
        arguments = ReportArguments({**defaults, **{name: tuple(texts) for name, texts in asked.items()}})
        source = read_questions(questions) if questions else self._of_bank(str(bank))
        try:
            page = _from_files(
                str(sample),
                answers,
                source,
                alphas=alphas_of(arguments.get("alpha", ())),
                beliefs={name: value for name, value in beliefs.items() if value is not None},
                samples=arguments.whole("samples", lowest=100, highest=MAX_SAMPLES),
                threshold=arguments.number("threshold", lowest=0, highest=0.999),
                seed=seed or 0,
            )
        except ValueError as exc:
            raise HunchError(str(exc)) from exc
        self.show_result(page, out=out)

    def _refuse(self, why: str, **options: Any) -> None:
        for name, value in options.items():
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
    threshold: float,
) -> ReportResult:
    pairs = read_sample(sample)
    model_answers = read_answers(answers)
    matched = match(pairs, questions, model_answers)
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
    pairs_of_models = dominations(matched.given)
    holding = {(pair.better, pair.worse) for pair in pairs_of_models if pair.holds()}
    gaps = _gaps(matched.trials, pairs_of_models, comparison, threshold=threshold, samples=samples, seed=seed)
    return ReportResult(
        title="Do language models perform as people expect?",
        tables=[
            scores_table(
                [comparison.score(name, alphas) for name in names],
                pairs=len(pairs),
                note="For the intervals, pairs are resampled; predictions and mean beliefs are as given.",
            ),
            differences_table(differences),
            *([pairs_table(pairs_of_models, holding), deployed_table(gaps, holding)] if pairs_of_models else []),
        ],
        pictures=[accuracy_picture(comparison)],
        notes=matched.notes,
    )


def _gaps(
    trials: Sequence[Trial],
    pairs_of_models: Sequence[Domination],
    comparison: AlignmentComparison,
    *,
    threshold: float,
    samples: int,
    seed: int,
) -> list[DeploymentGap]:
    """What people get from the better model less what they get from the worse one, by the sample's beliefs."""
    by_name = {trial.name: trial for trial in trials}
    beliefs = {name: comparison.belief(name) for name in by_name}
    both = []
    for pair in pairs_of_models:
        if pair.better in by_name and pair.worse in by_name:
            better_model, other = by_name[pair.better], by_name[pair.worse]
            both.append(
                (model_rows(better_model, beliefs, other.answered), model_rows(other, beliefs, better_model.answered))
            )
    counts = resampled_pairs(len(trials[0].answered), samples=samples, rng=np.random.default_rng([seed, 1]))
    return [gap for rule in rules_of(threshold) for gap in deployment_gaps(both, rule, "mixture", counts=counts)]
