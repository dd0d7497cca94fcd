"""What a panel takes in addition to what people get. All money is in whole cents or pence. Imports nothing."""

from dataclasses import dataclass

from survey.figures.words import short


@dataclass(frozen=True)
class FeeRates:
    """In hundredths of a percent: `fee` of what people get, `vat` of the fee. `fixed` is what a posting costs in
    addition to that whatever happens, in cents, with its VAT."""

    fee: int = 0
    vat: int = 0
    fixed: int = 0

    def fee_on(self, cents: int) -> int:
        """Half a cent counts as a whole one."""
        return _share(cents, self.fee)

    def vat_on(self, cents: int) -> int:
        return _share(self.fee_on(cents), self.vat)

    def on(self, cents: int) -> int:
        """Fee and VAT on what people get."""
        return self.fee_on(cents) + self.vat_on(cents)

    def __str__(self) -> str:
        return f"{short(self.fee / 100)} %, and {short(self.vat / 100)} % VAT on it"


def _share(cents: int, hundredths: int) -> int:
    return (2 * cents * hundredths + 10_000) // 20_000
