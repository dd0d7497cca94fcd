"""Anybody with the address. A person is known by a random identity that is made for their browser."""

from survey.contracts.panels import Panel


class Open(Panel):
    contract = 1
    name = "open"
    title = "anybody with the address"
    is_open = True
    ids_are_secret = True
    has_submissions = False
