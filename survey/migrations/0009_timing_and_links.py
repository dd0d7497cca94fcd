from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("survey", "0008_conditions")]

    operations = []
