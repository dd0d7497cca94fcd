"""The report `preferences`: the ranking by people and judges, agreement, and judges held against people."""

from functools import partial

import numpy as np

from survey.contracts.reports import Argument, Report, ReportArguments, ReportFile, ReportResult
from survey.exceptions import HunchError, StateRefused
from survey.figures.words import short
from survey.models import Study
from survey.services.answers.conditions import read_condition
from survey.services.answers.counting import counting
from survey.services.base.seeds import derive
from survey.services.results.reports import CONDITION

from ..analysis.analysing import Analysis, AnalysisSettings, analyse
from ..analysis.bradley_terry import RIDGE, NoRanking
from ..material import chosen_and_rejected, material_of, preference_of, questions_of
from .tables import ASSISTED, JUDGES, KAPPAS, PAIRS, RANKING, SIDES, WAYS, WINS, report_result

TIES, SIDE, WEIGHTS = ("none", "4-5"), ("yes", "no"), ("design", "none")


class PreferencesReport(Report):
    arguments = (
        Argument(
            "question",
            "which of the study's questions; the first unless said",
            choices=questions_of,
            without="the first",
            label="Question",
        ),
        Argument(
            "ridge", "the ridge penalty on the models' strengths, from 0", default=short(RIDGE), label="Ridge penalty"
        ),
        Argument(
            "tie",
            "with 4-5 the two middle places are ties, with none they are not; the study file decides unless said",
            choices=lambda _study: TIES,
            without="as in the study file",
            label="Ties",
        ),
        Argument(
            "side",
            "whether being shown first may count",
            default="yes",
            choices=lambda _study: SIDE,
            label="Side bias is allowed for",
        ),
        Argument(
            "weights",
            "with design answers weigh by 1 / their chance of being asked, with none each counts once",
            default="design",
            choices=lambda _study: WEIGHTS,
            label="Weights",
        ),
        CONDITION,
    )
    exported = {
        "ranking": RANKING,
        "sides": SIDES,
        "wins": WINS,
        "pairs": PAIRS,
        "kappas": KAPPAS,
        "ways": WAYS,
        "judges": JUDGES,
        "assisted": ASSISTED,
    }

    def obstacle(self, study: Study) -> str:
        if not counting(study.main_stages()).exists():
            return f"{study.slug}: no judgement counts yet; open a stage and wait for people"
        return ""

    def make(self, study: Study, arguments: ReportArguments) -> ReportResult:
        analysis = analysis_of(study, arguments)
        question = arguments.one("question") or questions_of(study)[0]
        return report_result(
            analysis,
            title=f"Preferences: {study.title}",
            lines=[f"Which reply is more {question}?"],
            files=[ReportFile("chosen_rejected.jsonl", partial(chosen_and_rejected, study, analysis.material.people))],
        )


def analysis_of(study: Study, arguments: ReportArguments) -> Analysis:
    """
    Raises:
        HunchError: an argument cannot be used, or there is nothing to rank.
    """
    instrument = preference_of(study)
    options = instrument.options
    question = arguments.one("question") or options.questions[0]
    if question not in options.questions:
        raise HunchError(f"question: {question!r} is none of {', '.join(options.questions)}")
    tie, side = arguments.one("tie") or options.tie, arguments.one("side")
    if tie not in TIES:
        raise HunchError(f'tie: {tie!r} is neither "none" nor "4-5"')
    if side not in SIDE:
        raise HunchError(f'side: {side!r} is neither "yes" nor "no"')
    weights = arguments.one("weights")
    if weights not in WEIGHTS:
        raise HunchError(f'weights: {weights!r} is neither "design" nor "none"')
    settings = AnalysisSettings(
        weighted=weights == "design",
        each_answer=True,
        ridge=arguments.number("ridge", lowest=0, highest=1000),
        side=side == "yes",
        tie=tie,
    )
    material = material_of(study, question=question, levels=read_condition(study, arguments["condition"]))
    if not material.people.n:
        raise StateRefused(f"{study.slug}: no judgement counts yet; open a stage and wait for people")
    try:
        return analyse(material, settings, rng=np.random.default_rng(derive(study.seed, "preferences")))
    except NoRanking as exc:
        raise StateRefused(f"{study.slug}: {exc}") from exc
