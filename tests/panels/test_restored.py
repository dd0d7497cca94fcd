"""After a restore nobody knows what was paid since the backup: a person looks before anything is paid."""

from pathlib import Path

import pytest
from django.utils import timezone

from survey.backups import making, restoring, sealing
from survey.exceptions import StateRefused
from survey.models import PaymentBatch, Posting
from survey.panels import money
from survey.panels.prolific.account import ProlificAccount
from survey.panels.prolific.fake import FakeProlific
from survey.panels.submissions import read_posting
from tests import cast

from .world import PAY, arrives, begins, posted, stored_posting, stored_submission

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

PASSPHRASE = "correct horse battery staple"


@pytest.fixture(autouse=True)
def cheap_scrypt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealing, "COST", 4)


def no_call_is_on_its_way(monkeypatch: pytest.MonkeyPatch) -> None:
    now = timezone.now
    monkeypatch.setattr(timezone, "now", lambda: now() + ProlificAccount.longest_call)


@pytest.mark.every_database
def test_no_bonus_is_paid_twice_after_a_restore(
    tmp_path: Path, fake: FakeProlific, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    with pytest.raises(StateRefused, match="read it first"):
        money.settle(held, was_paid=True)
    read_posting(posting)
    with pytest.raises(StateRefused, match="may be on its way"):
        money.settle(held, was_paid=True)  # By the server that ran until the restore.
    no_call_is_on_its_way(monkeypatch)
    money.settle(held, was_paid=True)
    assert money.owed(posting) == [] and money.pay_owed(posting) == [] and len(fake.paid) == 1


@pytest.mark.parametrize("was_paid", [True, False])
def test_what_became_owed_and_was_paid_after_the_backup_is_held_once_the_panel_says_so(
    tmp_path: Path, fake: FakeProlific, monkeypatch: pytest.MonkeyPatch, was_paid: bool
) -> None:
    """At the time of the backup nobody was late yet."""
    posting = posted()
    places = [arrives(fake, posting) for _ in range(2)]
    for place in places:
        begins(posting.study, place)
    read_posting(posting)
    making.make(tmp_path / "a.backup", PASSPHRASE)
    for place in places:
        fake.time_out(place["id"])
    read_posting(posting)
    if was_paid:
        money.pay_owed(posting)
    restoring.restore(tmp_path / "a.backup", PASSPHRASE, listed=[], replace=True)
    posting = Posting.objects.select_related("study__bank", "stage").get()
    assert PaymentBatch.objects.get().payments.count() == 0 and money.committed(posting.study) == 600
    for _reading in range(2):
        read_posting(posting)
        held = PaymentBatch.objects.get()
        assert (held.payments.count(), money.owed(posting), held.needs_a_person) == (2, [], True)
        assert money.committed(posting.study) == 800
    later = arrives(fake, posting)  # They cannot have been paid before.
    begins(posting.study, later)
    fake.time_out(later["id"])
    read_posting(posting)
    assert held.payments.count() == 2 and len(money.owed(posting)) == 1
    with pytest.raises(StateRefused, match="--settle"):
        money.pay_owed(posting)
    no_call_is_on_its_way(monkeypatch)
    money.settle(held, was_paid=was_paid)
    money.pay_owed(posting)
    assert sorted(who for who, _units in fake.paid) == sorted(place["id"] for place in [*places, later])
    assert money.owed(posting) == []


def test_nothing_is_held_where_nobody_could_be_paid_any_more() -> None:
    """Their ids were removed: no reading could ever settle it."""
    study = cast.open_study(panel={**cast.PROLIFIC, **PAY}, stages=[{"sittings": 6}])
    purged, payable, empty = (stored_posting(study) for _ in range(3))
    stored_submission(purged, None, "APPROVED", ids_encrypted=b"")
    stored_submission(payable, None, "APPROVED")
    restoring._hold_payments(timezone.now())
    assert list(PaymentBatch.objects.values_list("posting", flat=True)) == [payable.pk]
    assert not empty.payment_batches.exists()
