"""Items, candidate sets, strata, booklets and slots: what a stage shows. It is drawn once, before the stage opens."""

from django.db import models
from django.db.models import Q

from .predictor import PredictorRun
from .quick import QuickRows
from .study import Stage, Study


class Item(QuickRows):
    """What a slot presents. The instrument keeps the content in a typed table, one row for each item."""

    study = models.ForeignKey(Study, on_delete=models.PROTECT, related_name="items")
    key = models.CharField(
        "name of the item", max_length=120, help_text="The instrument's name for it, the same on every machine."
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["study", "key"], name="item_key_unique_in_study")]

    def __str__(self) -> str:
        return self.key


class CandidateSet(models.Model):
    """The items a stage could draw from, and what they were scored with, as content-addressed files.

    The items and scores of a pool are in one file. A stage that draws from all items lists none: `file_sha256` is then
    the file of the pair scorer's factors (empty if the design needs no scores), `shortlist_sha256` the predictor's own
    scores of the best items, and `drawn_sha256` its scores of the items that the stage draws. `uniform_sha256` is then
    a uniform pool with the predictor's own scores, from which nothing is drawn: reports are about it.
    `both_outcomes_sha256`, of either kind, is uniform pairs that the predictor scored under both outcomes, if somebody
    asked for them: reports are about them too.
    """

    class Kind(models.TextChoices):
        POOL = "pool", "uniform pool"
        EXHAUSTIVE = "exhaustive", "all there are"

    stage = models.OneToOneField(Stage, on_delete=models.PROTECT, related_name="candidate_set")
    kind = models.CharField(max_length=12, choices=Kind.choices)
    size = models.PositiveBigIntegerField("number of candidates")
    universe_size = models.PositiveBigIntegerField("number of all items")
    probability = models.FloatField(
        "chance of being in the pool", help_text="First phase: the chance that an item is in the pool."
    )
    seed = models.BigIntegerField("seed of chance")
    predictor_run = models.ForeignKey(
        PredictorRun,
        verbose_name="trained predictor",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="candidate_sets",
    )
    excluded = models.PositiveBigIntegerField(
        "items left out", default=0, help_text="Items that may not be drawn: those planned before."
    )
    file_sha256 = models.CharField("hash of the file", max_length=64, blank=True)
    shortlist_sha256 = models.CharField("hash of the shortlist", max_length=64, blank=True)
    drawn_sha256 = models.CharField("hash of the drawn pairs", max_length=64, blank=True)
    uniform_sha256 = models.CharField("hash of the uniform draw", max_length=64, blank=True)
    both_outcomes_sha256 = models.CharField("hash of the file of both outcomes", max_length=64, blank=True)
    fidelity = models.JSONField(
        "how well the pair scorer ranks",
        default=dict,
        blank=True,
        help_text="How well the pair scorer ranks fresh pairs as the predictor does.",
    )
    questions_sha256 = models.CharField(
        "hash of the questions", max_length=64, help_text="Of the questions that the rows count through."
    )

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(probability__gt=0) & Q(probability__lte=1), name="candidate_set_probability_in_0_1"
            ),
            models.CheckConstraint(
                condition=Q(size__gte=1) & Q(size__lte=models.F("universe_size")), name="candidate_set_size_in_universe"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.size} candidates of {self.stage}"


class Stratum(QuickRows):
    stage = models.ForeignKey(Stage, on_delete=models.PROTECT, related_name="strata")
    name = models.CharField(max_length=20)
    size = models.PositiveBigIntegerField("number of candidates", help_text="Candidates in it.")
    slots = models.PositiveIntegerField(
        "candidates drawn", help_text="Candidates drawn from it; each has as many slots as replicates."
    )
    lowest_score = models.FloatField(null=True, blank=True)
    mean_score = models.FloatField(null=True, blank=True)
    highest_score = models.FloatField(null=True, blank=True)

    class Meta:
        ordering = ["stage_id", "name"]
        verbose_name_plural = "strata"
        constraints = [
            models.UniqueConstraint(fields=["stage", "name"], name="stratum_name_unique_in_stage"),
            models.CheckConstraint(condition=Q(slots__lte=models.F("size")), name="stratum_slots_within_size"),
        ]

    def __str__(self) -> str:
        return self.name


class Booklet(QuickRows):
    """The slots of one sitting. A sitting claims a whole booklet by one conditional update of `claimed_at`."""

    class Kind(models.TextChoices):
        MAIN = "main", "main"
        MAKE_UP = "make_up", "make-up"

    stage = models.ForeignKey(Stage, on_delete=models.PROTECT, related_name="booklets")
    number = models.PositiveIntegerField()
    kind = models.CharField(max_length=8, choices=Kind.choices, default=Kind.MAIN)
    claimed_at = models.DateTimeField("taken up at", null=True, blank=True)

    class Meta:
        ordering = ["stage_id", "number"]
        constraints = [models.UniqueConstraint(fields=["stage", "number"], name="booklet_number_unique_in_stage")]
        indexes = [
            # In the order in which they are claimed: the first ones are found without reading the others.
            models.Index(
                fields=["stage", "kind", "number"], condition=Q(claimed_at__isnull=True), name="booklet_free_in_order"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.stage} booklet {self.number}"


class Slot(QuickRows):
    """One planned showing of one item, in a booklet at a position. Both are empty while the slot waits in the pool."""

    class Role(models.TextChoices):
        SAMPLED = "sampled", "sampled"
        HOLDOUT = "holdout", "holdout"
        CONTROL = "control", "control"
        REPEAT = "repeat", "repeat"

    stage = models.ForeignKey(Stage, on_delete=models.PROTECT, related_name="slots")
    number = models.PositiveIntegerField("place in the draw", help_text="Place in the order of the draw, from 1.")
    item = models.ForeignKey(Item, on_delete=models.PROTECT, related_name="slots")
    replicate = models.PositiveSmallIntegerField("number of the copy", default=1)
    role = models.CharField(max_length=10, choices=Role.choices)
    control_kind = models.CharField(
        "kind of control",
        max_length=24,
        blank=True,
        help_text="What a control slot asks, by the instrument's name for it.",
    )
    repeat_of = models.ForeignKey(
        "self",
        verbose_name="slot that it repeats",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="repeats",
        help_text="The slot of the same booklet that a repeat asks again.",
    )
    stratum = models.ForeignKey(Stratum, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    inclusion_probability = models.FloatField(
        "chance of being drawn",
        null=True,
        blank=True,
        help_text="Given the candidate set, its cut and all earlier answers.",
    )
    pool_probability = models.FloatField(
        "chance of being in the pool", null=True, blank=True, help_text="First phase: the chance to be a candidate."
    )
    score = models.FloatField(
        "predictor's score", null=True, blank=True, help_text="What the stage's predictor gave the item."
    )
    booklet = models.ForeignKey(Booklet, on_delete=models.PROTECT, null=True, blank=True, related_name="slots")
    position = models.PositiveSmallIntegerField("place in the booklet", null=True, blank=True)

    class Meta:
        ordering = ["stage_id", "number"]
        constraints = [
            models.UniqueConstraint(fields=["stage", "number"], name="slot_number_unique_in_stage"),
            # By role: the holdout and the controls are drawn separately and may include an item that was also sampled.
            models.UniqueConstraint(
                fields=["stage", "role", "item", "replicate"],
                condition=~Q(role="repeat"),
                name="slot_item_once_a_replicate",
            ),
            models.UniqueConstraint(fields=["repeat_of"], name="slot_repeated_at_most_once"),
            models.UniqueConstraint(fields=["booklet", "position"], name="slot_position_unique_in_booklet"),
            models.CheckConstraint(
                condition=Q(role__in=["sampled", "holdout", "control", "repeat"]), name="slot_role_known"
            ),
            models.CheckConstraint(
                condition=Q(role="control") & ~Q(control_kind="") | ~Q(role="control") & Q(control_kind=""),
                name="slot_control_has_a_kind",
            ),
            models.CheckConstraint(
                condition=Q(role="repeat", repeat_of__isnull=False) | ~Q(role="repeat") & Q(repeat_of__isnull=True),
                name="slot_repeat_names_its_slot",
            ),
            models.CheckConstraint(
                condition=Q(booklet__isnull=True, position__isnull=True)
                | Q(booklet__isnull=False, position__isnull=False),
                name="slot_booklet_and_position_together",
            ),
            models.CheckConstraint(
                condition=~Q(role__in=["sampled", "holdout"])
                | Q(
                    # "Not null" is stated separately: for a database, a comparison with null violates nothing.
                    inclusion_probability__isnull=False,
                    inclusion_probability__gt=0,
                    inclusion_probability__lte=1,
                    pool_probability__isnull=False,
                    pool_probability__gt=0,
                    pool_probability__lte=1,
                    stratum__isnull=False,
                ),
                name="slot_drawn_has_probabilities",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.stage} slot {self.number}"

    @property
    def design_weight(self) -> float:
        """How many items of all there are its item stands for: 1 / (inclusion_probability * pool_probability). Several
        slots of one item share this number (see `counting.design_weights`).

        Raises:
            ValueError: it was not drawn by chance (a control, a repeat), so that it stands for nothing but itself.
        """
        if self.inclusion_probability is None or self.pool_probability is None:
            raise ValueError(f"{self} is a {self.role} slot: it has no probabilities, and so no design weight")
        return 1.0 / (self.inclusion_probability * self.pool_probability)

    @property
    def drawn_probability(self) -> float | None:
        """The chance with which its item was drawn, both phases together; None where it was not drawn by chance."""
        is_drawn = self.inclusion_probability is not None and self.pool_probability is not None
        return 1 / self.design_weight if is_drawn else None
