"""Our words: what each means, once. docs/glossary.md is written from them (`python -m tests.renew glossary`), and pages
show them at the heads of their tables. Standard library alone.

The heads of reports' tables have their meaning in their columns; a word stands here if pages use it elsewhere, or if it
is of the whole project.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Word:
    """meaning: a sentence, or a few words. elsewhere: what the field calls it."""

    meaning: str
    elsewhere: str = ""


# What people set up, in the order in which they meet it.
STUDY = {
    "question": Word("One benchmark question.", "item"),
    "task": Word("The subject that a question belongs to."),
    "bank": Word("A named set of questions with versions.", "item pool"),
    "study": Word("What a researcher sets up, with all its stages.", "survey, experiment"),
    "study file": Word("The TOML file that says everything about a study; the builder writes it.", "protocol"),
    "member": Word("Who may work on a study ([rights.md](rights.md)).", "collaborator"),
    "role of a member": Word("What a member may do: owner, editor, analyst, viewer.", "access level"),
    "stage": Word("One round of collection, whose answers decide what the next one asks.", "round, batch"),
    "wave": Word("Repeated measurement of the same people; 1 by default. A person sits once in each.", "wave"),
    "pilot": Word("A stage that tries minutes and instructions. Its answers count in no figure.", "pilot"),
    "instrument": Word("One kind of item with its pages, answers, label and reports.", "task type, trial maker"),
    "test copy": Word(
        "A study's copy for previews and simulated people; nothing in it counts ([trying-out.md](trying-out.md)).",
        "sandbox, demo session",
    ),
    "panel": Word("Where people come from and are paid, such as Prolific.", "recruiter"),
    "posting": Word("A study as it stands at a panel.", "HIT, listing"),
    "submission": Word("What a panel says of one person's participation.", "assignment"),
    "condition": Word("The level of a factor, randomised for a sitting or an item.", "experimental condition"),
    "quota": Word("How many people with certain answers a stage takes; its parts are cells.", "quota"),
}
# How a stage asks.
DESIGN = {
    "item": Word("What is shown and asked about: a pair of questions, a sentence, two replies ...", "stimulus, trial"),
    "candidates": Word("The items that a stage may draw from; all of them, or a uniform pool.", "sampling frame"),
    "stratum": Word("A part of the candidates, cut by score.", "stratum"),
    "top": Word("The stratum with the highest scores; the others are the rest.", "stratum"),
    "score": Word("What the predictor expects of an item, such as the chance that a belief changes."),
    "design": Word("How a stage draws: uniformly, mostly from the top, in proportion to scores.", "sampling design"),
    "inclusion probability": Word(
        "The exact chance that an item is in the plan; stored with every answer.", "first-order inclusion probability"
    ),
    "weight": Word("One over the inclusion probability, so that rarely drawn items stand for more.", "design weight"),
    "plan": Word("All slots of a stage, drawn before it opens.", "design"),
    "slot": Word("One planned showing of one item.", "trial"),
    "drawn": Word("Slots that the stage drew, by stratum."),
    "sampled": Word("Slots that the design draws.", "adaptive sample"),
    "holdout": Word("Slots drawn uniformly, and never learnt from, to judge predictors.", "holdout"),
    "control": Word("Slots that measure noise, such as an item without evidence.", "control trial"),
    "repeat": Word("A slot whose item the same person has answered before.", "test-retest trial"),
    "replicate": Word("One of several slots of the same item in a stage.", "replication"),
    "booklet": Word("The slots of one person's sitting, in order.", "block, form (matrix sampling)"),
    "make-up booklet": Word("A booklet of slots that others left without an answer."),
    "trade-off": Word("How much a stage estimates exactly rather than finds many changes.", "exploration"),
    "epsilon": Word("The share of slots that an epsilon-greedy stage draws uniformly.", "epsilon-greedy bandit"),
}
# What people do.
PEOPLE = {
    "respondent": Word("A person in a study, by pseudonym.", "participant"),
    "sitting": Word("A person's one pass through a stage.", "session"),
    "block": Word("A part of a sitting in the study file, such as the consent.", "block"),
    "step": Word("The page where a sitting is; of work: one thing that workers do between two stages.", "page"),
    "assignment": Word("A slot given to a sitting.", "trial"),
    "response": Word("One stored reaction to one page.", "answer"),
    "prior": Word("The stated chance of a right answer before the evidence, in percent.", "prior belief"),
    "posterior": Word("The same after the evidence.", "posterior belief"),
    "in time": Word("Slots with an answer in time, of all that are planned."),
    "counted": Word(
        "Answers that were complete in time, from sittings that no rule excludes. Estimates use these alone.",
        "valid response",
    ),
    "late": Word("An answer that came after the sitting's time was over. It counts in no figure."),
    "excluded": Word("Sittings whose answers count in nothing; it is final when the stage is frozen.", "exclusion"),
    "flag": Word("A mark on a sitting by a rule of the study file, or on a question by a person.", "quality flag"),
    "inside": Word("People who have begun and neither finished nor left."),
    "free places": Word("Booklets that nobody has taken."),
    "left": Word("People who began and left before their last item.", "dropout, attrition"),
    "found it full": Word("People whose cell was full when they came, or who came back too late.", "over quota"),
    "left out": Word("Of a figure or a list: not part of it, and named with the reason."),
    "withdrawal": Word("That a person took back their answers, which are then deleted.", "withdrawal of consent"),
    "reward": Word("What a panel pays a person for taking part.", "payment"),
    "bonus": Word("What is paid on top of the reward, such as for points.", "bonus payment"),
}
# What follows from answers.
RESULTS = {
    "frozen": Word("Of a stage: its answers do not change any more.", "data freeze"),
    "snapshot": Word("The hashes of a frozen stage's answers.", "data freeze"),
    "manifest": Word("Everything that a stage's plan follows from, by hashes.", "provenance"),
    "naive": Word("The plain mean of the answers, as if every item had been drawn equally often.", "unweighted mean"),
    "estimate": Word("The weighted mean, which holds for all candidates whatever the design was.", "weighted mean"),
    "interval": Word("Values that fit the answers: 95 of 100 such intervals hold the truth.", "confidence interval"),
    "standard error": Word("How far an estimate lies from the truth by chance, typically.", "SE"),
    "degrees of freedom": Word("Of an interval: few mean that few people say something of the chance.", "df"),
    "effective answers": Word("How many equally weighted answers would be as precise.", "effective sample size"),
    "such questions": Word(
        "The interval if the bank's questions are a random draw from questions like them.", "random items"
    ),
    "superpopulation": Word("Questions like the bank's, of which it is a random draw.", "superpopulation"),
    "predictor": Word("A model that is trained on the answers and scores items.", "model"),
    "predictor run": Word("One training of a predictor after one stage.", "fit"),
    "member of a predictor": Word("One of several models that are trained alike and averaged.", "ensemble member"),
    "held out": Word("Never used to train: answers on the pairs of holdouts and test sets.", "held-out data"),
    "test stage": Word("A stage that asks many people the same items, with the design `test_set`.", "test set"),
    "majority label": Word(
        "The label of more than half of an item's counted answers in a test stage.", "majority vote"
    ),
    "AUC": Word(
        "The chance that a predictor ranks a changed belief above an unchanged one; 0.5 is a coin toss.", "AUC"
    ),
    "NLL": Word("The mean of minus the log of the chance given to what happened; lower is better.", "log loss"),
    "log score": Word("The same, for people, models and judges on one scale; in bits if divided by ln 2.", "log loss"),
    "perplexity": Word("The exponential of the log score: among how many words a model wavers.", "perplexity"),
    "lift": Word("How many more changes a stage found than a uniform draw would have.", "lift"),
    "look": Word("An estimate of a running stage, with an interval that holds at any time.", "interim analysis"),
    "stopping rule": Word("What ends a stage by its looks.", "optional stopping"),
    "policy": Word("A way to draw a stage: a design with a predictor.", "policy"),
    "event": Word("What people and models both speak about ([people-and-models.md](people-and-models.md))."),
    "reader": Word("A model, judge or predictor that says something of the same items as people."),
    "gap": Word("People's mean of an item less what a model, judge or predictor says.", "calibration gap"),
    "reading": Word("A text as a language model reads it: the log-probability of each token.", "surprisals"),
    "report": Word("A named set of tables, figures and files about a study.", "analysis"),
    "data package": Word("The data with its description, to be kept or published.", "replication archive"),
}
# What keeps it running.
RUNNING = {
    "alert": Word("Something that is wrong, sent to people until it is over.", "incident"),
    "receiver": Word("A webhook or an e-mail address that alerts are sent to.", "notification channel"),
    "job": Word("What somebody asked for and a worker makes: an export, a package.", "background task"),
    "worker": Word("A process that trains, scores, plans and makes files.", "background worker"),
    "tries left": Word("How often a step of work is tried again by itself before a person must look."),
    "token": Word("The secret of a program that uses the API; of a text: what a model reads at once.", "API key"),
    "trouble": Word("One thing that the watch has found wrong in one look. It opens an alert, or keeps one open."),
    "watch": Word("What looks every minute whether all works.", "monitor, watchdog"),
    "backup": Word("One encrypted file with rows, files and keys; `restore` fills an empty database from it.", "dump"),
    "erasure": Word("That something of a person was deleted, as a keyed hash in a list apart from the database."),
    "audit": Word("Entries of who did what.", "audit trail"),
    "seal": Word(
        "The hash that links an entry of the audit to the one before; the newest one is the head.", "hash chain"
    ),
}
PARTS: Mapping[str, Mapping[str, Word]] = {
    "What you set up": STUDY,
    "How a stage asks": DESIGN,
    "What people do": PEOPLE,
    "What follows from answers": RESULTS,
    "What keeps it running": RUNNING,
}
_BY_NAME = {name.lower(): word for part in PARTS.values() for name, word in part.items()}


def word_of(name: str) -> Word | None:
    """The word as a page writes it: in capitals or not, in the plural, with an interval in brackets behind it."""
    plain = name.partition(" [")[0].strip().lower()
    singular = [plain, plain.removesuffix("s"), plain.removesuffix("ies") + "y"]
    return next((_BY_NAME[form] for form in singular if form in _BY_NAME), None)
