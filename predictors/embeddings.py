"""Sentence embeddings of texts, from a local checkpoint or a server, each text computed once.

Light at import: torch comes with the first local model, the client of servers with the first remote one. An embedding
depends on its text and model alone, never on what else was asked for, so that kept ones equal fresh ones.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from predictors.artifacts import checkpoint_digest
from predictors.errors import PredictorError
from predictors.memory import ArrayMemory
from predictors.pairs import Progress, report
from predictors.settings import BUNDLED_CHECKPOINT

if TYPE_CHECKING:
    from predictors.endpoints import Endpoint

VOYAGE_URL = "https://api.voyageai.com/v1"
# Texts between two writes to the caches: what a stopped or broken run has paid for is kept.
_BLOCK = 512
# Of vectors kept in memory: 87,000 texts of 384 numbers.
_KEPT_BYTES = 128 * 2**20
_RECIPE = "mean of last hidden states, unit norm, 512 tokens"

Compute = Callable[[list[str], Progress | None, int, int], NDArray[np.float32]]


class EmbeddingSource(NamedTuple):
    """Where embeddings come from. `fingerprint` names the model by its content (for a server, by its name), `key` all
    that a kept vector depends on; `compute(texts, progress, before, total)` gives rows of any norm."""

    fingerprint: str
    key: str
    compute: Compute


def embed(
    texts: Sequence[str],
    *,
    model: str = BUNDLED_CHECKPOINT,
    cache: Path | str | None = None,
    progress: Progress | None = None,
) -> NDArray[np.float32]:
    """Embeddings of n texts: float32 (n, d), rows of unit norm. Each distinct text is computed once.

    model: `bundled:minilm-l6`, a local folder or a Hugging Face id: hidden states averaged over all tokens, up to 512
        of them, as sentence encoders are trained; `endpoint:MODEL`: an OpenAI-compatible server at the address in
        HUNCH_EMBEDDINGS_URL, with the key in HUNCH_EMBEDDINGS_KEY if there is one; `voyage:MODEL`: VoyageAI, with the
        key in VOYAGE_API_KEY.
    cache: a folder that keeps the vectors between processes; by default the one that HUNCH_EMBEDDINGS_CACHE names, if
        it is set. Damaged entries are computed again. Several processes may share it.
    progress: counts the distinct texts that were not kept.

    Raises:
        PredictorError: no such model, a variable of the environment is missing, a blank text for a server, or a server
            that fails (EndpointError). CheckpointError: a local checkpoint cannot be read. Stopped: progress said so.
    """
    source = source_of(model)
    folder = cache or os.environ.get("HUNCH_EMBEDDINGS_CACHE")
    shelf = _Shelf(Path(folder) / hashlib.sha256(source.key.encode()).hexdigest()[:16]) if folder else None
    names = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest() for text in texts]
    distinct = dict(zip(names, texts, strict=True))
    remembered = _memory.get_all((source.key, name) for name in distinct)
    vectors = {name: row for (_key, name), row in remembered.items()}
    if shelf:
        vectors |= {name: row for name in distinct if name not in vectors and (row := shelf.read(name)) is not None}
    missing = [name for name in distinct if name not in vectors]
    for first in range(0, len(missing), _BLOCK):
        block = missing[first : first + _BLOCK]
        computed = source.compute([distinct[name] for name in block], progress, first, len(missing))
        rows = _unit_rows(computed, len(block), model)
        for name, row in zip(block, rows, strict=True):
            vectors[name] = row
            if shelf:
                shelf.write(name, row)
        done = first + len(block)
        report(progress, done, len(missing), f"embedded {done} of {len(missing)} texts")
    _memory.put_all({(source.key, name): row for name, row in vectors.items()})
    widths = {row.size for row in vectors.values()}
    if len(widths) > 1:
        raise PredictorError(
            f"model: {model} gave vectors of {' and '.join(map(str, sorted(widths)))} numbers; "
            "has the server changed its model? Empty the cache and embed again."
        )
    if not names:
        return np.empty((0, 0), dtype=np.float32)
    return np.stack([vectors[name] for name in names])


def source_of(model: str) -> EmbeddingSource:
    """Where the embeddings of `model` come from; errors as in `embed`, but no server is asked."""
    kind, _, name = model.partition(":")
    if kind not in ("endpoint", "voyage"):
        return _local(model)
    if not name:
        raise PredictorError(f"model: {model!r} names no model after the colon.")
    from predictors.endpoints import Endpoint

    if kind == "endpoint":
        server = Endpoint.from_environment(url_variable="HUNCH_EMBEDDINGS_URL", key_variable="HUNCH_EMBEDDINGS_KEY")
        return _remote(model, name, server)
    key = os.environ.get("VOYAGE_API_KEY", "").strip()
    if not key:
        raise PredictorError(f"VOYAGE_API_KEY: not set; {model} needs VoyageAI's key in this environment variable.")
    return _remote(model, name, Endpoint(VOYAGE_URL, api_key=key), {"input_type": "document"})


def forget_embeddings() -> None:
    """Drop the vectors kept in this process."""
    _memory.clear()


def _local(model: str) -> EmbeddingSource:
    from predictors.networks.embedder import embedder_of, numerics

    digest = checkpoint_digest(_folder_of(model))

    def compute(texts: list[str], progress: Progress | None, before: int, total: int) -> NDArray[np.float32]:
        return embedder_of(model, digest).embed(texts, progress, before, total)

    return EmbeddingSource(fingerprint=digest, key=f"{digest} {_RECIPE} {numerics()}", compute=compute)


@lru_cache(maxsize=8)
def _folder_of(model: str) -> Path:
    """Where a checkpoint lies: the hub is asked once a process, not once a call."""
    from predictors.networks.checkpoints import locate

    return locate(model)


def _remote(model: str, name: str, server: Endpoint, extra: dict[str, str] | None = None) -> EmbeddingSource:
    def compute(texts: list[str], progress: Progress | None, before: int, total: int) -> NDArray[np.float32]:
        if not all(map(str.strip, texts)):
            raise PredictorError(f"texts: a blank text cannot be embedded by {model}; leave such rows out.")

        def passed_on(requests: int, of: int, _text: str) -> bool | None:
            done = before + len(texts) * requests // max(of, 1)
            return progress(done, total, f"embedded {done} of {total} texts") if progress else None

        return server.embeddings(model=name, texts=texts, extra=extra, progress=passed_on)

    return EmbeddingSource(fingerprint=model, key=f"{model} {server.base_url}", compute=compute)


def _unit_rows(rows: NDArray[np.float32], count: int, model: str) -> NDArray[np.float32]:
    rows = np.asarray(rows, dtype=np.float32)
    if rows.ndim != 2 or len(rows) != count or not rows.shape[1]:
        raise PredictorError(f"model: {model} gave an array of shape {rows.shape} for {count} texts.")
    norms = np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)
    if not np.isfinite(norms).all() or not norms.all():
        raise PredictorError(f"model: {model} gave a vector of norm 0 or with numbers that are not finite.")
    return (rows / norms).astype(np.float32)


class _Shelf:
    """The vectors of one model on disk: a file a text, its SHA-256 before its little-endian float32 numbers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, name: str) -> NDArray[np.float32] | None:
        """The vector of the text with this hash; None where there is none or it is damaged."""
        try:
            content = self._path(name).read_bytes()
        except OSError:  # Missing or unreadable: the vector is computed again.
            return None
        numbers = content[32:]
        if not numbers or len(numbers) % 4 or hashlib.sha256(numbers).digest() != content[:32]:
            return None
        return np.frombuffer(numbers, dtype="<f4").astype(np.float32)

    def write(self, name: str, row: NDArray[np.float32]) -> None:
        path = self._path(name)
        numbers = row.astype("<f4").tobytes()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with NamedTemporaryFile(dir=path.parent, prefix=".", delete=False) as file:
                file.write(hashlib.sha256(numbers).digest() + numbers)
            Path(file.name).replace(path)
        except OSError as exc:
            raise PredictorError(f"cache: {path.parent} cannot be written ({exc.strerror}); give another.") from exc

    def _path(self, name: str) -> Path:
        return self.folder / name[:2] / f"{name}.f32"


_memory = ArrayMemory(_KEPT_BYTES)
