"""An aid next to the target: how many of the questions most like it the model really answered right.

What an aid says is computed when a stage is planned and stored with the item, so that nobody waits for it and it can
never change. Neither the target nor the evidence is among its questions, nor any question with the same words.
"""

import base64
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from predictors.embeddings import embed, source_of
from predictors.errors import PredictorError
from predictors.settings import BUNDLED_CHECKPOINT
from survey.contracts import instruments
from survey.contracts.preparation import Preparation, Progress
from survey.exceptions import HunchError, PlanRefused
from survey.models import Question, Study
from survey.services.banks.alike import WORD
from survey.services.banks.eligibility import filtered_questions
from survey.study_file import FieldPath, Note, StudyConfig

from .models import Aid, Pair, QuestionVector

if TYPE_CHECKING:
    from .options import BeliefUpdateOptions
    from .real_evidence import RealOutcomes

OPTIONS: FieldPath = ("instrument", "options")
BATCH_SIZE = 2000
BY_WORDS = 'aid_similarity = "words"'
DIGITS = 6  # Of a similarity: the last digits of sums depend on the machine, and the order of equal ones must not.


@dataclass(frozen=True, eq=False)
class Similar:
    """How alike N questions are. `words`: each question's words in the order of the alphabet, which are the same for
    questions that say the same. `vectors`: one row of unit norm for each (N, d); without them, words decide."""

    words: Sequence[tuple[str, ...]]
    vectors: np.ndarray | None = None

    def __post_init__(self) -> None:
        places = defaultdict(list)
        for place, own in enumerate(self.words):
            places[own].append(place)
        object.__setattr__(self, "_same", {own: np.array(indices) for own, indices in places.items()})
        if self.vectors is None:
            object.__setattr__(self, "_index", _word_index(self.words))

    def same_as(self, place: int) -> np.ndarray:
        """The places of the questions with the same words as this one, its own included."""
        same: np.ndarray = self._same[self.words[place]]  # type: ignore[attr-defined]
        return same

    @property
    def most_alike(self) -> int:
        """How many questions the largest group with the same words has."""
        return max((len(self.same_as(place)) for place in range(len(self.words))), default=0)

    def to(self, place: int) -> np.ndarray:
        """(N,) how alike each question is to the one at this place, from 0 (or -1 for vectors) to 1."""
        if self.vectors is not None:
            similarity: np.ndarray = np.round(self.vectors @ self.vectors[place], DIGITS)
            return similarity
        by_word, weights = self._index  # type: ignore[attr-defined]
        similarity = np.zeros(len(self.words))
        for word, weight in weights[place]:
            holding, theirs = by_word[word]
            similarity[holding] += weight * theirs
        return np.round(similarity, DIGITS)

    def nearest(self, target: int, *, without: Sequence[int], count: int) -> np.ndarray:
        """The places of the `count` questions most like `target`, the most similar first, equals in the bank's order.
        Left out are the target, the places in `without`, and all questions with the words of one of these; fewer are
        given if fewer are left."""
        return self._nearest(self.to(target), [target, *without], count)

    def _nearest(self, alike: np.ndarray, left_out: Sequence[int], count: int) -> np.ndarray:
        known = alike.copy()
        for place in left_out:
            known[self.same_as(place)] = -np.inf
        there_are = int(np.isfinite(known).sum())
        count = min(count, there_are)
        if not count:
            return np.empty(0, dtype=np.int64)
        least = np.partition(known, len(known) - count)[len(known) - count]
        chosen = np.flatnonzero(known >= least)
        return chosen[np.argsort(-known[chosen], kind="stable")][:count]

    def of_pairs(self, targets: Sequence[int], evidence: Sequence[int], count: int) -> list[np.ndarray]:
        """`nearest` of each target without its evidence (-1 for none), in order. Each target is compared once."""
        similar: list[np.ndarray] = [np.empty(0, dtype=np.int64)] * len(targets)
        by_target = defaultdict(list)
        for index, target in enumerate(targets):
            by_target[target].append(index)
        for target, indexes in by_target.items():
            alike = self.to(target)
            for index in indexes:
                own_evidence = [evidence[index]] if evidence[index] >= 0 else []
                similar[index] = self._nearest(alike, [target, *own_evidence], count)
        return similar


def words_of(text: str) -> tuple[str, ...]:
    """A question's words and numbers in small letters, in the order of the alphabet."""
    return tuple(sorted(WORD.findall(text.casefold())))


def _word_index(
    words: Sequence[tuple[str, ...]],
) -> tuple[dict[str, tuple[np.ndarray, np.ndarray]], list[list[tuple[str, float]]]]:
    """Each word's questions with its weight there, and each question's words with their weights: (1 + ln count) times
    ln((1 + N) / (1 + questions with the word)), each question to the length 1."""
    in_how_many = Counter(word for own in words for word in set(own))
    weights: list[list[tuple[str, float]]] = []
    holding: dict[str, list[int]] = defaultdict(list)
    theirs: dict[str, list[float]] = defaultdict(list)
    for place, own in enumerate(words):
        plain = {
            word: (1 + math.log(count)) * math.log((1 + len(words)) / (1 + in_how_many[word]))
            for word, count in sorted(Counter(own).items())
        }
        length = math.sqrt(sum(value**2 for value in plain.values()))
        weights.append([(word, value / length) for word, value in plain.items() if value > 0])
        for word, value in weights[-1]:
            holding[word].append(place)
            theirs[word].append(value)
    return {word: (np.array(holding[word]), np.array(theirs[word])) for word in holding}, weights


# The study's


def is_wanted(config: StudyConfig) -> bool:
    """Whether a study file shows an aid to anybody."""
    all_options = [config.instrument.options, *(option for by in config.conditions for option in by.options.values())]
    return any(options.get("aid", "none") != "none" for options in all_options)


def similar_of(questions: Sequence[Question], *, by: str, slug: str) -> Similar:
    """How alike these questions are, by their words or by the stored embeddings of their texts.

    Args:
        slug: of the study, for the message.

    Raises:
        PlanRefused: a question has no stored embedding.
    """
    words = [words_of(question.plain) for question in questions]
    if by == "words":
        return Similar(words)
    vectors = vectors_of(questions)
    if missing := [question for question in questions if question.pk not in vectors]:
        raise PlanRefused(f"{_not_embedded(missing)}: `hunch jobs ask prepare {slug} --now`, or set {BY_WORDS}")
    return Similar(words, np.stack([vectors[question.pk] for question in questions]))


def vectors_of(questions: Sequence[Question]) -> dict[int, np.ndarray]:
    """The stored embeddings of these questions by primary key, float32 (d,)."""
    wanted = {question.pk for question in questions}
    rows = QuestionVector.objects.filter(question__bank__in={question.bank_id for question in questions}).order_by()
    return {
        key: np.frombuffer(base64.b64decode(text), dtype="<f2").astype(np.float32)
        for key, text in rows.values_list("question", "vector")
        if key in wanted
    }


def store_vectors(questions: Sequence[Question], vectors: np.ndarray, *, model: str) -> None:
    """Store the embeddings (N, d) of these questions in place of older ones. `model`: what made them."""
    rows = [
        QuestionVector(
            question=question, model=model, vector=base64.b64encode(row.astype("<f2").tobytes()).decode("ascii")
        )
        for question, row in zip(questions, vectors, strict=True)
    ]
    QuestionVector.objects.bulk_create(
        rows,
        batch_size=BATCH_SIZE,
        update_conflicts=True,
        unique_fields=["question"],
        update_fields=["model", "vector"],
    )


def embed_questions(questions: Sequence[Question], *, model: str, progress: Progress | None = None) -> int:
    """Compute and store an embedding of each of these questions; return how many numbers one has.

    Raises:
        HunchError: the model cannot be used here.
    """
    try:
        source = source_of(model)
        vectors = embed([question.plain for question in questions], model=model, progress=progress)
    except ImportError as exc:
        raise HunchError(
            f'model: {model} needs a package that is not installed ({exc}); run: pip install "hunch[ml]", or set '
            f"{BY_WORDS}"
        ) from exc
    except PredictorError as exc:
        raise HunchError(f"model: {exc}") from exc
    store_vectors(questions, vectors, model=f"{model} {source.fingerprint}"[:200])
    return int(vectors.shape[1])


def preparation(study: Study, options: "BeliefUpdateOptions") -> Preparation | None:
    if not is_wanted(study.config) or options.aid_similarity != "embeddings":
        return None

    def prepare(progress: Progress) -> Mapping[str, int]:
        questions = not_embedded(filtered_questions(study))
        if questions:
            embed_questions(questions, model=BUNDLED_CHECKPOINT, progress=progress)
        return {"embeddings": len(questions)}

    return Preparation("questions", prepare)


def not_embedded(questions: Sequence[Question]) -> list[Question]:
    known = vectors_of(questions)
    return [question for question in questions if question.pk not in known]


def remarks(study: Study, options: "BeliefUpdateOptions", usable: Sequence[Question]) -> Iterator[Note]:
    if preparation(study, options) is not None and (missing := not_embedded(usable)):
        yield Note(
            "instrument.options.aid_similarity",
            f"{_not_embedded(missing)} yet: before the first stage is planned, let a worker prepare the texts (on the "
            f"study's page, under Data), or set {BY_WORDS}",
        )


def _not_embedded(missing: Sequence[Question]) -> str:
    names = ", ".join(question.external_id for question in missing[:5])
    return f"{len(missing)} questions have no stored embedding ({names})"


def problems(
    study: Study, options: "BeliefUpdateOptions", usable: Sequence[Question]
) -> Iterator[tuple[FieldPath, str]]:
    """Why the aid that the study file wants cannot be shown; `usable` are the questions that the model answered."""
    if not is_wanted(study.config) or not usable:
        return
    similar = Similar([words_of(question.plain) for question in usable], np.empty((len(usable), 0)))
    # The target and the evidence are left out, with all questions of the same words.
    largest = len(usable) - 2 * similar.most_alike
    if options.aid_questions > largest:
        yield (
            (*OPTIONS, "aid_questions"),
            f"the model has answered {len(usable)} of the study's questions, which leaves at least {max(0, largest)} "
            "for every target and evidence: write a smaller number, or collect more answers",
        )
    planned = Pair.objects.filter(item__study__slug=study.slug, item__study__test_of__isnull=True)
    without = planned.filter(aid=None).count()
    others = planned.filter(aid__isnull=False).exclude(
        aid__asked=options.aid_questions,
        aid__similarity=options.aid_similarity,
        aid__language_model=options.language_model,
    )
    if count := without + others.count():
        yield (
            OPTIONS,
            f"{count} items that a stage of this study planned were made with another aid, or without one, and would "
            "be shown again: keep the keys that begin with aid, or duplicate the study under another slug",
        )


def create_aids(
    pairs: Sequence[Pair], *, questions: Sequence[Question], study: Study, real: "RealOutcomes | None"
) -> None:
    """Store what the aid says next to each of these new pairs, if the study shows one.

    Raises:
        PlanRefused: too few questions are left for a pair, or embeddings are missing.
    """
    if real is None or not is_wanted(study.config):
        return
    options: BeliefUpdateOptions = instruments.of_study(study).options
    similar = similar_of(questions, by=options.aid_similarity, slug=study.slug)
    place = {question.pk: index for index, question in enumerate(questions)}
    right = real.outcome_of(questions)
    targets = [place[pair.target_id] for pair in pairs]
    evidence = [-1 if pair.evidence_id is None else place[pair.evidence_id] for pair in pairs]
    neighbours = similar.of_pairs(targets, evidence, options.aid_questions)
    fewest = min((len(chosen) for chosen in neighbours), default=options.aid_questions)
    if fewest < options.aid_questions:
        raise PlanRefused(
            f"aid_questions: {options.aid_questions} similar questions are wanted, and {fewest} are left for an item "
            f"that {real.language_model} has answered: write a smaller number, or collect more answers"
        )
    Aid.objects.bulk_create(
        [
            Aid(
                pair=pair,
                asked=len(chosen),
                right=int(right[chosen].sum()),
                language_model=real.language_model,
                similarity=options.aid_similarity,
                questions=[questions[index].external_id for index in chosen.tolist()],
            )
            for pair, chosen in zip(pairs, neighbours, strict=True)
        ],
        batch_size=BATCH_SIZE,
    )


def ids_in_words(questions: Iterable[str]) -> str:
    """The ids of the questions of an aid in one cell of a table, the most similar first."""
    return " ".join(questions)
