"""Refusals that end by themselves: each says when to try again, to people in words and to programs in seconds."""

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from survey.exceptions import EntryRefused


def not_checked(seconds: int) -> EntryRefused:
    """Nobody can say at the moment whether the panel sent this person."""
    sorry = _("We cannot check your link at the moment. You have done nothing wrong, and nothing has been recorded.")
    return EntryRefused(f"{sorry} {_later(seconds)}", code="entry_not_checked", status=503, retry_after=seconds)


def too_many_from_here(seconds: int) -> EntryRefused:
    """The address has used up a budget. Other people may share it, so nobody is accused of anything."""
    sorry = _("Too many people have come from your network in a short time. Nothing has been recorded.")
    return EntryRefused(f"{sorry} {_later(seconds)}", code="too_many_from_here", status=429, retry_after=seconds)


def _later(seconds: int) -> str:
    if seconds < 60:
        words = ngettext("Please try again in %(count)d second.", "Please try again in %(count)d seconds.", seconds)
        return words % {"count": seconds}
    minutes = -(-seconds // 60)
    words = ngettext("Please try again in %(count)d minute.", "Please try again in %(count)d minutes.", minutes)
    return words % {"count": minutes}
