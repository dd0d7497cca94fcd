"""The same two questions as an app of oTree 6: 15 rounds of a prior and a posterior, each a form with one number.

benchmarks/serving.py copies this file into a project as `belief/__init__.py`. oTree's own default pages show it.
"""

from otree import api


class C(api.BaseConstants):
    NAME_IN_URL = "belief"
    PLAYERS_PER_GROUP = None
    NUM_ROUNDS = 15


class Subsession(api.BaseSubsession):
    pass


class Group(api.BaseGroup):
    pass


class Player(api.BasePlayer):
    prior = api.models.IntegerField(min=0, max=100, label="How likely is a correct answer, in percent?")
    posterior = api.models.IntegerField(min=0, max=100, label="And after the other answer, in percent?")


class Prior(api.Page):
    form_model = "player"
    form_fields = ["prior"]


class Posterior(api.Page):
    form_model = "player"
    form_fields = ["posterior"]


page_sequence = [Prior, Posterior]
