import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from bandit import DesignError, fisher_f_upper_tail, student_t_quantile, student_t_upper_tail

freedoms = st.one_of(st.floats(0.5, 200), st.floats(200, 1e6))


@settings(deadline=None)
@given(st.floats(-60, 60), freedoms)
def test_the_tail_agrees_with_scipy(t, df):
    assert student_t_upper_tail(t, df) == pytest.approx(stats.t.sf(t, df), abs=1e-10)


@pytest.mark.parametrize("df", [1, 1.5, 4, 30, 61, 1000])
@pytest.mark.parametrize("t", [0.0, 0.3, 2.0, 8.0, 40.0])
def test_small_tails_are_right_to_ten_digits_too(t, df):
    assert student_t_upper_tail(t, df) == pytest.approx(stats.t.sf(t, df), rel=1e-10)


@pytest.mark.slow
@settings(deadline=None)
@given(st.floats(0.001, 0.999), freedoms)
def test_the_quantile_undoes_the_tail(probability, df):
    t = student_t_quantile(probability, df)
    assert 1 - student_t_upper_tail(t, df) == pytest.approx(probability, abs=1e-10)


def test_known_quantiles():
    assert student_t_quantile(0.975, 19) == pytest.approx(2.093024054408263, abs=1e-10)
    assert student_t_quantile(0.025, 19) == pytest.approx(-2.093024054408263, abs=1e-10)
    assert student_t_upper_tail(float("inf"), 3) == 0
    assert student_t_upper_tail(float("-inf"), 3) == 1


def test_it_refuses_what_has_no_tail():
    with pytest.raises(DesignError, match="t: is NaN"):
        student_t_upper_tail(float("nan"), 3)
    with pytest.raises(DesignError, match="degrees_of_freedom"):
        student_t_upper_tail(1.0, 0)
    with pytest.raises(DesignError, match="probability"):
        student_t_quantile(1.0, 5)


@given(st.floats(1e-3, 200), st.floats(1, 50), st.floats(2, 3000))
def test_the_upper_tail_of_f_is_scipys(f, numerator, denominator):
    assert fisher_f_upper_tail(f, numerator, denominator) == pytest.approx(
        stats.f.sf(f, numerator, denominator), abs=1e-9
    )


def test_an_f_of_0_or_none_is_no_evidence_or_refused():
    assert fisher_f_upper_tail(0.0, 3, 10) == 1.0
    with pytest.raises(DesignError, match="f: is NaN"):
        fisher_f_upper_tail(float("nan"), 3, 10)
    with pytest.raises(DesignError, match="degrees_of_freedom"):
        fisher_f_upper_tail(1.0, 0, 10)
