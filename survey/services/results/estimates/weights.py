"""Each answer's weight in the study's figures, so that who has only the export gets the figures of `estimate`.

Read without objects: an export of a large study needs these weights before its first row. Imports models and below.
"""

import threading
from collections.abc import Mapping, Sequence

import numpy as np
from django.db.models import Count, Max, Sum

from survey.models import Assignment, Slot, Stage, Stratum, Study
from survey.services.answers.counting import ESTIMATED, counting
from survey.services.base.hashing import digest

from .stage_rows import levels_in
from .study_figures import StagePart

MAX_KNOWN = 2
_KNOWN: dict[str, Mapping[int, float]] = {}
_LOCK = threading.Lock()
ANSWER = ("pk", "slot__stage", "slot__role", "slot__stratum", "sitting__respondent", "slot__inclusion_probability")


def people_of(stage: Stage, slots: int) -> int:
    """How many people the plan dealt these slots to, with the controls among a person's items left out."""
    items = stage.manifest.get("items", stage.study.config.sitting.items)
    controls = stage.manifest.get("roles", {}).get("controls", 0.0)
    return max(1, round(slots / (items * (1 - controls))))


def known_weights(study: Study, levels: Mapping[str, str], stages: Sequence[Stage]) -> Mapping[int, float]:
    """`answer_weights`, as this process knows them from the page before, if no answer came or went since: anyone who
    reads page by page does not wait for all answers at each page. Files take `answer_weights`, which asks again."""
    answers = counting(stages).aggregate(n=Count("pk"), most=Max("pk"), sum=Sum("pk"))
    plans = [(stage.pk, stage.state, stage.plan_sha256) for stage in stages]
    asked = digest([study.pk, study.source_sha256, dict(levels), plans, [str(value) for value in answers.values()]])
    with _LOCK:
        weights = _KNOWN.get(asked)
    if weights is None:
        weights = answer_weights(study, levels, stages)
        with _LOCK:
            while len(_KNOWN) >= MAX_KNOWN:
                del _KNOWN[next(iter(_KNOWN))]
            _KNOWN[asked] = weights
    return weights


def answer_weights(study: Study, levels: Mapping[str, str], stages: Sequence[Stage] | None = None) -> dict[int, float]:
    """The weight of each answer that enters the figures of all stages, by the key of its assignment; 1 on average.

    A mean over answers with these weights is the plain figure of `estimate`: inside a stage an answer stands for the
    candidates of its stratum over the answers there, or for 1 / its inclusion probability where candidates of one
    stratum had different ones; the stages count by the information of their plans.

    Args:
        levels: only the answers under these levels of the study's factors, as `estimate` takes them.
        stages: the main stages of the study that are no drafts, in order, each with `study`, where they were read.
    """
    if stages is None:
        stages = list(study.main_stages().exclude(state=Stage.State.DRAFT))
        for stage in stages:
            stage.study = study
    stages = [stage for stage in stages if stage.wave == 1]  # As the figures: later waves are of the same people.
    answers = _answers(study, stages, levels)
    strata = list(Stratum.objects.filter(stage__in=stages).order_by("pk").values_list("pk", "stage", "size"))
    planned = list(
        Slot.objects.filter(stage__in=stages)
        .values_list("stage", "role", "stratum", "inclusion_probability")
        .annotate(n=Count("pk"), replicates=Max("replicate"))
        .order_by("stage", "role", "stratum", "inclusion_probability")
    )
    keys, shares, total = [], [], 0.0
    for stage in stages:
        own = [row[1:] for row in planned if row[0] == stage.pk]
        of_stage = [(pk, size) for pk, of, size in strata if of == stage.pk]
        for role in ESTIMATED:
            chosen = answers[(answers["stage"] == stage.pk) & (answers["role"] == role)]
            part = _part(stage, role, own, of_stage, chosen)
            if part is None or not part.weighs:
                continue
            keys.append(chosen["key"])
            shares.append(part.plan_weight * part.answer_weights)
            total += part.plan_weight
    if not keys:
        return {}
    weights = np.concatenate(shares) / total
    return dict(zip(np.concatenate(keys).tolist(), (weights * weights.size).tolist(), strict=True))


def _answers(study: Study, stages: Sequence[Stage], levels: Mapping[str, str]) -> np.ndarray:
    rows = counting(stages).order_by().values_list(*ANSWER, "slot__item")
    kind = [("key", "i8"), ("stage", "i8"), ("role", "U10"), ("stratum", "i8"), ("person", "i8"), ("chance", "f8")]
    answers = np.fromiter(
        (
            (pk, stage, role, stratum or 0, person, chance, item)
            for pk, stage, role, stratum, person, chance, item in rows
        ),
        dtype=[*kind, ("item", "i8")],
    )
    # In the order of their keys whatever the database gives them in: sums differ in the last digit by their order.
    answers = answers[np.argsort(answers["key"])]
    if not levels or not answers.size:
        return answers
    of_sitting, of_item = levels_in(stages)
    sitting_of = dict(Assignment.objects.filter(slot__stage__in=stages).order_by().values_list("pk", "sitting"))
    drawn = ({**of_sitting.get(sitting_of[key], {}), **of_item.get(key, {})} for key in answers["key"].tolist())
    mask = [all(own.get(factor) == level for factor, level in levels.items()) for own in drawn]
    return answers[np.array(mask, dtype=bool)]


def _part(
    stage: Stage,
    role: str,
    planned: Sequence[tuple[str, int | None, float, int, int]],
    strata: Sequence[tuple[int, int]],
    answers: np.ndarray,
) -> StagePart | None:
    """The part as `study_estimates` reads it, with what weights need; None if it has no slots or no answers."""
    own = [row for row in planned if row[0] == role]
    if not own or not answers.size:
        return None
    wanted = {stratum for _role, stratum, _chance, _n, _replicates in own}
    if role == Slot.Role.SAMPLED:
        # A stratum without slots is included: its candidates can never be answered.
        used = {stratum for other, stratum, _chance, _n, _replicates in planned if other != Slot.Role.SAMPLED}
        wanted |= {pk for pk, _size in strata if pk not in used}
    ordered = [(pk, size) for pk, size in strata if pk in wanted]
    place = {pk: index for index, (pk, _size) in enumerate(ordered)}
    slots = [0] * len(ordered)
    for _role, stratum, _chance, n, _replicates in own:
        slots[place[stratum or 0]] += n
    return StagePart(
        stage=stage.index,
        role=role,
        names=tuple(str(pk) for pk, _size in ordered),
        sizes=tuple(size for _pk, size in ordered),
        slots=tuple(slots),
        universe_size=None,
        stratum=np.array([place[key] for key in answers["stratum"].tolist()], dtype=np.int64),
        cluster=answers["person"],
        probability=answers["chance"],
        planned_probability=np.repeat([row[2] for row in own], [row[3] for row in own]),
        item=answers["item"] if any(row[4] > 1 for row in own) else None,
        people=people_of(stage, sum(slots)),
    )
