"""What all our commands share: errors are printed one per line, with exit status 1. Commands parse, call and print."""

import os
import sys
from argparse import ArgumentParser
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings
from django.core.management import BaseCommand, call_command
from django.core.management.base import OutputWrapper
from django.db import DEFAULT_DB_ALIAS, OperationalError, connections
from django.db.migrations.executor import MigrationExecutor

from survey.exceptions import HunchError
from survey.services.base import keys
from survey.storage import database
from survey.storage.outages import is_outage


def add_condition(parser: ArgumentParser) -> None:
    """`--condition FACTOR=LEVEL`, any number of times."""
    parser.add_argument(
        "--condition",
        action="append",
        default=[],
        metavar="FACTOR=LEVEL",
        help="only answers under this level of a factor of the study; may be given again for another factor",
    )


def by_argument(arguments: Sequence[str]) -> dict[str, list[str]]:
    """ARGUMENT=VALUE, any number of times, as texts by argument.

    Raises:
        HunchError: one has no equals sign.
    """
    texts: dict[str, list[str]] = defaultdict(list)
    for text in arguments:
        name, equals, value = text.partition("=")
        if not equals:
            raise HunchError(f"{text!r}: write ARGUMENT=VALUE")
        texts[name].append(value)
    return texts


class HunchCommand(BaseCommand):
    requires_system_checks: Any = ()
    # A command that only reads files must work before a database exists.
    needs_database = True
    # All but the commands that deal with the keys themselves.
    checks_keys = True

    def execute(self, *args: Any, **options: Any) -> str | None:
        if options.get("stderr"):
            self.stderr = OutputWrapper(options["stderr"])
        try:
            self.check_options(options)
            if self.needs_database:
                self.require_database()
                if self.checks_keys:
                    keys.check()
            return super().execute(*args, **options)
        except BrokenPipeError:  # The reader of our output, such as `head`, has closed it.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise SystemExit(0) from None
        except HunchError as exc:
            for line in exc.message.splitlines():
                self.stderr.write(line)
            raise SystemExit(1) from exc
        except Exception as exc:
            if not is_outage(exc):
                raise
            self.stderr.write(f"the database or the disk cannot be used: {exc}; fix that, then try again")
            raise SystemExit(1) from exc

    def check_options(self, options: Mapping[str, Any]) -> None:
        """Refuse options that cannot be used, before anything is done.

        Raises:
            HunchError: one cannot be used; says what to do.
        """

    def require_database(self) -> None:
        """Refuse a database of another version.

        Outside production, an empty database gets its tables here: nothing can be lost, and people who try Hunch out in
        a new folder need not know about migrations.
        """
        try:
            executor = MigrationExecutor(connections[DEFAULT_DB_ALIAS])
            wrong = database.version_of_others(executor.loader)
            missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
        except OperationalError as exc:
            raise HunchError(f"the database cannot be used: {exc}; check DATABASE_URL".replace("\n", " ")) from exc
        if wrong:
            raise HunchError(": ".join(wrong))
        if missing and not executor.loader.applied_migrations and not settings.IN_PRODUCTION:
            call_command("migrate", verbosity=0, interactive=False)
            self.stderr.write(f"made the database {connections[DEFAULT_DB_ALIAS].settings_dict['NAME']}")
        elif missing:
            raise HunchError("the database lacks tables of this version: run `hunch migrate` first")
