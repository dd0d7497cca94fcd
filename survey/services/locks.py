"""The lock on a stage's row: the queue at the door, and the peace in which slots move."""

from survey.models import Stage


def locked_stage(pk: int) -> Stage:
    """The stage with its study and bank, its row locked until the transaction ends.

    Not its key: at commit PostgreSQL looks up the stage of every row that refers to it, and under a full lock such a
    transaction would wait for us while we wait for a booklet that it has claimed.
    """
    return Stage.objects.select_for_update(of=("self",), no_key=True).select_related("study__bank").get(pk=pk)
