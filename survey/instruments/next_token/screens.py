"""What the screens show: the text up to the next token, whether the last guess was right, and nothing that follows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _

from survey.contracts.screens import Screen

from .ending import STOP, EndingForm
from .forms import form_of
from .wording import word_for_people

if TYPE_CHECKING:
    from survey.models import Assignment, TokenizerRecord

    from .models import TokenRun

ENDING = "ending"
SCRIPT = "frontend/tokens.js"


@dataclass(frozen=True)
class GuessMade:
    """A guess that was made: its text, the true token's, whether they are the same, and how many were made there."""

    text: str
    truth: str
    right: bool
    tries: int = 1


@dataclass(frozen=True)
class ShownToken:
    """A token that follows, and whether people are asked for it."""

    text: str
    asked: bool


MOST_TRIES = 15
"""Wrong guesses of a character, in Shannon's game, after which the text shows it."""


def attempts_of(assignment: "Assignment") -> list[Any]:
    """The typed rows of all guesses so far, in order."""
    return [response.token_guess for response in assignment.responses.all() if hasattr(response, "token_guess")]


def guesses_of(assignment: "Assignment") -> list[Any]:
    """Those that are somebody's first ones of a token."""
    return [guess for guess in attempts_of(assignment) if guess.attempt == 1]


@dataclass(frozen=True)
class Play:
    """Where a run stands: the guesses of each token that is done, and those of the one that is not."""

    done: Sequence[Sequence[Any]]
    tried: Sequence[Any]

    @classmethod
    def of(cls, attempts: Sequence[Any], *, until_right: bool) -> "Play":
        """
        Args:
            attempts: rows of guesses, in order.
        """
        by_place = [list(guesses) for _place, guesses in groupby(attempts, key=attrgetter("place"))]
        if by_place and until_right and not (by_place[-1][-1].right or len(by_place[-1]) >= MOST_TRIES):
            return cls(by_place[:-1], by_place[-1])
        return cls(by_place, [])


def next_screen(
    assignment: "Assignment",
    *,
    reveal: bool,
    until_right: bool = False,
    may_stop: bool = False,
    standing: Callable[[], Mapping[str, str]] | None = None,
) -> Screen | None:
    """The next guess; after the last one a page that tells whether it was right; then nothing.

    Args:
        may_stop: that page has a button that ends the items. standing: what it says of all guesses so far.
    """
    run: TokenRun = assignment.slot.item.token_run
    tokens = run.run_tokens
    pieces = [ShownToken(run.text_of(token), token.asked) for token in tokens]
    if any(response.screen == ENDING for response in assignment.responses.all()):
        return None
    play = Play.of(attempts_of(assignment), until_right=until_right)
    made = [
        GuessMade(guesses[0].text, run.text_of(tokens[guesses[0].place]), guesses[0].right, len(guesses))
        for guesses in play.done
    ]
    screen = screen_of(
        run.question.plain[: tokens[0].start],
        pieces,
        made,
        tokenizer=run.tokenizer,
        reveal=reveal,
        tried=[guess.text for guess in play.tried],
    )
    if screen is None or screen.name != ENDING:
        return screen
    words = {**screen.words, **(standing() if standing is not None else {})}
    if not may_stop:
        return replace(screen, words=words)
    return replace(screen, words=words, form=EndingForm, stop_field=STOP)


def screen_of(
    before: str,
    pieces: Sequence[ShownToken],
    made: Sequence[GuessMade],
    *,
    tokenizer: "TokenizerRecord",
    reveal: bool,
    tried: Sequence[str] = (),
) -> Screen | None:
    """The screen after these guesses of the pieces that are asked for, in order; None without any such piece. `tried`:
    wrong guesses of the next one."""
    places = [place for place, piece in enumerate(pieces) if piece.asked]
    if not places:
        return None
    done = len(made)
    at = places[done] if done < len(places) else len(pieces)
    told_from = places[done - 1] if done else 0
    # The token that was asked last, and the given ones after it, are the new part of the text.
    text = before + "".join(piece.text for piece in pieces[:told_from])
    new = "".join(piece.text for piece in pieces[told_from:at])
    words = {"count": _("Guess %(number)s of %(all)s") % {"number": done + 1, "all": len(places)}}
    if tried:
        words["verdict"] = _("Not “%(guess)s”. Please guess again.") % {"guess": word_for_people(tried[-1])}
        words["tried"] = _("Wrong so far: %(tried)s") % {"tried": "  ".join(map(word_for_people, tried))}
    elif done and reveal:
        last = made[-1]
        right = sum(guess.right for guess in made)
        words["verdict"] = _verdict(last)
        words["right"] = _("%(right)s of %(all)s right") % {"right": right, "all": done}
    if not text and not new:
        words["begin"] = _("The text begins with")
    parts: dict[str, dict[str, Any]] = {
        "text": {"kind": "fragment", "value": text},
        "new": {"kind": "fragment", "value": new},
        "number": {"kind": "number", "value": str(done + 1)},
    }
    if done == len(places):
        words["count"] = _("This text ends here for you.")
        return Screen(
            name=ENDING, title=_("How the text went on"), template="next_token/guess.html", form=None, parts=parts,
            words=words,
        )  # fmt: skip
    form = form_of(tokenizer, text=text + new, goes_on=bool(made or tried), tried=tried)
    if tried:
        parts["tried"] = {"kind": "fragment", "value": "".join(tried)}
    return Screen(
        name=f"guess_{done + 1}" + (f"_{len(tried) + 1}" if tried else ""),
        title=_("What comes next in the text?"),
        template="next_token/guess.html",
        form=form,
        parts=parts,
        words=words,
        scripts=(SCRIPT,) if form.listed_at else (),
    )


def _verdict(guess: GuessMade) -> str:
    """How a guess went. The same letters may be a word of their own, or the rest of one."""
    said, truth = word_for_people(guess.text), word_for_people(guess.truth)
    if guess.tries > 1:
        return _("It is “%(word)s”, after %(tries)s guesses.") % {"word": truth, "tries": guess.tries}
    if guess.right:
        return _("Right: “%(word)s”.") % {"word": truth}
    if said == truth and guess.truth.startswith(" "):
        return _("Almost: “%(word)s” is right, but as a new word.") % {"word": truth}
    if said == truth:
        return _("Almost: “%(word)s” is right, but it goes on with the word before it.") % {"word": truth}
    return _("Not this time. You wrote “%(guess)s”. The text goes on with “%(word)s”.") % {"guess": said, "word": truth}
