"""`manage.py train_ngram FILE --order N --name NAME`: train an n-gram model, and show the table of overfitting."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from predictors.errors import PredictorError
from predictors.evaluation.scoring import in_words
from predictors.readings.arpa import write_arpa
from predictors.readings.ngrams import SMOOTHINGS, UNITS, OrderLine
from predictors.readings.tokenizing import PairTokenizer
from survey.console.command import HunchCommand
from survey.exceptions import HunchError
from survey.figures.rendering import aligned
from survey.services.banks import ngrams, passages, text_files
from survey.services.banks.frequencies import read_counts

HEADER = ("order", "states", "train perplexity", "test perplexity", "train / test", "impossible in test")


class Command(HunchCommand):
    help = (
        "Train an n-gram model from texts and store it as ngram:NAME. Prints states and perplexity per token, the end "
        "of each text counted, on training and test texts for every order up to N. With --counts from a table of how "
        "frequent words are."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "path", metavar="FILE", help="plain text, or CSV with id and text; with --counts word and count"
        )
        parser.add_argument("--name", required=True, metavar="NAME", help="letters, digits, - and _")
        parser.add_argument(
            "--order", type=int, default=3, metavar="N", help="1 to 5; it counts the predicted unit (3)"
        )
        parser.add_argument("--unit", choices=UNITS, default="word")
        parser.add_argument(
            "--tokenizer", default="", metavar="pairs:NAME", help="with --unit token: what cuts texts into tokens"
        )
        parser.add_argument("--smoothing", choices=SMOOTHINGS, default="kneser_ney", help="none: raw counts")
        parser.add_argument("--test", metavar="FILE", help="test texts; without it a tenth is kept from the training")
        parser.add_argument(
            "--counts",
            action="store_true",
            help="FILE says how frequent words are (word and count, or word and log_frequency): a unigram of them",
        )
        parser.add_argument("--arpa", type=Path, metavar="FILE", help="also write the model of words as an ARPA file")
        parser.add_argument("--lines", action="store_true", help="each line of a plain file is a text")

    def handle(
        self,
        *args: Any,
        path: str,
        name: str,
        order: int,
        unit: str,
        tokenizer: str,
        smoothing: str,
        test: str | None,
        lines: bool,
        counts: bool,
        arpa: Path | None,
        **options: Any,
    ) -> None:
        if counts:
            if test or lines or tokenizer or arpa or unit != "word":
                raise HunchError(
                    "--counts: FILE is a table of words; leave out --test, --lines, --unit, --tokenizer and --arpa"
                )
            row = ngrams.from_counts(read_counts(Path(path)), name=name)
            self.stdout.write(f"stored ngram:{row.name}: how frequent {row.vocabulary_size - 2:,} words are")
            return
        if arpa and (unit != "word" or smoothing != "kneser_ney"):
            raise HunchError("--arpa: holds a model of words with --smoothing kneser_ney; leave out --arpa")
        if arpa and not arpa.absolute().parent.is_dir():
            raise HunchError(f"--arpa: there is no folder {arpa.absolute().parent} to write the file in")
        texts = text_files.read_texts([path], by_lines=lines)
        tests = text_files.read_texts([test], by_lines=lines) if test else []
        training = ngrams.train(
            texts,
            name=name,
            order=order,
            unit=unit,
            smoothing=smoothing,
            test=tests,
            cut_by=_tokenizer(unit, tokenizer),
        )
        if training.in_both:
            self.stderr.write(f"note: {training.in_both} of the {len(training.test)} test texts are training texts too")
        if not training.test:
            self.stderr.write("note: too little text to keep a tenth as a test; --test FILE gives test texts")
        self.stdout.write(aligned(HEADER, [_row(line) for line in training.lines]))
        if any(line.scores is not None and line.scores.is_overfitted for line in training.lines):
            self.stdout.write("overfitted: train perplexity is less than half of test perplexity")
        self.stdout.write(
            f"stored ngram:{training.row.name}: order {order}, {unit}s, smoothing {smoothing}, "
            f"{training.row.vocabulary_size} units with <unk> and END, {training.row.states} states"
        )
        if arpa:
            _write_arpa(name, arpa)
            self.stdout.write(f"wrote {arpa}")


def _write_arpa(name: str, path: Path) -> None:
    part = path.with_name(f"{path.name}.part")
    try:
        write_arpa(ngrams.load(name), part)
        part.replace(path)
    except (PredictorError, OSError) as exc:
        part.unlink(missing_ok=True)
        raise HunchError(f"--arpa: ngram:{name} is stored, but {path} was not written: {exc}") from exc


def _tokenizer(unit: str, source: str) -> PairTokenizer | None:
    if (unit == "token") != bool(source):
        raise HunchError("--tokenizer: --unit token needs one, such as pairs:NAME, and no other unit does")
    if not source:
        return None
    opened = passages.open_tokenizer(source)
    if not isinstance(opened, PairTokenizer):
        raise HunchError(f"--tokenizer: {source} was not trained here; train_tokenizer makes pairs:NAME")
    return opened


def _row(line: OrderLine) -> list[str]:
    train = in_words(line.train.perplexity_per_token)
    if line.scores is None:
        return [str(line.order), str(line.states), train, "-", "-", "-"]
    test = line.scores.test
    ratio = in_words(line.scores.ratio) + (" overfitted" if line.scores.is_overfitted else "")
    return [str(line.order), str(line.states), train, in_words(test.perplexity_per_token), ratio, str(test.infinite)]
