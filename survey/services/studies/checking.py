"""A study file before it becomes a study: what would stop it, what ethics boards and panels ask for, what it costs.

Writes nothing. It reports what `create_study` would refuse, in the same words, and adds further remarks.
"""

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import Any, Literal

from django.utils import timezone
from django.utils.module_loading import import_string

from bandit.designs import TestSet
from bandit.errors import DesignError
from survey import study_file
from survey.contracts import instruments, panels
from survey.contracts.budgets import BudgetPlanner, PoolOutlook
from survey.contracts.panels import Panel
from survey.exceptions import FileErrors, NotFound
from survey.figures.words import money, significant
from survey.models import CompletionCode, Question, Study
from survey.services.banks.eligibility import filtered_questions
from survey.services.banks.importing import find_bank
from survey.services.base.retention import retention_problem
from survey.services.plans.drafting import recipe_of, slots_by_role
from survey.services.sittings import attention, timing
from survey.study_file import QuotaConfig, StageConfig, StudyConfig, StudyFileError, unplaced_values

from . import sizing, text_checks
from .creating import checked_study

SHORT_WAVE = 2  # days
PLATFORM_FEE = 1 / 3  # A share of the reward, as panels commonly take; `--fee` sets the fee of your panel.


@dataclass(frozen=True)
class CheckMessage:
    """`problem`: the study would be refused or could not run. `remark`: somebody should look at it."""

    level: Literal["problem", "remark"]
    field: str
    message: str
    line: int | None = None

    def __str__(self) -> str:
        return f"{self.level}: {self.field}: {self.message}"


@dataclass(frozen=True)
class TestFacts:
    """What a test stage asks for: items from the two ends of the scores, each answered by several people.

    `candidates` is the smallest number of candidates whose ends have that many items.
    """

    __test__ = False  # its name would make pytest collect it

    items: int
    responses_per_item: int
    from_top: int
    top_fraction: float
    from_bottom: int
    bottom_fraction: float
    ties: str
    candidates: int


@dataclass(frozen=True)
class StageFacts:
    """What a stage asks for: people, and slots by role.

    `sampled_so_far`: the sampled slots up to and including this stage that predictors learn from; None where the stage
    teaches nothing (a pilot, a test stage). `stop`: the stopping rule in words; empty without one. `quotas`: the places
    of each cell, by quota.
    """

    stage: int
    pilot: bool
    design: str
    sittings: int
    slots: dict[str, int]
    sampled_so_far: int | None = None
    test: TestFacts | None = None
    stop: str = ""
    quotas: dict[str, dict[str, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Cost:
    """In whole cents or pence of the currency, for all places of all stages."""

    currency: str
    people: int
    rewards: int
    screen_outs: int
    fee: int
    total: int
    bonus_per_point: int


@dataclass(frozen=True)
class Pay:
    """Cents per hour by the expected minutes, and the panel's minimum; None if it has no minimum."""

    currency: str
    minutes: int
    an_hour: float
    minimum: int | None


@dataclass
class StudyCheck:
    """Everything that was found."""

    source: str
    findings: list[CheckMessage] = field(default_factory=list)
    slug: str = ""
    bank: str = ""
    languages: list[str] = field(default_factory=list)
    retention_until: str = ""
    minutes: int = 0
    pay: Pay | None = None
    cost: Cost | None = None
    codes: dict[str, str] = field(default_factory=dict)
    attention_checks: int = 0
    stages: list[StageFacts] = field(default_factory=list)
    pools: list[PoolOutlook] = field(default_factory=list)
    sizes: list[str] = field(default_factory=list)
    """The largest sizes that fit the bank, stage by stage, in words."""

    @property
    def has_problems(self) -> bool:
        return any(finding.level == "problem" for finding in self.findings)

    def as_json(self) -> dict[str, Any]:
        return {"ok": not self.has_problems, **asdict(self)}


def check_study(
    *,
    text: str,
    source_name: str,
    fee: float = PLATFORM_FEE,
    pools: bool = False,
    sizes: bool = False,
    reader: Any = None,
    instead_of: Study | None = None,
) -> StudyCheck:
    """Check a whole study file.

    Args:
        fee: what the panel takes, as a share of the rewards.
        pools: simulate for some seconds what larger pools would find.
        sizes: try which sizes fit the bank at most.
        reader: the user whose file it is: studies and banks that they may not see are not there. None: a command.
        instead_of: the stored study whose file this one is to replace; without it the one that has the same slug.
    """
    study_check = StudyCheck(source_name)
    try:
        config = study_file.parse(text)
    except StudyFileError as exc:
        problems = [*exc.problems]
        try:
            checked_study(text=text, source_name="", instead_of=instead_of, reader=reader)
        except FileErrors as all_of_them:
            problems = [*all_of_them.problems]
        study_check.findings = [
            CheckMessage("problem", problem.field, problem.message, problem.line) for problem in problems
        ]
        return study_check
    study_check.slug, study_check.languages = config.slug, list(config.languages)
    study_check.minutes, study_check.attention_checks = config.expected_minutes, len(config.sitting.attention_checks)
    until = config.data.retention_until
    study_check.retention_until = until.isoformat() if until else ""
    study_check.codes = {outcome: getattr(config.panel.codes, outcome) for outcome in _outcomes(config)}
    study_check.pay, study_check.cost = _pay(config), _cost(config, fee)
    existing = instead_of or _stored(config.slug, reader)
    study_check.findings += _check_file(study_check, text, source_name, config, existing, reader)
    study_check.findings += _check_scouting(text)
    study_check.findings += _check_stages(study_check, config)
    study_check.findings += _check_waves(config)
    study_check.findings += _check_data(config)
    study_check.findings += _check_pay(study_check, config)
    study_check.findings += _check_ethics(config)
    study_check.findings += [CheckMessage("remark", *remark) for remark in text_checks.remarks(config)]
    study_check.findings += _check_language_of_bank(study_check, config)
    study_check.findings += [CheckMessage("remark", note.field, note.message) for note in attention.remarks(config)]
    if (pools or sizes) and not study_check.has_problems and study_check.bank:
        made = checked_study(text=text, source_name=source_name, instead_of=existing, reader=reader)
        questions = filtered_questions(made)
        if pools:
            study_check.pools = [*_larger_pools(made, questions)]
        if sizes:
            limits = (sizing.limits_of(made, questions, index) for index in range(1, len(config.stages) + 1))
            study_check.sizes = [*dict.fromkeys(limit for limit in limits if limit)]
    return study_check


def _larger_pools(study: Study, questions: list[Question]) -> Sequence[PoolOutlook]:
    path = instruments.kind(study.instrument).budget_planner
    if not path:
        return ()
    planner: type[BudgetPlanner] = import_string(path)
    return planner.larger_pools(study.config, questions)


def _stored(slug: str, reader: Any) -> Study | None:
    """The study that has the slug, for a command. A reader makes a new study, which the slug may stand against."""
    return Study.objects.filter(slug=slug).first() if reader is None else None


def _check_file(
    check: StudyCheck, text: str, source_name: str, config: StudyConfig, existing: Study | None, reader: Any
) -> Iterator[CheckMessage]:
    """What creating the study would refuse. A missing bank stops the study, but the file is still checked."""
    try:
        check.bank = str(find_bank(config.bank))
    except NotFound as exc:
        if reader is None:
            yield CheckMessage("remark", "bank", f"{exc.message}; what needs its questions was not checked")
        else:
            check.bank = config.bank
    if existing is not None and reader is None:
        yield CheckMessage(
            "remark", "slug", "a study of this name is there: checked as its next file, with which it is amended"
        )
    try:
        checked_study(text=text, source_name=source_name, instead_of=existing, reader=reader)
    except FileErrors as exc:
        for problem in exc.problems:
            if problem.field != "bank" or check.bank:
                yield CheckMessage("problem", problem.field, problem.message, problem.line)


def _check_scouting(text: str) -> Iterator[CheckMessage]:
    """A first stage whose design has no earlier answers to learn from is stored as a uniform one."""
    stages: Any = tomllib.loads(text).get("stages")
    place = study_file.scouts_of(stages)
    if place is not None:
        yield CheckMessage(
            "remark",
            f"stages.{place + 1}.design",
            f"{stages[place]['design']['kind']} learns from earlier answers and there are none yet, so that this stage "
            "scouts: it is drawn uniformly",
        )


def _check_stages(check: StudyCheck, config: StudyConfig) -> Iterator[CheckMessage]:
    # Options that are refused say nothing about controls, and without its instrument a study has none.
    is_known = not any(
        finding.level == "problem" and finding.field.startswith("instrument") for finding in check.findings
    )
    so_far = 0
    for index, stage in enumerate(config.stages, start=1):
        slots: dict[str, int] = {}
        if not is_known:
            check.stages.append(StageFacts(index, stage.pilot, stage.design.kind, stage.sittings, slots))
            continue
        try:
            plan = slots_by_role(recipe_of(config, index=index, seed=0))
        except (DesignError, LookupError) as exc:
            yield CheckMessage("problem", f"stages.{index}", str(exc))
        else:
            slots = {
                "sampled": plan.sampled.items,
                "holdout": plan.holdout.items,
                "controls": sum(count for _kind, count in (*plan.sampled.controls, *plan.holdout.controls)),
            }
        if stage.design.kind == "test_set" and slots.get("sampled", 0) > stage.sittings:
            yield CheckMessage(
                "remark",
                f"stages.{index}",
                "a test stage takes the highest and the lowest predictions, which may be about few questions. One that "
                f"is in more slots than there are sittings ({stage.sittings}) cannot be dealt into booklets of "
                f"{config.sitting.items} items: predictions decide that, so that nobody can check it now. Then "
                f"`hunch plan_stage {config.slug} {index} --short-booklets` helps, which needs more sittings and pays "
                "each in full: leave some money for them",
            )
        so_far += slots.get("sampled", 0) if stage.teaches else 0
        check.stages.append(
            StageFacts(
                index,
                stage.pilot,
                stage.design.kind,
                stage.sittings,
                slots,
                sampled_so_far=so_far if stage.teaches else None,
                test=_test_facts(stage),
                stop=stage.stop.in_words(stage.sittings) if stage.stop else "",
                quotas={quota.name: quota.places(stage.sittings) for quota in config.quotas},
            )
        )
        for quota in config.quotas:
            yield from _check_quota(quota, index, stage)
        yield from _check_pool(index, check.stages[-1].test, config)
    for quota in config.quotas:
        if quota.otherwise != "admit" and (rest := unplaced_values(quota, config.blocks)):
            answers = "; ".join(f"{name}: {', '.join(values)}" for name, values in rest.items())
            yield CheckMessage("remark", f"quotas.{quota.name}", f"in no cell, and so {quota.otherwise}: {answers}")
    if not config.pilots and not panels.find(config.panel.kind).is_open:
        yield CheckMessage(
            "remark", "stages", "no pilot: nobody has tried the minutes and the instructions (pilot = true)"
        )


def _check_quota(quota: QuotaConfig, index: int, stage: StageConfig) -> Iterator[CheckMessage]:
    """Places that add up to fewer people than the stage needs, or cells that nobody could enter."""
    places = quota.places(stage.sittings)
    total = sum(places.values())
    if total < stage.sittings and quota.otherwise != "admit":
        yield CheckMessage(
            "problem",
            f"quotas.{quota.name}",
            f"its places add up to {total}, and stage {index} needs {stage.sittings} people, so it can never be full: "
            'give more places, or set otherwise = "admit"',
        )
    if empty := [name for name, number in places.items() if not number]:
        yield CheckMessage(
            "remark",
            f"quotas.{quota.name}",
            f"stage {index} with {stage.sittings} sittings has no place for: {', '.join(empty)}",
        )


def _test_facts(stage: StageConfig) -> TestFacts | None:
    design = stage.design.build()
    if not isinstance(design, TestSet):
        return None
    from_top, from_bottom = design.at_each_end
    return TestFacts(
        items=design.pairs,
        responses_per_item=design.responses_per_pair,
        from_top=from_top,
        top_fraction=design.top_fraction,
        from_bottom=from_bottom,
        bottom_fraction=design.bottom_fraction,
        ties=stage.ties or "",
        candidates=design.least_candidates,
    )


def _check_pool(index: int, test: TestFacts | None, config: StudyConfig) -> Iterator[CheckMessage]:
    """A bank may have fewer items than a pool asks for; that is found where the bank is known."""
    pool = config.candidates
    if test is not None and pool.kind == "pool" and pool.size < test.candidates:
        yield CheckMessage(
            "problem",
            "candidates.size",
            f"{pool.size:,}: stage {index} draws {test.from_top} items from the top {significant(test.top_fraction)} "
            f"and {test.from_bottom} from the bottom {significant(test.bottom_fraction)}, which "
            f"{test.candidates:,} candidates or more have",
        )


def _check_waves(config: StudyConfig) -> Iterator[CheckMessage]:
    """Whether everybody who finishes can come back in time, and whether there are places for them."""
    if not config.waves:
        return
    until = config.data.retention_until
    last = timezone.now().date() + timedelta(days=config.wave_days)
    if until is not None and until < last:
        yield CheckMessage(
            "problem",
            "data.retention_until",
            f"{until}, and the last wave ends {config.wave_days} days after somebody finished the first, {last} at the "
            "earliest: people are known again by data that is kept until then",
        )
    for number, wave in enumerate(config.waves, start=2):
        place = f"waves.{number - 1}"
        before, here = _main_places(config, number - 1), _main_places(config, number)
        if here < before:
            words = f"{before} people may finish wave {number - 1}, and wave {number} has {here} places"
            yield CheckMessage("remark", place, f"{words}: who comes last finds it full")
        if wave.open_days < SHORT_WAVE:
            yield CheckMessage("remark", place, f"open for {wave.open_days} day: many will miss it")
        first = next(index for index, stage in enumerate(config.stages, start=1) if stage.wave == number)
        if config.stages[first - 1].opens == "automatically" and wave.after_days:
            yield CheckMessage(
                "remark",
                f"stages.{first}.opens",
                "it opens when the stage before is closed: people who come earlier than they may see the day",
            )
    if panels.find(config.panel.kind).client is not None and config.panel.filter_set:
        yield CheckMessage(
            "problem",
            "panel.filter_set",
            "the set alone says whom the panel sends, so that a later wave would be shown to everybody: use filters",
        )


def _main_places(config: StudyConfig, wave: int) -> int:
    return sum(stage.sittings for stage in config.stages if stage.wave == wave and not stage.pilot)


def _check_data(config: StudyConfig) -> Iterator[CheckMessage]:
    if problem := retention_problem(config.data.retention_until, today=timezone.now().date()):
        yield CheckMessage("problem", problem.field, problem.message)


def _check_pay(check: StudyCheck, config: StudyConfig) -> Iterator[CheckMessage]:
    panel, kind = config.panel, panels.find(config.panel.kind)
    if missing := kind.missing_setting(config):
        key = "signed_entry" if panel.signed_entry else "completion_signature"
        yield CheckMessage("remark", f"panel.{key}", f"{missing} (this process has no such setting)")
    if any("YOUR-" in address for address in panel.completion_addresses):
        yield CheckMessage(
            "remark", "panel.completion_urls", "one still says YOUR-...: put in what the panel gives you"
        )
    if kind.is_open or kind.problem:
        return
    if check.pay is None or check.cost is None:
        yield CheckMessage("remark", "panel.reward", "none is named: people at a panel are paid")
        return
    pay, cost = check.pay, check.cost
    if pay.minimum is not None and pay.an_hour < pay.minimum:
        needed = -(-pay.minimum * pay.minutes // 60)
        yield CheckMessage(
            "problem",
            "panel.reward",
            f"{money(pay.an_hour, pay.currency)} an hour by the expected {pay.minutes} minutes; the panel's "
            f"minimum is {money(pay.minimum)}: make it {needed} or more, or the sitting shorter",
        )
    yield from _check_screen_outs(config, kind)
    yield from _check_stopping(check, config, kind)
    if kind.client is not None:
        if panel.spending_cap is None:
            yield CheckMessage(
                "problem", "panel.spending_cap", "none is named, and without one nothing is posted or paid"
            )
        elif panel.spending_cap < cost.rewards + cost.screen_outs:
            what = "the rewards of all places" + (" and the screen-outs" if cost.screen_outs else "")
            yield CheckMessage(
                "problem",
                "panel.spending_cap",
                f"{panel.spending_cap} does not cover {what}, {cost.rewards + cost.screen_outs}: raise it",
            )
        elif panel.spending_cap < cost.total and kind.highest_fees.fee:
            yield CheckMessage(
                "remark",
                "panel.spending_cap",
                f"{panel.spending_cap} does not cover the panel's fees, about {cost.total} in all: the last places "
                "could not be published",
            )
        has_none = panel.participant_group is None and not kind.own_group(config)
        if "participant_group" in kind.keys and has_none and len(config.stages) > 1:
            yield CheckMessage(
                "remark",
                "panel.participant_group",
                "none is named, and no project: people who find a stage full are kept away from the later ones, "
                "although they never took part",
            )
        shortest = kind.shortest_maximum(config.expected_minutes)
        if panel.maximum_minutes is not None and panel.maximum_minutes < shortest:
            yield CheckMessage(
                "problem",
                "panel.maximum_minutes",
                f"{panel.maximum_minutes}: for {config.expected_minutes} expected minutes the panel takes "
                f"{shortest} or more",
            )
        if panel.filter_set and not panel.filters:
            yield CheckMessage(
                "remark",
                "panel.filter_set",
                "the set alone says whom the panel sends: put the filter previous_studies_blocklist into it, or "
                "people of earlier stages are sent again and turned away here",
            )
        if "project" in kind.keys and panel.project is None:
            yield CheckMessage(
                "remark", "panel.project", "none: drafts go to the account's first project; its wallet pays"
            )
        if not panel.completion_url:
            yield CheckMessage("remark", "panel.completion_url", "none: people have to copy their code by hand")
    if panel.places is not None and panel.places < max(stage.sittings for stage in config.stages):
        yield CheckMessage("remark", "panel.places", f"{panel.places} a posting; some stages have more sittings")


def _check_stopping(check: StudyCheck, config: StudyConfig, kind: Panel) -> Iterator[CheckMessage]:
    """What people leave out who stop is made up by others, who earn a whole reward too."""
    is_refused = any(
        finding.level == "problem" and finding.field.startswith("instrument") for finding in check.findings
    )
    if is_refused or kind.client is not None or check.cost is None:
        return  # A panel with a client admits no more people than places.
    options = instruments.kind(config.instrument.kind).options_model.model_validate(config.instrument.options)
    if options.may_stop and config.sitting.items > 1:
        people = check.cost.people * config.sitting.items
        most = money(check.cost.rewards * config.sitting.items, check.cost.currency)
        yield CheckMessage(
            "remark",
            "panel.reward",
            f"people may stop behind their first item, and others make up for them: up to {people} people may earn the "
            f"whole reward, {most} in all; limit the places where you invite people, or keep the reward small",
        )


def _check_screen_outs(config: StudyConfig, kind: Panel) -> Iterator[CheckMessage]:
    panel = config.panel
    least = kind.minimum_screen_out.get(panel.currency)
    if panel.screen_out_pay is None:
        if config.screens_out and least is not None:
            yield CheckMessage(
                "remark",
                "panel.screen_out_pay",
                "people are screened out and not paid, which the panel requires: give screen_out_pay and "
                "screen_out_places",
            )
        return
    if not config.screens_out:
        yield CheckMessage("problem", "panel.screen_out_pay", "no answer and no quota screens anybody out")
    if least is not None and panel.screen_out_pay < least:
        yield CheckMessage("problem", "panel.screen_out_pay", f"{panel.screen_out_pay}: the panel's minimum is {least}")


def _check_ethics(config: StudyConfig) -> Iterator[CheckMessage]:
    """What ethics boards expect. They decide themselves, so nothing here stops a study."""
    kinds = {block.kind for block in config.blocks}
    if "debriefing" not in kinds:
        yield CheckMessage("remark", "blocks", "no debriefing: ethics boards expect people to read what it was about")
    if "instructions" not in kinds:
        yield CheckMessage("remark", "blocks", "no instructions before the items")
    if "checks" not in kinds:
        yield CheckMessage("remark", "blocks", "no comprehension checks: nobody knows whether the task was understood")
    if not config.texts.contact:
        yield CheckMessage("remark", "texts.contact", "none: ethics boards expect somebody who can be asked")
    for code in config.languages:
        consent = config.in_language(code).blocks[0]
        where = f" in {code}" if len(config.languages) > 1 else ""
        if not timing.is_named_in(consent.text, code):
            yield CheckMessage(
                "remark",
                "blocks.1.text",
                f"the consent{where} does not seem to say that pages measure how long they are looked at, and when "
                "somebody leaves, copies or pastes: docs/panels.md has a sentence for it",
            )
        if len(consent.text) < 200:
            yield CheckMessage(
                "remark",
                "blocks.1.text",
                f"the consent{where} has {len(consent.text)} characters: it should say who asks, why, for how long, "
                "what is stored until when, and that one may stop at any time",
            )


def _check_language_of_bank(check: StudyCheck, config: StudyConfig) -> Iterator[CheckMessage]:
    """Questions in another language than the texts around them; not where the file says that it is so."""
    is_said = config.texts.bank_language or config.texts.text_language
    if is_said or not check.bank or any(finding.field == "bank" for finding in check.findings):
        return
    try:
        bank = find_bank(config.bank)
    except NotFound:
        return
    texts = [question.plain for question in bank.questions.order_by("position")[: text_checks.QUESTIONS_READ]]
    language = text_checks.language_of(texts)
    others = [code for code in config.languages if code != language]
    if language and others:
        yield CheckMessage(
            "remark",
            "texts.bank_language",
            f'the questions of the bank seem to be in "{language}", and people read the pages in '
            f"{' and '.join(others)}: take a bank in their language, or say that it is meant so with "
            f'bank_language = "{language}"',
        )


def _outcomes(config: StudyConfig) -> Sequence[str]:
    """The codes that this study can show."""
    kinds = {block.kind for block in config.blocks}
    possible = {"failed_checks": "checks" in kinds, "screened_out": config.screens_out}
    return [outcome for outcome in CompletionCode.Outcome.values if possible.get(outcome, True)]


def _pay(config: StudyConfig) -> Pay | None:
    if config.panel.reward is None:
        return None
    return Pay(
        currency=config.panel.currency,
        minutes=config.expected_minutes,
        an_hour=config.panel.reward * 60 / config.expected_minutes,
        minimum=panels.find(config.panel.kind).minimum_an_hour.get(config.panel.currency),
    )


def _cost(config: StudyConfig, fee: float) -> Cost | None:
    if config.panel.reward is None:
        return None
    people = sum(stage.sittings for stage in config.stages)
    rewards = people * config.panel.reward
    screen_outs = len(config.stages) * config.panel.screen_outs
    taken = round((rewards + screen_outs) * fee)
    return Cost(
        currency=config.panel.currency,
        people=people,
        rewards=rewards,
        screen_outs=screen_outs,
        fee=taken,
        total=rewards + screen_outs + taken,
        bonus_per_point=config.panel.bonus_per_point,
    )
