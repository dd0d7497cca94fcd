"""Writes `starter.csv` again: `python -m tools.starter_bank`."""

import sys

from .build import STARTER_BANK, bank_rows, bank_text

STARTER_BANK.write_text(bank_text(), encoding="utf-8", newline="\n")
sys.stdout.write(f"wrote {len(bank_rows())} questions to {STARTER_BANK.name}\n")
