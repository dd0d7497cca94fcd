"""`manage.py check_study FILE`: what would stop a study, what ethics boards and panels ask for, and what it costs."""

import json
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Sequence
from typing import Any

from survey.console.command import HunchCommand
from survey.contracts.budgets import PoolOutlook
from survey.figures.rendering import aligned
from survey.figures.words import integer, money, number, short
from survey.services.studies import checking, creating


def share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 5:
        raise ArgumentTypeError("a share of the rewards from 0 to 5, for example 0.333")
    return value


# By the study file's word for it.
TIES = {
    "label_0": "and a tie is label 0",
    "label_1": "and a tie is label 1",
    "left_out": "and items with a tie are left out",
}


class Command(HunchCommand):
    help = (
        "Check a study file before it becomes a study: problems, pay, cost, texts, codes, slots by role. Writes "
        "nothing. Ends with status 1 if something would stop the study."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", metavar="FILE")
        parser.add_argument(
            "--fee",
            type=share,
            default=checking.PLATFORM_FEE,
            metavar="SHARE",
            help="the panel's fee, as a share of the rewards",
        )
        parser.add_argument("--json", action="store_true", help="as JSON")

    def handle(self, *args: Any, path: str, fee: float, **options: Any) -> None:
        check = checking.check_study(
            text=creating.read_study_file(path), source_name=path, fee=fee, pools=True, sizes=True
        )
        if options["json"]:
            self.stdout.write(json.dumps(check.as_json(), indent=2, ensure_ascii=False))
        else:
            self._tell(check)
        if check.has_problems:
            raise SystemExit(1)

    def _tell(self, check: checking.StudyCheck) -> None:
        for finding in check.findings:
            place = f"{check.source}:{finding.line}: " if finding.line else ""
            self.stdout.write(f"{place}{finding}")
        if check.slug:
            self._facts(check)
        problems = sum(finding.level == "problem" for finding in check.findings)
        remarks = len(check.findings) - problems
        self.stdout.write(f"{check.source}: {problems} problems, {remarks} remarks")

    def _facts(self, check: checking.StudyCheck) -> None:
        rows = [
            [
                f"{stage.stage} (pilot)" if stage.pilot else str(stage.stage),
                stage.design,
                str(stage.sittings),
                *(str(stage.slots.get(role, "")) for role in ("sampled", "holdout", "controls")),
                integer(stage.sampled_so_far),
            ]
            for stage in check.stages
        ]
        header = ["stage", "design", "sittings", "sampled", "holdout", "controls", "sampled so far"]
        self.stdout.write(aligned(header, rows))
        for stage in check.stages:
            if (test := stage.test) is not None:
                self.stdout.write(_test(stage, test))
            for quota, places in stage.quotas.items():
                cells = ", ".join(f"{cell} {number}" for cell, number in places.items())
                self.stdout.write(f"stage {stage.stage} quota {quota}: {cells}; {sum(places.values())} in all")
            if stage.stop:
                self.stdout.write(f"stage {stage.stage} {stage.stop}")
        for limits in check.sizes:
            self.stdout.write(f"sizes: {limits}")
        if check.pools:
            self.stdout.write(_pools(check.pools))
        self.stdout.write(f"minutes expected: {check.minutes}; attention checks: {check.attention_checks}")
        self.stdout.write(f"languages: {', '.join(check.languages)}; kept until: {check.retention_until or 'not said'}")
        if pay := check.pay:
            minimum = "" if pay.minimum is None else f"; the panel's minimum is {money(pay.minimum)}"
            self.stdout.write(f"pay: {money(pay.an_hour, pay.currency)} an hour{minimum}")
        if cost := check.cost:
            screen_outs = f", at most {money(cost.screen_outs)} for screen-outs" if cost.screen_outs else ""
            self.stdout.write(
                f"cost: {cost.people} people, {money(cost.rewards)} in rewards{screen_outs} and "
                f"{money(cost.fee)} in fees, "
                f"{money(cost.total, cost.currency)} in all"
                + (f", and {cost.bonus_per_point} cents for each point" if cost.bonus_per_point else "")
            )
        self.stdout.write("codes: " + ", ".join(f"{outcome}: {action}" for outcome, action in check.codes.items()))


def _pools(pools: Sequence[PoolOutlook]) -> str:
    own, *larger = pools
    others = " and ".join(f"{number(pool.share, 3)} with {integer(pool.size)}" for pool in larger)
    return (
        f"candidates.size: with {integer(own.size)} candidates {number(own.share, 3)} of the answers from stage 2 on "
        f"have label 1 (for beliefs: changed), {others} and as many of them at the top; simulated with people as "
        "plan_budget assumes them"
    )


def _test(stage: checking.StageFacts, test: checking.TestFacts) -> str:
    top, bottom = 100 * test.top_fraction, 100 * test.bottom_fraction
    return (
        f"stage {stage.stage} is a test stage, from which nothing learns: {integer(test.items)} items, "
        f"{integer(test.from_top)} of the top {short(top)} % and {integer(test.from_bottom)} of the bottom "
        f"{short(bottom)} % of the scores, {test.responses_per_item} people each; their labels are majorities, "
        f"{TIES[test.ties]}"
    )
