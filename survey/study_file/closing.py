"""Addresses of a panel that people are sent to at the end, with what is filled in there. Imports pydantic and base."""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal
from urllib.parse import quote

from pydantic import AfterValidator, Field, model_validator

from .base import Strict

# Ids of the panel itself. They are filled in on the server, at the end alone.
IDS = ("person", "study", "submission")
CODE, SIGNATURE = "code", "signature"
PLACEHOLDERS = (*IDS, CODE, SIGNATURE)
# Nothing is filled in before the host's end, so that no value decides where people are sent. Loopback addresses are
# those of the fake panel.
HOST = r"(https://[^\s{}/?#]+|http://(127\.0\.0\.1|localhost)(:[0-9]+)?)"
CLOSING_ADDRESS = re.compile(HOST + r"([/?#][^\s{}]*(\{[a-z]+\}[^\s{}]*)*)?")
IN_BRACES = re.compile(r"\{([a-z]+)\}")
# The last parameter of an address, if it holds the signature and nothing else.
LAST_PARAMETER = re.compile(r"[?&][^?&=#]+=\{signature\}$")
WHOLE_ADDRESS = ("address", "address_and_separator")


def placeholders_of(address: str) -> tuple[str, ...]:
    return tuple(IN_BRACES.findall(address))


def _leads_back_to_the_panel(address: str) -> str:
    if not address:
        return address
    names = placeholders_of(address)
    if not CLOSING_ADDRESS.fullmatch(address):
        raise ValueError("write https://HOST/..., with {code} and other placeholders behind the host and its /")
    if strangers := [name for name in names if name not in PLACEHOLDERS]:
        known = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
        raise ValueError(f"there is no {{{strangers[0]}}}; there are {known}")
    if twice := [name for name in PLACEHOLDERS if names.count(name) > 1]:
        raise ValueError(f"{{{twice[0]}}} stands in it twice: write it at most once")
    return address


CompletionUrl = Annotated[str, Field(max_length=500), AfterValidator(_leads_back_to_the_panel)]


class CompletionUrlsConfig(Strict):
    """Where people go after each outcome, at a generic panel that has an address for each."""

    completed: CompletionUrl = ""
    """As `completion_url`, for those who finished."""
    no_consent: CompletionUrl = ""
    """For those who did not agree."""
    failed_checks: CompletionUrl = ""
    """For those who failed the comprehension checks."""
    screened_out: CompletionUrl = ""
    """For those who were screened out by an answer or a quota."""
    study_full: CompletionUrl = ""
    """For those who found all places taken."""


class CompletionSignatureConfig(Strict):
    """How an address with {signature} is signed: an HMAC with the key `HUNCH_GENERIC_CLOSING_SECRET`.

    `of` is what is signed: values in their order, joined by `separator`; or the address before its last parameter,
    which holds the signature, without or with the ? or & in front of that parameter.
    """

    algorithm: Literal["sha1", "sha256", "sha512"] = "sha256"
    """The hash of the HMAC."""
    of: (
        list[Literal["slug", "person", "study", "submission", "outcome", "code"]]
        | Literal["address", "address_and_separator"]
    ) = "address"
    """What is signed. A list of values in their order: `"slug"`, `"person"`, `"study"`, `"submission"`, `"outcome"`,
    `"code"`, as they are before they are encoded for the address. Or `"address"`: the finished address before the `?`
    or `&` of its last parameter, which holds the signature. `"address_and_separator"`: the same with that character."""
    separator: str = Field(default="\n", max_length=3)
    """What joins the values of a list."""
    encoding: Literal["hex", "base64", "base64url"] = "hex"
    """How the signature is written; base64url has no `=` at its end."""

    @model_validator(mode="after")
    def signs_each_once(self) -> "CompletionSignatureConfig":
        if isinstance(self.of, list) and (not self.of or len(set(self.of)) != len(self.of)):
            raise ValueError("of: name at least one value, and each once")
        return self

    @property
    def signs_the_address(self) -> bool:
        return self.of in WHOLE_ADDRESS

    def text_to_sign(self, address: str, values: Mapping[str, str]) -> str:
        """What the signature is made of.

        Args:
            address: with all placeholders filled in but {signature}.
            values: those that `of` can name, as they are and not as they are encoded in an address.
        """
        if isinstance(self.of, list):
            return self.separator.join(values[name] for name in self.of)
        match = LAST_PARAMETER.search(address)
        end = match.start() if match else len(address)
        return address[: end + 1] if self.of == "address_and_separator" else address[:end]


class FormatConfig(Strict):
    """What an id of the panel must look like, beyond what every id must."""

    of: Literal["person", "study", "submission"]
    """The id, which must have a parameter in `[panel.parameters]`."""
    characters: Literal["any", "digits", "hex", "letters_digits", "capitals_digits", "uuid"] = "any"
    """`"digits"`, `"hex"`, `"letters_digits"`, `"capitals_digits"`, `"uuid"` (36 characters with four hyphens), or
    `"any"` that an id may have."""
    shortest: int = Field(default=1, ge=1, le=128)
    """The fewest characters."""
    longest: int = Field(default=128, ge=1, le=128)
    """The most characters."""

    @model_validator(mode="after")
    def shortest_is_not_above_longest(self) -> "FormatConfig":
        if self.shortest > self.longest:
            raise ValueError("shortest is above longest: swap them")
        return self

    def fits(self, value: str) -> bool:
        return self.shortest <= len(value) <= self.longest and bool(CHARACTERS[self.characters].fullmatch(value))


CHARACTERS: Mapping[str, re.Pattern[str]] = {
    "any": re.compile(r".*"),
    "digits": re.compile(r"[0-9]+"),
    "hex": re.compile(r"[0-9A-Fa-f]+"),
    "letters_digits": re.compile(r"[0-9A-Za-z]+"),
    "capitals_digits": re.compile(r"[0-9A-Z]+"),
    "uuid": re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"),
}


def filled(address: str, values: Mapping[str, str]) -> str:
    """The address with these values in place of their placeholders, encoded so that none ends its part of it."""
    return IN_BRACES.sub(lambda match: quote(values[match[1]], safe="") if match[1] in values else match[0], address)


def refuse_signatures_that_do_not_fit(addresses: Sequence[str], signature: CompletionSignatureConfig | None) -> None:
    """
    Raises:
        ValueError: an address has {signature} and the file does not say how to sign, or the other way round.
    """
    signed = [address for address in addresses if SIGNATURE in placeholders_of(address)]
    if signed and signature is None:
        raise ValueError("{signature} in a completion address needs [panel.completion_signature]: add the table")
    if signature is None:
        return
    if not signed:
        raise ValueError("completion_signature: no completion address has {signature}: add it there, or remove this")
    if signature.signs_the_address and (wrong := [address for address in signed if not LAST_PARAMETER.search(address)]):
        raise ValueError(
            f'completion_signature: of = "{signature.of}" needs the signature as the last parameter, as in '
            f"...&sig={{signature}}, which {wrong[0]} has not"
        )
