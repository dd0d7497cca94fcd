"""Fresh processes that load what was saved. They are forked from one that has imported the libraries and nothing else:
to import torch and transformers takes longer than any of these tests."""

import contextlib
import io
import multiprocessing
from multiprocessing.connection import Connection

_LIBRARIES = ("torch", "safetensors.torch", "transformers.models.bert.modeling_bert", "xgboost", "sklearn.base")
_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(list(_LIBRARIES))


def printed_by(code: str) -> str:
    """What this code prints in a process of its own, which shares no object of ours."""
    ours, theirs = _processes.Pipe(duplex=False)
    process = _processes.Process(target=_run, args=(code, theirs))
    process.start()
    theirs.close()
    with contextlib.suppress(EOFError):
        return str(ours.recv())
    process.join()
    raise AssertionError(f"the process ended with status {process.exitcode}; its traceback is on stderr")


def _run(code: str, answer: Connection) -> None:
    written = io.StringIO()
    with contextlib.redirect_stdout(written):
        exec(code, {"__name__": "__main__"})  # noqa: S102
    answer.send(written.getvalue())
