"""The page behind a text: right guesses so far beside the models' at the same places, and whether to play on."""

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from survey.services.banks import passages
from survey.services.banks.readings import text_hash

from .forms import ListButton
from .models import TokenGuess

if TYPE_CHECKING:
    from survey.models import Assignment

    from .instrument import NextToken

STOP = "stop"


class EndingForm(forms.Form):
    """Continue plays on; the other button ends the items."""

    stop = forms.ChoiceField(
        required=False,
        choices=[("1", gettext_lazy("Stop here"))],
        label=gettext_lazy("Stop here"),
        widget=ListButton(),
    )


def has_more(assignment: "Assignment") -> bool:
    """Whether another text would come."""
    others = assignment.sitting.assignments.filter(completed_at__isnull=True)
    return bool(others.exclude(pk=assignment.pk).exists())


def standing_in_words(instrument: "NextToken", assignment: "Assignment") -> dict[str, str]:
    """What the page says of the sitting's guesses up to this text: the person's right ones, and each model's there. A
    model is counted at the places that it has read, and left out where it has read none."""
    guesses = TokenGuess.objects.filter(
        response__assignment__sitting=assignment.sitting_id,
        response__assignment__position__lte=assignment.position,
        attempt=1,
    )
    made = list(guesses.select_related("response__assignment__slot__item__token_run__question").order_by())
    places: defaultdict[str, list[TokenGuess]] = defaultdict(list)
    questions = {}
    for guess in made:
        question = guess.response.assignment.slot.item.token_run.question
        questions[question.pk] = question
        places[text_hash(question.plain)].append(guess)
    texts = passages.texts_of(list(questions.values()))
    counts = {"all": len(made)}
    said = []
    for model in instrument.study.config.models:
        expected = passages.expectations_of(passages.source_of(model), instrument.tokenizer, texts)
        rights = [
            expected[key][guess.position]["top_id"] == guess.true_token
            for key, of_text in places.items()
            for guess in of_text
            if key in expected and not np.isnan(expected[key][guess.position]["logprob"])
        ]
        if rights:
            of_model = {"name": model.name, "right": sum(rights), "all": len(rights)}
            said.append(_("%(name)s %(right)s of %(all)s") % of_model)
    right = sum(guess.right for guess in made)
    words = {"you": _("So far you: %(right)s of %(all)s right.") % {**counts, "right": right}}
    if said:
        words["models"] = _("Language models in the same places: %(models)s.") % {"models": ", ".join(said)}
    return words
