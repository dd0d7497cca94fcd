"""What people wrote in their own words: in text fields of forms, and about questions."""

from collections.abc import Sequence
from dataclasses import dataclass

from survey.models import FormAnswer, QuestionReport, Sitting


@dataclass(frozen=True)
class Remark:
    """What somebody wrote: in a form, or about a question."""

    where: str
    text: str


def remarks_of(people: Sequence[Sitting]) -> list[Remark]:
    """Those of these sittings, by where they were written, and there in the order of time."""
    texts = {
        (block.name or "form", field.name): str(field.label)
        for file in {sitting.study_sha256: sitting.config for sitting in people}.values()
        for block in file.blocks
        for field in block.fields
        if field.kind == "text"
    }
    remarks = []
    for form in FormAnswer.objects.filter(sitting__in=people).order_by("at", "pk"):
        for name, answer in form.answers.items():
            if answer and (form.block, name) in texts:
                remarks.append(Remark(texts[form.block, name], str(answer)))
    reports = QuestionReport.objects.filter(sitting__in=people).select_related("assignment__slot__item")
    remarks += [Remark(f"about {report.assignment.slot.item.key}", report.text) for report in reports.order_by("at")]
    return sorted(remarks, key=lambda remark: remark.where)
