"""What a posting has cost, by our rows and by the panel's own account; and what the panel says before it is published.

The panel is asked with each reading of a posting, and what it says is stored with it: pages show it without asking.
What cannot be asked is left out, and the constants of the panel's class stand in for it where there are any.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from django.db.models import Max, Q, Sum
from django.utils import timezone

from survey.contracts import panels
from survey.contracts.panels import PanelClient, PanelError, PostingCost, PostingState, SubmissionStatus
from survey.figures.words import money
from survey.models import Payment, PaymentBatch, Posting

from .asking import state_of, status_of

PAID = PaymentBatch.State.PAID


@dataclass(frozen=True)
class Account:
    """What a posting has cost by our rows, and by the panel's account; None if it has not said.

    `in_part`: people whom somebody paid only a part on the panel's own pages. Our sum takes the whole reward for them.
    `is_behind`: something was approved or paid since the panel was read. `why_not_read`: what kept the panel's account
    from being read the last time.
    """

    here: PostingCost
    there: PostingCost | None
    in_part: int
    is_behind: bool = False
    why_not_read: str = ""

    @property
    def is_in_another_currency(self) -> bool:
        return self.there is not None and self.there.currency not in ("", self.here.currency)

    @property
    def difference(self) -> int:
        """How many cents more the panel counts."""
        return 0 if self.there is None or self.is_in_another_currency else self.there.total - self.here.total

    @property
    def sentence(self) -> str:
        if self.there is None:
            said = "the panel has not said what it has cost"
            return f"{said}: {self.why_not_read}" if self.why_not_read else said
        if self.is_in_another_currency:
            return f"the panel counts in {self.there.currency}, and here in {self.here.currency}: not compared"
        if self.why_not_read:
            return f"what the panel said could not be read the last time, and is an earlier one: {self.why_not_read}"
        if not self.difference:
            return "the same here and at the panel, to the cent"
        if self.is_behind:
            return "something was approved or paid since the panel was read: the next reading compares both"
        more = f"the panel counts {money(abs(self.difference))} {'more' if self.difference > 0 else 'less'}"
        if self.in_part:
            more += f"; {self.in_part} were paid in part there, and here with the whole reward"
        return more


@dataclass(frozen=True)
class Advice:
    """What the panel said before publishing, in cents and hours. None: it could not be asked. `is_said`: the pay is
    what the panel recommends for this account, and not its general recommendation."""

    balance: int | None
    recommended: int | None
    is_said: bool
    hours: float | None


def spent_here(posting: Posting) -> PostingCost:
    """What our rows say: rewards of who was approved, pay of who was screened out, and bonuses."""
    statuses = Counter(status_of(row, posting) for row in posting.submissions.only("status", "posting"))
    rewards = rewards_here(posting, statuses)
    batches = posting.payment_batches.filter(state=PAID)
    bonuses = Payment.objects.filter(batch__in=batches).aggregate(sum=Sum("amount"))["sum"] or 0
    of_bonuses = batches.aggregate(sum=Sum("fees"))["sum"] or 0
    return PostingCost(rewards, bonuses, fees_on_rewards(posting, rewards) + of_bonuses, posting.currency)


def rewards_here(posting: Posting, statuses: Counter[SubmissionStatus]) -> int:
    """Cents for people who were approved or screened out, by how many submissions have each status."""
    approved = sum(people for status, people in statuses.items() if status.is_paid)
    return posting.reward * approved + _screen_out_pay(posting) * statuses[SubmissionStatus.SCREENED_OUT]


def fees_on_rewards(posting: Posting, rewards: int) -> int:
    return posting.fees.on(rewards) + (posting.fees.fixed if rewards else 0)


def _screen_out_pay(posting: Posting) -> int:
    """As it was declared to the panel; the study file's, where the posting was made there."""
    pays = [
        int(action["fixed_screen_out_reward"])
        for code in posting.draft.get("completion_codes", ())
        for action in code.get("actions", ())
        if "fixed_screen_out_reward" in action
    ]
    return pays[0] if pays else posting.study.config.panel.screen_out_pay or 0


def spent_there(posting: Posting) -> PostingCost | None:
    """By the panel's own account when it was read last; None if it has not said."""
    said = posting.panel_facts.get("spent")
    return PostingCost(**said) if said else None


def cost_at_panel(posting: Posting) -> int | None:
    """The same in cents."""
    there = spent_there(posting)
    return None if there is None else there.total


def account_of(posting: Posting) -> Account:
    in_part = [status_of(row, posting) for row in posting.submissions.filter(~Q(status="")).only("status", "posting")]
    return Account(
        here=spent_here(posting),
        there=spent_there(posting),
        in_part=in_part.count(SubmissionStatus.PARTIALLY_APPROVED),
        is_behind=_is_behind(posting),
        why_not_read=posting.panel_facts.get("spent_error", ""),
    )


def _is_behind(posting: Posting) -> bool:
    moments = (
        posting.submissions.aggregate(at=Max("approved_at"))["at"],
        posting.payment_batches.filter(state=PAID).aggregate(at=Max("settled_at"))["at"],
    )
    return posting.read_at is None or any(at is not None and at > posting.read_at for at in moments)


def advice_of(posting: Posting) -> Advice:
    panel, facts = panels.find(posting.panel), posting.panel_facts
    fallback = panel.recommended_an_hour.get(posting.currency)
    return Advice(
        balance=facts.get("balance"),
        recommended=facts.get("recommended") or fallback,
        is_said=bool(facts.get("recommended")),
        hours=facts.get("hours"),
    )


def read(posting: Posting, client: PanelClient) -> None:
    """Ask the panel for what it says of money and time, and store it. What fails is left as it was."""
    facts: dict[str, Any] = dict(posting.panel_facts)
    if not facts.get("fees"):  # Perhaps the highest ones stand there, since it could not be asked before.
        _ask(facts, client, "fees", lambda: {"fees": _take_fees(posting, client)})
    if state_of(posting) == PostingState.DRAFT:
        _ask(facts, client, "wallet", lambda: _balance(posting, client))
        _ask(facts, client, "pay_advice", lambda: _pay_advice(posting, client))
        _ask(facts, client, "recruitment_hours", lambda: {"hours": client.recruitment_hours(posting.external_id)})
    else:
        _ask(facts, client, "spent", lambda: {"spent": asdict(client.spent(posting.external_id)), "spent_error": ""})
    if facts != posting.panel_facts:
        facts["at"] = timezone.now().isoformat()
        Posting.objects.filter(pk=posting.pk).update(panel_facts=facts)
        posting.panel_facts = facts


def _balance(posting: Posting, client: PanelClient) -> dict[str, Any]:
    wallet = client.wallet()
    return {"balance": wallet.available if wallet.currency in ("", posting.currency) else None}


def _pay_advice(posting: Posting, client: PanelClient) -> dict[str, Any]:
    advice = client.pay_advice(posting.currency)
    return {"recommended": advice.recommended, "minimum": advice.minimum} if advice.currency == posting.currency else {}


def _take_fees(posting: Posting, client: PanelClient) -> bool:
    fees = client.fees(posting.external_id)
    Posting.objects.filter(pk=posting.pk).update(fee_rate=fees.fee, vat_rate=fees.vat, fixed_fee=fees.fixed)
    posting.fee_rate, posting.vat_rate, posting.fixed_fee = fees.fee, fees.vat, fees.fixed
    return True


def _ask(facts: dict[str, Any], client: PanelClient, call: str, ask: Callable[[], dict[str, Any]]) -> None:
    if not client.can(call):
        return
    try:
        facts.update(ask())
    except PanelError as exc:
        if call == "spent":
            facts["spent_error"] = exc.message[:300]
