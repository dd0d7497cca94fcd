"""`manage.py invite SLUG --wave N`: everybody who finished the wave before is invited to the next one."""

from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from survey.console.command import HunchCommand
from survey.contracts import panels
from survey.exceptions import HunchError
from survey.panels import inviting
from survey.services.base.writing import write_private_file
from survey.services.studies import lookup


class Command(HunchCommand):
    help = (
        "Invite everybody who finished the wave before: with links of their own, in a file, or into the panel's group "
        "of those who are invited. Run it again for those who were not due yet."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", metavar="SLUG")
        parser.add_argument("--wave", type=int, required=True, metavar="N", help="2 or more")
        parser.add_argument(
            "--out",
            type=Path,
            metavar="FILE.csv",
            help="for links: a new file, for you alone",
        )
        parser.add_argument("--root", metavar="URL", help="scheme and host under which people reach this server")

    def handle(self, *args: Any, slug: str, wave: int, out: Path | None, root: str | None, **options: Any) -> None:
        study = lookup.find_study(slug)
        if not panels.of_study(study).invites_by_links:
            self.stdout.write(inviting.invite(study, wave, root=root).sentence)
            return
        if out is None:
            raise HunchError("--out: name a new file for the links, which are shown only there")
        made: list[inviting.Invited] = []

        def lines() -> Iterator[str]:
            # Links are made after the file is opened: links that cannot be written could never be shown again.
            made.append(inviting.invite(study, wave, root=root))
            yield from inviting.lines_of(made[0])

        write_private_file(out, lines())
        self.stdout.write(f"wrote {out}: {made[0].sentence}")
