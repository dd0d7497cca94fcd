"""Do the intervals of preference studies hold the truth, and what does sampling by information save?

    python benchmarks/preference_laws.py [--studies 2000] [--models 8] [--part laws|saving|judges|assisted|style]

Simulated studies with known strengths and side bias: five stages of 120 judgements on 100 prompts, uniform and drawn by
information (epsilon-greedy, 0.2, top quarter). Every study has a seed derived from the figure's name and its number.
The laws are printed as coverage of 95 % intervals with its Monte Carlo error; a figure should lie between 93 and 97 %.
"""

import argparse
import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bandit import EpsilonGreedy, Uniform, draw
from survey.figures import Figure
from survey.instruments.preference.analysis import bradley_terry, judging
from survey.instruments.preference.analysis.agreement import of_people
from survey.instruments.preference.analysis.analysing import win_shares
from survey.instruments.preference.analysis.information import information
from survey.instruments.preference.analysis.judgements import A, B, Judgements
from survey.instruments.preference.analysis.simulation import (
    PreferenceWorld,
    StagePlan,
    joined,
    population,
    simulate,
    spaced,
)

PROMPTS, STAGES, PEOPLE, ITEMS = 100, 5, 12, 10
DESIGNS = ("uniform", "information")
STYLE_SHRINKS = 0.937  # Of a coefficient, where people differ by 0.4 logits a model; a fit to 4,000,000 judgements.


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

    def add(self, estimate: Any, truth: float) -> None:
        if estimate.value is None or estimate.low is None or estimate.high is None:
            return
        self.inside.append(bool(estimate.low <= truth <= estimate.high))
        self.width.append(estimate.high - estimate.low)
        self.error.append(estimate.value - truth)

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


def laws(numbers: range, models: int) -> dict[str, Any]:
    """Strengths, side bias and win shares, where nobody differs and where people and prompts do."""
    report: dict[str, Any] = {}
    for kind, differ in (("alike", {}), ("differing", {"person_sd": 0.4, "prompt_sd": 0.4})):
        world = PreferenceWorld(theta=spaced(models, 2.0), gamma=0.3, prompts=PROMPTS, **differ)
        theta, gamma = population(world)
        for design in DESIGNS:
            name = f"laws {kind} {design}"
            pairs = {(0, models - 1): "win share, first and last", (3, 4): "win share, two in the middle"}
            covers = {figure: Cover() for figure in ("theta", "neighbours", "gamma", *pairs.values())}
            for number in numbers:
                judged = simulate(world, plans(design), rng=seed_of(name, number))
                if not differ and design == "information":  # The model alone is right where nobody differs.
                    alone = bradley_terry.fit(judged.unweighted())
                    for model in range(models - 1):
                        gap = float(theta[model] - theta[model + 1])
                        covers.setdefault("neighbours, each answer once", Cover()).add(
                            alone.difference(model, model + 1), gap
                        )
                    covers.setdefault("gamma, each answer once", Cover()).add(alone.side, gamma)
                ranking = bradley_terry.fit(judged)
                for model in range(models):
                    covers["theta"].add(ranking.of(model), float(theta[model]))
                for model in range(models - 1):
                    covers["neighbours"].add(
                        ranking.difference(model, model + 1), float(theta[model] - theta[model + 1])
                    )
                covers["gamma"].add(ranking.side, gamma)
                for share in win_shares(judged):
                    if share.n >= 10 and (name_of := pairs.get((share.model, share.other))):
                        covers[name_of].add(share.share, _win_share(world, share.model, share.other))
            report[name] = {figure: cover.line() for figure, cover in covers.items()}
    return report


def _win_share(world: PreferenceWorld, model: int, other: int) -> float:
    node, weight = np.polynomial.hermite_e.hermegauss(41)
    spread = np.sqrt(2 * (world.person_sd**2 + world.prompt_sd**2))
    gap = world.theta[model] - world.theta[other]
    sides = [1 / (1 + np.exp(-(gap + side * world.gamma + spread * node))) for side in (1, -1)]
    return float(np.mean(sides, axis=0) @ weight / weight.sum())


def saving(numbers: range, models: int) -> dict[str, Any]:
    """What sampling by information buys: the widest standard error of neighbours, and how often the best is found."""
    report: dict[str, Any] = {}
    for span in (1.0, 2.0, 3.0):
        world = PreferenceWorld(theta=spaced(models, span), gamma=0.0, prompts=PROMPTS)
        truth = world.theta[:-1] - world.theta[1:]
        for design in DESIGNS:
            drawn = [simulate(world, plans(design), rng=seed_of(f"saving {span} {design}", n)) for n in numbers]
            for by in ("design weights", "the model alone"):
                widest, best, off = [], [], []
                for judged in drawn:
                    ranking = bradley_terry.fit(judged if by == "design weights" else judged.unweighted())
                    gaps = [ranking.difference(model, model + 1) for model in range(models - 1)]
                    widest.append(np.nanmax([gap.standard_error or np.nan for gap in gaps]))
                    off.append([(gap.value or 0) - truth[place] for place, gap in enumerate(gaps)])
                    best.append(ranking.order[0] == 0)
                report[f"span {span:g}, {design}, by {by}"] = {
                    "widest": round(float(np.mean(widest)), 4),
                    "widest_spread": round(float(np.std(off, axis=0).max()), 4),
                    "monte_carlo": round(float(np.std(widest) / np.sqrt(len(numbers))), 4),
                    "best_found": round(float(np.mean(best)), 4),
                    "best_monte_carlo": round(float(np.std(best) / np.sqrt(len(numbers))), 4),
                }
    return report


def judges(numbers: range) -> dict[str, Any]:
    """Figures of a judge against people, and of people among each other: two models, 400 prompts, 60 people with 8
    items each, two people an item. The judge's rating follows the prompts' own differences with noise, in both orders,
    and leans to the first. Adaptive: prompts that the judge finds close are asked more. The truth is that of a very
    large study."""
    names = (
        "pearson", "uncentred", "spearman", "accuracy", "kappa", "log_score", "ceiling_person", "ceiling_judge",
        "orders", "side",
    )  # fmt: skip
    people, judge, _own = _judged(seed_of("judge truth", 0), prompts=40_000, people=10_000, design="uniform")
    whole = judging.compare(people, judge)
    if whole is None:
        raise SystemExit("no items")
    truth = {name: getattr(judging.figures(whole, judge), name).value for name in names}
    among = of_people(people)
    truth |= {"kappa of people": among.kappas[0].kappa.value, "alpha of people": among.alpha.value}
    ratings, place = np.unique(whole.judge, return_inverse=True)
    expected = np.bincount(place, weights=whole.share) / np.bincount(place)
    report: dict[str, Any] = {}
    for design in ("uniform", "adaptive"):
        covers = {name: Cover() for name in (*truth, "reliability, first part", "reliability, middle part")}
        for number in numbers:
            people, judge, _own = _judged(seed_of(f"judges {design}", number), prompts=400, people=60, design=design)
            comparison = judging.compare(people, judge)
            if comparison is None:
                continue
            figures, among = judging.figures(comparison, judge), of_people(people)
            for name in names:
                covers[name].add(getattr(figures, name), float(truth[name] or np.nan))
            covers["kappa of people"].add(among.kappas[0].kappa, float(truth["kappa of people"] or np.nan))
            covers["alpha of people"].add(among.alpha, float(truth["alpha of people"] or np.nan))
            parts = judging.reliability(comparison)
            items = np.array_split(np.argsort(comparison.chance, kind="stable"), len(parts))
            for name, part in (("first", 0), ("middle", len(parts) // 2)):
                near = np.abs(ratings[None, :] - comparison.judge[items[part]][:, None]).argmin(axis=1)
                share = float(np.average(expected[near], weights=comparison.weight[items[part]]))
                found_one = parts[part]
                covers[f"reliability, {name} part"].add(Figure(found_one.share, found_one.low, found_one.high), share)
        report[design] = {name: cover.line() for name, cover in covers.items()}
    return report


def _judged(
    rng: np.random.Generator, *, prompts: int, people: int, design: str
) -> tuple[Judgements, Judgements, np.ndarray]:
    own = rng.normal(0.5, 1.5, prompts)
    seen = own + rng.normal(0, 1.5, prompts)
    orders = [_places(seen + side * 0.4 + rng.normal(0, 0.7, prompts)) for side in (1, -1)]
    slots = people * 8
    adaptive = design == "adaptive"
    drawn = draw(
        design=EpsilonGreedy(0.3, 0.5) if adaptive else Uniform(),
        n=slots,
        scores=-np.abs(orders[0] + orders[1]) + rng.random(prompts) * 0.01 if adaptive else None,
        n_candidates=prompts,
        rng=rng,
        responses_per_item=2,
    )
    # The two people of an item are never the same: slots of an item lie side by side.
    order = np.argsort(drawn.selected, kind="stable")
    prompt, chance = drawn.selected[order], drawn.inclusion_probability[order]
    person = np.concatenate([rng.permutation(people // 2) * 2 + half for half in (0, 1) for _time in range(8)])
    person = person.reshape(2, -1).T.reshape(-1)
    taste = rng.normal(0, 0.5, people)
    rating = _places(own[prompt] + taste[person] + rng.logistic(size=slots))
    rows = replace(_rows(prompt, person, rating, prompts), probability=chance)
    every = np.tile(np.arange(prompts), 2)
    judge = _rows(every, every, np.concatenate(orders), prompts)
    return rows, replace(judge, first=np.repeat([1, -1], prompts)), own


def _places(leaning: np.ndarray) -> np.ndarray:
    """The nearest place of the scale of eight, towards A."""
    places: np.ndarray = np.clip(np.round(leaning + 0.5) - 0.5, -3.5, 3.5)
    return places


def style(numbers: range) -> dict[str, Any]:
    """What a difference of style adds, by four models on 100 prompts, 480 judgements of 40 people in two stages, the
    second one uniform or by information. People differ by 0.4 logits."""
    truth, report = 0.5, {}
    theta = spaced(4, 1.5)
    pairs = np.array([(i, j) for i in range(4) for j in range(i + 1, 4)])
    prompt, a, b = np.repeat(np.arange(100), 6), np.tile(pairs[:, 0], 100), np.tile(pairs[:, 1], 100)
    for design in DESIGNS:
        cover = Cover()
        for number in numbers:
            rng = seed_of(f"style {design}", number)
            differ, taste = rng.normal(0, 1, len(a)), rng.normal(0, 0.4, (40, 4))
            parts, styles = [], []
            for stage in range(2):
                scores = None
                if stage and design == "information":
                    strengths, spread = bradley_terry.posterior(parts[0].unweighted())
                    scores = information(strengths, spread, a, b) + rng.random(len(a)) * 1e-9
                drawn = draw(
                    design=Uniform() if scores is None else EpsilonGreedy(0.3, 0.5),
                    n=240,
                    scores=scores,
                    n_candidates=len(a),
                    rng=rng,
                )
                chosen, person = drawn.selected, 20 * stage + rng.permutation(240) % 20
                row = np.arange(240)
                leaning = theta[a[chosen]] - theta[b[chosen]] + truth * differ[chosen]
                leaning += taste[person, a[chosen]] - taste[person, b[chosen]]
                won = rng.random(240) < 1 / (1 + np.exp(-leaning))
                rows = _rows(prompt[chosen], person, np.where(won, 1.0, -1.0), 100)
                models = tuple(f"model {place + 1}" for place in range(4))
                parts.append(
                    replace(
                        rows,
                        models=models,
                        a=a[chosen][row],
                        b=b[chosen][row],
                        probability=drawn.inclusion_probability,
                    )
                )
                styles.append(differ[chosen])
            ranking = bradley_terry.fit(joined(parts), style=np.concatenate(styles)[:, None])
            # Where people differ, all coefficients of the population are a little smaller (as in `population`).
            cover.add(ranking.styled(0), truth * STYLE_SHRINKS)
        report[design] = {"style": cover.line()}
    return report


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


def assisted(numbers: range) -> dict[str, Any]:
    """Win rates of two models over 400 prompts with the help of a good judge, and of one that is pure noise: 240
    answers of 60 people, each prompt asked of one or of two. Prompts differ by 1 logit, people by 0.4. The truth is the
    share that all people would give over these 400 prompts."""
    report: dict[str, Any] = {}
    for kind in ("good", "noise"):
        for design in ("uniform", "adaptive"):
            for each in (1, 2):
                name = f"{kind}, {design}, {each} an item"
                alone, helped, saved = Cover(), Cover(), []
                for number in numbers:
                    people, chances, truth = _asked(seed_of(f"assisted {name}", number), kind, design, each)
                    keys = {prompt * 4 + 1: float(chance) for prompt, chance in enumerate(chances)}
                    (pair,) = judging.assisted(people, keys, universe={(0, 1): chances})
                    for cover, figure in ((alone, pair.people), (helped, pair.assisted)):
                        low, high = figure.interval
                        cover.add(Figure(figure.value, low, high, figure.standard_error), truth)
                    saved.append(pair.saved or 0.0)
                report[name] = {
                    "alone": alone.line(), "assisted": helped.line(), "saved": round(float(np.mean(saved)), 1)
                }  # fmt: skip
    return report


def _asked(rng: np.random.Generator, kind: str, design: str, each: int) -> tuple[Judgements, np.ndarray, float]:
    """People's judgements of a part of 400 prompts, the judge's chance of each, and the share over all of them."""
    prompts, slots, people = 400, 240, 60
    own = 1 + rng.normal(0, 1, prompts)
    taste = rng.normal(0, 0.4, people)
    node, weight = np.polynomial.hermite_e.hermegauss(21)
    chance = (1 / (1 + np.exp(-(own[:, None] + 0.4 * node)))) @ weight / weight.sum()
    judge = 1 / (1 + np.exp(-(own + rng.normal(0, 0.7, prompts)))) if kind == "good" else rng.random(prompts)
    adaptive = design == "adaptive"
    drawn = draw(
        design=EpsilonGreedy(0.5, 0.4) if adaptive else Uniform(),
        n=slots,
        scores=judge * (1 - judge) if adaptive else None,
        n_candidates=prompts,
        rng=rng,
        responses_per_item=each,
    )
    prompt, person = drawn.selected, rng.permutation(slots) % people
    won = rng.random(slots) < 1 / (1 + np.exp(-(own[prompt] + taste[person])))
    rows = _rows(prompt, person, np.where(won, 1.0, -1.0), prompts)
    return replace(rows, probability=drawn.inclusion_probability), judge, float(chance.mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0, help="number of the first study, for a run in parts")
    parser.add_argument("--models", type=int, default=8)
    parser.add_argument("--part", choices=("laws", "saving", "judges", "assisted", "style"))
    arguments = parser.parse_args()
    numbers = range(arguments.first, arguments.first + arguments.studies)
    parts = {
        "laws": lambda: laws(numbers, arguments.models),
        "saving": lambda: saving(numbers, arguments.models),
        "judges": lambda: judges(numbers),
        "assisted": lambda: assisted(numbers),
        "style": lambda: style(numbers),
    }
    for name in [arguments.part] if arguments.part else list(parts):
        started = time.process_time()
        report = parts[name]()
        print(json.dumps({name: report, "processor_seconds": round(time.process_time() - started, 1)}, indent=1))


if __name__ == "__main__":
    main()
