"""Changing a study's file: anything before the first main stage opens, later only what changes no figure unnoticed.

A sitting continues with the file that it began with; people who begin later get the new one. Every change is stored
as a row that never changes, and is in every export.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db import transaction
from django.utils import timezone

from survey.contracts import instruments, panels
from survey.contracts.tables import ExtraFile, ValueColumn
from survey.exceptions import FileErrors, Problem, StateRefused
from survey.models import Amendment, CandidateSet, Consent, PredictorRun, Sitting, Stage, Study
from survey.services.answers import blinding
from survey.services.base import rights
from survey.services.base.auditing import record
from survey.services.base.rights import Right
from survey.services.base.seeds import derive
from survey.study_file import StudyConfig
from survey.study_file.values import UNTIL, names_in, texts_with_values

from .creating import checked_study

State = Stage.State
Path = tuple[str | int, ...]
# A wording that may be corrected in a block whose questions are measured.
WORDING = ("title", "text", "hint", "version")
# Keys of a planned stage that say nothing about what was drawn.
RUNNING = ("opens", "train")
FREE = ("title", "panel", "texts", "flags", "exclusions", "weighting", "data", "models")
# Keys of [sitting] that say nothing about what is shown.
FREE_OF_SITTING = (
    ("sitting", "expires_after_minutes"),
    ("sitting", "open_place_minutes"),
    ("sitting", "begins_per_address"),
)
# Keys of a quota that say nothing about who belongs in which cell.
FREE_OF_QUOTAS = ("places", "share", "when_full", "otherwise")
# Keys by which people get more money or less, more of them do, or nobody looks before they do: of [panel], and others
# where people are paid. Panels bring options of their own, of which nothing is known here.
MONEY = (
    *("kind", "options", "currency", "reward", "places", "expected_minutes", "spending_cap", "turned_away_pay"),
    *("bonus_per_point", "screen_out_pay", "screen_out_places", "project", "representative_sample", "signed_entry"),
)
PEOPLE = ("sittings", "begins_per_address")
DRAWN = ("seed", "questions", "candidates", "roles")


@dataclass(frozen=True)
class Change:
    """One key of the file, counted from 1 in lists, with its old and new value."""

    path: Path
    old: Any
    new: Any

    @property
    def key(self) -> str:
        return ".".join(str(part + 1) if isinstance(part, int) else part for part in self.path)


@dataclass(frozen=True)
class Proposal:
    """What a new file would change, and by key what of that may not be changed."""

    study: Study
    new: Study
    changes: Sequence[Change]
    refusals: Mapping[str, str]

    @property
    def changes_nothing(self) -> bool:
        return self.new.source_sha256 == self.study.source_sha256


def propose(study: Study, *, text: str, source_name: str, by: Any = None) -> Proposal:
    """What the file would change. Writes nothing.

    Raises:
        FileErrors: the file is not one that a study could be created from.
    """
    if study.is_test:
        raise StateRefused(f"{study.slug} is a test copy: amend the study itself, then renew its test copy")
    new = checked_study(text=text, source_name=source_name, instead_of=study, reader=by)
    # Parse both again: a key that a later release added then counts with its default, not as a change.
    before = study.config.model_dump(mode="json", warnings=not study.config.problems)
    before["instrument"]["options"] = instruments.of_study(study).options.model_dump(mode="json")
    changes = list(_changes(before, new.stored_config))
    world = _World.of(study)
    refusals = {change.key: reason for change in changes if (reason := world.refuses(change))}
    if by is not None and not rights.may(by, Right.SPEND, study.pk):
        pays = any(not panels.of_study(version).is_open for version in (study, new))
        earning = _earning(study) | _earning(new)
        needs = "it is about money: only a member who may spend changes it"
        refusals |= {
            change.key: needs
            for change in changes
            if change.key not in refusals and costs(change, pays=pays, earning=earning)
        }
    if reason := world.refuses_new_consent(study.config, new.config):
        refusals["blocks.1.version"] = reason
    return Proposal(study, new, changes, refusals)


class FileChanged(StateRefused):
    """Somebody else has changed the file since it was read. Nothing was written."""


class FileLocked(StateRefused):
    """The file was locked meanwhile, and anyone who changes it may not amend."""


def amend(
    study: Study,
    *,
    text: str,
    source_name: str,
    reason: str,
    by: Any = None,
    via: str = "command",
    read_sha256: str = "",
    only_unlocked: bool = False,
) -> Amendment:
    """Replace a study's file with a new one.

    Args:
        read_sha256: of the file that the new one was made from; empty: whichever is in force.
        only_unlocked: refuse where the file is locked by now.

    Raises:
        FileErrors: the file cannot be used, or changes keys that may not be changed; lists each of them.
        FileChanged: another file is in force than the one that was read.
        StateRefused: the reason is missing, or nothing is changed.
    """
    if not reason.strip():
        raise StateRefused("reason: is missing: say in a sentence why the file is changed; it is part of every export")
    with transaction.atomic():
        # Lock stages before the study, as everywhere: nobody may plan, open or begin by a file that is being replaced.
        list(Stage.objects.select_for_update(of=("self",), no_key=True).filter(study=study).order_by("pk"))
        study = Study.objects.select_for_update(of=("self",), no_key=True).get(pk=study.pk)
        if read_sha256 and study.source_sha256 != read_sha256:
            raise FileChanged("Somebody else has changed the file since you opened it; nothing was saved.")
        if only_unlocked and study.locked_at is not None:
            raise FileLocked("The first main stage was opened meanwhile, which locks the file; nothing was saved.")
        proposal = propose(study, text=text, source_name=source_name, by=by)
        if proposal.changes_nothing:
            raise StateRefused(f"{source_name}: this is the file that the study has already; nothing changes")
        if proposal.refusals:
            raise FileErrors(Problem(source_name, None, key, why) for key, why in proposal.refusals.items())
        amendment = Amendment.objects.create(
            study=study,
            at=timezone.now(),
            actor=by if getattr(by, "is_authenticated", False) else None,
            via=via,
            reason=reason.strip()[:1000],
            was_locked=study.locked_at is not None,
            old_sha256=study.source_sha256,
            new_sha256=proposal.new.source_sha256,
            changes=[{"key": change.key, "old": change.old, "new": change.new} for change in proposal.changes],
            old_text=study.source_text,
            old_config=study.stored_config,
        )
        _replace(study, proposal.new)
        if any(change.path[0] == "predictor" for change in proposal.changes):
            for run in PredictorRun.objects.filter(stage__study=study, ready_at=None):
                run.stop("the study file names another predictor")
        record(
            "amend_study",
            study,
            by=by,
            via=via,
            reason=amendment.reason,
            old_sha256=amendment.old_sha256,
            new_sha256=amendment.new_sha256,
            keys=[change.key for change in proposal.changes],
        )
    return amendment


def _replace(study: Study, new: Study) -> None:
    replaced = ["title", "bank", "instrument", "seed", "stored_config", "source_text", "source_sha256"]
    if study.unblinded_at is None:
        replaced.append("is_blind")
    for name in replaced:
        setattr(study, name, getattr(new, name))
    study.save(update_fields=replaced)
    wanted = len(new.config.stages)
    drafts = study.stages.filter(state=State.DRAFT)
    drafts.filter(index__gt=wanted).delete()
    there = set(study.stages.values_list("index", flat=True))
    for stage in drafts.filter(index__lte=wanted):
        seed = derive(new.seed, "stage", stage.index)
        if stage.seed != seed:
            stage.seed = seed
            stage.save(update_fields=["seed"])
    Stage.objects.bulk_create(
        Stage(study=study, index=index, seed=derive(new.seed, "stage", index))
        for index in range(1, wanted + 1)
        if index not in there
    )


def _earning(study: Study) -> set[Path]:
    """The beginnings of the keys that decide how many points people are paid for: the instrument, those of its options
    that it declares, and conditions where one of them changes such an option."""
    if not study.config.panel.bonus_per_point:
        return set()
    names = instruments.of_study(study).options_model.money
    keys: set[Path] = {("instrument", "kind"), *(("instrument", "options", name) for name in names)}
    if any(names & set(changed) for condition in study.config.conditions for changed in condition.options.values()):
        keys.add(("conditions",))
    return keys


def costs(change: Change, *, pays: bool, earning: Collection[Path] = ()) -> bool:
    """Whether a change moves money: what people get, how many of them, and whether somebody looks before they do.

    Args:
        pays: whether the study's people are paid, before the change or after it.
        earning: beginnings of the keys by which people get more points or fewer, which are paid.
    """
    top, path = change.path[0], change.path
    if top == "panel":
        return len(path) == 1 or path[1] in MONEY or path[1:] == ("codes", "completed")
    if not pays:
        return False
    if any(path[: len(key)] == key for key in earning):
        return True
    is_whole_stage = top == "stages" and len(path) <= 2  # A stage that is added, or taken out.
    return is_whole_stage or top == "quotas" or (top in ("stages", "sitting") and path[-1] in PEOPLE)


# What changed


def _changes(old: Any, new: Any, path: Path = ()) -> Iterator[Change]:
    """Compare key by key. Lists of tables with the same length are compared entry by entry; stages always are."""
    if old == new:
        return
    if isinstance(old, dict) and isinstance(new, dict) and not _is_text(old) and not _is_text(new):
        for name in [*old, *(name for name in new if name not in old)]:
            yield from _changes(old.get(name), new.get(name), (*path, name))
    elif _are_tables(old) and _are_tables(new) and (len(old) == len(new) or path == ("stages",)):
        for index in range(max(len(old), len(new))):
            yield from _changes(
                old[index] if index < len(old) else None, new[index] if index < len(new) else None, (*path, index)
            )
    else:
        yield Change(path, old, new)


def _is_text(value: Mapping[str, Any]) -> bool:
    """A text in several languages counts as one value, although it is a table."""
    return bool(value) and all(len(key) == 2 and isinstance(text, str) for key, text in value.items())


def _are_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(table, dict) for table in value)


# What may change


@dataclass(frozen=True)
class _World:
    """What has happened to the study so far."""

    is_locked: bool
    has_people: bool
    has_agreed: bool  # Somebody real who has not withdrawn.
    planned: frozenset[int]  # The stages that have a plan.
    scored: frozenset[int]  # Those that are about to get a plan from what was learnt.
    pilots_over: frozenset[int]
    learnt: int  # The last stage that trained something, or is about to; 0 for none.
    trained: int  # The last stage whose answers a predictor has learnt; 0 for none.
    stages: int
    posted: frozenset[int]  # Those that were posted at a panel.
    is_at_panel: bool  # A draft that the panel never took is not there.
    has_promised_pay: bool  # Somebody real has come, and the panel is not one at which nobody is paid.

    @classmethod
    def of(cls, study: Study) -> "_World":
        stages = list(study.stages.order_by("index"))
        for stage in stages:
            stage.study = study
        planned = frozenset(stage.index for stage in stages if stage.state != State.DRAFT)
        ended = [stage.index for stage in stages if stage.state in (State.CLOSING, State.FROZEN) and not stage.is_pilot]
        scored = {index + 1 for index in ended} | {
            row.stage.index for row in CandidateSet.objects.filter(stage__study=study).select_related("stage")
        }
        return cls(
            is_locked=study.locked_at is not None,
            has_people=Sitting.objects.filter(stage__study=study).exists(),
            has_agreed=Consent.objects.filter(
                sitting__stage__study=study, sitting__respondent__is_simulated=False, sitting__withdrawn_at=None
            ).exists(),
            planned=planned,
            scored=frozenset(scored) - planned,
            pilots_over=frozenset(stage.index for stage in stages if stage.is_pilot and stage.state == State.FROZEN),
            learnt=max(ended, default=0),
            trained=max(
                PredictorRun.objects.filter(stage__study=study, role=PredictorRun.Role.MAIN)
                .exclude(ready_at=None)
                .values_list("stage__index", flat=True),
                default=0,
            ),
            stages=len(stages),
            posted=frozenset(study.postings.values_list("stage__index", flat=True)),
            is_at_panel=study.postings.exclude(external_id="").exists(),
            has_promised_pay=not panels.of_study(study).is_open
            and study.respondents.filter(is_simulated=False).exists(),
        )

    @property
    def bound(self) -> list[int]:
        """Stages whose plan or people depend on the present file; a pilot that is over keeps the file it had."""
        return sorted((self.planned | self.scored) - self.pilots_over)

    def refuses(self, change: Change) -> str:
        """Why the key may not be changed; empty if it may."""
        top = change.path[0]
        if top == "stages":
            return self._stage(change)
        if change.path == ("blind",) and change.old:
            return "the conditions stay hidden until an owner unblinds the study (hunch unblind)"
        if top == "bank" or change.path[:2] == ("instrument", "kind"):
            return "items were drawn from it: make a new study" if self.planned else ""
        if change.path[:2] == ("panel", "kind"):
            return "people have come from this panel: make a new study for another one" if self.has_people else ""
        if change.path[:2] == ("panel", "currency"):
            if self.is_at_panel:
                return "the study is at the panel, and its sums are in this currency"
            return "people have come, and were promised their pay in this currency" if self.has_promised_pay else ""
        if change.path[:2] in (("texts", "language"), ("texts", "languages")):
            return "answers are stored in the words of the first language" if self.is_locked else ""
        if change.path[:2] == ("texts", "answerer"):
            return "it is in the questions that are measured: make a new study for it" if self.is_locked else ""
        if change.path == ("data", "retention_until") and self.has_agreed and self._is_later(change):
            return f"people have agreed that their data is kept until {change.old}: give an earlier day, or a new study"
        if top in FREE or change.path in FREE_OF_SITTING:
            return ""
        if top == "predictor":
            return (
                f"stage {self.trained} has trained it: make a new study for another predictor" if self.trained else ""
            )
        if top in DRAWN or change.path == ("sitting", "items") or top == "instrument":
            if self.bound:
                return f"stage {self.bound[0]} was drawn by it: a plan is never changed"
            return ""
        if not self.is_locked:
            return ""
        if top == "quotas" and change.path[-1] in FREE_OF_QUOTAS:
            return ""
        if top == "blocks" and len(change.path) > 2 and change.path[-1] in WORDING:
            return ""
        return "it changes what is measured, and the first main stage has been opened: make a new study for it"

    @staticmethod
    def _is_later(change: Change) -> bool:
        """Of two days as files have them, of which the new one may be missing. Nobody agreed to one that was."""
        return change.old is not None and (change.new is None or str(change.new) > str(change.old))

    def _stage(self, change: Change) -> str:
        index = int(change.path[1]) + 1 if len(change.path) > 1 else 0
        if change.new is None and len(change.path) == 2 and index in self.planned:
            return f"stage {index} is planned, so it cannot be removed"
        if change.new is None and len(change.path) == 2 and index in self.posted:
            return f"stage {index} is posted at the panel, so it cannot be removed"
        if len(change.path) > 2 and change.path[2] in RUNNING and index > self.learnt:
            return ""
        if index in self.planned:
            return f"stage {index} is planned: a plan is never changed"
        if index == self.learnt + 1 > self.stages:
            return f"stage {self.learnt} is closed: a stage after it can only be added before that"
        if index in self.scored:
            return f"stage {index} is being planned from the answers before it"
        return ""

    def refuses_new_consent(self, old: StudyConfig, new: StudyConfig) -> str:
        """A new consent text needs a new version: in exports the version shows who agreed to what. The text may
        also change by a value that it names, such as {reward}; an earlier day until which data is kept is no change."""
        before, after = old.blocks[0], new.blocks[0]
        promised, promises = old.values_in_texts, new.values_in_texts
        named = {
            name for _place, text in texts_with_values({"blocks": [{"text": after.text}]}) for name in names_in(text)
        }
        reads_otherwise = any(promised.get(name) != promises.get(name) for name in named - {UNTIL})
        if (
            self.has_people
            and before.version == after.version
            and (before.model_dump()["text"] != after.model_dump()["text"] or reads_otherwise)
        ):
            return "the text of the consent changed, and people have agreed to the old one: give it a new version"
        return ""


# As a file of the export


class ChangedKey(NamedTuple):
    """A key that an amendment changed; None for one that changed none."""

    number: int
    made: Amendment
    key: str | None
    old: Any
    new: Any


def _json(value: Any) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False, sort_keys=True)


COLUMNS = (
    ValueColumn(
        "amendment",
        "number",
        "The study file's changes in their order, from 1; a row for each key.",
        whole=True,
        value="number",
    ),
    ValueColumn(
        "at",
        "time, UTC",
        "When it was made. Sittings that had begun by then went on with the old file.",
        value=lambda row: row.made.at.isoformat(),
    ),
    ValueColumn(
        "by",
        "text",
        "The user name of the person who made it in the admin; empty where a command did.",
        value=lambda row: row.made.actor.get_username() if row.made.actor else None,
    ),
    ValueColumn("reason", "text", "Why, in their words.", value="made.reason"),
    ValueColumn("was_locked", "0 or 1", "1: the first main stage had been opened by then.", value="made.was_locked"),
    ValueColumn(
        "old_sha256", "text", "Of the file before, as in study_sha256 of answers.csv.", value="made.old_sha256"
    ),
    ValueColumn("new_sha256", "text", "Of the file after.", value="made.new_sha256"),
    ValueColumn("key", "text", "What changed, counted from 1 in lists; empty where only comments or spaces did."),
    ValueColumn("old", "JSON", "Its value before; empty where it was not there.", value=lambda row: _json(row.old)),
    ValueColumn("new", "JSON", "Its value after; empty where it is gone.", value=lambda row: _json(row.new)),
)


def amendments_file(study: Study) -> ExtraFile:
    """Every change of the study's file, for readers of the answers."""
    return ExtraFile.of("amendments.csv", COLUMNS, _changed_keys(study))


def _changed_keys(study: Study) -> Iterator[ChangedKey]:
    for number, made in enumerate(study.amendments.select_related("actor").order_by("pk"), start=1):
        changes = blinding.shown_changes(study, made.changes)
        for change in changes or [{"key": None, "old": None, "new": None}]:
            yield ChangedKey(number, made, change["key"], change["old"], change["new"])


def in_words(change: Change, *, width: int = 60) -> str:
    """`key: old -> new` on one line, cut where a text is long."""

    def short(value: Any) -> str:
        text = "nothing" if value is None else json.dumps(value, ensure_ascii=False)
        return text if len(text) <= width else f"{text[: width - 1]}…"

    return f"{change.key}: {short(change.old)} -> {short(change.new)}"
