"""One guess: a word, or the beginning of a word that is then chosen from a list. No script is needed; where there is
one, it lists what fits while one types."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from django import forms
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from survey.models import TokenizerRecord
from survey.services.banks.passages import LISTED, Vocabulary, vocabulary_of

from .models import LONGEST
from .wording import CLOSING, meant_token, word_for_people

# The parts of the page that say how the last guess went.
TOLD_BY = "verdict new"


class ListButton(forms.Widget):
    """A second button that sends the form; pages show it next to the first one."""

    is_button = True


class GuessForm(forms.Form):
    """`vocabulary` says which tokens there are; a subclass sets it. `listed_at`: the hash of the tokenizer, for the
    script that lists tokens while one types; empty where tokens are characters. `tried`: wrong guesses of this place,
    in small letters. `goes_on`: another guess came before,
    so that the field gets the focus, and is described by how that one went. `sets_space`: the page sets the space
    before a new word; not where the text so far ends with one, nor where tokens are characters.

    Who asks for a list, or has typed what is no token, gets the page again with the tokens that fit: that is no error,
    and the field `look` then comes back without a message.
    """

    vocabulary: Vocabulary
    listed_at = ""
    goes_on = False
    sets_space = True
    tried: frozenset[str] = frozenset()

    guess = forms.CharField(
        label=gettext_lazy("What comes next?"),
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
    new_word = forms.BooleanField(label=gettext_lazy("A new word begins here"), required=False, initial=True)
    look = forms.ChoiceField(
        required=False,
        choices=[("1", gettext_lazy("Show suggestions"))],
        label=gettext_lazy("Show suggestions"),
        widget=ListButton(),
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["guess"].needed_at_times = True  # type: ignore[attr-defined]
        if self.vocabulary.is_of_characters:
            self.fields["guess"].label = _("Which letter or sign comes next? For a space, press the space bar.")
        if not self.sets_space:
            del self.fields["new_word"]
        self.fields["guess"].widget.attrs |= self._attributes()
        self._listed = self._tokens_that_fit() if self.is_bound else []
        if self._listed:
            self.fields["choice"] = forms.ChoiceField(
                label=_("Which of these do you mean? You can also type on."),
                required=False,
                choices=[(str(self.vocabulary.id_of(token)), word_for_people(token)) for token in self._listed],
                widget=forms.RadioSelect(attrs={"autofocus": True}),
            )
            self.fields["choice"].needed_at_times = True  # type: ignore[attr-defined]
            self.order_fields(["guess", "new_word", "choice", "look"])

    def _attributes(self) -> dict[str, Any]:
        attributes: dict[str, Any] = {"autofocus": True, "aria-describedby": TOLD_BY} if self.goes_on else {}
        if self.is_bound:
            attributes.pop("autofocus", None)  # Then it is at what is to be corrected or chosen.
        if self.listed_at:
            attributes |= {
                "data-tokens": reverse("tokens", args=[self.listed_at]),
                "data-most": LISTED,
                "data-tick": "new_word" if self.sets_space else "",
                "data-closing": CLOSING,
                "data-list": _("Suggestions"),
                "data-found": _("Choose one of these, or type on."),
                "data-parts": _("This is too long for one guess. Choose its beginning."),
                "data-none": _("Nothing fits. Please look at the spelling, or type less."),
            }
        return attributes

    def _meant(self) -> str:
        new_word = self.sets_space and bool(self["new_word"].data)
        return meant_token(str(self.data.get("guess", "")), new_word=new_word, vocabulary=self.vocabulary)

    def _tokens_that_fit(self) -> list[str]:
        """Tokens to choose from, without those that were tried: where a list was asked for, or what was typed is no
        token. Those that begin with what was typed, or else those with which it begins."""
        meant = self._meant()
        if self.data.get("look"):
            meant = meant or " "  # Nothing typed: the most frequent ones.
        elif not meant or self.vocabulary.id_of(meant) is not None:
            return []
        listed = self.vocabulary.beginning_with(meant) or self.vocabulary.beginnings_of(meant)
        return [token for token in listed if token.casefold() not in self.tried]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        self.errors.pop("choice", None)  # Chosen from the list of another beginning: what is typed now counts.
        if self.errors:
            return cleaned
        meant, chosen = self._meant(), cleaned.get("choice", "")
        if chosen and not self.data.get("look"):
            return {"token": int(chosen), "text": self.vocabulary.text_of(int(chosen))}
        if meant.casefold() in self.tried:
            self.add_error("guess", _("You have guessed “%(typed)s” here already.") % {"typed": word_for_people(meant)})
            return cleaned
        token = self.vocabulary.id_of(meant)
        if token is not None and not self.data.get("look"):
            return {"token": token, "text": meant}
        if self._listed:
            self.errors["look"] = self.error_class()
        else:
            self.add_error("guess", self._message(meant))
        return cleaned

    def _message(self, meant: str) -> str:
        if not meant.strip():
            return _("Type what you expect next. If you do not know, type your best guess.")
        return _("Nothing fits “%(typed)s”. Please look at the spelling, or type less.") % {"typed": meant.strip()}


def form_of(
    tokenizer: TokenizerRecord, *, text: str, goes_on: bool = False, tried: Iterable[str] = ()
) -> type[GuessForm]:
    """The form for a guess of a token of this tokenizer after a text, after another guess or as the first one, which is
    none of those that were tried there."""
    after_word = bool(text) and not text[-1].isspace()
    return _form(
        vocabulary_of(tokenizer), tokenizer.sha256, goes_on, after_word, frozenset(text.casefold() for text in tried)
    )


@lru_cache(maxsize=16)
def _form(
    vocabulary: Vocabulary, sha256: str, goes_on: bool, after_word: bool, tried: frozenset[str]
) -> type[GuessForm]:
    return type(
        "GuessForm",
        (GuessForm,),
        {
            "vocabulary": vocabulary,
            "listed_at": "" if vocabulary.is_of_characters else sha256,
            "goes_on": goes_on,
            "sets_space": after_word and not vocabulary.is_of_characters,
            "tried": tried,
        },
    )
