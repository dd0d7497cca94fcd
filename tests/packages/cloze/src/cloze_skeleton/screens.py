"""The fragment and a field; once more where several words were written."""

from typing import TYPE_CHECKING

from survey.contracts.screens import Screen

from .forms import WordForm
from .models import Gap

if TYPE_CHECKING:
    from survey.models import Assignment

WORD, AGAIN = "word", "word_again"


def next_screen(assignment: "Assignment") -> Screen | None:
    given = list(assignment.responses.select_related("word").order_by("number"))
    if len(given) > 1 or (given and not given[0].word.several):
        return None
    gap = Gap.objects.select_related("question").get(item_id=assignment.slot.item_id)
    return screen_of(gap.fragment, again=bool(given))


def screen_of(fragment: str, *, again: bool) -> Screen:
    words = {"again": "Please write one word only."} if again else {}
    if not fragment:
        words["begin"] = "The sentence begins with"
    return Screen(
        name=AGAIN if again else WORD,
        title="Go on with the sentence",
        template="cloze_skeleton/word.html",
        form=WordForm,
        parts={"fragment": {"kind": "fragment", "value": fragment}},
        words=words,
        scripts=("cloze_skeleton/one_word.js",),
    )
