"""What the screens show: the beginning of a sentence, and nothing of what follows in it."""

from typing import TYPE_CHECKING

from django.utils.translation import gettext as _

from survey.contracts.screens import Screen

from .forms import WordForm

if TYPE_CHECKING:
    from survey.models import Assignment

WORD, AGAIN = "word", "word_again"


def next_screen(assignment: "Assignment") -> Screen | None:
    """The field; once more where several words were typed; then nothing."""
    words = [response.written_word for response in assignment.responses.all() if hasattr(response, "written_word")]
    if len(words) > 1 or (words and not words[0].several):
        return None
    return screen_of(assignment.slot.item.asked_word.fragment, again=bool(words))


def screen_of(fragment: str, *, again: bool) -> Screen:
    words = {"again": _("Please write one word only.")} if again else {}
    if not fragment:
        words["begin"] = _("The sentence begins with")
    return Screen(
        name=AGAIN if again else WORD,
        title=_("How does the sentence go on?"),
        template="cloze/word.html",
        form=WordForm,
        parts={"fragment": {"kind": "fragment", "value": fragment}},
        words=words,
    )
