from django.db import migrations, models


def name_the_first_rules(apps, schema_editor):
    verdicts = apps.get_model("preference", "JudgeVerdict").objects.using(schema_editor.connection.alias)
    verdicts.exclude(request_sha256="").update(rules_version="1")


class Migration(migrations.Migration):
    dependencies = [("preference", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="judgeverdict",
            name="rules_version",
            field=models.CharField(
                blank=True,
                default="",
                help_text="Of the rules that read the score; empty for imported verdicts.",
                max_length=20,
            ),
            preserve_default=False,
        ),
        migrations.RunPython(name_the_first_rules, migrations.RunPython.noop, elidable=True),
    ]
