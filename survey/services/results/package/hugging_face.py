"""A folder that the Hugging Face Hub shows and `datasets` loads: Parquet files, and a card that names them.

The card's head is YAML (https://huggingface.co/docs/hub/datasets-manual-configuration and datasets-cards): a licence of
the Hub's list or `other` with its name and address, a size of its list, and one configuration a table. Every value is
written as JSON, which YAML reads. Imports nothing of models.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

# Addresses of licences, without the scheme and what is after the version, and the Hub's names for them.
LICENCES = {
    "creativecommons.org/licenses/by/4.0": "cc-by-4.0",
    "creativecommons.org/licenses/by-sa/4.0": "cc-by-sa-4.0",
    "creativecommons.org/licenses/by-nc/4.0": "cc-by-nc-4.0",
    "creativecommons.org/licenses/by-nc-sa/4.0": "cc-by-nc-sa-4.0",
    "creativecommons.org/licenses/by-nd/4.0": "cc-by-nd-4.0",
    "creativecommons.org/licenses/by-nc-nd/4.0": "cc-by-nc-nd-4.0",
    "creativecommons.org/publicdomain/zero/1.0": "cc0-1.0",
    "opendatacommons.org/licenses/odbl/1-0": "odbl",
    "opendatacommons.org/licenses/pddl/1-0": "pddl",
}
SIZES = (
    *((1000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M")),
    *((10_000_000, "1M<n<10M"), (100_000_000, "10M<n<100M")),
)
FIRST = "answers"


def card_head(facts: Mapping[str, Any], tables: Mapping[str, tuple[str, int]], languages: Sequence[str]) -> str:
    """The card's YAML, with the lines around it.

    Args:
        facts: of the package, in the words of schema.org.
        tables: by name, the path and the rows of each table that has rows.
    """
    first = FIRST if FIRST in tables else next(iter(tables), "")
    configs = [
        {
            "config_name": name,
            "data_files": [{"split": "train", "path": path}],
            **({"default": True} if name == first else {}),
        }
        for name, (path, _rows) in tables.items()
    ]
    head = {
        "pretty_name": facts["name"],
        **_licence(facts.get("license", "")),
        "language": list(languages),
        "size_categories": [_size(max((rows for _path, rows in tables.values()), default=0))],
        "tags": list(facts["keywords"]),
        "configs": configs,
    }
    lines = [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in head.items()]
    return "\n".join(["---", *lines, "---", "", ""])


def _licence(licence: str) -> dict[str, str]:
    if not licence:
        return {"license": "unknown"}
    address = licence.removeprefix("https://").removeprefix("http://").removeprefix("www.").rstrip("/")
    for start, name in LICENCES.items():
        if address == start or address.startswith(f"{start}/"):
            return {"license": name}
    if "/" in licence:
        return {"license": "other", "license_name": "see-link", "license_link": licence}
    return {"license": "other", "license_name": licence}


def _size(rows: int) -> str:
    return next((name for limit, name in SIZES if rows < limit), "100M<n<1B")
