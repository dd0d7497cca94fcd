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
                    name='Aid',
                    fields=[
                        ('pair', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='aid', serialize=False, to='belief_update.pair')),
                        ('asked', models.PositiveSmallIntegerField(help_text='How many similar questions it counts.', verbose_name="similar questions counted")),
                        ('right', models.PositiveSmallIntegerField(help_text='How many of them the model answered correctly.', verbose_name="similar questions answered right")),
                        ('language_model', models.CharField(help_text='Whose real answers are counted.', max_length=120)),
                        ('similarity', models.CharField(choices=[('words', 'by their words'), ('embeddings', 'by embeddings of their texts')], max_length=10)),
                        ('questions', models.JSONField(help_text='The ids of these questions, the most similar first.', verbose_name="ids of the similar questions")),
                    ],
                    options={
                        'constraints': [models.CheckConstraint(condition=models.Q(('asked__gte', 1), ('right__lte', models.F('asked'))), name='aid_right_of_asked'), models.CheckConstraint(condition=models.Q(('similarity__in', ['words', 'embeddings'])), name='aid_similarity_known')],
                    },
                ),
                migrations.CreateModel(
                    name='Belief',
                    fields=[
                        ('response', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='belief', serialize=False, to='survey.response')),
                        ('kind', models.CharField(choices=[('prior', 'prior'), ('step_1', 'after the first of several evidence questions'), ('step_2', 'after the second of three evidence questions'), ('posterior', 'posterior')], max_length=9, verbose_name="prior or posterior")),
                        ('value', models.PositiveSmallIntegerField()),
                        ('direction', models.CharField(blank=True, choices=[('', 'not asked'), ('lower', 'lower'), ('same', 'the same'), ('higher', 'higher')], max_length=6)),
                        ('entered_by', models.CharField(blank=True, choices=[('', 'unknown'), ('typed', 'typed into the field'), ('track', 'on the track, by pointer'), ('track_keys', 'on the track, by keyboard'), ('button', 'kept by a button'), ('prefilled', 'left as it was filled in')], max_length=10, verbose_name="how it was entered")),
                        ('first_value', models.PositiveSmallIntegerField(blank=True, help_text='The first number that was set.', null=True, verbose_name="first number set")),
                        ('value_changes', models.PositiveIntegerField(blank=True, help_text='How often the number was set to another value, the first time included.', null=True, verbose_name="times that the number was set")),
                        ('variant', models.CharField(blank=True, help_text='In which form the screen was shown.', max_length=200, verbose_name="form of the screen")),
                        ('place', models.PositiveSmallIntegerField(blank=True, help_text="Which of the item's evidence questions came right before, in its own order; empty with one.", null=True, verbose_name="evidence question before it")),
                    ],
                    options={
                        'constraints': [models.CheckConstraint(condition=models.Q(('value__gte', 0), ('value__lte', 100)), name='belief_between_0_and_100'), models.CheckConstraint(condition=models.Q(('kind__in', ['prior', 'step_1', 'step_2', 'posterior'])), name='belief_kind_known'), models.CheckConstraint(condition=models.Q(('direction', ''), models.Q(('direction__in', ['lower', 'same', 'higher']), ('kind__in', ['step_1', 'step_2', 'posterior'])), _connector='OR'), name='belief_direction_of_a_posterior'), models.CheckConstraint(condition=models.Q(('entered_by__in', ['', 'typed', 'track', 'track_keys', 'button', 'prefilled'])), name='belief_entry_known'), models.CheckConstraint(condition=models.Q(('first_value__isnull', True), ('first_value__lte', 100), _connector='OR'), name='belief_first_value_at_most_100'), models.CheckConstraint(condition=models.Q(('place__isnull', True), models.Q(('place__gte', 1), ('place__lte', 3), models.Q(('kind', 'prior'), _negated=True)), _connector='OR'), name='belief_place_of_an_evidence_question')],
                    },
                ),
                migrations.CreateModel(
                    name='Explanation',
                    fields=[
                        ('response', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='explanation', serialize=False, to='survey.response')),
                        ('text', models.TextField(blank=True)),
                    ],
                ),
                migrations.CreateModel(
                    name='Pair',
                    fields=[
                        ('item', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='pair', serialize=False, to='survey.item')),
                        ('target', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='survey.question', verbose_name="target question")),
                        ('evidence', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='survey.question', verbose_name="evidence question")),
                        ('outcome', models.BooleanField(blank=True, help_text='Whether the model answered the evidence correctly.', null=True)),
                        ('answer', models.ForeignKey(blank=True, help_text='What a language model really answered to the evidence; empty where outcomes are hypothetical.', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='survey.modelanswer')),
                        ('evidence_2', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='survey.question', verbose_name="second evidence question")),
                        ('outcome_2', models.BooleanField(blank=True, null=True, verbose_name="second outcome")),
                        ('answer_2', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='survey.modelanswer', verbose_name="second answer")),
                        ('evidence_3', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='survey.question', verbose_name="third evidence question")),
                        ('outcome_3', models.BooleanField(blank=True, null=True, verbose_name="third outcome")),
                        ('answer_3', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='survey.modelanswer', verbose_name="third answer")),
                    ],
                    options={
                        'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('evidence__isnull', True), ('outcome__isnull', True)), models.Q(('evidence__isnull', False), ('outcome__isnull', False)), _connector='OR'), name='pair_evidence_and_outcome_together'), models.CheckConstraint(condition=models.Q(('answer__isnull', True), ('evidence__isnull', False), _connector='OR'), name='pair_answer_needs_evidence'), models.CheckConstraint(condition=models.Q(('evidence__isnull', True), models.Q(('evidence', models.F('target')), _negated=True), _connector='OR'), name='pair_evidence_is_not_the_target'), models.CheckConstraint(condition=models.Q(models.Q(('answer_2__isnull', True), ('evidence_2__isnull', True), ('outcome_2__isnull', True)), models.Q(('evidence_2__isnull', False), ('evidence__isnull', False), ('outcome_2__isnull', False), models.Q(('evidence_2', models.F('target')), _negated=True), models.Q(('evidence_2', models.F('evidence')), _negated=True)), _connector='OR'), name='pair_second_evidence_is_whole'), models.CheckConstraint(condition=models.Q(models.Q(('answer_3__isnull', True), ('evidence_3__isnull', True), ('outcome_3__isnull', True)), models.Q(('evidence_2__isnull', False), ('evidence_3__isnull', False), ('outcome_3__isnull', False), models.Q(('evidence_3', models.F('target')), _negated=True), models.Q(('evidence_3', models.F('evidence')), _negated=True), models.Q(('evidence_3', models.F('evidence_2')), _negated=True)), _connector='OR'), name='pair_third_evidence_is_whole')],
                    },
                ),
                migrations.CreateModel(
                    name='QuestionVector',
                    fields=[
                        ('question', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='similarity_vector', serialize=False, to='survey.question')),
                        ('model', models.CharField(help_text='What made it.', max_length=200, verbose_name="model that made it")),
                        ('vector', models.TextField(help_text='Little-endian half-precision numbers of unit norm, in base64.')),
                    ],
                    options={
                        'constraints': [models.CheckConstraint(condition=models.Q(('vector', ''), _negated=True), name='question_vector_not_empty')],
                    },
                ),
                migrations.CreateModel(
                    name='ReasonCode',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('explanation', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='codes', to='belief_update.explanation')),
                        ('coder', models.CharField(max_length=60, verbose_name="who read it")),
                        ('code', models.CharField(max_length=80, verbose_name="kind of reason")),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('explanation', 'coder'), name='one_code_a_coder_and_reason'), models.CheckConstraint(condition=models.Q(models.Q(('coder', ''), _negated=True), models.Q(('code', ''), _negated=True)), name='reason_code_not_empty')],
                    },
                ),
                migrations.CreateModel(
                    name='TargetAnswer',
                    fields=[
                        ('response', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='target_answer', serialize=False, to='survey.response')),
                        ('text', models.TextField(help_text='The letter of an option, or what was written.')),
                        ('correct', models.BooleanField(verbose_name="right")),
                        ('rules_version', models.CharField(blank=True, help_text='Of the rules that judged it.', max_length=20, verbose_name="version of the rules")),
                        ('confidence', models.PositiveSmallIntegerField(blank=True, help_text='How sure the person was to be right, in percentage points.', null=True)),
                    ],
                    options={
                        'constraints': [models.CheckConstraint(condition=models.Q(('text', ''), _negated=True), name='target_answer_not_empty'), models.CheckConstraint(condition=models.Q(('confidence__isnull', True), ('confidence__lte', 100), _connector='OR'), name='target_answer_confidence_at_most_100')],
                    },
                ),
            ],
        ),
    ]
