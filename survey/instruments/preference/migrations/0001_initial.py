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
                    name='JudgeVerdict',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('judge', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='verdicts', to='survey.languagemodel', verbose_name="judging model")),
                        ('template', models.CharField(blank=True, help_text='How it was asked; empty for imported verdicts.', max_length=40, verbose_name="wording of the request")),
                        ('template_version', models.CharField(blank=True, max_length=20, verbose_name="version of the wording")),
                        ('a', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='survey.modelanswer', verbose_name="reply A")),
                        ('b', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='survey.modelanswer', verbose_name="reply B")),
                        ('first', models.CharField(blank=True, choices=[('a', 'A first'), ('b', 'B first'), ('', 'each reply alone, or not known')], max_length=1, verbose_name="reply shown first")),
                        ('towards_a', models.FloatField(blank=True, help_text='-3.5 to 3.5. Empty where no score could be read, which is no tie.', null=True, verbose_name="score towards A")),
                        ('chance_a', models.FloatField(blank=True, help_text="That A is better, by the model's own probabilities of the eight numbers.", null=True, verbose_name="chance that A is better")),
                        ('reply', models.TextField(blank=True, help_text='As it came; of replies rated alone both, one below the other.')),
                        ('request_sha256', models.CharField(blank=True, help_text='Empty for imported verdicts.', max_length=64, verbose_name="hash of the request")),
                        ('rules_version', models.CharField(blank=True, help_text='Of the rules that read the score; empty for imported verdicts.', max_length=20, verbose_name="version of the rules")),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                    ],
                    options={
                        'ordering': ['judge', 'template', 'a', 'b', 'first'],
                        'constraints': [models.UniqueConstraint(fields=('judge', 'template', 'a', 'b', 'first'), name='verdict_once_a_pair_and_order'), models.CheckConstraint(condition=models.Q(('a__lt', models.F('b'))), name='verdict_a_before_b'), models.CheckConstraint(condition=models.Q(('towards_a__isnull', True), models.Q(('towards_a__gte', -3.5), ('towards_a__lte', 3.5)), _connector='OR'), name='verdict_towards_a_in_scale'), models.CheckConstraint(condition=models.Q(('chance_a__isnull', True), models.Q(('chance_a__gte', 0), ('chance_a__lte', 1)), _connector='OR'), name='verdict_chance_0_to_1')],
                    },
                ),
                migrations.CreateModel(
                    name='ReplyComparison',
                    fields=[
                        ('item', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='comparison', serialize=False, to='survey.item')),
                        ('question', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='survey.question')),
                        ('a', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='survey.modelanswer', verbose_name="reply A")),
                        ('b', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='survey.modelanswer', verbose_name="reply B")),
                    ],
                ),
                migrations.CreateModel(
                    name='ReplyJudgement',
                    fields=[
                        ('response', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='judgement', serialize=False, to='survey.response')),
                        ('a_first', models.BooleanField(help_text='Whether A stood first, as reply 1.', verbose_name="A stood first")),
                        ('cannot_judge', models.BooleanField(default=False, verbose_name="could not judge")),
                        ('place', models.PositiveSmallIntegerField(blank=True, help_text='On the first question, 1: reply 1 is much better; 8: reply 2 is. Empty where nobody could judge.', null=True, verbose_name="place on the scale")),
                        ('places', models.JSONField(blank=True, default=dict, help_text='The same of every question, by its name.', verbose_name="places on all scales")),
                        ('reason', models.TextField(blank=True)),
                    ],
                    options={
                        'constraints': [models.CheckConstraint(condition=models.Q(('place__isnull', True), models.Q(('place__gte', 1), ('place__lte', 8)), _connector='OR'), name='judgement_place_1_to_8'), models.CheckConstraint(condition=models.Q(models.Q(('cannot_judge', True), ('place__isnull', True)), models.Q(('cannot_judge', False), ('place__isnull', False)), _connector='OR'), name='judgement_place_unless_it_cannot_be_judged')],
                    },
                ),
            ],
        ),
    ]
