import django.db.models.deletion
import survey.models.creation
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('survey', '0001_initial'),
    ]

    operations = [
        survey.models.creation.CreateModels(
            models=[
                migrations.CreateModel(
                    name='PassageAnswer',
                    fields=[
                        ('response', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='passage_answer', serialize=False, to='survey.response')),
                        ('yes', models.BooleanField(verbose_name="answered yes")),
                        ('right', models.BooleanField()),
                    ],
                ),
                migrations.CreateModel(
                    name='PassageOpening',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('assignment', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='passage_openings', to='survey.assignment')),
                        ('nonce', models.CharField(help_text="The window's own.", max_length=64, verbose_name="the window's own mark")),
                        ('opened_at', models.DateTimeField(help_text="By the server's clock.")),
                    ],
                    options={
                        'ordering': ['pk'],
                        'constraints': [models.UniqueConstraint(fields=('assignment', 'nonce'), name='passage_opening_once_a_window')],
                    },
                ),
                migrations.CreateModel(
                    name='ReadPassage',
                    fields=[
                        ('item', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='read_passage', serialize=False, to='survey.item')),
                        ('question', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='survey.question')),
                    ],
                ),
                migrations.CreateModel(
                    name='WordTimes',
                    fields=[
                        ('response', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='word_times', serialize=False, to='survey.response')),
                        ('times', models.JSONField(help_text='Milliseconds, one a word.', verbose_name="milliseconds for each word")),
                        ('lead_ms', models.PositiveIntegerField(help_text='From the dashes to the first word.', verbose_name="milliseconds before the first word")),
                        ('server_ms', models.PositiveIntegerField(help_text="From the beginning to the answer, by the server's clock. Empty where nothing said begun.", null=True, verbose_name="milliseconds by the server's clock")),
                        ('means', models.CharField(choices=[('key', 'Key'), ('tap', 'Tap'), ('both', 'Both')], help_text='By which means words were called.', max_length=4, verbose_name="how words were called")),
                        ('marks', models.JSONField(default=list, help_text='Why the times may not be used; empty if they may.', verbose_name="why times may not be used")),
                    ],
                    options={
                        'verbose_name_plural': 'word times',
                        'constraints': [models.CheckConstraint(condition=models.Q(('times', []), _negated=True), name='word_times_not_empty')],
                    },
                ),
            ],
        ),
    ]
