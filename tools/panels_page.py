"""Writes docs/panel-contract.md: what a panel and its client have, as the contract's classes say it.

python -m tests.renew panels
"""

from .instruments_page import ROOT, page_of

TARGET = ROOT / "docs" / "panel-contract.md"
NOTE = "<!-- Written by `python -m tests.renew panels`: change survey/contracts/panels.py and panel_api.py. -->"
INTRODUCTION = """# The contract of a panel

All that a panel may say of itself, and every call that its client may have. [Adding a panel](panels.md#adding-a-panel)
begins with a package that works. A member marked *required* has no default.
"""
CLASSES = {
    "panels": (
        *("Panel", "PanelOptions", "PanelClient"),
        *("PanelError", "PanelUnreachable", "PanelBusy", "PanelRefused", "PanelMissing", "PanelCannot", "EventRefused"),
        *("SubmissionStatus", "PostingState", "ReturnReason", "Verdict", "EventSubject"),
        *("PanelIds", "LookedUp", "PostingAtPanel", "SubmissionAtPanel", "Bonus", "PreparedBonuses", "Event"),
        *("PostingCost", "Wallet", "PayAdvice", "PanelRehearsal", "Demographics"),
        *("Invitee", "Invitations", "InviteLink"),
    ),
    "panel_api": ("HttpPanelClient", "PanelApi", "Answer"),
}


def page() -> str:
    """The page as it should be."""
    return page_of(CLASSES, introduction=INTRODUCTION, note=NOTE)


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
