from django.db import migrations, models


def name_the_first_rules(apps, schema_editor):
    """What was judged so far, was judged by the first rules. Imported verdicts have none."""
    answers = apps.get_model("survey", "ModelAnswer").objects.using(schema_editor.connection.alias)
    judged = answers.exclude(request_sha256="").exclude(question__answer="")
    judged.update(rules_version="1")
    judged.exclude(reason="").update(unreadable=1)


class Migration(migrations.Migration):
    dependencies = [("survey", "0040_withdrawn_times")]

    operations = [
        migrations.AddField(
            model_name="modelanswer",
            name="rules_version",
            field=models.CharField(
                blank=True,
                default="",
                help_text="Of the rules that judged it; empty where its verdict was imported.",
                max_length=20,
            ),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="modelanswer",
            name="unreadable",
            field=models.PositiveSmallIntegerField(
                default=0, help_text="How many of the replies state no answer, or two. They count as not right."
            ),
        ),
        migrations.RunPython(name_the_first_rules, migrations.RunPython.noop, elidable=True),
    ]
