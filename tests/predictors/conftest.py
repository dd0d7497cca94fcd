from __future__ import annotations

from pathlib import Path

import pytest

from tests.predictors import tiny


@pytest.fixture(scope="session")
def one_thread() -> None:
    """Threads that wait for each other cost a tiny network on a busy machine a hundred times its own work."""
    import torch

    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def tiny_bert(one_thread: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.save_tiny_bert(tmp_path_factory.mktemp("checkpoints") / "tiny")


@pytest.fixture
def tiny_params(tiny_bert: Path) -> dict:
    return {"checkpoint": str(tiny_bert), "members": 2, "epochs": 1, "batch_size": 8, "learning_rate": 1e-3}
