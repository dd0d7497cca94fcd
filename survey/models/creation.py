"""An operation of migrations that creates the tables of many models. Imports Django alone.

Migrations name it, so it stays where it is.
"""

from typing import Any

from django.db.migrations.operations import CreateModel
from django.db.migrations.operations.base import Operation, OperationCategory
from django.db.migrations.state import ProjectState


class CreateModels(Operation):
    """Create the tables of these models, in their order. A model may name one that comes after it.

    After each operation Django makes the classes of all models again that are related to a changed one. Ours are all
    related, so a `CreateModel` for each takes seconds. Here the classes are made once, when the state has all models.
    """

    reversible = True
    category = OperationCategory.ADDITION
    serialization_expand_args = ["models"]

    def __init__(self, models: list[CreateModel]) -> None:
        self.models = models

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        # The classes that there are would be made again with each model. `state.apps` makes them when it is read.
        state.__dict__.pop("apps", None)
        for model in self.models:
            model.state_forwards(app_label, state)

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        for model in self.models:
            model.database_forwards(app_label, schema_editor, from_state, to_state)

    def database_backwards(
        self, app_label: str, schema_editor: Any, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        for model in reversed(self.models):
            model.database_backwards(app_label, schema_editor, from_state, to_state)

    def describe(self) -> str:
        return f"Create the models {', '.join(model.name for model in self.models)}"

    @property
    def migration_name_fragment(self) -> str:
        return "_".join(model.name_lower for model in self.models)
