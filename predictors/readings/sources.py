"""The names of what reads texts: `local:FOLDER`, `endpoint:MODEL`, `ngram:NAME`, `lm:NAME`,
`arpa:FILE`, `file:CSV`. Standard library."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from predictors.errors import PredictorError

LOCAL, ENDPOINT, NGRAM, NETWORK, ARPA, FILE = "local", "endpoint", "ngram", "lm", "arpa", "file"
SCHEMES = {
    LOCAL: "a folder with a Hugging Face causal model, or with one GGUF file",
    ENDPOINT: "the name of a model on the server that HUNCH_LLM_URL names",
    NGRAM: "an n-gram model that train_ngram made",
    NETWORK: "a network of words that train_lm made",
    ARPA: "an ARPA file of an n-gram model, as KenLM and SRILM write them",
    FILE: "a CSV file with text_id, start, end, logprob",
}
LONGEST = 500


def outside_of(sources: Iterable[str]) -> tuple[str, ...]:
    """Which of these models and tokenizers, without names before them, are behind a server or paths on this one."""
    return tuple(source for source in sources if source.partition(":")[0] in (LOCAL, ENDPOINT, ARPA, FILE))


class Source(NamedTuple):
    """What reads, and the name under which tables show it."""

    scheme: str
    target: str
    name: str

    def __str__(self) -> str:
        return f"{self.scheme}:{self.target}"


def parse_source(text: str) -> Source:
    """`SCHEME:TARGET`, or `NAME=SCHEME:TARGET` for another name in tables.

    Raises:
        PredictorError: an unknown scheme, nothing after it, or a name or target that is too long.
    """
    name, equals, rest = text.partition("=")
    if not equals or ":" in name:
        name, rest = "", text
    scheme, colon, target = rest.strip().partition(":")
    if not colon or scheme not in SCHEMES:
        known = "; ".join(f"{scheme}: {words}" for scheme, words in SCHEMES.items())
        raise PredictorError(f"model: {text[:80]!r} does not say what reads. Write SCHEME:TARGET. {known}.")
    if not target.strip():
        raise PredictorError(f"model: {text!r} names nothing after {scheme}:; give {SCHEMES[scheme]}.")
    if len(target) > LONGEST:
        raise PredictorError(f"model: has more than {LONGEST} characters.")
    label = name.strip() or f"{scheme}:{target.strip()}"
    if len(label) > 120:
        raise PredictorError(f"model: {label[:60]!r}... is too long for a table; name it: NAME={scheme}:...")
    return Source(scheme, target.strip(), label)
