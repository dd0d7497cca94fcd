"""The graph of who imports whom, between files and between packages: nobody ever comes back to where they started."""

from graphlib import CycleError, TopologicalSorter

import grimp
import pytest

ROOTS = ("bandit", "frontend", "predictors", "survey")


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph(*ROOTS, exclude_type_checking_imports=True, cache_dir=None)


def package_of(module: str, graph: grimp.ImportGraph) -> str:
    """The folder that a file lies in; a package's face lies in its own folder. A file that lies directly in one of the
    top folders is a package by itself: there lie the leaves as well as what joins the packages."""
    folder = module if graph.find_children(module) else module.rpartition(".")[0]
    return module if folder in ROOTS else folder


def circle(edges: dict[str, set[str]]) -> list[str]:
    """One way that ends where it began; empty where there is none."""
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as exc:
        packages: list[str] = exc.args[1]
        return packages
    return []


@pytest.mark.slow
def test_files_import_each_other_in_no_circle(graph: grimp.ImportGraph) -> None:
    edges = {module: set(graph.find_modules_directly_imported_by(module)) for module in graph.modules}
    assert circle(edges) == []


def test_packages_import_each_other_in_no_circle(graph: grimp.ImportGraph) -> None:
    edges: dict[str, set[str]] = {}
    for module in graph.modules:
        package = package_of(module, graph)
        for imported in graph.find_modules_directly_imported_by(module):
            other = package_of(imported, graph)
            if other != package:
                edges.setdefault(package, set()).add(other)
    assert len(edges) > 15, "there are packages"
    assert circle(edges) == []


def test_a_circle_would_be_seen() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) in (
        ["a", "b", "c", "a"],
        ["b", "c", "a", "b"],
        ["c", "a", "b", "c"],
        ["a", "c", "b", "a"],
        ["c", "b", "a", "c"],
        ["b", "a", "c", "b"],
    )
    assert circle({"a": {"b"}, "c": {"a"}}) == []
