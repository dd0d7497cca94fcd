"""What `hunch demo --instrument cloze` runs: its bank, its models, and what it must find."""

from functools import partial
from pathlib import Path

import numpy as np
from django.db.models import Count

from survey.contracts.instruments import DemonstrationVerdict
from survey.figures.words import number
from survey.models import Bank, Study
from survey.services.answers.counting import labelled_answers
from survey.services.banks import importing, texts
from survey.services.banks.text_files import train_on_starter_bank

from .analysis.answers import surprisal
from .analysis.normalising import stripped
from .model_words import read_models
from .norms import norms_of
from .people import chance_of

BANK = "cloze-sentences"
FILE = Path(__file__).with_name("sentences.csv")
# The correlation of what was found with what the simulated people were made of: at least, and at most under the null.
LEAST, NULL = 0.5, 0.3
MODELS = (("cloze-unigram", 1), ("cloze-bigram", 2))


def load_bank() -> Bank:
    """The sentences that come with Hunch, and two n-gram models of other texts; made unless they are stored."""
    bank = importing.load_bank(FILE, partial(texts.read, format="sentences"), name=BANK)
    train_on_starter_bank(MODELS)
    return bank


def verdict(study: Study, null: bool) -> DemonstrationVerdict:
    """Whether people's surprisal goes with the chances by which the simulated people wrote."""
    read_models(study, everything=False)
    norms = [norm for norm in norms_of(labelled_answers(study)) if norm.n >= 5]
    human = [float(surprisal(norm.k_lenient, norm.n, len(norm.lenient), 1.0)) for norm in norms]
    truth = [-np.log(chance_of(norm.asked.fragment, stripped(norm.asked.target))) for norm in norms]
    correlation = float(np.corrcoef(human, truth)[0, 1]) if len(norms) > 2 else 0.0
    answers = sum(norm.n for norm in norms)
    drawn_again = study.items.annotate(stages=Count("slots__stage", distinct=True)).filter(stages__gt=1).count()
    passed = abs(correlation) <= NULL if null else correlation >= LEAST
    wanted = f"{NULL} at most is expected, since they were made alike" if null else f"{LEAST} is needed"
    sentence = (
        f"people's surprisal at {len(norms)} positions goes with what simulated people were made of: r = "
        f"{number(correlation)}, where {wanted}; {drawn_again} positions were drawn in both stages and are "
        "pooled by count"
    )
    return DemonstrationVerdict(passed, sentence, {"r": correlation, "positions": len(norms), "answers": answers})
