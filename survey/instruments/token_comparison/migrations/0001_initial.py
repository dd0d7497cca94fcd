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
                        ('source', models.CharField(help_text='local:FOLDER or ngram:NAME.', max_length=520, verbose_name="model file or server")),
                        ('source_sha256', models.CharField(help_text='Of all that the reading depends on beside the text.', max_length=64, verbose_name="hash of what it was read from")),
                        ('log_true', models.FloatField(help_text='Of the true token; empty where the model cannot give it.', null=True, verbose_name="logarithm of the true token's chance")),
                        ('log_others', models.JSONField(help_text='Of the drawn tokens, in their order; null where it cannot give one.', verbose_name="logarithms of the drawn tokens' chances")),
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
                        ('preparation', models.CharField(help_text='Hash of the settings by which it was made.', max_length=64, verbose_name="hash of the settings")),
                        ('text_sha256', models.CharField(help_text='Of the text in UTF-8, without markup.', max_length=64, verbose_name="hash of the text")),
                        ('position', models.PositiveIntegerField(help_text='Tokens of the context; the next one is the true one.', verbose_name="tokens of the context")),
                        ('end', models.PositiveIntegerField(help_text='The first character after the context.', verbose_name="end of the context")),
                        ('tokenizer', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='survey.tokenizerrecord')),
                        ('generator', models.CharField(help_text='local:FOLDER or ngram:NAME.', max_length=520, verbose_name="model that draws")),
                        ('generator_sha256', models.CharField(help_text='Of all that its probabilities depend on.', max_length=64, verbose_name="hash of the model that draws")),
                        ('seed', models.PositiveBigIntegerField(help_text='The draws are from it.', verbose_name="seed of chance")),
                        ('draws', models.PositiveIntegerField(help_text='How many tokens were drawn.', verbose_name="tokens drawn")),
                        ('same', models.PositiveIntegerField(help_text='How many of them are the true token.', verbose_name="draws of the true token")),
                        ('true_id', models.PositiveIntegerField(verbose_name="id of the true token")),
                        ('true_text', models.CharField(max_length=200, verbose_name="text of the true token")),
                        ('log_g_true', models.FloatField(help_text="Natural logarithm of the generator's probability of the true token.", verbose_name="logarithm of the true token's chance")),
                        ('drawn', models.JSONField(help_text='The other tokens: id, text, times and the logarithm of the probability.', verbose_name="other tokens")),
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
                        ('percent_left', models.PositiveSmallIntegerField(help_text='The stated chance that the left token is the true one.', verbose_name="chance given to the left token")),
                        ('true_is_left', models.BooleanField(verbose_name="true token stood left")),
                        ('reward', models.DecimalField(decimal_places=4, help_text='Points.', max_digits=10, verbose_name="points")),
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
                        ('other_id', models.PositiveIntegerField(verbose_name="id of the other token")),
                        ('other_text', models.CharField(max_length=200, verbose_name="text of the other token")),
                        ('multiplicity', models.PositiveIntegerField(verbose_name="times drawn")),
                        ('log_g_other', models.FloatField(help_text="Natural logarithm of the generator's probability of the other token.", verbose_name="logarithm of the other token's chance")),
                    ],
                    options={
                        'constraints': [models.CheckConstraint(condition=models.Q(('multiplicity__gt', 0)), name='comparison_was_drawn'), models.CheckConstraint(condition=models.Q(('log_g_other__lte', 0)), name='comparison_log_not_above_0')],
                    },
                ),
            ],
        ),
    ]
