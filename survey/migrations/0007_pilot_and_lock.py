from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("survey", "0006_blocks")]

    operations = []
