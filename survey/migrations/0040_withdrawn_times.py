"""Who withdrew before withdrawals left so little: the choice itself, and the times of their pages, go."""

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def forget(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    sittings = apps.get_model("survey", "Sitting").objects.filter(withdrawn_at__isnull=False)
    apps.get_model("survey", "DataChoice").objects.filter(sitting__in=sittings.values("pk")).delete()
    agreed = dict(
        apps.get_model("survey", "Consent")
        .objects.filter(sitting__in=sittings.values("pk"))
        .values_list("sitting", "given_at")
    )
    for sitting in sittings.iterator():
        at = agreed.get(sitting.pk, sitting.started_at)
        sitting.started_at = sitting.last_seen_at = at
        sitting.expired_at = sitting.ended_at if sitting.state == "expired" else None
        sitting.save(update_fields=["started_at", "last_seen_at", "expired_at"])
        apps.get_model("survey", "Assignment").objects.filter(sitting=sitting).update(assigned_at=at)
        apps.get_model("survey", "Booklet").objects.filter(pk=sitting.booklet_id).update(claimed_at=at)
        if sitting.wave == 1:
            apps.get_model("survey", "Respondent").objects.filter(pk=sitting.respondent_id).update(created_at=at)


class Migration(migrations.Migration):
    dependencies = [("survey", "0039_both_outcomes")]
    operations = [migrations.RunPython(forget, migrations.RunPython.noop)]
