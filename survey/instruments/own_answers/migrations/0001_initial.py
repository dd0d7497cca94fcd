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
                    name='AskedQuestion',
                    fields=[
                        ('item', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='asked_question', serialize=False, to='survey.item')),
                        ('question', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='survey.question')),
                        ('copy', models.PositiveSmallIntegerField(help_text="From 1, up to the study's answers_per_question.", verbose_name="number of the copy")),
                    ],
                    options={
                        'constraints': [models.CheckConstraint(condition=models.Q(('copy__gte', 1)), name='asked_question_copy_at_least_1')],
                    },
                ),
                migrations.CreateModel(
                    name='OwnAnswer',
                    fields=[
                        ('response', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='own_answer', serialize=False, to='survey.response')),
                        ('text', models.TextField(help_text='Exactly as it was given.')),
                        ('correct', models.BooleanField(verbose_name="right")),
                        ('stated', models.TextField(blank=True, help_text='The answer that the text states; empty where it states none.', verbose_name="answer that is stated")),
                        ('reason', models.TextField(blank=True, help_text='Why no answer could be read off the text.')),
                        ('rules_version', models.CharField(blank=True, help_text='Of the rules that judged it.', max_length=20, verbose_name="version of the rules")),
                        ('confidence', models.PositiveSmallIntegerField(blank=True, help_text='How sure the person was to be right, in percentage points.', null=True)),
                    ],
                    options={
                        'constraints': [models.CheckConstraint(condition=models.Q(('text', ''), _negated=True), name='own_answer_not_empty'), models.CheckConstraint(condition=models.Q(('confidence__isnull', True), models.Q(('confidence__gte', 0), ('confidence__lte', 100)), _connector='OR'), name='own_answer_confidence_between_0_and_100')],
                    },
                ),
            ],
        ),
    ]
