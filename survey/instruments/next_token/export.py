"""The columns of runs, and the file with one row per guess."""

from collections.abc import Iterable, Iterator, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from survey.contracts.exports import AnswerExport
from survey.contracts.tables import Column, ExtraFile

from .screens import guesses_of

if TYPE_CHECKING:
    from survey.models import Assignment

COLUMNS = (
    Column("passage_id", "text", "Id of the passage."),
    Column("source", "text", "Source of the passage."),
    Column("start", "number", "Tokens of the passage before the run.", whole=True),
    Column("tokens", "number", "Tokens of the run, with those that are given.", whole=True),
    Column("given", "number", "Tokens that nobody can type, which are shown without being asked for.", whole=True),
    Column("guesses", "number", "Guesses that were made.", whole=True),
    Column("right", "number", "Right ones among them.", whole=True),
)
GUESSES = (
    Column("person", "text", "The respondent's pseudonym."),
    Column("stage", "number", "The stage, from 1.", whole=True),
    Column("role", "text", "What the slot was for: sampled, holdout, control or repeat."),
    Column("passage", "text", "Id of the passage."),
    Column("position", "number", "Of the token in the passage, from 0.", whole=True),
    Column("place", "number", "Of the token in the run, from 1.", whole=True),
    Column("guess", "text", "What was guessed, with its blanks.", written=True),
    Column("truth", "text", "The passage's own token."),
    Column("guess_token", "number", "Id of the guess.", whole=True),
    Column("true_token", "number", "Id of the passage's own token.", whole=True),
    Column("right", "0 or 1", "1: both ids are the same."),
    Column("asked", "0 or 1", "1: it was asked for, which holds for every row."),
    Column("milliseconds", "milliseconds", "From the answer before to this one, by the server's clock."),
    Column("probability", "0 to 1", "The chance with which the run was drawn, both phases together."),
    Column("tokenizer_sha256", "text", "Of the tokenizer."),
)


def values(assignment: "Assignment") -> list[Any]:
    run = assignment.slot.item.token_run
    made = guesses_of(assignment)
    asked = len(run.asked_places)
    facts = [run.question.external_id, run.question.task.name, run.start, run.length, run.length - asked]
    return [*facts, *((len(made), sum(guess.right for guess in made)) if made else (None, None))]


def guesses_file(assignments: "Iterable[Assignment]") -> ExtraFile:
    return ExtraFile("guesses.csv", GUESSES, _guesses(assignments))


def _guesses(assignments: "Iterable[Assignment]") -> Iterator[Sequence[Any]]:
    for assignment in assignments:
        slot = assignment.slot
        run = slot.item.token_run
        tokens = run.run_tokens
        drawn = slot.inclusion_probability is not None and slot.pool_probability is not None
        for response in assignment.responses.all():
            guess = getattr(response, "token_guess", None)
            if guess is None:
                continue
            yield (
                assignment.sitting.respondent.pseudonym,
                slot.stage.index,
                slot.role,
                run.question.external_id,
                guess.position,
                guess.place + 1,
                guess.text,
                run.text_of(tokens[guess.place]),
                guess.token,
                guess.true_token,
                int(guess.right),
                1,
                response.server_ms,
                1 / slot.design_weight if drawn else None,
                run.tokenizer.sha256,
            )


class NextTokenExport(AnswerExport):
    columns = COLUMNS
    first_look = MappingProxyType({"tokens": "tokens", "guesses": "guesses", "right": "right"})
    codebook_note = "Positions and places count tokens of the study's tokenizer; guesses.csv has a row a guess."

    def values(self, assignment: "Assignment") -> list[Any]:
        return values(assignment)

    def extra_files(self, assignments: "Iterable[Assignment]") -> Iterable[ExtraFile]:
        return (guesses_file(assignments),)
