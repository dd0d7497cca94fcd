"""Check an exported study: plan hashes, inclusion probabilities, the audit's chain. Numpy and standard library alone.

    python tools/verify_study.py FOLDER [--head SHA256] [--older]

FOLDER is what `hunch export` wrote, without --condition. The code shares nothing with Hunch: what it finds right was
made twice. docs/audit.md says how the hashes are made. Status 0: nothing is wrong; 1: something is; 2: no export.

A row of the audit that must be there and is empty or gone is wrong, since rows of other studies have hashes alone, and
who empties a row could else change what it guards. `--older` is for studies that began before the audit had the hashes:
it then says which checks it lacks.
"""

import argparse
import csv
import hashlib
import json
import math
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Decimal
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

Row = dict[str, str]
TOLERANCE = 1e-12
NAMED = 5
TINY = float(np.finfo(np.float64).tiny)
GRAIN = 2**40
# The designs that give each candidate its own chance.
UNEQUAL = ("softmax", "proportional", "robust")


@dataclass
class VerificationResult:
    """`older`: the study began before the audit had all hashes, so that it may lack some."""

    checked: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    older: bool = False

    def lack(self, what: str) -> None:
        """The audit has no row of something that it writes down for every study."""
        if self.older:
            self.unchecked.append(f"{what}: it may be from before the audit had such rows")
        else:
            self.faults.append(
                f"{what}: it was emptied or removed (--older: the study began before there were such rows)"
            )


def canonical(value: Any, *, ascii_only: bool = False) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=ascii_only, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def read(folder: Path, name: str) -> list[Row]:
    """The rows of one file. The limit on fields is the whole process's, so it is put back."""
    limit = csv.field_size_limit(2**31 - 1)
    try:
        with (folder / name).open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))
    finally:
        csv.field_size_limit(limit)


def number(text: str) -> float | None:
    return float(text) if text else None


def whole(text: str) -> int | None:
    return int(text) if text else None


# The plan


def check_plan(stage: Row, rows: list[Row], findings: VerificationResult) -> None:
    """The plan's hash, from the slots as they lay in their first booklets."""
    where = f"stage {stage['stage']}"
    by_slot: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        by_slot[int(row["slot"])].append(row)
    missing = sorted(set(range(1, max(by_slot, default=0) + 1)) - set(by_slot))
    if missing:
        findings.faults.append(f"{where}: slots are missing from answers.csv: {missing[:NAMED]}")
    facts = []
    for slot in sorted(by_slot):
        first = next((row for row in by_slot[slot] if row["booklet_kind"] == "main"), None)
        if first is None:
            findings.faults.append(f"{where}: slot {slot} has no row of the booklet that it was planned for")
            return
        facts.append(facts_of(first))
    sha256, manifest = canonical(facts), json.loads(stage["manifest"])
    for what, other in (("stages.csv", stage["plan_sha256"]), ("the manifest", manifest["plan_sha256"])):
        if sha256 != other:
            findings.faults.append(f"{where}: the plan's hash is {sha256} by answers.csv, and {other} by {what}")
    findings.checked.append(f"{where}: the hash of a plan of {len(facts)} slots")


def facts_of(row: Row) -> list[Any]:
    facts: list[Any] = [
        int(row["slot"]),
        row["item"],
        row["stratum"] or None,
        number(row["inclusion_probability"]),
        number(row["pool_probability"]),
        int(row["booklet"]),
        int(row["position"]),
    ]
    if row["role"] != "sampled" or row["replicate"] != "1":
        facts += [row["role"], int(row["replicate"]), row["control_kind"], whole(row["repeat_of"])]
    return facts


# Probabilities


@dataclass(frozen=True)
class Expected:
    """Each stratum's size and number of drawn items, in order; and how many slots each drawn item has."""

    strata: dict[str, tuple[int, int]]
    replicates: int


def nearest(share: float, count: int) -> int:
    return int((Decimal(repr(float(share))) * count).to_integral_value(ROUND_HALF_EVEN))


def ceiling(share: float, count: int, divisor: int = 1) -> int:
    return int((Decimal(repr(float(share))) * count / divisor).to_integral_value(ROUND_CEILING))


def items_by_role(manifest: dict[str, Any]) -> tuple[int, int]:
    """How many slots are sampled and how many are the holdout's, without controls."""
    roles, sittings, size = manifest["roles"], manifest["sittings"], manifest["items"]
    held = max(1, nearest(roles["holdout"], sittings)) if roles["holdout"] > 0 else 0

    def part(booklets: int) -> int:
        return booklets * size - nearest(roles["controls"], booklets * size)

    design = manifest["design"]
    if design["kind"] == "test_set":
        return design["pairs"] * design["responses_per_pair"], part(held)
    return part(sittings - held), part(held)


def expected_strata(stage: Row, manifest: dict[str, Any], sampled: int, findings: VerificationResult) -> Expected:
    design, drawn_from = manifest["design"], manifest["candidates"]
    exhaustive = drawn_from.get("kind", "pool") == "exhaustive"
    size = drawn_from["universe_size"] - drawn_from.get("excluded", 0) if exhaustive else drawn_from["size"]
    replicates = manifest.get("responses_per_item", 1)
    if design["kind"] in ("uniform", *UNEQUAL):
        return Expected({"all": (size, sampled // replicates)}, replicates)
    if design["kind"] == "test_set":
        top, bottom = ceiling(design["top_fraction"], size), ceiling(design["bottom_fraction"], size)
        from_top = nearest(design["top_share"], design["pairs"])
        strata = {"top": (top, from_top), "bottom": (bottom, design["pairs"] - from_top)}
        return Expected({**strata, "middle": (size - top - bottom, 0)}, design["responses_per_pair"])
    names = ("top" if design["kind"] == "epsilon_greedy" else "uncertain", "rest")
    best = ceiling(design["top_fraction"], size)
    if exhaustive and drawn_from.get("shortlist_sha256"):
        names = ("chosen", "others")
        best = next(load["size"] for load in json.loads(stage["strata"]) if load["name"] == "chosen")
        findings.unchecked.append(f"stage {stage['stage']}: the length of the shortlist, taken from stages.csv")
    n = sampled // replicates
    counts = greedy(design, n, (best, size - best))
    if (parts := design.get("rest_strata", 1)) > 1:  # Of the same size, and with as many slots: to one.
        strata = {names[0]: (best, counts[0])}
        for part in range(parts):
            inside, drawn = ((whole + parts - 1 - part) // parts for whole in (size - best, counts[1]))
            strata[f"rest {part + 1}"] = (inside, drawn)
        return Expected(strata, replicates)
    return Expected({names[0]: (best, counts[0]), names[1]: (size - best, counts[1])}, replicates)


def greedy(design: dict[str, Any], n: int, sizes: tuple[int, int]) -> tuple[int, int]:
    top = int(((1 - Decimal(repr(float(design["epsilon"])))) * n).to_integral_value(ROUND_HALF_EVEN))
    if design["floor"]:
        least = [ceiling(design["floor"], n * size, sum(sizes)) for size in sizes]
        top = min(max(top, least[0]), n - least[1])
    return top, n - top


def check_probabilities(stage: Row, rows: list[Row], candidates: list[Row], findings: VerificationResult) -> None:
    where, manifest = f"stage {stage['stage']}", json.loads(stage["manifest"])
    sampled, held = items_by_role(manifest)
    expected = expected_strata(stage, manifest, sampled, findings)
    slots = {int(row["slot"]): row for row in rows}
    of_role: dict[str, list[Row]] = defaultdict(list)
    for row in slots.values():
        of_role[row["role"]].append(row)
    for role, count in (("sampled", sampled), ("holdout", held)):
        if len(of_role[role]) != count:
            findings.faults.append(f"{where}: {len(of_role[role])} slots are {role}, and the manifest makes {count}")
    check_strata(stage, expected, findings)
    scored = check_candidates(stage, manifest, expected, of_role["sampled"], candidates, findings)
    is_unequal = manifest["design"]["kind"] in UNEQUAL
    shares = shares_by_item(manifest, expected, candidates) if is_unequal else None
    wrong = Differences(where, findings)
    for row in of_role["sampled"]:
        if shares is not None:
            wrong.compare(row, "inclusion_probability", shares.get(row["item"]))
        elif not is_unequal:
            size, n = expected.strata.get(row["stratum"], (0, 0))
            wrong.compare(row, "inclusion_probability", n / size if size else None)
        wrong.compare(row, "pool_probability", pool_chance(manifest))
    for row in of_role["holdout"]:
        universe = manifest["candidates"]["universe_size"]
        wrong.compare(row, "inclusion_probability", min(held, universe) / universe)
        wrong.compare(row, "pool_probability", 1.0)
    for row in (*of_role["control"], *of_role["repeat"]):
        if row["inclusion_probability"] or row["pool_probability"]:
            findings.faults.append(f"{where}: slot {row['slot']} is a {row['role']} and has a probability")
    if is_unequal and not scored:
        findings.unchecked.append(f"{where}: its probabilities, since candidates.csv lacks the stage")
    findings.checked.append(f"{where}: {wrong.count} probabilities to {TOLERANCE:g}")


@dataclass
class Differences:
    where: str
    result: VerificationResult
    count: int = 0

    def compare(self, row: Row, name: str, expected: float | None) -> None:
        stored = number(row[name])
        self.count += 1
        if stored is None or expected is None or not abs(stored - expected) <= TOLERANCE:
            self.result.faults.append(f"{self.where}: slot {row['slot']}: {name} is {stored}, and must be {expected}")


def pool_chance(manifest: dict[str, Any]) -> float:
    drawn_from = manifest["candidates"]
    if drawn_from.get("kind", "pool") == "exhaustive":
        return 1.0
    available = drawn_from["universe_size"] - drawn_from.get("excluded", 0)
    return float(drawn_from["size"] / available)


def check_strata(stage: Row, expected: Expected, findings: VerificationResult) -> None:
    stored = {load["name"]: (load["size"], load["drawn"]) for load in json.loads(stage["strata"])}
    stored.pop("holdout", None)
    if stored != expected.strata:
        findings.faults.append(
            f"stage {stage['stage']}: the strata are {stored}, and the design makes {expected.strata}"
        )


def check_candidates(
    stage: Row,
    manifest: dict[str, Any],
    expected: Expected,
    slots: list[Row],
    candidates: list[Row],
    findings: VerificationResult,
) -> bool:
    """Whether the slots' items are candidates, with the scores and in the strata that they must be in."""
    where, design = f"stage {stage['stage']}", manifest["design"]
    if not candidates:
        if design["kind"] != "uniform":
            findings.unchecked.append(
                f"{where}: which stratum an item belongs to, since its scores are not in the export"
            )
        return False
    by_item = {row["item"]: row for row in candidates}
    if len(by_item) != len(candidates) or len(candidates) != manifest["candidates"]["size"]:
        findings.faults.append(
            f"{where}: candidates.csv has {len(by_item)} items, the manifest {manifest['candidates']['size']}"
        )
    ranked = dict(zip(by_item, ranked_by(design, list(by_item.values())), strict=True))
    fitting = strata_of(ranked, expected)
    for row in slots:
        if row["item"] not in by_item:
            findings.faults.append(f"{where}: slot {row['slot']}: its item is no candidate")
        elif number(row["score"]) != number(by_item[row["item"]]["score"]):
            findings.faults.append(f"{where}: slot {row['slot']}: its score is not the candidate's")
        elif design["kind"] not in UNEQUAL and row["stratum"] not in fitting(ranked[row["item"]]):
            findings.faults.append(
                f"{where}: slot {row['slot']}: its score does not lie in the stratum {row['stratum']}"
            )
    findings.checked.append(
        f"{where}: scores and strata of {len(slots)} sampled slots among {len(candidates)} candidates"
    )
    return True


def ranked_by(design: dict[str, Any], candidates: list[Row]) -> NDArray[np.float64]:
    """The numbers by which the design puts its candidates in order."""
    column = "priority" if candidates[0]["priority"] else "score"
    if design["kind"] == "uncertainty" and design["by"] == "disagreement":
        column = "disagreement"
    values = np.array([float(row[column]) for row in candidates])
    return -np.abs(values - 0.5) if design["kind"] == "uncertainty" and column != "disagreement" else values


def strata_of(ranked: dict[str, float], expected: Expected) -> Any:
    """By a candidate's number, the strata that it may be in: several where it is tied at a cut."""
    order, spans, start = sorted(ranked.values(), reverse=True), {}, 0
    sizes = {name: size for name, (size, _n) in expected.strata.items()}
    # A test set has its middle last. All other strata are in the order of their scores.
    for name in ("top", "middle", "bottom") if "bottom" in sizes else sizes:
        part = order[start : start + sizes[name]]
        spans[name], start = (part[-1], part[0]), start + sizes[name]
    return lambda value: {name for name, (low, high) in spans.items() if low <= value <= high}


def robust_parts(
    design: dict[str, Any], learned: dict[str, Any], score: NDArray[np.float64], n: int
) -> tuple[NDArray[np.float64], float]:
    """What the chances of a robust design are in proportion to, and the share of the uniform chance that all keep."""
    kinds, kind, counts = np.unique(score, return_inverse=True, return_counts=True)
    rank = (np.cumsum(counts) - counts / 2)[kind] / score.size
    spread = np.array(learned["spread"])
    bands = spread.size
    middles = (np.arange(bands) + 0.5) / bands
    # The area under straight lines between the middles, level before the first and after the last.
    mean = (spread[0] / 2 + np.add(spread[:-1], spread[1:]).sum() / 2 + spread[-1] / 2) / bands
    base = (1 - learned["path"]) + learned["path"] * np.interp(rank, middles, spread) / mean
    if not (design["find"] > 0 and learned["finds"] and kinds.size > 1):
        return base, 0.0
    rate, value = n / score.size, score / score.std()
    strength = base * rate * max((1 - design["find"]) / design["find"], 1e-100)

    def chances(level: float) -> NDArray[np.float64]:
        root = np.sqrt(np.maximum(level - value, 0.0))
        return np.where(root > 0, np.minimum(1.0, strength / np.where(root > 0, root, 1.0)), 1.0)

    low, high = value.min(), value.max() + (strength.max() / rate) ** 2 + 1
    while low < (middle := (low + high) / 2) < high:
        if chances(middle).sum() > n:
            low = middle
        else:
            high = middle
    return chances(high), 0.02


def shares_by_item(manifest: dict[str, Any], expected: Expected, candidates: list[Row]) -> dict[str, float] | None:
    if not candidates:
        return None
    design, (size, n) = manifest["design"], expected.strata["all"]
    if size != len(candidates):
        return {}
    score, floor = ranked_by(design, candidates), 0.0
    if design["kind"] == "robust":
        parts, floor = robust_parts(design, manifest["learned"], score, n)
        if parts.min() == parts.max():
            return dict.fromkeys((row["item"] for row in candidates), n / size)

        def part_of(free: NDArray[np.bool_]) -> NDArray[np.float64]:
            return parts[free]

    else:
        temperature, floor = design.get("temperature"), design.get("floor")
        if design["kind"] == "proportional":  # A power of a number is the exponential of its logarithm, so many times.
            score, temperature = np.log(np.maximum(score, TINY)), 1 / design["power"]
            floor = design["trade_off"]

        def part_of(free: NDArray[np.bool_]) -> NDArray[np.float64]:
            exponentials: NDArray[np.float64] = np.exp((score[free] - score[free].max()) / temperature)
            return exponentials

    least, share, free = floor * n / size, np.ones(size), np.ones(size, dtype=bool)
    while free.any():
        left = n - np.count_nonzero(~free) - least * np.count_nonzero(free)
        part = part_of(free)
        share[free] = least + part * (max(left, 0.0) / part.sum())
        above = free & (share > 1)
        if not above.any():
            break
        share[above] = 1.0
        free &= ~above
    grains = np.rint(share * GRAIN).astype(np.int64)
    gap = n * GRAIN - int(grains.sum())
    while gap:
        step = 1 if gap > 0 else -1
        movable = np.flatnonzero((grains > 0) & (grains < GRAIN))[: abs(gap)]
        if not movable.size:
            return {}
        grains[movable] += step
        gap -= step * movable.size
    return {row["item"]: float(chance) for row, chance in zip(candidates, grains / GRAIN, strict=True)}


# Looks at running stages


def check_looks(stage: Row, looks: list[Row], findings: VerificationResult) -> None:
    """The intervals of a stopping rule from their estimates, and that the rule and no other look ended the stage."""
    where, manifest = f"stage {stage['stage']}", json.loads(stage["manifest"])
    rule = manifest.get("stop")
    if rule is None:
        if looks:
            findings.faults.append(f"{where}: looks.csv has {len(looks)} looks, and the stage has no stopping rule")
        return
    for place, row in enumerate(looks, start=1):
        name = f"{where}: look {row['look']}"
        value, people = float(row["value"]), int(row["people"])
        spread = people * rule["rho"] ** 2
        wide = math.sqrt((1 + 1 / spread) * 2 * math.log(math.sqrt(spread + 1) / rule["alpha"]))
        reach = wide * float(row["standard_error"])
        low, high = value - reach, value + reach
        if rule.get("scale") == "logit" and 0 < value < 1:
            middle, reach = math.log(value / (1 - value)), reach / (value * (1 - value))
            low, high = (0.5 + 0.5 * math.tanh((middle + side * reach) / 2) for side in (-1, 1))
        lowest, highest = rule.get("span") or (-math.inf, math.inf)
        ends = {"low": max(low, lowest), "high": min(high, highest)}
        for end, expected in ends.items():
            if not abs(float(row[end]) - expected) <= TOLERANCE * max(1.0, abs(expected)):
                findings.faults.append(f"{name}: {end} is {row[end]}, and must be {expected}")
        if int(row["look"]) != place:
            findings.faults.append(f"{name} is number {place} in looks.csv: rows were removed or inserted")
        if people < rule["after"]:
            findings.faults.append(f"{name}: {people} people, and the rule looks from {rule['after']} people on")
        if row["reached"] == "1" and (ends["high"] - ends["low"] >= rule["width"] or place != len(looks)):
            findings.faults.append(f"{name} cannot have ended the stage")
    ended = looks[-1] if looks and looks[-1]["reached"] == "1" else None
    stopped = manifest.get("stopped")
    if (ended is None) != (stopped is None) or (ended and stopped and int(ended["look"]) != stopped["look"]):
        findings.faults.append(f"{where}: the manifest says something else of the look that ended the stage")
    elif ended and stopped and any(number(ended[name]) != stopped[name] for name in ("value", "low", "high")):
        findings.faults.append(f"{where}: the look that ended the stage has other numbers in the manifest")
    findings.checked.append(f"{where}: {len(looks)} looks by its stopping rule")


# The audit


def check_chain(rows: list[Row], head: str, findings: VerificationResult) -> None:
    sealed = [row for row in rows if row["number"]]
    if not sealed:
        findings.unchecked.append("the audit: no entry of the study is sealed yet")
    for before, row in zip([None, *sealed], sealed, strict=False):
        name = f"audit: seal {row['number']}"
        if before is not None and int(row["number"]) != int(before["number"]) + 1:
            findings.faults.append(f"{name} follows on {before['number']}: rows between them were removed or inserted")
        if before is not None and row["previous"] != before["sha256"]:
            findings.faults.append(f"{name} does not follow from the one before it")
        if before is not None and int(row["entry"]) <= int(before["entry"]):
            findings.faults.append(f"{name} is for an entry that is not above the one before it")
        made = [row["previous"], int(row["number"]), int(row["entry"]), row["entry_sha256"], row["sealed_at"]]
        if canonical(made, ascii_only=True) != row["sha256"]:
            findings.faults.append(f"{name} has another hash than its row makes")
    own = [row for row in rows if row["action"]]
    for row in own:
        if entry_hash(row) != row["entry_sha256"]:
            findings.faults.append(f"audit: entry {row['entry']} has another hash than its row makes: {row['action']}")
    findings.checked.append(f"the audit: {len(sealed)} seals, and {len(own)} entries of the study in full")
    if len(own) < len(rows):
        findings.unchecked.append(
            f"the audit: what the {len(rows) - len(own)} entries of others say; only hashes are here"
        )
    if head and head not in {row[name] for row in sealed for name in ("sha256", "previous")}:
        findings.faults.append(f"audit: {head} is no seal from the study's first entry on")


def entry_hash(row: Row) -> str:
    entry = {name: row[name] for name in ("at", "actor", "via", "action", "subject", "salt")}
    entry_and_more = {**entry, "id": int(row["entry"]), "study": row["study"], "detail": json.loads(row["detail"])}
    return canonical(entry_and_more, ascii_only=True)


def check_what_the_audit_says(
    stages: list[Row], answers: list[Row], sittings: list[Row], rows: list[Row], findings: VerificationResult
) -> None:
    """Plans, snapshots, assignments and exclusions against the hashes that were written down when they came to be."""
    said: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        if row["action"]:
            said[row["action"], row["subject"]].append(row)
    answers_by_stage: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in answers:
        if row["respondent"]:
            answers_by_stage[row["stage"]][row["respondent"]].append(row)
    for stage in stages:
        subject = f"{stage['study']} stage {stage['stage']}"
        is_frozen = stage["state"] == "frozen"
        if is_frozen != bool(stage["snapshot_sha256"]) or (said["freeze_stage", subject] and not is_frozen):
            findings.faults.append(
                f"{subject}: it is {stage['state']}, and its snapshot or the audit say something else"
            )
        for action, name in (("plan_stage", "plan_sha256"), ("freeze_stage", "snapshot_sha256")):
            entries = said[action, subject]
            if entries and json.loads(entries[-1]["detail"])[name] != stage[name]:
                findings.faults.append(f"{subject}: {name} is not what the audit's entry {entries[-1]['entry']} says")
            elif entries:
                findings.checked.append(f"{subject}: {name} against the audit")
            elif stage[name]:
                findings.lack(f"{subject}: the audit has no {action} with the {name}")
        people = [row for row in sittings if row["stage"] == stage["stage"]]
        check_assignments(stage, answers_by_stage[stage["stage"]], said["claim_booklet", subject], findings)
        check_exclusions(stage, answers_by_stage[stage["stage"]], people, said["freeze_stage", subject], findings)


def check_assignments(
    stage: Row, sittings: dict[str, list[Row]], claims: list[Row], findings: VerificationResult
) -> None:
    where = f"stage {stage['stage']}"
    written = {json.loads(claim["detail"])["sha256"] for claim in claims}
    made = {}
    for respondent, rows in sittings.items():
        slots = [int(row["slot"]) for row in sorted(rows, key=lambda row: int(row["position"]))]
        made[canonical([int(stage["stage"]), respondent, *slots])] = respondent
    if strange := sorted(made[sha256] for sha256 in set(made) - written):
        named = f"{len(strange)} people: {strange[:NAMED]}"
        findings.lack(f"{where}: the audit has no claim_booklet with a hash of the slots of {named}")
    if stage["state"] == "frozen" and written - set(made):
        findings.faults.append(
            f"{where}: {len(written - set(made))} assignments are in the audit and not in answers.csv"
        )
    findings.checked.append(f"{where}: {len(set(made) & written)} assignments against the audit")


def check_exclusions(
    stage: Row,
    answers_by_person: dict[str, list[Row]],
    sittings: list[Row],
    frozen: list[Row],
    findings: VerificationResult,
) -> None:
    """Of sittings without items only sittings.csv has the exclusion. Who withdrew leaves the hash of one."""
    if stage["state"] != "frozen" or not frozen:
        return
    where, detail = f"stage {stage['stage']}", json.loads(frozen[-1]["detail"])
    excluded = {row["respondent"]: row["excluded"] for row in sittings if row["excluded"]}
    for who, rows in answers_by_person.items():
        if any(row["excluded"] != excluded.get(who, "") for row in rows):
            findings.faults.append(f"{where}: answers.csv and sittings.csv say different exclusions of {who}")
    made = {canonical([int(stage["stage"]), who, flags.split()]): who for who, flags in excluded.items()}
    if "excluded" not in detail:
        findings.lack(f"{where}: freeze_stage in the audit has no exclusions")
        return
    written = set(detail["excluded"])
    for strange in sorted(set(made) - written):
        findings.faults.append(f"{where}: {made[strange]} is left out, and the audit has no hash of that")
    lacking, withdrawn = len(written - set(made)), sum(bool(row["withdrawn_at"]) for row in sittings)
    if lacking > withdrawn:
        findings.faults.append(
            f"{where}: the audit has {lacking} exclusions that the export does not, and {withdrawn} people withdrew"
        )
    elif lacking:
        findings.unchecked.append(f"{where}: {lacking} exclusions of people who withdrew: only the hashes are left")
    findings.checked.append(f"{where}: {len(made)} exclusions against the audit")


# All of it


def verify(folder: Path, head: str = "", *, older: bool = False) -> VerificationResult:
    """Every check of an exported study. Raises OSError where a file of it is not there."""
    answers, sittings, stages, candidates, audit = (
        read(folder, name) for name in ("answers.csv", "sittings.csv", "stages.csv", "candidates.csv", "audit.csv")
    )
    # Exports of earlier versions have no such file.
    looks = read(folder, "looks.csv") if (folder / "looks.csv").exists() else []
    findings = VerificationResult(older=older)
    slug = stages[0]["study"] if stages else ""
    for row in audit:
        row["study"] = slug
    for stage in stages:
        rows = [row for row in answers if row["stage"] == stage["stage"]]
        if not stage["plan_sha256"]:
            findings.unchecked.append(f"stage {stage['stage']}: has no plan yet")
        elif not rows and stage["state"] == "planned":
            findings.unchecked.append(f"stage {stage['stage']}: was planned while the export was written")
        else:
            check_plan(stage, rows, findings)
            own = [row for row in candidates if row["stage"] == stage["stage"]]
            check_probabilities(stage, rows, own, findings)
            check_looks(stage, [row for row in looks if row["stage"] == stage["stage"]], findings)
    check_chain(audit, head, findings)
    check_what_the_audit_says(stages, answers, sittings, audit, findings)
    findings.unchecked += [
        "whether the stored seeds draw and deal these items: `hunch verify_stage` draws them again on the server",
        "the snapshots' hashes of answers, which are keyed: `hunch verify_stage` makes them again",
        "whether the whole chain was made again: compare the head with one that was noted elsewhere (--head)",
    ]
    return findings


def say(line: str, where: TextIO) -> None:
    where.write(f"{line}\n")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Check an exported study.")
    parser.add_argument("folder", type=Path, help="what `hunch export` wrote")
    parser.add_argument("--head", default="", metavar="SHA256", help="a head that must still be in the chain")
    parser.add_argument(
        "--older", action="store_true", help="the study began before the audit had all hashes: name what it lacks"
    )
    options = parser.parse_args(arguments)
    try:
        findings = verify(options.folder, options.head.strip().lower(), older=options.older)
        audit = read(options.folder, "audit.csv")
    except OSError as exc:
        say(f"{exc.filename}: cannot be read: {exc.strerror}", sys.stderr)
        return 2
    for line in findings.checked:
        say(f"checked: {line}", sys.stdout)
    for line in findings.unchecked:
        say(f"not checked: {line}", sys.stdout)
    sealed = [row for row in audit if row["number"]]
    if sealed:
        say(
            f"head: seal {sealed[-1]['number']}, {sealed[-1]['sha256']}; not sealed: {len(audit) - len(sealed)}",
            sys.stdout,
        )
    for line in findings.faults:
        say(f"WRONG: {line}", sys.stderr)
    say("something is wrong" if findings.faults else "nothing is wrong", sys.stdout)
    return 1 if findings.faults else 0


if __name__ == "__main__":
    sys.exit(main())
