"""The queues of tasks. Imports nothing.

`hunch up`, docker-compose.yml and deploy/systemd start the same workers: one for short tasks, one that trains and
scores (one task at a time: both take all cores they may use, and memory for a model), and one for collections, which
mostly wait for a server and must not keep a training waiting.
"""

DEFAULT = "default"  # short tasks
TRAIN = "train"  # one member of a predictor
SCORE = "score"  # scoring, evaluating, and drawing from all items
COLLECT = "collect"  # asking language models
ALL = (DEFAULT, TRAIN, SCORE, COLLECT)
