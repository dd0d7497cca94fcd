"""What `hunch demo --instrument next_token` runs: its bank, its tokenizer and models, and what it must find."""

import csv
from pathlib import Path

import numpy as np

from predictors.readings import Source, Text
from survey.contracts.instruments import DemonstrationVerdict
from survey.figures.words import integer, number, percent
from survey.models import Bank, NgramModel, Study
from survey.services.answers.counting import study_answers
from survey.services.banks import ngrams, passages, text_files
from survey.services.banks.importing import load_starter_bank
from survey.services.results import reports

from .people import chance_of
from .screens import guesses_of

# The correlation of what was found with what the simulated people were made of: at least, and at most under the null.
LEAST, NULL = 0.5, 0.3
TEXT_COLUMNS = ("text", "response")
MODELS = (("next-token-unigram", 1), ("next-token-trigram", 3))


def load_bank() -> Bank:
    """The passages that come with Hunch, a tokenizer and two n-gram models of other texts, and what these expect; made
    unless they are stored."""
    bank = passages.load_starter_passages()
    other = [*text_files.texts_of_bank(load_starter_bank()), *_texts_of_instruments()]
    questions = list(bank.questions.filter(flag="").order_by("position"))
    passages.load_starter_tokenizer([*passages.texts_of(questions), *other])
    cut_by = passages.open_tokenizer(passages.STARTER_TOKENIZER)
    for name, order in MODELS:
        if not NgramModel.objects.filter(name=name).exists():
            ngrams.train(other, name=name, order=order, unit="token", smoothing="kneser_ney", cut_by=cut_by)  # type: ignore[arg-type]
    models = [Source("ngram", name, name.rpartition("-")[2]) for name, _order in MODELS]
    passages.prepare(questions, tokenizer=passages.STARTER_TOKENIZER, models=models)
    return bank


def _texts_of_instruments() -> list[Text]:
    """Every text that comes with the instruments: prose, of which the starter questions have little."""
    texts = []
    for path in sorted(Path(__file__).parents[1].glob("*/*.csv")):
        with path.open(newline="", encoding="utf-8") as file:
            for number, row in enumerate(csv.DictReader(file)):
                texts += [Text(f"{path.name}:{number}", row[name]) for name in TEXT_COLUMNS if row.get(name)]
    return texts


def verdict(study: Study, null: bool) -> DemonstrationVerdict:
    """Whether people's share right by position goes with the chances by which the simulated people guessed."""
    rights: dict[tuple[int, int], list[bool]] = {}
    truth: dict[tuple[int, int], float] = {}
    for answer in study_answers(study):
        run = answer.slot.item.token_run
        for guess in guesses_of(answer):
            token = run.run_tokens[guess.place]
            key = (run.question_id, guess.position)
            rights.setdefault(key, []).append(guess.right)
            truth[key] = chance_of(run.question.plain[: token.start], run.text_of(token))
    answered = [key for key, right in rights.items() if len(right) >= 3]
    shares = [float(np.mean(rights[key])) for key in answered]
    r = float(np.corrcoef(shares, [truth[key] for key in answered])[0, 1]) if len(answered) > 2 else 0.0
    guesses = sum(len(right) for right in rights.values())
    share = sum(sum(right) for right in rights.values()) / guesses if guesses else 0.0
    figures = reports.make(study, "next_token", {}).data["figures"]
    named = [model.name for model in study.config.models]
    beside = {row["who"]: row["share"] for row in figures if row["who"] in named and row["share"] is not None}
    models = ", ".join(f"{name} {percent(value)}" for name, value in beside.items())
    passed = abs(r) <= NULL if null else r >= LEAST
    wanted = f"{NULL} at most is expected, since they were made alike" if null else f"{LEAST} is needed"
    sentence = (
        f"{percent(share)} of {integer(guesses)} guesses are right, of models at the same positions {models}; "
        f"the share right at {len(answered)} positions goes with "
        f"what simulated people were made of: r = {number(r)}, where {wanted}"
    )
    return DemonstrationVerdict(
        passed, sentence, {"r": r, "positions": len(answered), "guesses": guesses, "share": share, "models": beside}
    )
