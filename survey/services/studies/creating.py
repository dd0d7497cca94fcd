"""Creating a study from its file: everything that could go wrong later is refused now, with the line."""

import hashlib
import secrets
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from pydantic import BaseModel, ValidationError

from predictors.errors import PredictorError
from predictors.registry import default_params, reads, require_numbers, settings_of
from predictors.registry import names as predictor_names
from predictors.training import columns_of, members_of
from survey import study_file
from survey.contracts import instruments, panels
from survey.exceptions import FileErrors, NotFound, PlanRefused, Problem
from survey.input_tables import decoding
from survey.models import Bank, CompletionCode, Logo, Question, Stage, Study, StudyMembership
from survey.services.answers.conditions import option_problems
from survey.services.banks.importing import find_bank
from survey.services.base import rights
from survey.services.base.auditing import record
from survey.services.base.seeds import derive
from survey.services.plans.candidates import drawable_questions
from survey.services.plans.drafting import instrument_of_file
from survey.services.plans.planning import design_problems, drawing_problem, try_stage
from survey.services.sittings import attention, practice
from survey.study_file import FieldPath, Note, PredictorChoice, StudyConfig, StudyFileError, WrongKey

from . import sizing

CODE_LETTERS = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"  # Without I, L, O, 0 and 1: people type codes from a screen.
CODE_LENGTH = 10
TAKE_ANOTHER_SEED = "or take another seed"
TRIED = 20  # candidates that predictors are tried on when a study is created

Reporter = Callable[[FieldPath, str], None]


def create_study(*, text: str, source_name: str, by: Any = None, via: str = "command", reader: Any = None) -> Study:
    """Create a study, its stages (draft) and its completion codes from a study file's text.

    Args:
        reader: the user whose file it is: studies and banks that they may not see are not there. None: a command.

    Raises:
        FileErrors: lists every problem with its line; nothing is written.
    """
    study = checked_study(text=text, source_name=source_name, reader=reader)
    config = study.config
    study.created_by = by if getattr(by, "is_authenticated", False) else None
    try:
        _write(study, by=by, via=via)
    except IntegrityError as exc:
        if not Study.objects.filter(slug=config.slug).exists():
            raise
        # Somebody else took the slug since the check.
        raise FileErrors([study_file.problem_at(text, ("slug",), _taken(config.slug), file=source_name)]) from exc
    return study


def checked_study(
    *, text: str, source_name: str, instead_of: Study | None = None, reader: Any = None, limits: bool = True
) -> Study:
    """The study that a file makes, fully checked but not stored.

    Args:
        limits: whether sizes that do not fit the bank are refused with the largest that do, which takes far longer.
        instead_of: the stored study whose file is to be replaced. Stages that are planned are not tried again.
        reader: the user whose file it is: studies and banks that they may not see are not there. None: a command.

    Raises:
        FileErrors: with every problem and its line.
    """
    problems: list[Problem] = []
    text = decoding.without_mac_ends(text.removeprefix(decoding.MARK))

    def report(place: FieldPath, message: str) -> None:
        problems.append(study_file.problem_at(text, place, message, file=source_name))

    try:
        config = study_file.parse(text)
    except StudyFileError as exc:
        problems += exc.in_file(source_name).problems
        if exc.repaired is not None:
            _check_the_rest(exc.repaired, text, report, instead_of, reader)
        raise FileErrors(study_file.by_line(problems)) from exc
    _check_names(config, report, instead_of, reader)
    study = None if problems and reader is not None else _checked(config, text, report, instead_of, limits=limits)
    if problems or study is None:
        raise FileErrors(study_file.by_line(problems))
    return study


def _check_the_rest(
    repaired: study_file.RepairedConfig, text: str, report: Reporter, instead_of: Study | None, reader: Any
) -> None:
    """What else is wrong with a file whose schema is broken somewhere: all of it is reported at once."""
    known: list[tuple[FieldPath, str]] = []
    _check_names(repaired.config, lambda place, message: known.append((place, message)), instead_of, reader)
    if not (known and reader is not None):
        sizes = not repaired.touches(
            "stages", "sitting", "roles", "candidates", "questions", "instrument", "conditions"
        )
        collect = lambda place, message: known.append((place, message))  # noqa: E731
        _checked(repaired.config, text, collect, instead_of, sizes=sizes)
    for place, message in known:
        if not any(place[: len(left_out)] == left_out or left_out[:1] == place[:1] for left_out in repaired.left_out):
            report(place, message)


def remarks_on(study: Study) -> Sequence[Note]:
    """Remarks for the person who created the study."""
    return [*instruments.of_study(study).remarks(), *attention.remarks(study.config)]


def read_study_file(path: Path | str) -> str:
    """A study file's text.

    Raises:
        FileErrors: it cannot be read, is too large, or is no text; with every line that is wrong.
    """
    content = decoding.read_bytes(path, largest=study_file.LONGEST_FILE, too_large=study_file.too_large)
    return decoding.toml_text(content, str(path))


def _taken(slug: str) -> str:
    return f"a study called {slug!r} exists already: choose another slug"


def _check_names(config: StudyConfig, report: Reporter, instead_of: Study | None, reader: Any) -> None:
    """Other studies and the bank that the file names. What the file named before may stay."""
    studies: QuerySet[Study] = Study.objects.real()
    before = instead_of.config.panel.exclude_people_of if instead_of else []
    if reader is not None:
        studies = rights.visible(reader, studies)
        banks = rights.visible_banks(reader)
        name, _at, version = config.bank.partition("@")
        own = banks.filter(name=name, version=int(version)) if version.isdecimal() else banks.filter(name=name)
        newest = Bank.objects.filter(name=name).order_by("-version").values_list("pk", flat=True).first() or 0
        if not (own.exists() if version else own.filter(pk=newest).exists()):
            names = sorted(set(banks.values_list("name", flat=True)))
            seen = study_file.with_hint(name, names, ", ".join(names[:10]) or "none yet")
            report(("bank",), f"there is no bank {config.bank!r} among those that you see: {seen}")
    known = {*studies.filter(slug__in=config.panel.exclude_people_of).values_list("slug", flat=True), *before}
    for slug in config.panel.exclude_people_of:
        if slug not in known:
            report(("panel", "exclude_people_of"), f"there is no study {slug!r} here whose people could be left out")


def _checked(
    config: StudyConfig,
    text: str,
    report: Reporter,
    instead_of: Study | None,
    *,
    sizes: bool = True,
    limits: bool = True,
) -> Study | None:
    """The study as it would be stored. Reports problems that the schema cannot find; with `sizes`, also what does not
    fit the bank."""
    if instead_of is None and Study.objects.filter(slug=config.slug).exists():
        report(("slug",), _taken(config.slug))
    if instead_of is not None and config.slug != instead_of.slug:
        report(("slug",), f"this study is called {instead_of.slug!r}: another name makes another study")
    bank = _bank(config.bank, report)
    panel = _panel(config, report)
    instrument = _instrument(config, report)
    _check_predictor(config, instrument, report)
    if instrument is not None:
        _check_what_stages_draw_by(config, instrument, report)
    for place, language in study_file.missing_texts(config):
        report(place, f'has no text in "{language}": write a table such as {{ {_each(config.languages)} }}')
    logo = config.texts.logo
    if logo and not Logo.objects.filter(name=logo).exists():
        names = list(Logo.objects.values_list("name", flat=True))
        cure = "store it (`hunch store_logo`), or remove logo"
        report(("texts", "logo"), f"there is no logo {logo!r} here: {study_file.with_hint(logo, names, cure)}")
    if bank is None or panel is None or instrument is None:
        return None
    config = _with_all_options(config, instrument, panel, instead_of)
    study = Study(
        slug=config.slug,
        title=config.title,
        bank=bank,
        instrument=config.instrument.kind,
        seed=config.seed,
        stored_config=config.model_dump(mode="json"),
        source_text=text,
        is_blind=config.blind,
        source_sha256=hashlib.sha256(text.encode()).hexdigest(),
    )
    if not sizes:
        return study
    planned = [] if instead_of is None else instead_of.stages.exclude(state=Stage.State.DRAFT)
    _check_questions(study, report, planned={stage.index for stage in planned}, limits=limits)
    return study


def _each(languages: Sequence[str]) -> str:
    return ", ".join(f'{code} = "..."' for code in languages)


def _bank(wanted: str, report: Reporter) -> Bank | None:
    try:
        return find_bank(wanted)
    except NotFound as exc:
        report(("bank",), exc.message)
        return None


def _instrument(config: StudyConfig, report: Reporter) -> instruments.Instrument | None:
    """The instrument with the file's options, which may decide which capabilities it has."""
    try:
        kind = instruments.kind(config.instrument.kind)
    except instruments.InstrumentMissing as exc:
        report(("instrument", "kind"), exc.message)
        return None
    sound = _options_are_sound(kind.options_model, config.instrument.options, "instrument", kind.name, report)
    return instrument_of_file(config) if sound else None


def _panel(config: StudyConfig, report: Reporter) -> panels.Panel | None:
    """The panel that the file names, if it accepts the file's keys."""
    try:
        panel = panels.get(config.panel.kind)
    except LookupError as exc:
        report(("panel", "kind"), str(exc))
        return None
    strange = [key for key in config.panel.given_keys if key not in panel.keys]
    if strange and panel.is_open:
        report(("panel",), f"only a panel has {', '.join(strange)}: set kind, or remove it")
    elif strange:
        report(("panel",), f'a panel of the kind "{panel.name}" has no {", ".join(strange)}: remove it')
    if config.waves and panel.is_open:
        report(
            ("waves",),
            f'nobody is known again in a study of the kind "{panel.name}": use [panel] kind = "links", or a panel that '
            "sends its people's ids",
        )
    sound = _options_are_sound(panel.options_model, config.panel.options, "panel", panel.name, report)
    if strange or (unknown := _unknown_in_addresses(config, panel)):
        if not strange:
            report(("panel",), unknown)
        return None
    return panel if sound else None


def _unknown_in_addresses(config: StudyConfig, panel: panels.Panel) -> str:
    """What completion addresses ask for and cannot get; empty if nothing."""
    needed = config.panel.needed_for_closing
    if needed and not panel.gives_ids_back:
        named = ", ".join(f"{{{name}}}" for name in sorted(needed))
        return f'a completion address of a panel of the kind "{panel.name}" holds {{code}} alone: remove {named}'
    ids = [name for name in study_file.IDS if name in needed]
    missing = [name for name in ids if name not in panel.parameter_names(config)]
    formats = [id_format.of for id_format in config.panel.formats if id_format.of not in panel.parameter_names(config)]
    if missing:
        return f"a completion address needs {{{missing[0]}}}: give its parameter in [panel.parameters], {missing[0]}"
    if formats:
        return f"formats: no {formats[0]} comes in: give its parameter in [panel.parameters], {formats[0]}"
    return ""


def _options_are_sound(
    model: type[BaseModel], options: Mapping[str, Any], table: str, name: str, report: Reporter
) -> bool:
    """Whether the options are valid; each problem is reported at its place."""
    try:
        model.model_validate(options)
        return True
    except ValidationError as exc:
        for error in exc.errors(include_url=False):
            unknown = error["type"] == "extra_forbidden"
            place = error["loc"]
            if unknown:
                message = study_file.unknown_key(
                    str(place[-1]), model.model_fields, what="option", where=f"{name} has:"
                )
            else:
                message = study_file.message_of(error) or error["msg"].removeprefix("Value error, ")
            cause = error.get("ctx", {}).get("error")
            if isinstance(cause, WrongKey):  # If two options must agree, the message names the one to change.
                place, message = (*place, *cause.place), cause.message
            elif place and not unknown:
                message = f"{message} (it is {error['input']!r})"
            report((table, "options", *place), message)
    return False


def _with_all_options(
    config: StudyConfig, instrument: instruments.Instrument, panel: panels.Panel, instead_of: Study | None
) -> StudyConfig:
    """The options with today's defaults filled in: a later release may have other defaults."""
    given_options = {**_kept_from_before(config, instrument, instead_of), **config.instrument.options}
    asked = instrument.options_model.model_validate(given_options).model_dump(mode="json")
    panels_own = panel.options(config).model_dump(mode="json")
    return config.model_copy(
        update={
            "instrument": config.instrument.model_copy(update={"options": asked}),
            "panel": config.panel.model_copy(update={"options": panels_own}),
        }
    )


def _kept_from_before(
    config: StudyConfig, instrument: instruments.Instrument, instead_of: Study | None
) -> dict[str, Any]:
    """Options whose default has changed since the study was created and that its file does not name: its pages stay as
    they are."""
    if instead_of is None or instead_of.config.instrument.kind != config.instrument.kind:
        return {}
    file: Any = tomllib.loads(instead_of.source_text)
    named = file.get("instrument", {}).get("options", {})
    in_force = instruments.of_study(instead_of).options.model_dump(mode="json")
    return {
        name: in_force[name]
        for name, values in instrument.options_model.earlier_defaults.items()
        if name not in named and in_force[name] in values
    }


def _check_predictor(config: StudyConfig, instrument: instruments.Instrument | None, report: Reporter) -> None:
    if config.predictor is None:
        return
    if instrument is not None and instrument.learning is None:
        report(("predictor",), f"{instrument.name} has no label that a predictor could learn: remove [predictor]")
    _check_choice(config.predictor, ("predictor",), instrument, report)
    for index, compared in enumerate(config.predictor.compared):
        _check_choice(compared, ("predictor", "compared", index), instrument, report)
    _check_disagreement(config, config.predictor, report)


def _check_what_stages_draw_by(config: StudyConfig, instrument: instruments.Instrument, report: Reporter) -> None:
    for index in range(1, len(config.stages) + 1):
        if problem := drawing_problem(config, index=index, instrument=instrument):
            report(("stages", index - 1, "design"), problem)


def _check_disagreement(config: StudyConfig, predictor: PredictorChoice, report: Reporter) -> None:
    try:
        members = members_of(predictor.name, predictor.params)
    except PredictorError:  # Report it at the parameter that is wrong.
        return
    for index, stage in enumerate(config.stages):
        if stage.design.needs_disagreement and members < 2:
            report(
                ("stages", index, "design", "by"),
                f"{predictor.name} has {members} member, which cannot disagree with itself: set members to 2 or more, "
                'or by = "closeness"',
            )


def _check_choice(
    wanted: PredictorChoice, place: FieldPath, instrument: instruments.Instrument | None, report: Reporter
) -> None:
    if wanted.name not in predictor_names():
        listed = study_file.with_hint(wanted.name, predictor_names(), f"there are: {', '.join(predictor_names())}")
        report((*place, "name"), f"no predictor is called {wanted.name!r}; {listed}")
        return
    learning = instrument.learning if instrument is not None else None
    if instrument is not None and learning is not None and learning.reads != "pairs" and reads(wanted.name) == "pairs":
        able = ", ".join(name for name in predictor_names() if reads(name) == "features")
        report(
            (*place, "name"),
            f"{wanted.name} reads pairs of questions alone, and {instrument.name} gives features: choose one of {able}",
        )
    known = default_params(wanted.name)
    for name in wanted.params:
        if name not in known:
            message = study_file.unknown_key(name, known, what="", where=f"{wanted.name} has:")
            report((*place, "params", name), message)
    for name in known.keys() & wanted.params.keys():
        try:
            settings_of(wanted.name, {name: wanted.params[name]})
        except PredictorError as exc:
            report((*place, "params", name), str(exc).removeprefix(f"{name}: "))
            return
    if columns := (wanted.params.keys() <= known.keys() and columns_of(wanted.name, wanted.params)):
        _check_columns(columns, place, learning, report)


def _check_columns(
    columns: Sequence[str], place: FieldPath, learning: instruments.Learning | None, report: Reporter
) -> None:
    if place == ("predictor",):
        report(
            (*place, "params", "columns"),
            "the predictor that plans stages reads texts alone: give columns to one under [[predictor.compared]]",
        )
    elif learning is not None and (unknown := [name for name in columns if name not in learning.columns]):
        known = ", ".join(learning.columns) or "none"
        report((*place, "params", "columns"), f"the instrument does not know {', '.join(unknown)}; it knows {known}")


def _check_questions(study: Study, report: Reporter, *, planned: Collection[int] = (), limits: bool = True) -> None:
    config, instrument = study.config, instruments.of_study(study)
    known_tasks = set(study.bank.tasks.values_list("name", flat=True))
    strangers = [name for name in config.questions.tasks if name not in known_tasks]
    if strangers:
        hint = study_file.with_hint(strangers[0], known_tasks, "check the names")
        report(("questions", "tasks"), f"{study.bank} has no task called {', '.join(strangers[:5])}: {hint}")
        return
    problems = [
        *option_problems(study, instrument),
        *practice.problems(study, instrument),
        *instrument.problems(),
    ]
    for place, message in problems:
        report(place, message)
    if problems:
        return
    stages = _stages(study)
    try:
        questions = drawable_questions(stages[0])
    except PlanRefused as exc:
        report(("questions",), exc.message)
        return
    if any(drawing_problem(config, index=stage.index, instrument=instrument) for stage in stages):
        return  # Report it at the stage's design.
    undrawable = dict(design_problems(config, universe_size=instrument.universe_size(questions), instrument=instrument))
    for index, message in undrawable.items():
        report(("stages",), _with_limits(message, study, questions, index if limits else 0))
    left = [stage for stage in stages if stage.index not in planned and stage.index not in undrawable]
    _check_booklets(left, questions, report, limits=limits)
    if not undrawable:
        _check_numbers(study, questions, report)


def _check_booklets(stages: list[Stage], questions: list[Question], report: Reporter, *, limits: bool = True) -> None:
    """Try to deal what needs no scores, with the seeds that planning will use: a bank may have too few questions for
    booklets in which none comes twice."""
    for stage in stages:
        try:
            try_stage(stage, questions)
        except PlanRefused as exc:
            report(
                ("stages", stage.index - 1),
                _with_limits(
                    f"{len(questions)} questions do not fill its booklets: {exc.message}, {TAKE_ANOTHER_SEED}",
                    stage.study,
                    questions,
                    stage.index if limits else 0,
                ),
            )


def _with_limits(message: str, study: Study, questions: Sequence[Question], index: int) -> str:
    """The message, and the sizes that would fit."""
    limits = sizing.limits_of(study, questions, index)
    return f"{message}. {limits}" if limits else message


def _check_numbers(study: Study, questions: list[Question], report: Reporter) -> None:
    """Give some candidates to the predictors: one may read a number that this instrument's items do not have."""
    instrument, predictor = instruments.of_study(study), study.config.predictor
    if instrument.learning is None or predictor is None:
        return
    drawn = instrument.draw_candidates(questions=questions, size=TRIED, rng=np.random.default_rng(study.seed))
    try:
        inputs = instrument.learning.checked_inputs(rows=drawn.rows, questions=questions)
    except PredictorError as exc:
        report(("instrument", "kind"), str(exc))
        return
    chosen: list[tuple[FieldPath, PredictorChoice]] = [(("predictor",), predictor)]
    chosen += [(("predictor", "compared", index), other) for index, other in enumerate(predictor.compared)]
    for place, choice in chosen:
        try:
            settings_of(choice.name, choice.params)
        except PredictorError:  # Reported at the name or the parameter that is wrong.
            continue
        if instrument.learning.reads != "pairs" and reads(choice.name) == "pairs":
            continue  # Reported at the name.
        try:
            require_numbers(choice.name, choice.params, inputs)
        except PredictorError as exc:
            report((*place, "params", "numbers") if "numbers" in choice.params else (*place, "name"), str(exc))


def _stages(study: Study) -> list[Stage]:
    return [
        Stage(study=study, index=index, seed=derive(study.seed, "stage", index))
        for index in range(1, len(study.config.stages) + 1)
    ]


@transaction.atomic
def _write(study: Study, *, by: Any, via: str) -> None:
    study.save()
    Stage.objects.bulk_create(_stages(study))
    codes: dict[str, None] = {}  # In the order drawn, which a set would not keep.
    while len(codes) < len(CompletionCode.Outcome.values):
        codes["".join(secrets.choice(CODE_LETTERS) for _ in range(CODE_LENGTH))] = None
    CompletionCode.objects.bulk_create(
        CompletionCode(study=study, outcome=outcome, code=code)
        for outcome, code in zip(CompletionCode.Outcome.values, codes, strict=True)
    )
    if study.created_by is not None:
        owner = StudyMembership.Role.OWNER
        StudyMembership.objects.create(study=study, user=study.created_by, role=owner, may_spend=True)
    record("create_study", study, by=by, via=via, bank=str(study.bank), source_sha256=study.source_sha256)
