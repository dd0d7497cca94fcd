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
                    name='AskedWord',
                    fields=[
                        ('item', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='asked_word', serialize=False, to='survey.item')),
                        ('question', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='survey.question')),
                        ('position', models.PositiveSmallIntegerField(help_text='So many words are shown before it.', verbose_name="words shown before it")),
                    ],
                ),
                migrations.CreateModel(
                    name='SentenceReading',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('language_model', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='survey.languagemodel')),
                        ('text_sha256', models.CharField(db_index=True, help_text='Of the text in UTF-8, without markup.', max_length=64, verbose_name="hash of the text")),
                        ('source', models.CharField(help_text='What read it: local:FOLDER, endpoint:MODEL and so on.', max_length=520, verbose_name="model file or server")),
                        ('source_sha256', models.CharField(help_text='Of all that the reading depends on beside the text.', max_length=64, verbose_name="hash of what it was read from")),
                        ('code_version', models.CharField(max_length=10)),
                        ('values', models.BinaryField(help_text='Surprisal, boundary-corrected surprisal and entropy a word, as .npy.', verbose_name="surprisals and entropies")),
                        ('likeliest', models.JSONField(default=list, help_text='The likeliest words at each word, with their chances.', verbose_name="likeliest words")),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                    ],
                    options={
                        'ordering': ['pk'],
                        'constraints': [models.UniqueConstraint(fields=('text_sha256', 'source_sha256', 'language_model', 'code_version'), name='cloze_reading_once_a_text'), models.CheckConstraint(condition=models.Q(('values', b''), _negated=True), name='cloze_reading_has_values')],
                    },
                ),
                migrations.CreateModel(
                    name='WordScore',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('word', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='scores', to='cloze.writtenword')),
                        ('rule', models.PositiveSmallIntegerField(help_text='Version of the rule.', verbose_name="version of the rule")),
                        ('normalised', models.CharField(help_text='The word as it was compared.', max_length=120, verbose_name="word as compared")),
                        ('exact', models.BooleanField(help_text="It is the sentence's own word.", verbose_name="exactly right")),
                        ('lenient', models.BooleanField(help_text='It is, but for a slip of one letter at most.', verbose_name="right but for a slip")),
                    ],
                    options={
                        'ordering': ['rule'],
                        'constraints': [models.UniqueConstraint(fields=('word', 'rule'), name='cloze_word_judged_once_a_rule'), models.CheckConstraint(condition=models.Q(('exact', False), ('lenient', True), _connector='OR'), name='cloze_exact_is_lenient')],
                    },
                ),
                migrations.CreateModel(
                    name='WrittenWord',
                    fields=[
                        ('response', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='written_word', serialize=False, to='survey.response')),
                        ('text', models.CharField(help_text='As typed.', max_length=40)),
                        ('several', models.BooleanField(help_text='More than one word was typed; the first one is judged.', verbose_name="more than one word")),
                    ],
                    options={
                        'constraints': [models.CheckConstraint(condition=models.Q(('text', ''), _negated=True), name='cloze_word_not_empty')],
                    },
                ),
            ],
        ),
    ]
