"""Which sittings the study file's rules flag, and which of them a stage excludes.

Flags are computed each time from what is stored, with a few queries for many sittings. They change nothing. What a
stage excludes is decided once, when it is frozen, and stored: later rules do not change it.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from statistics import median

from django.db.models import Count, Sum

from survey.contracts import instruments
from survey.figures.words import percent, short
from survey.models import AttentionAnswer, FormAnswer, Response, Sitting, Study
from survey.study_file import FLAGS, FlagName, FlagsConfig

BATCH_SIZE = 5000  # sittings: databases limit the number of values in one statement


Flags = tuple[FlagName, ...]


def flags_of(sittings: Iterable[int]) -> dict[int, Flags]:
    """The flags of each of these sittings (by primary key), of any studies; an empty tuple if it has none."""
    wanted = list(dict.fromkeys(sittings))
    flags: dict[int, Flags] = {}
    for start in range(0, len(wanted), BATCH_SIZE):
        part = wanted[start : start + BATCH_SIZE]
        of_study: dict[int, list[int]] = defaultdict(list)
        for sitting, its_study in Sitting.objects.filter(pk__in=part).order_by("pk").values_list("pk", "stage__study"):
            of_study[its_study].append(sitting)
        for study in Study.objects.filter(pk__in=of_study).order_by("pk"):
            flags |= _flags_in(study, of_study[study.pk])
    return flags


def marks_of(study: Study, sittings: Collection[int]) -> dict[int, Flags]:
    """The same for sittings of one study, without a query if it has no rules."""
    return _flags_in(study, list(sittings)) if study.config.flags.names else {}


def _flags_in(study: Study, sittings: list[int]) -> dict[int, Flags]:
    rules = study.config.flags
    flagged: dict[FlagName, set[int]] = {name: set(RULES[name](study, rules, sittings)) for name in rules.names}
    return {sitting: tuple(name for name in FLAGS if sitting in flagged.get(name, ())) for sitting in sittings}


def _speeders(study: Study, rules: FlagsConfig, sittings: Collection[int]) -> Iterator[int]:
    """Times of complete items by the server's clock: between two accepted pages, over all of an item's screens."""
    rule = rules.speeder
    if rule is None:
        return
    rows = (
        Response.objects.filter(assignment__sitting__in=sittings, assignment__completed_at__isnull=False)
        .order_by()
        .values_list("assignment__sitting", "assignment", "assignment__slot__item")
        .annotate(ms=Sum("server_ms"))
    )
    items: dict[int, list[tuple[int, float]]] = defaultdict(list)
    for sitting, _assignment, item, ms in rows:
        items[sitting].append((item, ms / 1000))
    words: Mapping[int, int] = {}
    if rule.words_per_second:
        answered = {item for taken in items.values() for item, _s in taken}
        words = instruments.of_study(study).signals.word_counts(answered)
    for sitting, taken in items.items():
        speeds = [words[item] / max(seconds, 0.001) for item, seconds in taken if words.get(item)]
        if median(seconds for _item, seconds in taken) < rule.seconds_per_item or (
            speeds and median(speeds) > rule.words_per_second
        ):
            yield sitting


def _same_answers(study: Study, rules: FlagsConfig, sittings: Collection[int]) -> Iterator[int]:
    rule = rules.same_answers
    if rule is None:
        return
    value_counts: dict[tuple[int, str], Counter[Hashable]] = defaultdict(Counter)
    for sitting, kind, value in instruments.of_study(study).signals.stated_values(sittings):
        value_counts[sitting, kind][value] += 1
    for (sitting, _kind), counts in value_counts.items():
        answers = counts.total()
        if answers >= rule.items and max(counts.values()) >= rule.share * answers:
            yield sitting


def _inattentive(study: Study, rules: FlagsConfig, sittings: Collection[int]) -> Iterator[int]:
    rule = rules.attention
    if rule is None:
        return
    failed = AttentionAnswer.objects.filter(sitting__in=sittings, passed=False).order_by()
    counts = failed.values("sitting").annotate(n=Count("pk")).filter(n__gte=rule.failed)
    yield from counts.values_list("sitting", flat=True)


def _looked_up(study: Study, rules: FlagsConfig, sittings: Collection[int]) -> Iterator[int]:
    rule = rules.looked_up
    if rule is None:
        return
    forms = FormAnswer.objects.filter(sitting__in=sittings, block=rule.block).order_by()
    for sitting, answers in forms.values_list("sitting", "answers"):
        answer = answers.get(rule.field)
        if set(answer if isinstance(answer, list) else [answer]) & set(rule.values):
            yield sitting


def _hidden(study: Study, rules: FlagsConfig, sittings: Collection[int]) -> Iterator[int]:
    """Times by the browser's clock: a screen counts if the browser said when it was shown and sent."""
    rule = rules.hidden
    if rule is None:
        return
    hidden: dict[int, int] = defaultdict(int)
    shown_ms: dict[int, int] = defaultdict(int)
    rows = Response.objects.filter(assignment__sitting__in=sittings).order_by()
    for sitting, client in rows.values_list("assignment__sitting", "client"):
        seen = client.get("submitted_ms", 0) - client.get("shown_ms", 0)
        if seen > 0:
            shown_ms[sitting] += seen
            hidden[sitting] += min(seen, client.get("hidden_ms", 0))
    yield from (sitting for sitting, total in shown_ms.items() if hidden[sitting] >= rule.share * total)


RULES: Mapping[FlagName, Callable[[Study, FlagsConfig, Collection[int]], Iterator[int]]] = {
    "speeder": _speeders,
    "same_answers": _same_answers,
    "attention": _inattentive,
    "looked_up": _looked_up,
    "hidden": _hidden,
}


def rules_in_words(study: Study) -> list[tuple[FlagName, str]]:
    """Each flag that the study has a rule for, with the rule in words."""
    rules = study.config.flags
    lines: list[tuple[FlagName, str]] = []
    if (speeder := rules.speeder) is not None:
        limits = []
        if speeder.seconds_per_item:
            limits.append(f"less than {short(speeder.seconds_per_item)} s")
        if speeder.words_per_second:
            limits.append(f"more than {short(speeder.words_per_second)} words read a second")
        lines.append(("speeder", f"the median item took {' or '.join(limits)}"))
    if (same := rules.same_answers) is not None:
        lines.append(
            ("same_answers", f"one answer makes up {percent(same.share, 0)} or more of {same.items} or more answers")
        )
    if (attention := rules.attention) is not None:
        lines.append(("attention", f"{attention.failed} or more attention checks failed"))
    if (looked_up := rules.looked_up) is not None:
        values = ", ".join(looked_up.values)
        lines.append(("looked_up", f"answered {values} to {looked_up.field} of {looked_up.block}"))
    if (hidden := rules.hidden) is not None:
        lines.append(("hidden", f"the page was hidden for {percent(hidden.share, 0)} or more of the time on items"))
    return lines
