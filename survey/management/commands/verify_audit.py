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
        chain_check = audit_checks.check(expected=head.strip().lower(), via="command")
        if not chain_check.seen:
            chain_check.add(f"no seal has the hash {head}: the chain was cut, or made again from its beginning")
        if chain_check.sealed_at:
            self.stdout.write(
                f"head: seal {chain_check.number}, {chain_check.sha256}, of "
                f"{audit_chain.written(chain_check.sealed_at)}"
            )
        else:
            self.stdout.write("head: none, nothing is sealed yet")
        if chain_check.unsealed:
            self.stdout.write(
                f"not sealed yet: {chain_check.unsealed} entries, from {chain_check.tail[0]} to {chain_check.tail[1]}"
            )
        for fault in chain_check.faults:
            self.stderr.write(fault)
        if chain_check.fault_count:
            self.stderr.write(f"the audit does not agree with its chain: {chain_check.fault_count} faults")
            raise SystemExit(1)
        self.stdout.write(f"{chain_check.number} entries agree with the chain")
