"""`manage.py links SLUG --count N --out FILE.csv`: links for a lab, one person each."""

from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from survey.console.command import HunchCommand
from survey.figures.csv_lines import csv_line
from survey.panels.addresses import public_root
from survey.services.base.writing import write_private_file
from survey.services.sittings import links
from survey.services.studies import lookup


class Command(HunchCommand):
    help = "Make links to a study that let one person in each, and write them into a file: they are shown only there."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", metavar="SLUG")
        parser.add_argument("--count", type=int, required=True, metavar="N", help="how many, up to 5000")
        parser.add_argument("--out", type=Path, required=True, metavar="FILE.csv", help="a new file, for you alone")
        parser.add_argument("--root", metavar="URL", help="scheme and host under which people reach this server")

    def handle(self, *args: Any, slug: str, count: int, out: Path, root: str | None, **options: Any) -> None:
        study = lookup.find_study(slug)
        made: list[links.NewLink] = []

        def lines() -> Iterator[str]:
            # Links are made after the file is opened: links that cannot be written could never be shown again.
            made.extend(links.make_links(study, count=count, root=root or public_root()))
            yield csv_line(["number", "link"])
            yield from (csv_line([link.number, link.address]) for link in made)

        write_private_file(out, lines())
        self.stdout.write(
            f"wrote {out} ({len(made)} links, numbers {made[0].number} to {made[-1].number}); "
            "nobody can show them again: hand each to one person"
        )
