"""`manage.py collect_answers MODEL --bank NAME`: ask a language model a bank's questions, zero-shot."""

from argparse import ArgumentParser
from decimal import Decimal
from typing import Any

from django.db.models import Sum

from predictors.errors import PredictorError
from predictors.prompts import read_template
from survey.console.asking import MODEL_HELP, add_asking_arguments
from survey.console.command import HunchCommand
from survey.console.progress_bars import bar
from survey.exceptions import HunchError
from survey.figures.words import number, percent, short
from survey.models import AnswerCollection, ModelAnswer
from survey.services.banks import collecting
from survey.services.banks.importing import find_bank


class Command(HunchCommand):
    help = (
        "Ask a language model a bank's questions. The server's address and key come from HUNCH_LLM_URL and "
        "HUNCH_LLM_KEY (any OpenAI-compatible one); local:FOLDER asks a Hugging Face model in this process."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("model", metavar="MODEL", help=MODEL_HELP)
        parser.add_argument("--bank", required=True, metavar="NAME", help="NAME, or NAME@VERSION")
        parser.add_argument("--questions", type=int, metavar="N", help="only this many questions, drawn at random")
        parser.add_argument("--seed", type=int, default=0, help="of the random draw")
        parser.add_argument("--max-tokens", type=int, metavar="N", help="the most of a reply (5; without keys 512)")
        parser.add_argument("--replies", type=int, default=1, metavar="R", help="how often each question is asked (1)")
        parser.add_argument("--temperature", type=float, default=0.0, metavar="T", help="of the replies (0)")
        parser.add_argument(
            "--template", default="", metavar="FILE", help="a .toml file with the words of the question"
        )
        add_asking_arguments(parser)

    def handle(
        self,
        *args: Any,
        model: str,
        bank: str,
        name: str,
        questions: int | None,
        seed: int,
        concurrency: int,
        max_tokens: int | None,
        replies: int,
        temperature: float,
        template: str,
        price_in: Decimal | None,
        price_out: Decimal | None,
        cost_cap: Decimal | None,
        **options: Any,
    ) -> None:
        collection = collecting.create_collection(
            bank=find_bank(bank),
            model=model,
            name=name,
            limit=questions,
            seed=seed,
            max_tokens=max_tokens,
            replies=replies,
            temperature=temperature,
            template=_words_of(template) if template else "",
            concurrency=concurrency,
            price_in=price_in,
            price_out=price_out,
            cost_cap=cost_cap,
            hold=True,
        )
        progress_bar = bar(total=collection.wanted, name=collection.language_model.name[:22])

        def progress(now: AnswerCollection) -> None:
            progress_bar.total = now.wanted
            progress_bar.update(now.answered - progress_bar.n)
            if now.cost is not None:
                progress_bar.set_postfix_str(f"{number(now.cost, 4)} spent")

        try:
            ended = collecting.run_collection(collection.pk, progress=progress)
        except KeyboardInterrupt:
            raise HunchError("stopped; what was collected is stored. Run the same command again to go on") from None
        finally:
            progress_bar.close()
        if ended is None:
            raise HunchError("another process took this collection over; see the admin's list of collections")
        self._report(ended)

    def _report(self, ended: AnswerCollection) -> None:
        answers = ModelAnswer.objects.filter(language_model=ended.language_model, question__bank=ended.bank)
        unread = answers.aggregate(replies=Sum("unreadable"))["replies"] or 0
        grades = answers.by_question().values()
        right, total = sum(grades), len(grades)
        cost = "" if ended.cost is None else f", {number(ended.cost, 4)} spent"
        self.stdout.write(
            f"{ended.language_model}: {ended.answered} of {ended.wanted} questions of {ended.bank} answered; "
            f"{ended.tokens_in} tokens sent, {ended.tokens_out} returned{cost}"
        )
        if total:
            self.stdout.write(
                f"correct: {short(right)} of {total} ({percent(right / total)}); "
                f"unreadable replies, which count as not right: {unread}"
            )
        if ended.error:
            message = f"{ended.get_state_display()}: {ended.error}"
            if ended.state != AnswerCollection.State.DONE:
                raise HunchError(message)
            self.stderr.write(message)


def _words_of(template: str) -> str:
    """
    Raises:
        HunchError: the file cannot be read, or is no template for answers.
    """
    try:
        return read_template(template, "answer").text
    except PredictorError as exc:
        raise HunchError(f"--template: {str(exc).removeprefix('template: ')}") from exc
