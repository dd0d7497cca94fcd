"""One guess: a token, typed whole, or its beginning and then chosen from a list. No script is needed; where there is
one, it lists the tokens while one types."""

from functools import lru_cache
from typing import Any

from django import forms
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from survey.models import TokenizerRecord
from survey.services.banks.passages import LISTED, Vocabulary, vocabulary_of

from .models import LONGEST
from .wording import shown_token, typed_token

# The parts of the page that say how the last guess went.
TOLD_BY = "verdict new"


class ListButton(forms.Widget):
    """A second button that sends the form; pages show it next to the first one."""

    is_button = True


class GuessForm(forms.Form):
    """`vocabulary` says which tokens there are; a subclass sets it. `listed_at`: the hash of the tokenizer, for the
    script that lists tokens while one types; empty where tokens are characters. `goes_on`: another guess came before,
    so that the field gets the focus, and is described by how that one went."""

    vocabulary: Vocabulary
    listed_at = ""
    goes_on = False

    guess = forms.CharField(
        label=gettext_lazy("What comes next? Begin with a space if a new word begins."),
        max_length=LONGEST,
        strip=False,
        required=False,
        widget=forms.TextInput(
            attrs={
                "autocomplete": "off",
                "autocorrect": "off",
                "autocapitalize": "off",
                "spellcheck": "false",
                "size": "20",
            }
        ),
    )
    look = forms.ChoiceField(
        required=False,
        choices=[("1", gettext_lazy("Show what begins so"))],
        label=gettext_lazy("Show what begins so"),
        widget=ListButton(),
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["guess"].needed_at_times = True  # type: ignore[attr-defined]
        self.fields["guess"].widget.attrs |= self._attributes()
        if self.is_bound and (listed := self._listed()):
            self.fields["choice"] = forms.ChoiceField(
                label=_("Tokens that begin so"),
                required=False,
                choices=[(str(self.vocabulary.id_of(token)), shown_token(token)) for token in listed],
                widget=forms.RadioSelect,
            )
            self.fields["choice"].needed_at_times = True  # type: ignore[attr-defined]
            self.order_fields(["guess", "choice", "look"])

    def _attributes(self) -> dict[str, Any]:
        attributes: dict[str, Any] = {"autofocus": True, "aria-describedby": TOLD_BY} if self.goes_on else {}
        if self.listed_at:
            attributes |= {
                "data-tokens": reverse("tokens", args=[self.listed_at]),
                "data-most": LISTED,
                "data-list": _("Tokens that begin so"),
                "data-found": _("Tokens that begin so: %(found)s."),
                "data-many": _(
                    "Tokens that begin so: %(found)s. The %(listed)s shortest are listed; type on for others."
                ),
                "data-none": _("No token begins so. Type less."),
            }
        return attributes

    def _typed(self) -> str:
        return typed_token(str(self.data.get("guess", "")))

    def _listed(self) -> list[str]:
        """Tokens to choose from: where a list was asked for, or what was typed is no token."""
        typed = self._typed()
        if self.data.get("look") or self.vocabulary.id_of(typed) is None:
            return self.vocabulary.beginning_with(typed)
        return []

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if self.errors:
            return cleaned
        typed = self._typed()
        chosen = cleaned.get("choice", "")
        if chosen and not self.data.get("look"):
            return {"token": int(chosen), "text": self.vocabulary.text_of(int(chosen))}
        token = self.vocabulary.id_of(typed)
        if token is not None and not self.data.get("look"):
            return {"token": token, "text": typed}
        self.add_error("guess", self._message(typed))
        return cleaned

    def _message(self, typed: str) -> str:
        if not typed:
            return _("Type what you expect next. If you do not know, type your best guess.")
        if "choice" in self.fields:
            return _("Choose one of the tokens below, or type on.")
        return _("No token begins with %(typed)s. Type less, and begin with a space if a new word begins.") % {
            "typed": shown_token(typed)
        }


def form_of(tokenizer: TokenizerRecord, *, goes_on: bool = False) -> type[GuessForm]:
    """The form for guesses of tokens of this tokenizer, after another guess or as the first one."""
    return _form(vocabulary_of(tokenizer), tokenizer.sha256, goes_on)


@lru_cache(maxsize=16)
def _form(vocabulary: Vocabulary, sha256: str, goes_on: bool) -> type[GuessForm]:
    listed_at = "" if vocabulary.is_of_characters else sha256
    return type("GuessForm", (GuessForm,), {"vocabulary": vocabulary, "listed_at": listed_at, "goes_on": goes_on})
