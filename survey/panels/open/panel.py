"""Anybody with the address. Who comes is a browser, by an identity that is made up for it."""

from survey.contracts.panels import Panel


class Open(Panel):
    contract = 1
    name = "open"
    title = "anybody with the address"
    is_open = True
    has_submissions = False
