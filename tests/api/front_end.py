"""A front end that knows nothing but the OpenAPI document: what a step may hold, and what each type of field takes.

It reads what people read (questions, options and messages) and leaves everything else to its reader.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, product
from typing import Any

from .documented import call

# For questions that can be answered wrongly: picks one of the options' texts.
Reader = Callable[[str, list[str]], str]
MAX_STEPS = 200


def values(asked: Mapping[str, Any]) -> Iterator[Any]:
    """What may be answered to a field, by its type; the shortest first."""
    if not asked["required"]:
        yield None
    match asked["type"]:
        case "integer":
            low = asked["minimum"] if asked["minimum"] is not None else 0
            high = asked["maximum"] if asked["maximum"] is not None else low + 100
            yield from ((low + high) // 2, low, high)
        case "text":
            yield "Ärger & <b>more</b>"[: asked["max_length"]]
        case "choice" | "likert":
            yield from asked["options"]
        case "multiple":
            yield from ([option] for option in asked["options"])
            yield [option for option in asked["options"] if option not in asked["exclusive"]]
        case unknown:
            raise AssertionError(f"the document knows no field of type {unknown}")


@dataclass
class FrontEnd:
    slug: str
    reader: Reader
    language: str | None = None
    prefers: Mapping[str, Any] = field(default_factory=dict)
    token: str = ""
    step: dict[str, Any] = field(default_factory=dict)
    seen: list[dict[str, Any]] = field(default_factory=list)
    refusals: list[dict[str, Any]] = field(default_factory=list)

    def take_part(self, *, until: str = "end") -> dict[str, Any]:
        """Walk from the consent to the end (or to a kind of step), whatever steps come; return the last one."""
        info = call("study_info", path={"slug": self.slug}, query={"language": self.language} if self.language else {})
        assert info.status_code == 200 and info.json()["consent"]["text"]
        chosen = {"language": self.language} if self.language else {}
        begun = call("sitting_begin", path={"slug": self.slug}, body={"consent": True, **chosen})
        assert begun.status_code == 201, begun.json()
        self.token = begun.json()["token"]
        self._show(begun.json()["step"])
        return self.go_on(until=until)

    def go_on(self, *, until: str = "end") -> dict[str, Any]:
        while self.step["kind"] not in (until, "end"):
            assert len(self.seen) < MAX_STEPS
            self._answer()
        return self.step

    def _show(self, step: dict[str, Any]) -> None:
        self.step = step
        self.seen.append(step)

    def _answer(self) -> None:
        """Send possible values of the fields until they are accepted; a refusal names the fields to change."""
        step = self.step
        answers = {check["name"]: self._read(check) for check in step["checks"]}
        asked = [*step["fields"], *(step["screen"] or {"fields": ()})["fields"]]
        choices = {field["name"]: list(values(field)) for field in asked}
        for name in set(self.prefers) & set(choices):
            choices[name].sort(key=lambda value: value != self.prefers[name])
        for values_given in chain(
            [{}] if not choices else [], map(dict, product(*([(n, v) for v in vs] for n, vs in choices.items())))
        ):
            body = {
                "step": step["number"],
                **answers,
                **{name: value for name, value in values_given.items() if value is not None},
            }
            response = call("sitting_answer", body=body, headers={"X-Sitting-Token": self.token})
            if response.status_code == 200:
                self._show(response.json())
                return
            assert response.status_code == 422, response.json()
            error = response.json()["error"]
            assert set(error["fields"]) <= set(choices), (error, step)
            self.refusals.append(error)
        raise AssertionError(f"nothing that the fields may hold is taken: {step}")

    def _read(self, check: Mapping[str, Any]) -> str:
        by_text = {option["text"]: option["value"] for option in check["options"]}
        return by_text[self.reader(check["question"], list(by_text))]
