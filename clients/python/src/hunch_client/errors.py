"""What a server refuses, and a server that does not answer."""

from collections.abc import Mapping, Sequence


class HunchError(Exception):
    """A request that the server refused. `code` is for programs, `message` for people; `fields` says what was wrong
    with what, such as the keys of a study file. With `request_id` the server's log is searched."""

    def __init__(
        self,
        message: str,
        *,
        code: str = "error",
        status: int = 0,
        fields: Mapping[str, Sequence[str]] | None = None,
        request_id: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.status = status
        self.fields = {name: list(words) for name, words in (fields or {}).items()}
        self.request_id = request_id
        self.retry_after: int | None = None  # Seconds, where the server says so.


class HunchAway(HunchError):
    """The server did not answer, or cannot work at the moment. The same request may succeed later."""
