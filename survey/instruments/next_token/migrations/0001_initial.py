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
                    name='TokenGuess',
                    fields=[
                        ('response', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='token_guess', serialize=False, to='survey.response')),
                        ('place', models.PositiveSmallIntegerField(help_text='In the run, from 0.', verbose_name="place in the run")),
                        ('position', models.PositiveIntegerField(help_text='In the passage, from 0.', verbose_name="place in the passage")),
                        ('attempt', models.PositiveSmallIntegerField(default=1, help_text="Which guess of this token it is, from 1: more than 1 in Shannon's game alone.", verbose_name="which guess of the token")),
                        ('text', models.CharField(help_text='The guess, with its blanks.', max_length=200)),
                        ('token', models.PositiveIntegerField(help_text='Its id.', verbose_name="id of the guessed token")),
                        ('true_token', models.PositiveIntegerField(help_text="The id of the passage's own token.", verbose_name="id of the true token")),
                        ('right', models.BooleanField()),
                    ],
                    options={
                        'verbose_name_plural': 'token guesses',
                        'constraints': [models.CheckConstraint(condition=models.Q(('text', ''), _negated=True), name='next_token_guess_not_empty'), models.CheckConstraint(condition=models.Q(('attempt__gte', 1)), name='next_token_attempt_at_least_1'), models.CheckConstraint(condition=models.Q(models.Q(('right', True), ('token', models.F('true_token'))), models.Q(('right', False), models.Q(('token', models.F('true_token')), _negated=True)), _connector='OR'), name='next_token_right_by_id')],
                    },
                ),
                migrations.CreateModel(
                    name='TokenRun',
                    fields=[
                        ('item', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='token_run', serialize=False, to='survey.item')),
                        ('question', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='survey.question')),
                        ('tokenizer', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='survey.tokenizerrecord')),
                        ('start', models.PositiveIntegerField(help_text='So many tokens of the passage stand before it.', verbose_name="tokens before it")),
                        ('length', models.PositiveSmallIntegerField(help_text='Tokens, with those that are given.', verbose_name="number of tokens")),
                        ('tokens', models.JSONField(help_text='Of each token: id, first character, the one after its last, 1 if asked.', verbose_name="where the tokens are")),
                    ],
                    options={
                        'constraints': [models.CheckConstraint(condition=models.Q(('length__gte', 1)), name='next_token_run_not_empty')],
                    },
                ),
            ],
        ),
    ]
