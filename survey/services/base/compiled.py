"""Statements that are compiled once instead of at each use. Imports Django alone.

Django builds and compiles a queryset each time. Two are worth compiling once, which every step of a respondent needs:
as querysets, that of the sitting made the processor time of a step 1.4 times as long, that of the open item 2.0 times
(November 2026, SQLite). Of no other statement of a step, and of no saved row, was there a difference above 5 %.
"""

import uuid
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, TypeVar

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import AutoField, Field, Model, QuerySet
from django.db.models.query import get_related_populators
from django.db.transaction import TransactionManagementError

Row = TypeVar("Row", bound=Model)
Value = int | uuid.UUID
FIRST_MARK = 2**52 + 11  # Stands for a value while a queryset is compiled. No key of ours is as large.


class CompiledQuery(Generic[Row]):
    """A queryset of which nothing but values differs from use to use.

        sittings = CompiledQuery(lambda number: Sitting.objects.filter(pk=number), number=int)
        sittings.rows(number=12)

    `build` must give the same queryset each time, apart from the values of its arguments: ints or UUIDs that it
    compares with fields of that type. The rows are those that the queryset would give, with the relations of its
    `select_related` and its annotations; `prefetch_related` has no effect.
    """

    def __init__(self, build: Callable[..., QuerySet[Row]], **types: type[Value]) -> None:
        self._build = build
        self._types = types

    def rows(self, **values: Value) -> list[Row]:
        return list(_compiled(self, self._compile).rows(values))

    def _compile(self, connection: BaseDatabaseWrapper) -> "_Compiled":
        marks = {name: _mark(place, kind) for place, (name, kind) in enumerate(self._types.items())}
        return _Compiled(self._build(**marks), connection, marks)

    def first(self, **values: Value) -> Row | None:
        """The first row; None if there is none."""
        return next(iter(self.rows(**values)), None)


Expression = tuple[str, Sequence[Any]]
"""SQL of our own, with its values."""


def insert_where(row: Row, condition: Expression | None = None, **computed: Expression) -> Row | None:
    """Insert a row by one statement if a condition holds, and return it with its key; None where it does not hold.

    Args:
        condition: what the database must find true, such as `EXISTS (...)`.
        computed: fields that the database computes; the row has their values afterwards.
    """
    condition = condition or ("TRUE", ())
    names = {name: sql for name, (sql, _values) in computed.items()}
    statement = _compiled(
        ("insert where", type(row), condition[0], *names.items()),
        lambda connection: _InsertWhere(type(row), connection, condition[0], names),
    )
    return row if statement.write_where(row, condition[1], computed) else None


def run(sql: str, *values: Any) -> list[tuple[Any, ...]]:
    """Run a statement of our own writing; the rows that it returns, as the database gives them."""
    statement: _Statement = _compiled(("run",), _Statement)
    adapt = statement.connection.ops.adapt_datetimefield_value
    with statement.cursor() as cursor:
        cursor.execute(sql, [adapt(value) if isinstance(value, datetime) else value for value in values])
        return list(cursor.fetchall()) if cursor.description else []


def _compiled(key: Hashable, compile_for: Callable[[BaseDatabaseWrapper], Any]) -> Any:
    """What was compiled for the connection of this thread. The connection holds it: both go together."""
    connection = connections[DEFAULT_DB_ALIAS]
    known: dict[Hashable, Any] = connection.__dict__.setdefault("hunch_compiled", {})
    if key not in known:
        known[key] = compile_for(connection)
    return known[key]


def _mark(place: int, kind: type[Value]) -> Value:
    number = FIRST_MARK + place
    return uuid.UUID(int=number) if kind is uuid.UUID else number


class _Statement:
    """What all of them do: execute."""

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        self.connection = connection
        self.cursor_class: Any = (
            _binding_cursor() if "prepare_threshold" in connection.settings_dict["OPTIONS"] else None
        )

    def cursor(self) -> Any:
        """Where statements are prepared, one that sends values next to the statement: PostgreSQL then plans it once for
        a connection, and planning is most of what such a statement costs it. Django's own cursor writes values into the
        statement, which makes each a new one."""
        if self.cursor_class is None:
            return self.connection.cursor()
        connection: Any = self.connection
        connection.close_if_health_check_failed()
        connection.ensure_connection()
        with connection.wrap_database_errors:
            return connection._prepare_cursor(self.cursor_class(connection.connection))


class _Compiled(_Statement):
    """A compiled queryset, and how its rows become objects: what Django works out at each use."""

    def __init__(self, queryset: QuerySet[Any], connection: BaseDatabaseWrapper, marks: Mapping[str, Value]) -> None:
        super().__init__(connection)
        self.locks = queryset.query.select_for_update
        self.compiler: Any = queryset.query.get_compiler(connection=connection)
        self.sql, parameters = self.compiler.as_sql()
        self.params = list(parameters)
        # SQLite stores a UUID as its digits.
        names = {mark: name for name, mark in marks.items()} | {_digits(mark): name for name, mark in marks.items()}
        self.places = [
            (place, names[value])
            for place, value in enumerate(self.params)
            if isinstance(value, int | str | uuid.UUID) and value in names
        ]
        if {name for _place, name in self.places} != set(marks):
            raise ValueError(f"not every one of {', '.join(marks)} is a value of the statement: {self.sql}")
        select, info = self.compiler.select, self.compiler.klass_info
        fields = info["select_fields"]
        self.model: type[Model] = info["model"]
        self.own = slice(fields[0], fields[-1] + 1)
        self.names = [column[0].target.attname for column in select[self.own]]
        self.populators = get_related_populators(info, select, connection.alias)  # type: ignore[call-arg]  # of Django 6
        self.annotations = list(self.compiler.annotation_col_map.items())
        self.converters = self.compiler.get_converters([column[0] for column in select])

    def rows(self, values: Mapping[str, Value]) -> Iterator[Any]:
        if self.locks and not self.connection.in_atomic_block:
            raise TransactionManagementError("rows are locked inside a transaction only")
        params = self.params.copy()
        for place, name in self.places:
            params[place] = _digits(values[name]) if isinstance(params[place], str) else values[name]
        with self.cursor() as cursor:
            cursor.execute(self.sql, params)
            rows: Any = cursor.fetchall()
        if self.converters:
            rows = self.compiler.apply_converters(rows, self.converters)
        return map(self._object, rows)

    def _object(self, row: Sequence[Any]) -> Model:
        made = self.model.from_db(self.connection.alias, self.names, row[self.own])
        for populator in self.populators:
            populator.populate(row, made)
        for name, column in self.annotations:
            setattr(made, name, row[column])
        return made


class _InsertWhere(_Statement):
    """INSERT ... SELECT: where a condition holds, and with values that the database computes."""

    def __init__(
        self, model: type[Model], connection: BaseDatabaseWrapper, condition: str, computed: Mapping[str, str]
    ) -> None:
        super().__init__(connection)
        meta: Any = model._meta
        quote = connection.ops.quote_name
        self.fields: list[Field[Any, Any]] = [
            field for field in meta.local_concrete_fields if not (field.generated or isinstance(field, AutoField))
        ]
        self.returned = [*meta.db_returning_fields, *(meta.get_field(name) for name in computed)]
        columns = ", ".join(quote(str(field.column)) for field in self.fields)
        values = ", ".join(computed.get(field.name, "%s") for field in self.fields)
        returned = ", ".join(quote(field.column) for field in self.returned)
        self.sql = (
            f"INSERT INTO {quote(meta.db_table)} ({columns}) SELECT {values} WHERE {condition} RETURNING {returned}"
        )

    def write_where(self, row: Model, condition: Sequence[Any], computed: Mapping[str, Expression]) -> bool:
        params: list[Any] = []
        for field in self.fields:
            if field.name in computed:
                params += computed[field.name][1]
            else:
                params.append(field.get_db_prep_save(field.pre_save(row, True), self.connection))
        with self.cursor() as cursor:
            cursor.execute(self.sql, [*params, *condition])
            inserted = cursor.fetchone()
        if inserted is None:
            return False
        for field, value in zip(self.returned, inserted, strict=True):
            setattr(row, field.attname, value)
        row._state.adding, row._state.db = False, self.connection.alias
        return True


def _binding_cursor() -> Any:
    from django.db.backends.postgresql.base import ServerBindingCursor  # needs psycopg, which SQLite does not

    return ServerBindingCursor


def _digits(value: Value) -> str:
    return value.hex if isinstance(value, uuid.UUID) else str(value)
