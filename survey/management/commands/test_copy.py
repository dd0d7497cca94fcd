"""`manage.py test_copy SLUG WHAT`: the test copy of a study, for previews and simulated people."""

from argparse import ArgumentParser
from typing import Any

from survey.console.command import HunchCommand
from survey.exceptions import HunchError
from survey.models import Study
from survey.panels.addresses import public_root
from survey.services.sittings import previews
from survey.services.stages import test_stages
from survey.services.studies import lookup, test_copies


class Command(HunchCommand):
    help = (
        "Show, make, renew or delete the test copy of a study, or make the address of a preview. The copy has stages, "
        "places and exports of its own; nothing in it counts in the study, and nobody is paid."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", metavar="SLUG")
        what = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
        for name, text in (
            ("show", "its stages, and whether it has the study's present file"),
            ("make", "make it, or renew it if the study's file has changed"),
            ("renew", "make it again; what happened in it is deleted"),
            ("delete", "delete it with all that happened in it"),
        ):
            what.add_parser(name, help=text)
        preview = what.add_parser("preview", help="an address that leads through the copy's pages, for two weeks")
        preview.add_argument("--language", default="", metavar="CODE", help="default: the study's first")
        preview.add_argument(
            "--level",
            action="append",
            default=[],
            metavar="FACTOR=LEVEL",
            help="shown under this level of a condition; may be given again for another; the others are drawn",
        )
        preview.add_argument("--root", metavar="URL", help="scheme and host under which people reach this server")

    def handle(self, *args: Any, slug: str, what: str, **options: Any) -> None:
        study = lookup.find_study(slug)
        if what == "preview":
            self._preview(study, options)
        elif what == "delete":
            people = test_copies.delete_copy(study)
            self.stdout.write(f"the test copy of {slug} is deleted, with {people} people")
        elif what == "show":
            self._show(test_copies.find_copy(study))
        else:
            make = test_copies.renew_copy if what == "renew" else test_copies.make_copy
            self._show(make(study))

    def _show(self, copy: Study) -> None:
        people = copy.respondents.count()
        stages = ", ".join(f"{index} {state}" for index, state in copy.stages.values_list("index", "state"))
        is_current = "the study's present file" if test_copies.is_current(copy) else "an older file: renew it"
        self.stdout.write(f"{copy.slug}: {people} people; stages {stages}; {is_current}")

    def _preview(self, study: Study, options: dict[str, Any]) -> None:
        levels = {}
        for option in options["level"]:
            factor, equals, level = option.partition("=")
            if not equals:
                raise HunchError(f"--level: {option!r} is not like FACTOR=LEVEL")
            levels[factor] = level
        root = options["root"] or public_root()
        stage = test_stages.open_copy(study)
        self.stdout.write(previews.address_of(stage.study, root=root, language=options["language"], levels=levels))
