import numpy as np
import pytest

from bandit import DesignError, effective_size


def test_it_counts_what_weighs() -> None:
    assert effective_size([3.0] * 7) == pytest.approx(7)
    assert effective_size([5.0, 0.0, 0.0]) == 1
    assert effective_size([2.0, 1.0, 1.0]) == pytest.approx(16 / 6)
    assert effective_size([]) == effective_size([0.0, 0.0]) == 0


@pytest.mark.parametrize("unit", [1e-300, 1e-9, 1e9, 1e300])
def test_the_unit_of_the_weights_does_not_matter(unit: float) -> None:
    weight = np.array([0.5, 2.0, 7.0])
    assert effective_size(weight * unit) == pytest.approx(effective_size(weight), rel=1e-12)


@pytest.mark.parametrize("weight", [[1.0, -1.0], [1.0, np.nan], [np.inf], [[1.0, 2.0]], 1.0])
def test_other_weights_are_refused(weight: object) -> None:
    with pytest.raises(DesignError, match="weight"):
        effective_size(weight)  # type: ignore[arg-type]
