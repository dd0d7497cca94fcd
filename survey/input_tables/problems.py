"""Everything that is wrong with a file, collected so that it can be fixed together."""

from survey.exceptions import FileErrors, Problem

PROBLEMS_SHOWN = 20


class Problems:
    """All problems of a file. `notes`: what is said and stops nothing. `shown`: how many of the problems people see."""

    def __init__(self, *, shown: int = PROBLEMS_SHOWN) -> None:
        self.found: list[Problem] = []
        self.notes: list[str] = []
        self.shown = shown

    def __len__(self) -> int:
        return len(self.found)

    def add(self, file: str, line: int | None, field: str, message: str) -> None:
        self.found.append(Problem(file, line, field, message))

    def note(self, file: str, line: int, field: str, message: str) -> None:
        self.notes.append(str(Problem(file, line, field, message)))

    def raise_if_any(self) -> None:
        """
        Raises:
            FileErrors: with all problems; people see the first ones and how many more there are.
        """
        if self.found:
            raise FileErrors(self.found, shown=self.shown)
