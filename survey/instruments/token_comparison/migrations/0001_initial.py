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
                    name='ContextReading',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('context', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='readings', to='token_comparison.preparedcontext')),
                        ('language_model', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='survey.languagemodel')),
                        ('source', models.CharField(help_text='local:FOLDER or ngram:NAME.', max_length=520)),
                        ('source_sha256', models.CharField(help_text='Of all that the reading depends on beside the text.', max_length=64)),
                        ('log_true', models.FloatField(help_text='Of the true token; empty where the model cannot give it.', null=True)),
                        ('log_others', models.JSONField(help_text='Of the drawn tokens, in their order; null where it cannot give one.')),
                    ],
                    options={
                        'ordering': ['pk'],
                        'constraints': [models.UniqueConstraint(fields=('context', 'language_model', 'source_sha256'), name='comparison_context_read_once')],
                    },
                ),
                migrations.CreateModel(
                    name='PreparedContext',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('preparation', models.CharField(help_text='Hash of the settings by which it was made.', max_length=64)),
                        ('text_sha256', models.CharField(help_text='Of the text in UTF-8, without markup.', max_length=64)),
                        ('position', models.PositiveIntegerField(help_text='Tokens of the context; the next one is the true one.')),
                        ('end', models.PositiveIntegerField(help_text='The first character after the context.')),
                        ('tokenizer', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='survey.tokenizerrecord')),
                        ('generator', models.CharField(help_text='local:FOLDER or ngram:NAME.', max_length=520)),
                        ('generator_sha256', models.CharField(help_text='Of all that its probabilities depend on.', max_length=64)),
                        ('seed', models.PositiveBigIntegerField(help_text='The draws are from it.')),
                        ('draws', models.PositiveIntegerField(help_text='How many tokens were drawn.')),
                        ('same', models.PositiveIntegerField(help_text='How many of them are the true token.')),
                        ('true_id', models.PositiveIntegerField()),
                        ('true_text', models.CharField(max_length=200)),
                        ('log_g_true', models.FloatField(help_text="Natural logarithm of the generator's probability of the true token.")),
                        ('drawn', models.JSONField(help_text='The other tokens: id, text, times and the logarithm of the probability.')),
                    ],
                    options={
                        'ordering': ['pk'],
                        'constraints': [models.UniqueConstraint(fields=('preparation', 'text_sha256', 'position'), name='comparison_context_prepared_once'), models.CheckConstraint(condition=models.Q(('same__lte', models.F('draws'))), name='comparison_same_among_draws'), models.CheckConstraint(condition=models.Q(('log_g_true__lte', 0)), name='comparison_context_log_not_above_0')],
                    },
                ),
                migrations.CreateModel(
                    name='StatedChance',
                    fields=[
                        ('response', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='stated_chance', serialize=False, to='survey.response')),
                        ('percent_left', models.PositiveSmallIntegerField(help_text='The stated chance that the left token is the true one.')),
                        ('true_is_left', models.BooleanField()),
                        ('reward', models.DecimalField(decimal_places=4, help_text='Points.', max_digits=10)),
                    ],
                    options={
                        'constraints': [models.CheckConstraint(condition=models.Q(('percent_left__gt', 0), ('percent_left__lt', 100)), name='comparison_chance_between_0_and_100')],
                    },
                ),
                migrations.CreateModel(
                    name='TokenPair',
                    fields=[
                        ('item', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='token_pair', serialize=False, to='survey.item')),
                        ('question', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='survey.question')),
                        ('context', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='token_comparison.preparedcontext')),
                        ('other_id', models.PositiveIntegerField()),
                        ('other_text', models.CharField(max_length=200)),
                        ('multiplicity', models.PositiveIntegerField()),
                        ('log_g_other', models.FloatField(help_text="Natural logarithm of the generator's probability of the other token.")),
                    ],
                    options={
                        'constraints': [models.CheckConstraint(condition=models.Q(('multiplicity__gt', 0)), name='comparison_was_drawn'), models.CheckConstraint(condition=models.Q(('log_g_other__lte', 0)), name='comparison_log_not_above_0')],
                    },
                ),
            ],
        ),
    ]
