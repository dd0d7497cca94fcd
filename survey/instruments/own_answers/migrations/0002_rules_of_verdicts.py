from django.db import migrations, models


def name_the_first_rules(apps, schema_editor):
    apps.get_model("own_answers", "OwnAnswer").objects.using(schema_editor.connection.alias).update(rules_version="1")


class Migration(migrations.Migration):
    dependencies = [("own_answers", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="ownanswer",
            name="rules_version",
            field=models.CharField(
                blank=True, default="", help_text="Of the rules that judged it.", max_length=20
            ),
            preserve_default=False,
        ),
        migrations.RunPython(name_the_first_rules, migrations.RunPython.noop, elidable=True),
    ]
