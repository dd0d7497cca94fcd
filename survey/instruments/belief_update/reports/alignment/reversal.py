"""The demonstration of a reversal: a model that is right wherever another one is, and worse where people use it.

Both are made up. One answers every question of two domains and none of the others. The other answers the same ones, and
every second question of each other task: where people have seen it answer one question of a task, they expect it to
answer the next one too, and every second time it does not. What people expect comes from the answers of simulated
people, who know nothing of the two models.
"""

from survey.contracts.instruments import DemonstrationVerdict
from survey.figures import Figure
from survey.figures.words import percent, short
from survey.models import Bank, LanguageModel, ModelAnswer, Study
from survey.services.banks.importing import load_starter_bank
from survey.services.results import reports

from . import aligning

NARROW, BROAD = "demo: sure of two domains", "demo: of those and half of all else"
DOMAINS = ("everyday_life", "mathematics")


def load_bank() -> Bank:
    """The questions that come with Hunch, and what the two models answered; stored unless they are."""
    bank = load_starter_bank()
    for name in (NARROW, BROAD):
        model = LanguageModel.named(name)
        if model.answers.filter(question__bank=bank).exists():
            continue
        seen: dict[str, int] = {}
        answers = []
        for question in bank.questions.select_related("task").order_by("position"):
            place = seen[question.task.name] = seen.get(question.task.name, -1) + 1
            right = question.task.domain in DOMAINS or (name == BROAD and place % 2 == 0)
            answers.append(ModelAnswer(language_model=model, question=question, correct=right))
        ModelAnswer.objects.bulk_create(answers)
    return bank


def verdict(study: Study, null: bool) -> DemonstrationVerdict:
    """Whether the better model is right less often where people use it, with an interval below 0. People use a model
    where a change of their belief after a right answer is more likely than not: by the mixture, above the middle
    between the average belief before and after a right answer."""
    averages = aligning.alignment_of(study, samples=100).averages
    # Rounded, so that the sentence names the threshold that was used.
    threshold = round((averages.prior + averages.posterior_correct) / 2, 4)
    made = reports.make(study, "domination", {"threshold": [short(threshold)]})
    pair = next(row for row in made.data["pairs"] if (row["better"], row["worse"]) == (BROAD, NARROW))
    gap = next(
        row
        for row in made.data["deployed"]
        if (row["better"], row["worse"], row["beliefs"], row["rule"]["kind"]) == (BROAD, NARROW, "mixture", "threshold")
    )
    reversed_ = pair["dominates"] and gap["in_use_verdict"] == "reversed"
    passed = reversed_ != null
    if gap["in_use_difference"] is None:
        in_use = "people use one of them nowhere"
    else:
        better, worse = (percent(share) for share in gap["in_use"])
        difference = Figure.between(gap["in_use_difference"], gap["in_use_interval"]).times(100)
        in_use = (
            f"where people use them (belief above {percent(threshold, 2)}) it is right on {better} and the other on "
            f"{worse}, a difference of {difference.in_words(1, signed=True)} points"
        )
    sentence = (
        f"{'PASSED' if passed else 'FAILED'}: one model is right on {percent(pair['better_correct'])} of the "
        f"questions, wherever the other is, which is right on {percent(pair['worse_correct'])}; {in_use}. "
        f"The report: `hunch report {study.slug} domination threshold={short(threshold)}`"
    )
    figures = {
        "threshold": threshold,
        "reversed": reversed_,
        "correct": [pair["better_correct"], pair["worse_correct"]],
    }
    return DemonstrationVerdict(
        passed, sentence, {**figures, "in_use": gap["in_use"], "difference": gap["in_use_difference"]}
    )
