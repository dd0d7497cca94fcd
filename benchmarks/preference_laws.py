"""Do the intervals of preference studies hold the truth, and what does sampling by information save?

    python benchmarks/preference_laws.py [--studies 2000] [--models 8] [--part laws|saving|judges]

Simulated studies with known strengths and side bias: five stages of 120 judgements on 100 prompts, uniform and drawn by
information (epsilon-greedy, 0.2, top quarter). Every study has a seed derived from the figure's name and its number.
The laws are printed as coverage of 95 % intervals with its Monte Carlo error; a figure should lie between 93 and 97 %.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bandit import EpsilonGreedy, Uniform
from survey.instruments.preference.analysis import bradley_terry, judging
from survey.instruments.preference.analysis.analysing import win_shares
from survey.instruments.preference.analysis.judgements import A, B, Judgements
from survey.instruments.preference.analysis.simulation import PreferenceWorld, StagePlan, population, simulate, spaced

PROMPTS, STAGES, PEOPLE, ITEMS = 100, 5, 12, 10
DESIGNS = ("uniform", "information")


def plans(design: str, *, people: int = PEOPLE, items: int = ITEMS) -> list[StagePlan]:
    later = EpsilonGreedy(0.2, 0.25) if design == "information" else Uniform()
    return [StagePlan(Uniform() if stage == 0 else later, people, items) for stage in range(STAGES)]


def seed_of(name: str, number: int) -> np.random.Generator:
    return np.random.default_rng([*name.encode(), number])


class Cover:
    """How often intervals held the truth, how wide they were, and how far the values lay from it on average."""

    def __init__(self) -> None:
        self.inside: list[bool] = []
        self.width: list[float] = []
        self.error: list[float] = []

    def add(self, found: Any, truth: float) -> None:
        if found.value is None or found.low is None or found.high is None:
            return
        self.inside.append(bool(found.low <= truth <= found.high))
        self.width.append(found.high - found.low)
        self.error.append(found.value - truth)

    def line(self) -> dict[str, float]:
        n = max(len(self.inside), 1)
        share = float(np.mean(self.inside)) if self.inside else float("nan")
        return {
            "covered": round(share, 4),
            "monte_carlo": round(float(np.sqrt(max(share * (1 - share), 0) / n)), 4),
            "width": round(float(np.mean(self.width)), 4) if self.width else float("nan"),
            "bias": round(float(np.mean(self.error)), 4) if self.error else float("nan"),
            "n": len(self.inside),
        }


def laws(studies: int, models: int) -> dict[str, Any]:
    """Strengths, side bias and win shares, where nobody differs and where people and prompts do."""
    found: dict[str, Any] = {}
    for kind, differ in (("alike", {}), ("differing", {"person_sd": 0.4, "prompt_sd": 0.4})):
        world = PreferenceWorld(theta=spaced(models, 2.0), gamma=0.3, prompts=PROMPTS, **differ)
        theta, gamma = population(world)
        for design in DESIGNS:
            name = f"laws {kind} {design}"
            covers = {figure: Cover() for figure in ("theta", "neighbours", "gamma", "win share")}
            for number in range(studies):
                judged = simulate(world, plans(design), rng=seed_of(name, number))
                if not differ and design == "information":  # The model alone is right where nobody differs.
                    alone = bradley_terry.fit(judged.unweighted())
                    for one in range(models - 1):
                        gap = float(theta[one] - theta[one + 1])
                        covers.setdefault("neighbours, each answer once", Cover()).add(
                            alone.difference(one, one + 1), gap
                        )
                    covers.setdefault("gamma, each answer once", Cover()).add(alone.side, gamma)
                ranking = bradley_terry.fit(judged)
                for one in range(models):
                    covers["theta"].add(ranking.of(one), float(theta[one]))
                for one in range(models - 1):
                    covers["neighbours"].add(ranking.difference(one, one + 1), float(theta[one] - theta[one + 1]))
                covers["gamma"].add(ranking.side, gamma)
                share = next((one for one in win_shares(judged) if (one.model, one.other) == (0, models - 1)), None)
                if share is not None and share.n >= 10:
                    covers["win share"].add(share.share, _win_share(world, 0, models - 1))
            found[name] = {figure: cover.line() for figure, cover in covers.items()}
    return found


def _win_share(world: PreferenceWorld, one: int, other: int) -> float:
    node, weight = np.polynomial.hermite_e.hermegauss(41)
    spread = np.sqrt(2 * (world.person_sd**2 + world.prompt_sd**2))
    gap = world.theta[one] - world.theta[other]
    sides = [1 / (1 + np.exp(-(gap + side * world.gamma + spread * node))) for side in (1, -1)]
    return float(np.mean(sides, axis=0) @ weight / weight.sum())


def saving(studies: int, models: int) -> dict[str, Any]:
    """What sampling by information buys: the widest standard error of neighbours, and how often the best is found."""
    found: dict[str, Any] = {}
    for span in (1.0, 2.0, 3.0):
        world = PreferenceWorld(theta=spaced(models, span), gamma=0.0, prompts=PROMPTS)
        truth = world.theta[:-1] - world.theta[1:]
        for design in DESIGNS:
            drawn = [simulate(world, plans(design), rng=seed_of(f"saving {span} {design}", n)) for n in range(studies)]
            for by in ("design weights", "the model alone"):
                widest, best, off = [], [], []
                for judged in drawn:
                    ranking = bradley_terry.fit(judged if by == "design weights" else judged.unweighted())
                    gaps = [ranking.difference(one, one + 1) for one in range(models - 1)]
                    widest.append(np.nanmax([gap.error or np.nan for gap in gaps]))
                    off.append([(gap.value or 0) - truth[place] for place, gap in enumerate(gaps)])
                    best.append(ranking.order[0] == 0)
                found[f"span {span:g}, {design}, by {by}"] = {
                    "widest": round(float(np.mean(widest)), 4),
                    "widest_spread": round(float(np.std(off, axis=0).max()), 4),
                    "monte_carlo": round(float(np.std(widest) / np.sqrt(studies)), 4),
                    "best_found": round(float(np.mean(best)), 4),
                    "best_monte_carlo": round(float(np.std(best) / np.sqrt(studies)), 4),
                }
    return found


def judges(studies: int) -> dict[str, Any]:
    """Figures of a judge whose rating follows the prompts' own differences with noise, and assisted win rates: two
    models, 400 prompts, 60 people with 8 items each, two people an item. The truth is that of a very large study."""
    names = ("pearson", "uncentred", "spearman", "accuracy", "kappa", "log_score")
    truth_of = _judged(seed_of("judge truth", 0), prompts=60_000, people=12_000)
    whole = judging.compare(*truth_of)
    if whole is None:
        raise SystemExit("no items")
    truth = judging.figures(whole, truth_of[1])
    covers = {name: Cover() for name in names}
    for number in range(studies):
        people, judge = _judged(seed_of("judges", number), prompts=400, people=60)
        one = judging.compare(people, judge)
        if one is None:
            continue
        figures = judging.figures(one, judge)
        for name in names:
            covers[name].add(getattr(figures, name), float(getattr(truth, name).value or np.nan))
    return {name: cover.line() for name, cover in covers.items()}


def _judged(rng: np.random.Generator, *, prompts: int, people: int) -> tuple[Judgements, Judgements]:
    own = rng.normal(0.5, 1.5, prompts)
    asked = rng.choice(prompts, size=min(prompts, people * 4), replace=False)
    prompt = np.repeat(asked, 2)
    n = len(prompt)
    person = np.concatenate([rng.permutation(people) for _part in range(-(-n // people))])[:n]
    taste = rng.normal(0, 0.5, people)
    leaning = own[prompt] + taste[person] + rng.logistic(size=n)
    rating = np.clip(np.round(leaning + 0.5) - 0.5, -3.5, 3.5)
    verdict = np.clip(np.round(own + rng.normal(0, 1.5, prompts) + 0.5) - 0.5, -3.5, 3.5)
    return _rows(prompt, person, rating, prompts), _rows(np.arange(prompts), np.arange(prompts), verdict, prompts)


def _rows(prompt: np.ndarray, person: np.ndarray, rating: np.ndarray, prompts: int) -> Judgements:
    n = len(prompt)
    return Judgements(
        models=("one", "other"),
        prompts=tuple(map(str, range(prompts))),
        prompt=prompt.astype(np.int64),
        a=np.zeros(n, dtype=np.int64),
        b=np.ones(n, dtype=np.int64),
        category=np.full(n, "", dtype=str),
        person=person.astype(np.int64),
        outcome=np.where(rating > 0, A, B).astype(np.int64),
        value=rating,
        first=np.zeros(n, dtype=np.int64),
        probability=np.ones(n),
        chance=np.full(n, np.nan),
    )


def assisted(studies: int) -> dict[str, Any]:
    """Win rates with the help of a good judge, and of one that is pure noise: 400 prompts, 100 answers."""
    found: dict[str, Any] = {}
    world = PreferenceWorld(theta=np.array([0.5, -0.5]), gamma=0.0, prompts=400)
    chance = 1 / (1 + np.exp(-1.0))
    for kind in ("good", "noise"):
        alone, helped, saved = Cover(), Cover(), []
        for number in range(studies):
            rng = seed_of(f"assisted {kind}", number)
            judged = simulate(world, [StagePlan(Uniform(), 40, 5)], rng=rng)
            won = rng.random(400) < chance
            won[judged.prompt] = judged.win > 0.5
            keep = rng.random(judged.n) < 0.5
            people = judged.where(keep)
            chances = np.where(won, 0.8, 0.3) if kind == "good" else rng.random(400)
            keys = {prompt * 4 + 1: float(chances[prompt]) for prompt in range(400)}
            (one,) = judging.assisted(people, keys, universe={(0, 1): chances})
            # Of people alone the spread of all items counts in full; the judge has judged every item there is.
            for cover, figure, truth in ((alone, one.people, chance), (helped, one.assisted, float(won.mean()))):
                low, high = figure.interval
                cover.add(bradley_terry.MeasuredFigure(figure.value, figure.standard_error, low, high), truth)
            saved.append(one.saved or 0.0)
        found[kind] = {"alone": alone.line(), "assisted": helped.line(), "saved": round(float(np.mean(saved)), 1)}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=2000)
    parser.add_argument("--models", type=int, default=8)
    parser.add_argument("--part", choices=("laws", "saving", "judges", "assisted"))
    given = parser.parse_args()
    parts = {
        "laws": lambda: laws(given.studies, given.models),
        "saving": lambda: saving(given.studies, given.models),
        "judges": lambda: judges(given.studies),
        "assisted": lambda: assisted(given.studies),
    }
    for name in [given.part] if given.part else list(parts):
        started = time.process_time()
        found = parts[name]()
        print(json.dumps({name: found, "processor_seconds": round(time.process_time() - started, 1)}, indent=1))


if __name__ == "__main__":
    main()
