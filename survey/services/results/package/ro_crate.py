"""RO-Crate 1.1: `ro-crate-metadata.json`, which names every file of a package. Imports nothing of models.

Required are a descriptor, and of the root its name, description, licence and a date
(https://www.researchobject.org/ro-crate/specification/1.1/root-data-entity).
"""

from collections.abc import Mapping, Sequence
from typing import Any

FILE = "ro-crate-metadata.json"
VERSION = "https://w3id.org/ro/crate/1.1"
TYPES = {
    ".csv": "text/csv",
    ".json": "application/json",
    ".md": "text/markdown",
    ".parquet": "application/vnd.apache.parquet",
    ".py": "text/x-python",
    ".R": "text/x-r",
}
NO_LICENCE = "No licence is given: the makers of the data keep all rights."


def crate_of(
    facts: Mapping[str, Any], files: Mapping[str, Sequence[str]], *, sizes: Mapping[str, int], published: str
) -> dict[str, Any]:
    """The description as JSON-LD.

    Args:
        facts: of the package, in the words of schema.org.
        files: the path of each file, with its SHA-256 and a sentence on what is in it.
        sizes: bytes of each.
        published: an ISO 8601 date.
    """
    licence = facts.get("license", "")
    is_address = licence.startswith(("http://", "https://"))
    people = [{"@id": f"#person-{number}", **person} for number, person in enumerate(facts.get("creator", ()), start=1)]
    root: dict[str, Any] = {
        "@id": "./",
        "@type": "Dataset",
        **{name: facts[name] for name in ("name", "description", "version", "keywords", "identifier") if name in facts},
        "datePublished": published,
        "license": {"@id": licence} if is_address else licence or NO_LICENCE,
        "hasPart": [{"@id": path} for path in sorted(files)],
    }
    if people:
        root["author"] = [{"@id": person["@id"]} for person in people]
    about = {
        "@id": FILE,
        "@type": "CreativeWork",
        "conformsTo": {"@id": VERSION},
        "about": {"@id": "./"},
    }
    terms = {"@id": licence, "@type": "CreativeWork", "name": licence, "description": "The licence of the data."}
    return {
        "@context": f"{VERSION}/context",
        "@graph": [
            about,
            root,
            *([terms] if is_address else []),
            *people,
            *(_file(path, *files[path], size=sizes[path]) for path in sorted(files)),
        ],
    }


def _file(path: str, sha256: str, words: str, *, size: int) -> dict[str, Any]:
    ending = path[path.rfind(".") :] if "." in path else ""
    return {
        "@id": path,
        "@type": "File",
        "name": path.rpartition("/")[2],
        "description": words,
        "encodingFormat": TYPES.get(ending, "text/plain"),
        "contentSize": str(size),
        "sha256": sha256,
    }
