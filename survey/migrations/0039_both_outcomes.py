from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("survey", "0038_plain_names")]

    operations = [
        migrations.AddField(
            model_name="candidateset",
            name="both_outcomes_sha256",
            field=models.CharField(blank=True, default="", max_length=64),
            preserve_default=False,
        ),
    ]
