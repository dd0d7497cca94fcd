from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("survey", "0005_recruitment")]

    operations = []
