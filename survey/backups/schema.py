"""The migrations that made the tables of a backup. Imports Django alone.

A squashed migration stands for the migrations that it replaces. Backups name these. So it makes no difference whether a
database was made by the squashed one or grew version by version.
"""

from collections.abc import Iterable
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader

Node = tuple[str, str]


class ChainLoader(MigrationLoader):
    """Goes through replaced migrations one by one, as Django does where a database has some of them."""

    def __init__(self, connection: Any, load: bool = True, **_options: Any) -> None:
        super().__init__(connection, load, replace_migrations=False)

    def build_graph(self) -> None:
        super().build_graph()
        for key, migration in self.replacements.items():
            self.graph.remove_replacement_node(key, migration.replaces)


def plain(nodes: Iterable[Node], loader: MigrationLoader) -> set[Node]:
    """The same migrations, with those that are replaced in place of squashed ones."""
    found = set(nodes)
    for key in found & loader.replacements.keys():
        found.remove(key)
        found.update(loader.replacements[key].replaces)
    return found


def executor_for(nodes: set[Node]) -> MigrationExecutor:
    """Brings an empty database to these migrations; by squashed ones where it needs all that they replace."""
    executor = MigrationExecutor(connections[DEFAULT_DB_ALIAS])
    replaced = [set(migration.replaces) for migration in executor.loader.replacements.values()]
    if any(some & nodes and not some <= nodes for some in replaced):
        executor.loader = ChainLoader(connections[DEFAULT_DB_ALIAS])
    return executor


def last_of(nodes: set[Node], loader: MigrationLoader) -> list[Node]:
    """Those that no other one depends on, by their names in this loader's graph: all others come before these."""
    graph = loader.graph
    there = {key for key in graph.nodes if plain([key], loader) <= nodes}
    return sorted(key for key in there if not any(child.key in there for child in graph.node_map[key].children))
