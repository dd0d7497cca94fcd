"""`manage.py simulate SLUG --respondents N`: simulated people take part over HTTP."""

from argparse import ArgumentParser
from typing import Any

from survey.console.command import HunchCommand
from survey.console.progress_bars import bar
from survey.exceptions import HunchError
from survey.figures.words import short
from survey.services.stages import test_stages
from survey.services.studies import lookup
from survey.simulator import REALISTIC, Crowd, Rates, SimulationError

HABITS = {
    "dropouts": "people who leave for good",
    "returners": "people who leave and come back, half of them after their sitting has expired",
    "speeders": "people who answer at random",
    "double_tabs": "people who send pages twice, from two tabs or after a reply got lost",
    "scanners": "programs that open links and only read",
}
LONGEST_LOOK = 600  # seconds


class Command(HunchCommand):
    help = "Send simulated respondents into the open stage of a study, over HTTP, on this machine only."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", metavar="SLUG")
        parser.add_argument("--respondents", type=int, required=True, metavar="N")
        parser.add_argument(
            "--test",
            action="store_true",
            help="send them through the study's test copy, which is made or renewed where that is needed, and opened",
        )
        parser.add_argument("--base-url", default="http://127.0.0.1:8000", metavar="URL", help="a loopback address")
        parser.add_argument("--concurrency", type=int, default=4, metavar="K", help="people at a time")
        parser.add_argument("--seed", type=int, metavar="S", help="for the people; default: the study's")
        parser.add_argument("--null", action="store_true", help="changes do not depend on the pair")
        parser.add_argument(
            "--people",
            default="",
            metavar="KIND",
            help="which simulated people, where the instrument has several kinds: for evidence in steps bayes, "
            "additive, averaging, anchoring or recency",
        )
        parser.add_argument("--through", choices=["pages", "api"], default="pages")
        for name, what in HABITS.items():
            parser.add_argument(
                f"--{name.replace('_', '-')}",
                type=float,
                default=getattr(REALISTIC, name),
                metavar="SHARE",
                help=f"{what}, a share of the people (default: %(default)s)",
            )
        parser.add_argument(
            "--pace", type=float, default=0.0, metavar="SECONDS", help="how long people look at a page (default: 0)"
        )

        parser.add_argument(
            "--return-chance",
            type=float,
            default=1.0,
            metavar="P",
            help="in a later wave: the chance that who finished the wave before comes back (default: 1)",
        )

    def handle(
        self,
        *args: Any,
        slug: str,
        respondents: int,
        base_url: str,
        concurrency: int,
        seed: int | None,
        null: bool,
        people: str,
        through: str,
        pace: float,
        test: bool,
        return_chance: float,
        **options: Any,
    ) -> None:
        for name, value in (("--respondents", respondents), ("--concurrency", concurrency)):
            if value < 1:
                raise HunchError(f"{name}: {value} is not 1 or more")
        if not 0 <= pace <= LONGEST_LOOK:
            raise HunchError(f"--pace: {short(pace)} is not between 0 and {LONGEST_LOOK} seconds")
        if not 0 <= return_chance <= 1:
            raise HunchError(f"--return-chance: {short(return_chance)} is not between 0 and 1")
        study = lookup.find_study(slug)
        if test:
            study = test_stages.open_copy(study, via="simulate").study
            slug = study.slug
        crowd = Crowd(
            study=study,
            respondents=respondents,
            base_url=base_url,
            seed=seed,
            null=null,
            people=people,
            through=through,
            concurrency=concurrency,
            rates=Rates(**{name: options[name] for name in HABITS}),
            pace=pace,
            return_chance=return_chance,
        )
        respondents = len(crowd.people)  # In a later wave only those who come back.
        with bar(total=respondents, name="respondents", unit=" people") as progress_bar:
            outcomes = crowd.run(lambda visit: progress_bar.update())
        counts = ", ".join(f"{count} {outcome.replace('_', ' ')}" for outcome, count in outcomes.most_common())
        self.stdout.write(f"{respondents} simulated people visited {slug}: {counts}")
        report = crowd.report()
        for line in report.lines:
            self.stdout.write(f"  {line}")
        if report.differences:
            raise SimulationError("\n".join(("the server's counts differ:", *report.differences)))
        self.stdout.write("The server has counted the same: " + ", ".join(report.agreed))
