"""Times as exports write them, made by the database. Imports Django alone."""

from typing import Any

from django.db.models import Func, TextField


class IsoTime(Func):
    """A time as `columns.in_utc` writes it. Exports have many times, and each takes microseconds as an object."""

    output_field = TextField()

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        written = """to_char(%(expressions)s AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US')"""
        return self.as_sql(compiler, connection, template=f"(replace({written}, '.000000', '') || '+00:00')", **context)

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        # Django stores str() of a time in UTC, without a zone.
        return self.as_sql(compiler, connection, template="(replace(%(expressions)s, ' ', 'T') || '+00:00')", **context)
