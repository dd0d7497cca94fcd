"""Packages as somebody else would write them, each a folder that pip could install. The tests prove with them that a
panel or an instrument is added without changing a file of the core.

`install` does what an editable installation does: it puts a package's sources on the path, and next to them the
metadata by which its entry points are found. The real thing needs a network or a build tool, and takes seconds.
"""

import importlib
import os
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

HERE = Path(__file__).parent


def install_all(metadata: Path) -> None:
    """Install every package in this folder, with its metadata in that one."""
    install(sorted(project.parent for project in HERE.glob("*/pyproject.toml")), metadata)


def install(packages: Iterable[Path], metadata: Path) -> None:
    """Put these packages on the path.

    Args:
        packages: folders with a `pyproject.toml` and a folder `src`.
        metadata: a folder for what pip would write.
    """
    for package in packages:
        write_metadata(package, metadata)
        _add(package / "src")
    _add(metadata)
    importlib.invalidate_caches()


def write_metadata(package: Path, metadata: Path) -> None:
    """What pip would write for the project in a folder, so that its entry points are found."""
    metadata.mkdir(parents=True, exist_ok=True)
    project = tomllib.loads((package / "pyproject.toml").read_text())["project"]
    lines = []
    for group, points in project.get("entry-points", {}).items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in points.items()), ""]
    info = metadata / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir(exist_ok=True)
    _write(info / "METADATA", f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    _write(info / "entry_points.txt", "\n".join(lines))


def _write(path: Path, text: str) -> None:
    """Whole or not at all: several processes of a test run share the folder."""
    if path.exists() and path.read_text() == text:
        return
    partial = path.with_name(f"{path.name}.{os.getpid()}")
    partial.write_text(text)
    partial.replace(path)


def _add(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
