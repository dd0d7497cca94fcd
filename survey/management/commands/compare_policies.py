"""`manage.py compare_policies SLUG`: what other policies would have found in each stage, from its logs."""

import csv
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bandit import Estimate
from survey.console.command import HunchCommand
from survey.console.text_tables import table
from survey.exceptions import HunchError
from survey.services.base.writing import replace_file
from survey.services.results import comparing
from survey.services.results.comparing import PolicyLine, StageComparison
from survey.services.studies import finding

COLUMNS = (
    *("stage", "policy", "predictor", "plain", "plain_low", "plain_high"),
    *("self_normalised", "self_normalised_low", "self_normalised_high"),
    *("difference", "difference_low", "difference_high", "difference_standard_error"),
    *("effective_sample_size", "unsupported", "answers", "reason"),
)


class Command(HunchCommand):
    help = "Say what another epsilon, top fraction, design or predictor would have found in each frozen stage."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", metavar="SLUG")
        parser.add_argument("--epsilon", type=float, nargs="+", default=[], metavar="E")
        parser.add_argument("--top-fraction", type=float, nargs="+", default=[], metavar="F")
        parser.add_argument(
            "--design",
            action="append",
            default=[],
            metavar="KIND[:NAME=VALUE,...]",
            help="for instance uniform or softmax:temperature=0.05,floor=0.1; may be given again",
        )
        parser.add_argument(
            "--predictor",
            action="append",
            default=[],
            metavar="NAME",
            help="trained on the answers before each stage alone; may be given again (default: the last of "
            "the instrument's baselines, which is quick; bert takes as long as it took in the study)",
        )
        parser.add_argument("--out", type=Path, metavar="DIR", help="write policies.csv")

    def handle(
        self,
        *args: Any,
        slug: str,
        epsilon: list[float],
        top_fraction: list[float],
        design: list[str],
        predictor: list[str],
        out: Path | None,
        **options: Any,
    ) -> None:
        for name, values in (("--epsilon", epsilon), ("--top-fraction", top_fraction)):
            if any(not 0 < value < 1 for value in values):
                raise HunchError(f"{name}: must lie strictly between 0 and 1, not {values}")
        stages = comparing.compare(
            finding.find_study(slug),
            epsilons=epsilon,
            top_fractions=top_fraction,
            designs=[comparing.parse_design(text) for text in design],
            predictors=predictor or None,
            say=lambda text: self.stderr.write(f"training, {text}"),
        )
        for line in _page(stages):
            self.stdout.write(line)
        if out is not None:
            self.stdout.write(f"wrote {_write(stages, out)}")


def _page(stages: Sequence[StageComparison]) -> Iterator[str]:
    yield "Each stage separately: the same candidates, and the answers before it. Figures: expected finding per answer."
    yield "Logs cannot say how a whole study would have gone: its later stages would have learnt from other answers."
    for stage in stages:
        yield ""
        found = "nothing" if stage.logged is None else _number(stage.logged, stage.unit)
        yield (
            f"Stage {stage.stage}, planned {stage.design}: {stage.answers} answers to {stage.slots} slots found {found}"
            f"{f' ({stage.title})' if stage.title else ''}"
        )
        if stage.reason:
            yield f"  cannot be compared: {stage.reason}"
            continue
        yield table(
            ["policy", "predictor", "self-normalised", "plain", "more than planned", "ESS", "note"],
            [_row(line, stage.unit) for line in stage.policies],
        )


def _row(line: PolicyLine, unit: str) -> list[str]:
    if line.found is None:
        return [line.policy, line.predictor or "none", "-", "-", "-", "-", line.reason]
    return [
        line.policy,
        line.predictor or "none",
        "-" if line.reason else _number(line.found.self_normalised, unit),
        "-" if line.reason else _number(line.found.plain, unit),
        "-" if line.difference is None else _number(line.difference, unit),
        f"{line.found.effective_sample_size:.0f}",
        line.reason,
    ]


def _number(estimate: Estimate, unit: str) -> str:
    scale, digits, sign = (100, 1, " %") if unit == "share" else (1, 2, "")
    value, low, high = (f"{scale * number:.{digits}f}" for number in (estimate.value, *estimate.interval))
    return f"{value}{sign} [{low}, {high}]" if estimate.has_interval else f"{value}{sign}"


def _write(stages: Sequence[StageComparison], folder: Path) -> Path:
    path = folder / "policies.csv"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with replace_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(COLUMNS)
            for stage in stages:
                for line in stage.policies:
                    writer.writerow([stage.stage, line.policy, line.predictor, *_values(line), line.reason])
    except OSError as exc:
        raise HunchError(f"{folder}: cannot be written: {exc.strerror}") from exc
    return path


def _values(line: PolicyLine) -> list[Any]:
    """Without enough support the figures are left out here too; how little there was stays."""
    if line.found is None:
        return [""] * 13
    plain, other = line.found.plain, line.found.self_normalised
    support = [line.found.effective_sample_size, line.found.unsupported, other.n]
    if line.reason:
        return [*[""] * 10, *support]
    difference: list[Any] = [""] * 4
    if line.difference is not None:
        difference = [line.difference.value, *_ends(line.difference), line.difference.standard_error]
    return [plain.value, *_ends(plain), other.value, *_ends(other), *difference, *support]


def _ends(estimate: Estimate) -> tuple[Any, Any]:
    return estimate.interval if estimate.has_interval else ("", "")
