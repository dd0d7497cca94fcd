"""`manage.py judge_replies SLUG MODEL`: ask a language model to judge the replies of a preference study."""

from argparse import ArgumentParser
from decimal import Decimal
from typing import Any

from survey.console.asking import MODEL_HELP, add_asking_arguments
from survey.console.command import HunchCommand
from survey.console.progress_bars import bar
from survey.exceptions import HunchError
from survey.figures.words import number
from survey.instruments.preference.judging_runs import ORDERS, TEMPLATES, JudgeResult, JudgeRun, judge_replies
from survey.services.studies.lookup import find_study


class Command(HunchCommand):
    help = (
        "Ask a language model to judge two replies at a time, as people do. The server's address and key come from "
        "HUNCH_LLM_URL and HUNCH_LLM_KEY; local:FOLDER asks a Hugging Face model in this process."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", metavar="SLUG", help="a preference study")
        parser.add_argument("model", metavar="MODEL", help=MODEL_HELP)
        parser.add_argument("--orders", default="both", metavar="WHICH", help=f"{', '.join(ORDERS)} (both)")
        parser.add_argument(
            "--template",
            default="score_first",
            metavar="NAME",
            help=f"{', '.join(TEMPLATES)} (score_first), or a .toml file",
        )
        parser.add_argument("--question", default="", help="which of the study's questions (the first)")
        parser.add_argument("--items", type=int, metavar="N", help="only the first N items")
        parser.add_argument("--logprobs", action="store_true", help="read the probabilities of the eight numbers")
        add_asking_arguments(parser)

    def handle(
        self,
        *args: Any,
        slug: str,
        model: str,
        name: str,
        orders: str,
        template: str,
        question: str,
        items: int | None,
        logprobs: bool,
        concurrency: int,
        price_in: Decimal | None,
        price_out: Decimal | None,
        cost_cap: Decimal | None,
        **options: Any,
    ) -> None:
        run = JudgeRun(
            study=find_study(slug),
            model=model,
            name=name,
            template=template,
            orders=orders,
            question=question,
            limit=items,
            logprobs=logprobs,
            concurrency=concurrency,
            price_in=price_in,
            price_out=price_out,
            cost_cap=cost_cap,
        )
        progress_bar = bar(total=0, name=(name or model)[:22])

        def progress(now: JudgeResult) -> None:
            progress_bar.total = now.wanted
            progress_bar.update(now.known + now.stored - progress_bar.n)

        try:
            result = judge_replies(run, progress=progress)
        except KeyboardInterrupt:
            raise HunchError("stopped; what was judged is stored. Run the same command again to go on") from None
        finally:
            progress_bar.close()
        cost = "" if result.cost is None else f", {number(result.cost, 4)} spent"
        self.stdout.write(
            f"{result.judge}: {result.known + result.stored} of {result.wanted} verdicts stored, {result.stored} new; "
            f"{result.unreadable} of these could not be read; {result.refused} refused; {result.tokens_in} "
            "tokens sent, "
            f"{result.tokens_out} returned{cost}"
        )
        if result.stopped:
            raise HunchError(result.stopped)
