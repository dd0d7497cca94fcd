"""`manage.py train_lm FILE --kind lstm|transformer --name NAME`: train a network of words, and show how it learns."""

import signal
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from predictors.errors import PredictorError
from predictors.settings import WordNetworkSettings
from predictors.training import limit_threads, processors
from survey.console.command import HunchCommand
from survey.console.progress_bars import bar
from survey.exceptions import HunchError
from survey.figures.words import integer, number
from survey.services.banks import text_files, word_networks

if TYPE_CHECKING:
    from predictors.readings.word_networks import Epoch

CHOICES = {name: get_args(get_type_hints(WordNetworkSettings)[name]) for name in ("kind", "optimizer")}
HELP = {
    "layers": "layers (2)",
    "units": "width of word vectors and layers (200)",
    "heads": "of a transformer's attention (2); the width must be a multiple",
    "epochs": "at most so many times through the texts (20)",
    "patience": "stop after so many epochs that do not improve the held-out part (2)",
    "context": "words that a transformer sees, and over which gradients go back (48)",
    "batch_size": "rows learnt from side by side (32)",
    "min_count": "words that occur less often are read as <unk> (2)",
}


class Command(HunchCommand):
    help = (
        "Train a small language model of words from texts, an LSTM or a transformer, and store it as lm:NAME. Prints a "
        "line after each epoch; Ctrl-C ends the training and stores the best epoch so far."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", metavar="FILE", help="plain text, or CSV with id and text")
        parser.add_argument("--name", required=True, metavar="NAME", help="letters, digits, - and _")
        parser.add_argument("--kind", choices=CHOICES["kind"], default=WordNetworkSettings.kind)
        for name, words in HELP.items():
            parser.add_argument(
                f"--{name.replace('_', '-')}",
                type=int,
                default=getattr(WordNetworkSettings, name),
                metavar="N",
                help=words,
            )
        parser.add_argument("--dropout", type=float, default=WordNetworkSettings.dropout, metavar="SHARE", help="(0.2)")
        parser.add_argument(
            "--untied", action="store_true", help="a table of word vectors for the output apart from the input's"
        )
        parser.add_argument(
            "--optimizer",
            choices=CHOICES["optimizer"],
            default=WordNetworkSettings.optimizer,
            help="with either the rate is halved after an epoch that does not improve the held-out part (adam)",
        )
        parser.add_argument(
            "--learning-rate", type=float, metavar="RATE", help="0.002; with sgd 20 for an LSTM, 1 for a transformer"
        )
        parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the first weights and of chance (0)")
        parser.add_argument(
            "--held-out", metavar="FILE", help="texts that say when to stop; without it a tenth of the training texts"
        )
        parser.add_argument("--test", metavar="FILE", help="texts whose perplexity is printed at the end")
        parser.add_argument("--lines", action="store_true", help="each line of a plain file is a text")
        parser.add_argument("--device", default="auto", help="auto (a GPU where there is one), cpu, cuda, cuda:1")

    def handle(
        self,
        *args: Any,
        path: str,
        name: str,
        kind: Any,
        dropout: float,
        untied: bool,
        optimizer: Any,
        learning_rate: float | None,
        seed: int,
        held_out: str | None,
        test: str | None,
        lines: bool,
        device: str,
        **options: Any,
    ) -> None:
        try:
            settings = WordNetworkSettings(
                kind=kind,
                dropout=dropout,
                tied=not untied,
                optimizer=optimizer,
                learning_rate=learning_rate,
                **{option: options[option] for option in HELP},
            )
        except PredictorError as exc:
            raise HunchError(f"--{exc}") from exc
        if not 0 <= seed < 2**31:
            raise HunchError(f"--seed: {seed} must lie between 0 and {2**31 - 1}")
        texts, kept_out, tests = (
            text_files.read_texts([file], by_lines=lines) if file else [] for file in (path, held_out, test)
        )
        limit_threads(processors())  # Torch reads it when it is imported.
        progress_bar = bar(total=0, name=name[:22])
        with _stopping() as stopped:

            def progress(done: int, total: int, text: str) -> bool:
                progress_bar.total = total
                progress_bar.set_postfix_str(text, refresh=False)
                progress_bar.update(done - progress_bar.n)
                return not stopped

            def after_epoch(epoch: "Epoch") -> None:
                progress_bar.clear()
                self._say(epoch)

            try:
                row, network = word_networks.train(
                    texts,
                    name=name,
                    settings=settings,
                    held_out=kept_out,
                    random_state=seed,
                    device=device,
                    after_epoch=after_epoch,
                    progress=progress,
                )
            finally:
                progress_bar.close()
        if network.was_stopped:
            self.stderr.write("note: stopped; the best epoch so far is stored")
        if not network.has_met_unknown:
            self.stderr.write(
                "note: no word is rare enough to be <unk>, so that nothing was learnt about unknown words; --min-count "
                "2 teaches it"
            )
        if tests:
            score = network.score([text.text for text in tests])
            self.stdout.write(f"test perplexity {number(score.perplexity_per_token or 0, 1)} a word or END")
        self.stdout.write(
            f"stored lm:{row.name}: {row.get_kind_display()}, {integer(row.parameters)} weights, "
            f"{integer(row.vocabulary_size)} words with <unk> and END, epoch {network.best_epoch.number}, held-out "
            f"perplexity {number(row.held_out_perplexity, 1)}"
        )

    def _say(self, epoch: "Epoch") -> None:
        self.stdout.write(
            f"epoch {epoch.number}: train perplexity {number(epoch.train, 1)}, held-out {number(epoch.held_out, 1)}, "
            f"learning rate {epoch.rate:.3g}, {integer(round(epoch.words / max(epoch.seconds, 1e-3)))} words a second"
        )


@contextmanager
def _stopping() -> Iterator[list[bool]]:
    """A list that holds something from Ctrl-C on. A second Ctrl-C ends the process as usual."""
    stopped: list[bool] = []
    usual = signal.getsignal(signal.SIGINT)

    def stop(number: int, frame: Any) -> None:
        stopped.append(True)
        signal.signal(signal.SIGINT, usual)

    signal.signal(signal.SIGINT, stop)
    try:
        yield stopped
    finally:
        signal.signal(signal.SIGINT, usual)
