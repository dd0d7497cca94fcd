from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("survey", "0041_rules_of_verdicts")]

    operations = [
        migrations.AlterField(
            model_name="question",
            name="text",
            field=models.TextField(
                help_text="As in the file. <b>, </b> and <br> are markup; where they are letters, &lt;br&gt; stands."
            ),
        ),
    ]
