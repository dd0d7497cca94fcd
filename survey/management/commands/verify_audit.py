"""`manage.py verify_audit`: make the hashes of the audit's chain again, and compare. The audit says what was found."""

from argparse import ArgumentParser
from typing import Any

from survey.console.command import HunchCommand
from survey.operation import audit_checks
from survey.services.base import audit_chain


class Command(HunchCommand):
    help = (
        "Check the audit's chain: names entries that were changed, removed or inserted, the head, and what is not "
        "sealed yet; status 1 if something is wrong."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--head",
            metavar="SHA256",
            default="",
            help="a head that was printed earlier, for instance by an export: it must still be in the chain",
        )

    def handle(self, *args: Any, head: str, **options: Any) -> None:
        found = audit_checks.check(expected=head.strip().lower(), via="command")
        if not found.seen:
            found.add(f"no seal has the hash {head}: the chain was cut, or made anew from its beginning")
        if found.sealed_at:
            self.stdout.write(f"head: seal {found.number}, {found.sha256}, of {audit_chain.written(found.sealed_at)}")
        else:
            self.stdout.write("head: none, nothing is sealed yet")
        if found.unsealed:
            self.stdout.write(f"not sealed yet: {found.unsealed} entries, from {found.tail[0]} to {found.tail[1]}")
        for fault in found.faults:
            self.stderr.write(fault)
        if found.fault_count:
            self.stderr.write(f"the audit does not agree with its chain: {found.fault_count} faults")
            raise SystemExit(1)
        self.stdout.write(f"{found.number} entries agree with the chain")
