"""The columns of runs, and the file with one row per guess."""

from collections.abc import Iterable, Iterator
from types import MappingProxyType
from typing import Any

from survey.contracts.exports import AnswerColumn, Answered, AnswerExport, CountedAnswers
from survey.contracts.tables import ExtraFile, ValueColumn

from .models import RunToken, TokenGuess, TokenRun
from .screens import attempts_of

RIGHT = Answered("token_guess__right", every=True)
ATTEMPT = Answered("token_guess__attempt", every=True)
SLOT = "response.assignment.slot"
RUN = f"{SLOT}.item.token_run"
# Of each guess.
GUESSES = (
    ValueColumn(
        "person", "text", "The respondent's pseudonym.", value="response.assignment.sitting.respondent.pseudonym"
    ),
    ValueColumn("stage", "number", "The stage, from 1.", whole=True, value=f"{SLOT}.stage.index"),
    ValueColumn("role", "text", "What the slot was for: sampled, holdout, control or repeat.", value=f"{SLOT}.role"),
    ValueColumn("passage", "text", "Id of the passage.", value=f"{RUN}.question.external_id"),
    ValueColumn("position", "number", "Of the token in the passage, from 0.", whole=True),
    ValueColumn(
        "start",
        "number",
        "Of the token in the passage's text, in characters from 0.",
        whole=True,
        value=lambda guess: _true_token(guess).start,
    ),
    ValueColumn("place", "number", "Of the token in the run, from 1.", whole=True, value=lambda guess: guess.place + 1),
    ValueColumn("attempt", "number", "Which guess of this token it is, from 1.", whole=True),
    ValueColumn("guess", "text", "What was guessed, with its blanks.", written=True, value="text"),
    ValueColumn(
        "truth", "text", "The passage's own token.", value=lambda guess: _run_of(guess).text_of(_true_token(guess))
    ),
    ValueColumn("guess_token", "number", "Id of the guess.", whole=True, value="token"),
    ValueColumn("true_token", "number", "Id of the passage's own token.", whole=True),
    ValueColumn("right", "0 or 1", "1: both ids are the same.", value=lambda guess: int(guess.right)),
    ValueColumn("asked", "0 or 1", "1: it was asked for, which holds for every row.", value=lambda _guess: 1),
    ValueColumn(
        "milliseconds",
        "milliseconds",
        "From the answer before to this one, by the server's clock.",
        value="response.server_ms",
    ),
    ValueColumn(
        "probability",
        "0 to 1",
        "The chance with which the run was drawn, both phases together.",
        value=f"{SLOT}.drawn_probability",
    ),
    ValueColumn("tokenizer_sha256", "text", "Of the tokenizer.", value=f"{RUN}.tokenizer.sha256"),
)


class NextTokenExport(AnswerExport):
    first_look = MappingProxyType({"tokens": "tokens", "guesses": "guesses", "right": "right"})
    columns = (
        AnswerColumn("passage_id", "text", "Id of the passage.", of="question__external_id"),
        AnswerColumn("source", "text", "Source of the passage.", of="question__task__name"),
        AnswerColumn("start", "number", "Tokens of the passage before the run.", whole=True, of="start"),
        AnswerColumn("tokens", "number", "Tokens of the run, with those that are given.", whole=True, of="length"),
        AnswerColumn(
            "given",
            "number",
            "Tokens that nobody can type, which are shown without being asked for.",
            whole=True,
            of="tokens",
            value=lambda tokens: sum(not asked for _id, _start, _end, asked in tokens),
        ),
        AnswerColumn(
            "guesses",
            "number",
            "First guesses of a token that were made; later ones of the same token are in guesses.csv alone.",
            whole=True,
            of=ATTEMPT,
            value=lambda attempts: attempts.count(1),
        ),
        AnswerColumn(
            "right",
            "number",
            "Right ones among them.",
            whole=True,
            of=(RIGHT, ATTEMPT),
            value=lambda rights, attempts: sum(
                right and attempt == 1 for right, attempt in zip(rights, attempts, strict=True)
            ),
        ),
    )
    codebook_note = "Positions and places count tokens of the study's tokenizer; guesses.csv has a row a guess."

    def extra_files(self, answers: CountedAnswers) -> Iterable[ExtraFile]:
        return (ExtraFile.of("guesses.csv", GUESSES, _guesses(answers)),)


def _run_of(guess: TokenGuess) -> TokenRun:
    run: TokenRun = guess.response.assignment.slot.item.token_run
    return run


def _true_token(guess: TokenGuess) -> RunToken:
    return _run_of(guess).run_tokens[guess.place]


def _guesses(answers: CountedAnswers) -> Iterator[Any]:
    for answer in answers:
        yield from attempts_of(answer)
