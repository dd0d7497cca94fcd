"""How much of a budget is spent in a span of time. No row says who somebody is."""

from django.db import models


class BudgetCount(models.Model):
    """A count that ends with its span. `who` is a keyed hash that differs by span; it is empty where all are counted
    together, or the name of what is closed until then."""

    what = models.CharField("what is counted", max_length=40)
    who = models.CharField("whose it is", max_length=64, blank=True)
    until = models.DateTimeField("counts until", help_text="The end of the span. The row is deleted afterwards.")
    count = models.PositiveIntegerField("number", default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["what", "who", "until"], name="budget_count_once_a_span"),
        ]
        indexes = [models.Index(fields=["until"], name="budget_count_by_end")]

    def __str__(self) -> str:
        return f"{self.what} until {self.until:%Y-%m-%d %H:%M:%S}"
