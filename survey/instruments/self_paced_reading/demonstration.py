"""What `hunch demo --instrument self_paced_reading` runs: its bank, its models, and what it must find."""

from functools import partial
from pathlib import Path

from predictors.readings import Source, Text
from predictors.readings.sources import NGRAM
from survey.contracts.instruments import DemonstrationVerdict, verdict_word
from survey.figures import Figure
from survey.figures.words import integer, number, short
from survey.models import Bank, Study
from survey.services.banks import importing, readings, texts
from survey.services.banks.text_files import train_on_starter_bank
from survey.services.results import reports

from .people import SLOPE, SPILL

BANK = "reading-passages"
FILE = Path(__file__).with_name("passages.csv")
MODELS = (("reading-unigram", 1), ("reading-bigram", 2))
READER = "bigram"  # Simulated people read by the first model of the study file.
FAR = 3.5
"""Standard errors that a right slope may lie from the truth: beyond it about once in 2,000 times."""


def load_bank() -> Bank:
    """The passages that come with Hunch, two n-gram models of other texts, and what one of them gives to the passages;
    made unless they are stored."""
    bank = importing.load_bank(FILE, partial(texts.read, format="passages"), name=BANK)
    train_on_starter_bank(MODELS)
    passages = [Text(question.external_id, question.plain) for question in bank.questions.order_by("position")]
    for name, _order in MODELS:
        readings.read(Source(NGRAM, name, name.removeprefix("reading-")), passages)
    return bank


def verdict(study: Study, null: bool) -> DemonstrationVerdict:
    """Whether the slopes of surprisal lie near those by which the simulated people read."""
    report = reports.make(study, "reading", {}).data
    own = report["models"][READER]
    wanted = [0.0, 0.0, 0.0] if null else [SLOPE, SPILL, 0.0]
    distances, missed = [], 0
    for slope, true in zip(own["slopes"], wanted, strict=True):
        low, high = slope["interval"] or (slope["value"], slope["value"])
        # Half of an interval is two standard errors or a little more.
        distances.append(2 * abs(slope["value"] - true) / max((high - low) / 2, 1e-9))
        missed += not low <= true <= high
    near = max(distances) < FAR
    slopes = ", ".join(Figure.between(slope["value"], slope["interval"]).in_words(1) for slope in own["slopes"])
    sentence = (
        f"{verdict_word(near=near, held=not missed)}: a nat of surprisal costs {slopes} ms at this word and the two "
        f"before it, where the simulated people were made with {', '.join(map(short, wanted))}"
        f"{f' ({missed} of {len(wanted)} intervals miss it: run it with another --seed)' if missed else ''}; surprisal "
        f"adds {number(own['delta_log_likelihood'], 0)} nats to the log-likelihood of {integer(own['rows'])} times; "
        f"{integer(report['times'] - report['counted'])} of {integer(report['times'])} times were left out by the rules"
    )
    return DemonstrationVerdict(
        near,
        sentence,
        {"slopes": [slope["value"] for slope in own["slopes"]], "farthest": max(distances), "missed": missed},
    )
