"""What the screens show: a passage behind dashes, for a script to uncover word by word, and then its question."""

from typing import TYPE_CHECKING

from django.utils.translation import gettext as _

from survey.contracts.screens import Screen

from .forms import YesNoForm, times_form

if TYPE_CHECKING:
    from survey.models import Assignment

PASSAGE, QUESTION = "passage", "passage_question"
SCRIPT = "self_paced_reading/reading.js"


def next_screen(assignment: "Assignment") -> Screen | None:
    """The passage, its question, nothing."""
    screens = {response.screen for response in assignment.responses.all()}
    passage = assignment.slot.item.read_passage
    if PASSAGE not in screens:
        return passage_screen(passage.words)
    return None if QUESTION in screens else question_screen(passage.asks)


def passage_screen(words: list[str]) -> Screen:
    return Screen(
        name=PASSAGE,
        title=_("Read this text word by word"),
        template="self_paced_reading/passage.html",
        form=times_form(len(words)),
        parts={"passage": {"kind": "passage", "value": " ".join(words)}},
        words={
            "before": _("Press Start when you are ready. The words of the text are then hidden behind lines."),
            "how": _("For each next word press the space bar, or tap the text. You cannot go back."),
            "start": _("Start"),
            "text": _("Text, word by word"),
            "stay": _("Please stay on this page until you have read the last word."),
            "failed": _("The text could not be started. Please check your connection and press Start once more."),
            "needs_script": _(
                "This page needs JavaScript, and your browser does not run it. Please allow it and load the page "
                "again. If you cannot, please give the study back where you found it: this has no disadvantage for you."
            ),
        },
        scripts=(SCRIPT,),
    )


def question_screen(question: str) -> Screen:
    return Screen(
        name=QUESTION,
        title=_("A question about the text"),
        template="self_paced_reading/question.html",
        form=YesNoForm,
        parts={"question_text": {"kind": "passage_question", "value": question}},
    )
