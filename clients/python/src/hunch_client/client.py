"""Studies, their stages and jobs as objects. What the server says more than is named here is left out, so that an older
client works with a newer server."""

import hashlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

import httpx

from ._http import TRIES, Http, error_of
from .errors import HunchAway, HunchError

if TYPE_CHECKING:
    import pandas

Row = dict[str, Any]
T = TypeVar("T")
PIECE = 1024 * 1024  # bytes


def _known(kind: type[T], data: Mapping[str, Any], **further: Any) -> T:
    """An object of what the server says, without what this client does not know."""
    names = {field.name for field in fields(kind) if field.init}  # type: ignore[arg-type]
    return kind(**{name: value for name, value in data.items() if name in names}, **further)


class ReportLine(Row):
    """A report with its arguments, and as `obstacle` why it cannot be made now. Printed, its name and title."""

    def __repr__(self) -> str:
        obstacle = f", not now: {self['obstacle']}" if self.get("obstacle") else ""
        return f"<{self['name']}: {self['title']}{obstacle}>"


@dataclass(frozen=True)
class Overview:
    """What a study is."""

    slug: str
    title: str
    instrument: str
    bank: str
    panel: str
    languages: list[str]
    minutes: int
    url: str
    admin_url: str
    file_sha256: str
    locked_at: str | None
    rights: list[str]
    remarks: list[str]


@dataclass(frozen=True)
class Step:
    """One step of the work between stages."""

    number: int
    stage: int
    kind: str
    title: str
    state: str
    progress_done: int
    progress_total: int
    error: str


@dataclass(frozen=True)
class Stage:
    """A stage as it was when it was asked for. An action gives it as it is then."""

    number: int
    state: str
    design: str
    pilot: bool
    slots: int
    in_time: int
    counted: int
    late: int
    booklets: int
    free_booklets: int
    sittings: Mapping[str, int]
    planned_at: str | None
    opened_at: str | None
    closing_at: str | None
    frozen_at: str | None
    study: "Study" = field(repr=False, compare=False)
    retried: int = 0

    def open(self) -> "Stage":
        """Let people in. A pilot and the first main stage are planned first."""
        return self._do("open")

    def pause(self) -> "Stage":
        """Admit nobody for now. Who has begun can finish."""
        return self._do("pause")

    def resume(self) -> "Stage":
        return self._do("resume")

    def close(self, *, now: bool = False) -> "Stage":
        """Admit nobody any more; the work after the stage follows. `now` also ends the sittings under way."""
        return self._do("close-now" if now else "close")

    def plan(self, *, uniform: bool = False, short_booklets: bool = False) -> "Stage":
        """Draw its slots. `uniform`, where its predictor had nothing to learn from, is final."""
        return self._do("plan-uniform" if uniform else "plan", short_booklets=short_booklets)

    def retry(self) -> "Stage":
        """Queue its failed steps again; `retried` says how many."""
        return self._do("retry")

    def _do(self, action: str, **arguments: Any) -> "Stage":
        return self.study._stage(self.study._http.post(self.study._at(f"stages/{self.number}/{action}/"), arguments))


@dataclass
class Job:
    """What a worker makes. `refresh` reads it again."""

    number: int
    kind: str
    state: str
    percent: int | None
    progress: str
    seconds_left: int | None
    error: str
    result: Mapping[str, Any]
    files: Sequence[Mapping[str, Any]]
    url: str
    _http: Http = field(repr=False, compare=False)

    @property
    def is_over(self) -> bool:
        return self.state not in ("queued", "running")

    def refresh(self) -> "Job":
        job = _known(Job, self._http.get(self.url), _http=self._http)
        self.__dict__.update(job.__dict__)
        return self

    def cancel(self) -> "Job":
        self.__dict__.update(_known(Job, self._http.delete(self.url), _http=self._http).__dict__)
        return self

    def wait(self, *, every: float = 2.0, at_most: float | None = None) -> "Job":
        """Until it is done.

        Raises:
            HunchError: it failed, was cancelled, or took longer than `at_most` seconds.
        """
        until = None if at_most is None else time.monotonic() + at_most
        while not self.is_over:
            if until is not None and time.monotonic() > until:
                raise HunchError(f"job {self.number} is still {self.state} after {at_most} seconds", code="timeout")
            self._http.pause(every)
            self.refresh()
        if self.state != "done":
            raise HunchError(f"job {self.number} is {self.state}: {self.error or 'no reason given'}", code=self.state)
        return self

    def download(self, folder: str | Path) -> list[Path]:
        """Its files, each checked by its hash. Half a file of before is continued; one that is whole is left as it is.

        Raises:
            HunchError: a file is no longer kept, or is not what the server says.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        return [self._download(file, folder / _plain_name(file["name"])) for file in self.files]

    def _download(self, file: Mapping[str, Any], path: Path) -> Path:
        if path.exists() and _sha256(path) == file["sha256"]:
            return path
        part = path.with_name(f"{path.name}.part")
        for number in range(TRIES):
            try:
                self._go_on(file, part)
                break
            except httpx.TransportError as exc:
                if number == TRIES - 1:
                    raise HunchAway(f"the download of {path.name} broke: call it again to go on") from exc
                self._http.pause(2.0**number)
        if _sha256(part) != file["sha256"]:
            part.unlink()
            raise HunchError(f"{path.name} is not what the server says it is: download it again", code="bad_file")
        part.replace(path)
        return path

    def _go_on(self, file: Mapping[str, Any], part: Path) -> None:
        have = part.stat().st_size if part.exists() else 0
        if have >= int(file["bytes"]):
            if have == int(file["bytes"]):
                return
            have = 0
        headers = {"Range": f"bytes={have}-", "If-Range": f'"{file["sha256"]}"'} if have else {}
        with self._http.stream(file["url"], headers) as answer:
            if not answer.is_success:
                raise error_of(answer)
            with part.open("ab" if answer.status_code == 206 else "wb") as out:
                for piece in answer.iter_bytes(PIECE):
                    out.write(piece)


@dataclass(frozen=True)
class Study:
    """One study on a server. Nothing of it is kept here: each call asks."""

    slug: str
    _http: Http = field(repr=False, compare=False)

    def overview(self) -> Overview:
        return _known(Overview, self._http.get(self._at("overview/")))

    def file(self) -> str:
        """The study file in force."""
        return str(self._http.get(self._at("file/"))["file"])

    # Stages

    def stages(self) -> list[Stage]:
        return [self._stage(row) for row in self._http.get(self._at("stages/"))]

    def stage(self, number: int) -> Stage:
        return self._stage(self._http.get(self._at(f"stages/{number}/")))

    def watch(self, *, every: float = 30.0) -> Iterator[list[Stage]]:
        """The stages now, and again whenever something in them has changed, until every one is frozen."""
        last: list[Stage] | None = None
        while True:
            now = self.stages()
            if now != last:
                last = now
                yield now
            if all(stage.state == "frozen" for stage in now):
                return
            self._http.pause(every)

    def wait_for(self, number: int, state: str, *, every: float = 10.0, at_most: float | None = None) -> Stage:
        """The stage, once it has this state.

        Raises:
            HunchError: a step after it failed, or it took longer than `at_most` seconds.
        """
        until = None if at_most is None else time.monotonic() + at_most
        while True:
            stage = self.stage(number)
            if stage.state == state:
                return stage
            failed = [step for step in self.steps() if step.state == "failed"]
            if failed:
                raise HunchError(f"{failed[0].title} after stage {failed[0].stage} failed: {failed[0].error}")
            if until is not None and time.monotonic() > until:
                raise HunchError(f"stage {number} is {stage.state} after {at_most} seconds", code="timeout")
            self._http.pause(every)

    def steps(self) -> list[Step]:
        return [_known(Step, row) for row in self._http.get(self._at("steps/"))]

    def runs(self) -> list[Row]:
        return list(self._http.get(self._at("runs/")))

    def postings(self) -> list[Row]:
        return list(self._http.get(self._at("postings/")))

    # Answers and figures

    def answers(self, *, stage: int | None = None, condition: Mapping[str, str] | None = None) -> Iterator[Row]:
        """The rows of answers.csv, read page by page."""
        page = self._http.get(self._at("answers/"), _chosen(stage, condition))
        while True:
            yield from page["results"]
            if page["next"] is None:
                return
            page = self._http.get(page["next"])

    def csv(self, *, stage: int | None = None, condition: Mapping[str, str] | None = None) -> bytes:
        """answers.csv as the server writes it."""
        return self._http.send("GET", self._at("answers.csv"), query=_chosen(stage, condition)).content

    def frame(self, *, stage: int | None = None, condition: Mapping[str, str] | None = None) -> "pandas.DataFrame":
        """The answers as a data frame of pandas: missing values are missing, times are times."""
        import pandas

        frame = pandas.read_csv(BytesIO(self.csv(stage=stage, condition=condition)), low_memory=False)
        for name in frame.columns:
            if name.endswith("_at"):
                frame[name] = pandas.to_datetime(frame[name], utc=True, format="ISO8601")
        return frame

    def estimates(self, *, by: Sequence[str] = (), condition: Mapping[str, str] | None = None) -> Row:
        return dict(self._http.get(self._at("estimates/"), {**_chosen(None, condition), "by": list(by)}))

    def leaderboard(self) -> list[Row]:
        return list(self._http.get(self._at("leaderboard/")))

    def reports(self) -> list[ReportLine]:
        return [ReportLine(line) for line in self._http.get(self._at("reports/"))]

    def report(self, name: str, **arguments: str | int | Sequence[str]) -> Row:
        return dict(self._http.get(self._at(f"reports/{quote(name, safe='')}/"), arguments))

    # Jobs

    def ask(self, kind: str, **arguments: str | Iterable[str]) -> Job:
        """Ask a worker for something that takes long. Who asks the same again while it goes on gets the same job."""
        lists = {name: [value] if isinstance(value, str) else list(value) for name, value in arguments.items()}
        made = self._http.post(self._at("jobs/"), {"kind": kind, "arguments": lists})
        return _known(Job, made, _http=self._http)

    def jobs(self) -> list[Job]:
        return [_known(Job, row, _http=self._http) for row in self._http.get(self._at("jobs/"))]

    def export(self, folder: str | Path, *, at_most: float | None = None) -> list[Path]:
        """Everything of the study as files in this folder."""
        return self.ask("export").wait(at_most=at_most).download(folder)

    def _at(self, path: str) -> str:
        return f"/api/v1/studies/{quote(self.slug, safe='')}/{path}"

    def _stage(self, row: Mapping[str, Any]) -> Stage:
        return _known(Stage, row, number=row["stage"], study=self)


class Hunch:
    """A Hunch server, as one account sees it.

    Args:
        root: its address, such as https://survey.example.org.
        token: of `hunch create_token`. Actions need one with the scope run.
        timeout: seconds for one answer.
    """

    def __init__(self, root: str, *, token: str, timeout: float = 60.0) -> None:
        self._http = Http(root, token, timeout=timeout)

    def studies(self) -> list[Study]:
        """Your studies, the newest first."""
        return [Study(row["slug"], self._http) for row in self._http.get("/api/v1/studies/")]

    def study(self, slug: str) -> Study:
        """One of them.

        Raises:
            HunchError: there is none, or you are no member.
        """
        study = Study(slug, self._http)
        study.overview()
        return study

    def check(self, file: str | Path) -> Overview:
        """What a study file would make. Nothing is stored.

        Raises:
            HunchError: with every problem by its key in `fields`.
        """
        return _known(Overview, self._http.post("/api/v1/studies/", {"file": _text(file), "check_only": True}))

    def create(self, file: str | Path) -> Study:
        """A new study, which you own.

        Raises:
            HunchError: with every problem by its key in `fields`; nothing is stored.
        """
        return Study(self._http.post("/api/v1/studies/", {"file": _text(file)})["slug"], self._http)

    def close(self) -> None:
        """Give the connections back."""
        self._http.close()

    def __enter__(self) -> "Hunch":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def _text(file: str | Path) -> str:
    """The text of a study file: a text of several lines is the file itself, anything else its path."""
    if isinstance(file, str) and "\n" in file:
        return file
    return Path(file).read_text(encoding="utf-8")


def _chosen(stage: int | None, condition: Mapping[str, str] | None) -> dict[str, int | list[str]]:
    query: dict[str, int | list[str]] = {} if stage is None else {"stage": stage}
    if condition:
        query["condition"] = [f"{factor}={level}" for factor, level in condition.items()]
    return query


def _plain_name(name: str) -> str:
    if name != Path(name).name or name in ("", ".", ".."):
        raise HunchError(f"the server names a file that leads elsewhere: {name!r}", code="bad_file")
    return name


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            digest.update(piece)
    return digest.hexdigest()
