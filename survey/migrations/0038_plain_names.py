"""Names that say what they hold. No row changes."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('survey', '0037_passages'),
    ]

    operations = [
        migrations.RenameModel(old_name='DoorCount', new_name='BudgetCount'),
        migrations.RenameIndex(model_name='budgetcount', old_name='door_count_by_end', new_name='budget_count_by_end'),
        migrations.RemoveConstraint(model_name='budgetcount', name='door_count_once_a_span'),
        migrations.AddConstraint(
            model_name='budgetcount',
            constraint=models.UniqueConstraint(fields=('what', 'who', 'until'), name='budget_count_once_a_span'),
        ),
        migrations.RenameField(model_name='posting', old_name='told', new_name='panel_facts'),
        migrations.RenameField(model_name='alert', old_name='telling_at', new_name='sending_at'),
        migrations.RenameField(model_name='alert', old_name='told_at', new_name='sent_at'),
        migrations.RenameField(model_name='alert', old_name='over_told_at', new_name='over_sent_at'),
    ]
