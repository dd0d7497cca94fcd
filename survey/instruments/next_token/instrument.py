"""The next-token task as the core sees it."""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np

from predictors.readings.sources import outside_of
from survey.contracts.expectations import Expecting
from survey.contracts.instruments import (
    CONTRACT,
    BookletsByTask,
    Demonstration,
    FieldPath,
    ListedInstrument,
    Practice,
    Priority,
    Signals,
)
from survey.contracts.item_rows import NEVER_SHOWN, ItemRows
from survey.contracts.preparation import Preparation, Progress
from survey.contracts.reports import ReportEntry
from survey.contracts.screens import Points, Screen
from survey.exceptions import HunchError, StateRefused
from survey.figures.words import integer, money
from survey.models import Assignment, Item, Question, Response, TokenizerRecord
from survey.services.banks import passages
from survey.services.banks.eligibility import filtered_questions
from survey.services.banks.readings import text_hash
from survey.study_file import Note

from . import ending, expecting, people, practice, priorities, screens
from .estimands import NextTokenEstimates
from .export import NextTokenExport
from .models import TokenGuess, TokenRun
from .options import NextTokenOptions
from .wording import shown_token

ROW = np.dtype([("question", "<i4"), ("start", "<i4")])
# What no page of a person shows.
MORE_THAN_RUN = 8  # tokens that a passage needs in addition to a run
LONGEST_PAID_MS = 60_000  # of a token, where minutes are paid: nobody earns by leaving a page open, or by being wrong
MAX_IDS_IN_MESSAGE = 5  # passages that a problem names


class NextTokenSignals(Signals):
    """First guesses of a token: who always types the same one may not be reading."""

    def stated_values(self, sittings: Any) -> Iterable[tuple[int, str, str]]:
        guesses = TokenGuess.objects.filter(response__assignment__sitting__in=sittings, attempt=1).order_by()
        for sitting, text in guesses.values_list("response__assignment__sitting", "text").iterator():
            yield sitting, "token", text


class NextToken(ListedInstrument):
    """A passage and a run of its tokens: each is guessed from all before it, and then shown."""

    name = "next_token"
    title = "Next token"
    contract = CONTRACT
    options_model = NextTokenOptions
    rows = ItemRows(
        item="token_run",
        questions=("question",),
        answers=("token_guess",),
        shown=("tokenizer",),
        hidden_of_questions=NEVER_SHOWN,
        hidden=("tokenizer__words", "tokenizer__content"),
        exported=("tokenizer",),
        outcomes_read_items=False,
    )
    budget_planner = "survey.instruments.next_token.reports.budget.NextTokenBudget"
    signals = NextTokenSignals()
    estimates = NextTokenEstimates()
    demonstration = Demonstration(
        "example-next-token.toml",
        "survey.instruments.next_token.demonstration.load_bank",
        "survey.instruments.next_token.demonstration.verdict",
        bank=passages.STARTER_PASSAGES,
    )

    @property
    def practice(self) -> Practice:
        if self._study is None:
            return practice.NextTokenPractice(None, reveal=True)
        options = self.options
        return practice.NextTokenPractice(self.source, reveal=options.reveal, until_right=options.until_right)

    @property
    def priority(self) -> Priority | None:
        if self._study is None or self.options.priority == "none":
            return None
        return priorities.NextTokenPriority(self)

    @cached_property
    def expectations(self) -> Expecting:
        return expecting.NextTokenExpecting(self)

    @property
    def preparation(self) -> Preparation | None:
        if self._study is None:
            return None
        outside = outside_of([self.source, *(model.source for model in self.study.config.models)])
        return Preparation("passages", self._prepare, outside)

    def _prepare(self, progress: Progress) -> Mapping[str, int]:
        return passages.prepare(
            list(self.study.bank.questions.filter(flag="").order_by("position")),
            tokenizer=self.source,
            models=[passages.source_of(model) for model in self.study.config.models],
            progress=lambda what, done, total: progress(done, total, what),
        ).read

    @property
    def booklets(self) -> BookletsByTask:
        return BookletsByTask(self.rows)

    @property
    def export(self) -> NextTokenExport:
        return NextTokenExport()

    def reports(self) -> Sequence[ReportEntry]:
        return (
            ReportEntry(
                "next_token",
                "Next tokens",
                "How often people guess the next token, and language models at the very same positions.",
                "How often people guess the next token of a text, a word or a piece of one, and how often language "
                "models do at the very same positions. Compare the rows of one table with each other; brackets hold "
                "95 % intervals.",
                "survey.instruments.next_token.reports.study_report.NextTokenReport",
            ),
            ReportEntry(
                "next_token_live",
                "Next tokens so far",
                "Guesses by stage, people, runs, and how many are right.",
                "How many guesses came in, and how many are right. They show how the study runs; shares are of the "
                "guesses as they came, without the design's weights.",
                "survey.instruments.next_token.reports.live_report.NextTokenLive",
                while_it_runs=True,
            ),
        )

    # Passages and their tokens

    @property
    def source(self) -> str:
        """Where the study's tokenizer is from."""
        return passages.CHARACTERS if self.options.unit == "character" else self.options.tokenizer.strip()

    @cached_property
    def tokenizer(self) -> TokenizerRecord:
        """
        Raises:
            StateRefused: nothing was cut by it yet.
        """
        return passages.registered(self.source)

    @cached_property
    def _counts(self) -> dict[str, int]:
        return {}

    def token_counts(self, questions: Sequence[Question]) -> list[int]:
        """Tokens of each passage; 0 where it was not cut yet."""
        hashes = [text_hash(question.plain) for question in questions]
        unknown = [passage for passage, sha256 in zip(questions, hashes, strict=True) if sha256 not in self._counts]
        if unknown:
            self._counts.update(passages.token_counts(self.tokenizer, passages.texts_of(unknown)))
        return [self._counts.get(sha256, 0) for sha256 in hashes]

    # The study file

    def problems(self) -> Iterable[tuple[FieldPath, str]]:
        config, options = self.study.config, self.options
        at: FieldPath = ("instrument", "options", "tokenizer")
        names = [model.name for model in config.models]
        if options.unit == "character" and options.tokenizer:
            yield at, 'unit = "character" cuts passages into characters: remove it'
        elif options.unit == "token" and not options.tokenizer.strip():
            yield at, f"is missing: name what cuts the passages, {passages.SOURCES}"
        else:
            yield from self._problems_of_passages(at)
        place: FieldPath = ("instrument", "options", "priority_model")
        if options.priority_model and options.priority_model not in names:
            yield place, f"{options.priority_model} is no name of [[models]] ({', '.join(names) or 'there are none'})"
        if options.priority == "gap" and not names:
            yield ("instrument", "options", "priority"), '"gap" is the distance to a model: name one in [[models]]'
        adaptive = any(stage.design.kind not in ("uniform", "test_set") for stage in config.stages)
        if options.priority != "none" and not adaptive:
            yield (
                ("instrument", "options", "priority"),
                "no stage draws by it: give a later stage a design such as epsilon_greedy, or remove it",
            )

    def _cut(self, questions: Sequence[Question]) -> list[int]:
        """Tokens of each passage. Those that were not cut yet are cut now, if that is quick.

        Raises:
            StateRefused: none was cut yet, and they are many or the tokenizer is one on disk.
            HunchError: the tokenizer cannot be used, or a passage does not survive it.
        """
        quick = passages.is_cut_quickly(self.source, len(questions))
        try:
            counts = self.token_counts(questions)
        except StateRefused:
            if not quick:
                raise
            counts = []
        if quick and not all(counts or [0]):
            passages.cut_texts(self.source, passages.texts_of(questions))
            counts = self.token_counts(questions)
        return counts

    def _problems_of_passages(self, at: FieldPath) -> Iterable[tuple[FieldPath, str]]:
        """What is quick is cut and read here, so that no command is needed before a study."""
        bank, options = self.study.bank, self.options
        prepare = f"`hunch prepare_passages --bank {bank.name}@{bank.version} --tokenizer {self.source}`"
        questions = filtered_questions(self.study)
        texts = passages.texts_of(questions)
        try:
            counts = self._cut(questions)
        except StateRefused:
            yield at, f"no passage was cut by {self.source} yet: {prepare}"
            return
        except HunchError as exc:
            yield at, exc.message.removeprefix("tokenizer: ")
            return
        if unknown := [passage.external_id for passage, n in zip(questions, counts, strict=True) if not n]:
            yield at, f"{len(unknown)} passages were not cut by {self.source} yet ({_some(unknown)}): {prepare}"
            return
        least = options.run + MORE_THAN_RUN
        if short := [passage.external_id for passage, n in zip(questions, counts, strict=True) if n < least]:
            yield (
                ("instrument", "options", "run"),
                (
                    f"{len(short)} passages have fewer than {least} tokens, a run and {MORE_THAN_RUN} more "
                    f"({_some(short)}): leave them out of the bank, or lower run"
                ),
            )
        for index, model in enumerate(self.study.config.models):
            source = passages.source_of(model)
            try:
                passages.check_lists_text(source)
            except HunchError as exc:
                yield ("models", index, "source"), exc.message.removeprefix("models: ")
                continue
            unread = passages.unread_by(source, self.tokenizer, texts)
            if unread and passages.is_read_quickly(model.source, len(unread)):
                try:
                    passages.expect(source, self.tokenizer, unread)
                except HunchError as exc:
                    yield ("models", index, "source"), exc.message.removeprefix("models: ")
            elif unread:
                yield (
                    ("models", index, "name"),
                    f"{model.name} has not read {len(unread)} passages yet "
                    f"({_some([passage.id for passage in unread])}): "
                    f"{prepare} --model {model.name}={model.source}",
                )

        yield from self._problems_of_play()

    def _problems_of_play(self) -> Iterable[tuple[FieldPath, str]]:
        options = self.options
        if options.until_right and options.unit != "character":
            yield (
                ("instrument", "options", "until_right"),
                'a token has too many others to guess until it is right: add unit = "character", without tokenizer',
            )
        if options.beside_models and not options.reveal:
            yield (
                ("instrument", "options", "beside_models"),
                "says how many guesses were right, which reveal = false keeps from people: remove one of the two",
            )
        if options.beside_models and not self.study.config.models:
            yield (
                ("instrument", "options", "beside_models"),
                "there is no model to stand beside people: name one in [[models]]",
            )
        if options.pays != "right" and not self.study.config.panel.bonus_per_point:
            yield (
                ("panel", "bonus_per_point"),
                f'pays = "{options.pays}" pays a point of it: say how many cents a point is worth',
            )

    def remarks(self) -> Sequence[Note]:
        config, notes = self.study.config, []
        if not config.models:
            notes.append(Note("models", "there is no language model to compare people with; name some as [[models]]"))
        if config.panel.bonus_per_point:
            tokens = config.sitting.items * self.options.run
            at_most = money(tokens * config.panel.bonus_per_point, config.panel.currency)
            point = {"right": "right guess", "guess": "guess", "minute": "minute of guessing"}[self.options.pays]
            notes.append(
                Note(
                    "panel.bonus_per_point",
                    f"is paid for each {point}: {at_most} at most to a person, for {integer(tokens)} "
                    f"{self.options.unit}s, held under spending_cap when it is paid",
                )
            )
        return notes

    # Items

    def usable(self, questions: list[Question]) -> list[Question]:
        least = self.options.run + MORE_THAN_RUN
        try:
            counts = self.token_counts(questions)
        except StateRefused:
            return []
        return [question for question, n in zip(questions, counts, strict=True) if n >= least]

    def universe_fingerprint(self) -> Any:
        options = self.options
        return {"tokenizer": self.tokenizer.sha256, "run": options.run, "start": options.start}

    def universe(self, questions: Sequence[Question]) -> np.ndarray:
        run = self.options.run
        rows: list[tuple[int, int]] = []
        for index, tokens in enumerate(self.token_counts(questions)):
            starts = [0] if self.options.start == "beginning" else range(0, tokens - run + 1, run)
            rows += [(index, start) for start in starts if tokens >= run + MORE_THAN_RUN]
        return np.array(rows, dtype=ROW)

    def item_key(self, row: np.void, questions: Sequence[Question]) -> str:
        return f"{questions[row['question']].position}@{int(row['start'])}"

    def create_typed_items(self, *, items: Sequence[Item], rows: np.ndarray, questions: Sequence[Question]) -> None:
        wanted = [questions[index] for index in sorted({int(row["question"]) for row in rows})]
        cut = passages.tokens_of(self.tokenizer, passages.texts_of(wanted))
        words = passages.vocabulary_of(self.tokenizer)
        made = []
        for item, row in zip(items, rows, strict=True):
            question, start = questions[row["question"]], int(row["start"])
            tokens = cut[text_hash(question.plain)][start : start + self.options.run]
            texts = [question.plain[token["start"] : token["end"]] for token in tokens]
            asked = [words.id_of(text) == token["id"] for text, token in zip(texts, tokens, strict=True)]
            facts = [
                [int(token["id"]), int(token["start"]), int(token["end"]), int(typed)]
                for token, typed in zip(tokens, asked, strict=True)
            ]
            made.append(
                TokenRun(
                    item=item,
                    question=question,
                    tokenizer=self.tokenizer,
                    start=start,
                    length=len(facts),
                    tokens=facts,
                )
            )
        TokenRun.objects.bulk_create(made, batch_size=500)

    # Screens and responses

    def next_screen(self, assignment: Assignment) -> Screen | None:
        options = self.options_for(assignment)
        return screens.next_screen(
            assignment,
            reveal=options.reveal,
            until_right=options.until_right,
            may_stop=options.play_on and ending.has_more(assignment),
            standing=(lambda: ending.standing_in_words(self, assignment)) if options.beside_models else None,
        )

    def save(self, *, response: Response, cleaned: Mapping[str, Any]) -> None:
        if response.screen == screens.ENDING:
            return  # Its one choice is whether to play on, which the core acts on.
        run = response.assignment.slot.item.token_run
        until_right = self.options_for(response.assignment).until_right
        play = screens.Play.of(screens.attempts_of(response.assignment), until_right=until_right)
        place = run.asked_places[len(play.done)]
        true_token = run.run_tokens[place]
        text, token, truth = cleaned["text"], cleaned["token"], run.text_of(true_token)
        if until_right and text.casefold() == truth.casefold():
            text, token = truth, true_token.id  # Capital and small letters are the same there.
        TokenGuess.objects.create(
            response=response,
            place=place,
            position=run.start + place,
            attempt=len(play.tried) + 1,
            text=text,
            token=token,
            true_token=true_token.id,
            right=token == true_token.id,
        )

    def score(self, response: Response) -> Points | None:
        """What the option `pays` says of a guess. All guesses of one token together are paid a minute at most, and else
        only the first one is paid: nobody earns by being wrong."""
        if not hasattr(response, "token_guess"):
            return None
        pays = self.options_for(response.assignment).pays
        if pays == "minute":
            guess = response.token_guess
            earlier = sum(
                attempt.response.server_ms
                for attempt in screens.attempts_of(response.assignment)
                if attempt.place == guess.place and attempt.attempt < guess.attempt
            )
            earned = _paid_minutes(earlier + response.server_ms) - _paid_minutes(earlier)
            return Points(earned, "minute of guessing", "1")
        is_first = response.token_guess.attempt == 1
        if pays == "guess":
            return Points(Decimal(int(is_first)), "guess", "1")
        return Points(Decimal(int(response.token_guess.right and is_first)), "right guess", "1")

    def answer_in_words(self, response: Response) -> str:
        if not hasattr(response, "token_guess"):
            return ""
        guess = response.token_guess
        return f"{shown_token(guess.text)} ({'right' if guess.right else 'not right'})"

    def answer_values(self, assignment: Assignment) -> list[Any]:
        return [[guess.position, guess.text, guess.token, guess.right] for guess in screens.attempts_of(assignment)]

    def counts_unfinished(self, assignment: Assignment) -> bool:
        """Anyone who left on the last page has made every guess of the run."""
        until_right = self.options_for(assignment).until_right
        play = screens.Play.of(screens.attempts_of(assignment), until_right=until_right)
        return len(play.done) >= len(assignment.slot.item.token_run.asked_places)

    # Export

    def simulated_person(self, *, seed: int, null: bool = False) -> people.NextTokenPerson:
        return people.NextTokenPerson(study=self.study, tokenizer=self.source, seed=seed, null=null)


def _paid_minutes(milliseconds: int) -> Decimal:
    """Of the time that guesses of one token took together."""
    return (Decimal(min(milliseconds, LONGEST_PAID_MS)) / 60_000).quantize(Decimal("0.0001"))


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_IDS_IN_MESSAGE} more" if len(names) > MAX_IDS_IN_MESSAGE else ""
    return ", ".join(names[:MAX_IDS_IN_MESSAGE]) + more
