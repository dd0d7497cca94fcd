"""After a restore nobody knows what was paid since the backup: a person looks before anything is paid."""

from pathlib import Path

import pytest

from survey.backups import making, restoring, sealing
from survey.exceptions import StateRefused
from survey.models import PaymentBatch
from survey.panels import money
from survey.panels.prolific.fake import FakeProlific
from survey.panels.submissions import read_posting

from .world import arrives, begins, posted

pytestmark = pytest.mark.django_db(transaction=True)

PASSPHRASE = "correct horse battery staple"


@pytest.fixture(autouse=True)
def cheap_scrypt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealing, "COST", 4)


def test_no_bonus_is_paid_twice_after_a_restore(tmp_path: Path, fake: FakeProlific) -> None:
    posting = posted()
    place = arrives(fake, posting)
    begins(posting.study, place)
    fake.time_out(place["id"])
    read_posting(posting)
    making.make(tmp_path / "a.backup", PASSPHRASE)
    money.pay_owed(posting)
    assert len(fake.paid) == 1
    restoring.restore(tmp_path / "a.backup", PASSPHRASE, listed=[], replace=True)
    with pytest.raises(StateRefused, match="--settle"):
        money.pay_owed(posting)
    held = PaymentBatch.objects.get()
    assert held.payments.count() == 1 and "restored" in held.error
    money.settle(held, was_paid=True)
    assert money.owed(posting) == [] and money.pay_owed(posting) == [] and len(fake.paid) == 1
