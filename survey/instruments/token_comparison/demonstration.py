"""What `hunch demo --instrument token_comparison` runs: its bank, its models, and what it must find."""

import numpy as np

from predictors.readings.tokenizing import PairTokenizer
from survey.contracts import instruments
from survey.contracts.instruments import DemonstrationVerdict
from survey.figures.words import number
from survey.models import Bank, NgramModel, Study, TokenizerRecord
from survey.services.answers.counting import study_answers
from survey.services.banks import ngrams, passages, text_files
from survey.services.banks.importing import load_starter_bank

from .analysis.checking import CheckModel, check
from .analysis.loss import estimate
from .people import log_held
from .study_table import StudyTable

BANK = passages.STARTER_PASSAGES
TOKENIZER = "starter-questions"
# The generator, and models whose loss is checked: order and smoothing of each.
MODELS = (("tokens-trigram", 3), ("tokens-bigram", 2), ("tokens-unigram", 1))
NEAR = 0.15  # nats next to the noise within contexts


def load_bank() -> Bank:
    """The passages that come with Hunch, a tokenizer and three n-gram models of other texts; made unless stored."""
    bank = passages.load_starter_passages()
    if not all(NgramModel.objects.filter(name=name).exists() for name, _order in MODELS):
        other = text_files.texts_of_bank(load_starter_bank())
        # Of their own texts alone: the generator must have seen every token, or it would give some no chance.
        if not TokenizerRecord.objects.filter(source=f"pairs:{TOKENIZER}").exists():
            passages.train_tokenizer(other, name=TOKENIZER, size=passages.STARTER_SIZE)
        cut_by = passages.open_tokenizer(f"pairs:{TOKENIZER}")
        if not isinstance(cut_by, PairTokenizer):
            raise TypeError(f"pairs:{TOKENIZER} is a byte-pair tokenizer")
        for name, order in MODELS:
            if not NgramModel.objects.filter(name=name).exists():
                ngrams.train(other, name=name, order=order, unit="token", smoothing="kneser_ney", cut_by=cut_by)
    return bank


def verdict(study: Study, null: bool) -> DemonstrationVerdict:
    """Whether people's figure is the one that the same draws give for what the simulated people hold."""
    table = StudyTable(study, instruments.of_study(study).options, study_answers(study))
    study_estimate = estimate(table.comparisons, table.answers())
    held = _held(table, null)
    model_check = check(table.comparisons, table.answers(), held, ratios=instruments.of_study(study).options.ratios)
    if study_estimate is None or model_check.rounded is None:
        return DemonstrationVerdict(False, "no context has an answer", {})
    away = abs(study_estimate.difference - model_check.rounded.difference)
    allowed = NEAR + 4 * study_estimate.error_draws
    sentence = (
        f"L - L_G of people is {number(study_estimate.difference)} nats per token at {study_estimate.contexts} "
        "contexts, and what "
        f"simulated people hold gives {number(model_check.rounded.difference)} on the same draws: "
        f"{number(away)} apart, where "
        f"{number(allowed)} at most is expected"
    )
    figures = {
        "difference": study_estimate.difference,
        "expected": model_check.rounded.difference,
        "contexts": study_estimate.contexts,
        "answers": len(table.people),
    }
    return DemonstrationVerdict(bool(away <= allowed), sentence, figures)


def _held(table: StudyTable, null: bool) -> CheckModel:
    """ln h of the simulated people, but for a constant of each context."""
    c = table.comparisons
    if null:
        return CheckModel("held", np.zeros(c.contexts), np.zeros(len(c)))
    true = [
        log_held(text, context.true_text, context.log_g_true)
        for text, context in zip(table.shown, table.chosen, strict=True)
    ]
    others = [
        log_held(text, other.text, other.log_g)
        for text, context in zip(table.shown, table.chosen, strict=True)
        for other in context.others
    ]
    return CheckModel("held", np.array(true), np.array(others))
