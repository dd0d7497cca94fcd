from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("survey", "0007_pilot_and_lock")]

    operations = []
