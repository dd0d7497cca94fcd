"""`manage.py compare_models FILE`: a finished table of models, with what goes with what over them."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from survey.console.reports import ReportCommand
from survey.services.results.people_and_models.model_comparison import GROUPS, Threshold, compare_models, read_models


class Command(ReportCommand):
    help = (
        "Models next to each other, from a table with a row per model: model, corpus, architecture, size, and any "
        "columns of numbers such as perplexity, pnc, delta_gaze. Correlations and lines over models, means by group, "
        "pictures."
    )
    needs_database = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", metavar="FILE", type=Path)
        for name in GROUPS:
            parser.add_argument(f"--{name}", default="", metavar="COLUMN", help=f"what the file calls {name}")
        parser.add_argument(
            "--above", default="", metavar="MEASURE=LEAST", help="also among models with at least so much, as pnc=0.4"
        )
        self.add_output_arguments(parser)

    def handle(self, *args: Any, path: Path, above: str, out: Path | None, **options: Any) -> None:
        models = read_models(path, {name: options[name] for name in GROUPS if options[name]})
        threshold = Threshold.read(above, [*models[0].measures]) if above else None
        self.show_result(compare_models(models, above=threshold), out=out)
