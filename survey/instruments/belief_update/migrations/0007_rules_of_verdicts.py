from django.db import migrations, models


def name_the_first_rules(apps, schema_editor):
    apps.get_model("belief_update", "TargetAnswer").objects.using(schema_editor.connection.alias).update(rules_version="1")


class Migration(migrations.Migration):
    dependencies = [("belief_update", "0001_squashed_0006_evidence_in_steps")]

    operations = [
        migrations.AddField(
            model_name="targetanswer",
            name="rules_version",
            field=models.CharField(
                blank=True, default="", help_text="Of the rules that judged it.", max_length=20
            ),
            preserve_default=False,
        ),
        migrations.RunPython(name_the_first_rules, migrations.RunPython.noop, elidable=True),
    ]
