"""Student's t and Fisher's F on the standard library, since a web process must not import scipy. Leaf module.

Source: the incomplete beta function's continued fraction (DLMF 8.17.22), evaluated by the modified Lentz method.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

from bandit.errors import DesignError

_TINY = 1e-300


def student_t_upper_tail(t: float, degrees_of_freedom: float) -> float:
    """P(T > t) for Student's t; within 1e-10 of scipy. Degrees of freedom need not be whole, but must be above 0."""
    df = _checked(degrees_of_freedom)
    if math.isnan(t):
        raise DesignError("t: is NaN; without variation between clusters there is nothing to test")
    if math.isinf(t):
        return 0.0 if t > 0 else 1.0
    # P(|T| > |t|) is the regularised incomplete beta function at df / (df + t^2) with parameters df / 2 and 1 / 2.
    x, complement = df / (df + t * t), t * t / (df + t * t)
    both = _incomplete_beta(df / 2, 0.5, x, complement, log_beta=math.log(math.pi) / 2 - _log_gamma_step(df / 2))
    return both / 2 if t >= 0 else 1 - both / 2


def fisher_f_upper_tail(f: float, numerator: float, denominator: float) -> float:
    """P(F > f) for Fisher's F with these degrees of freedom, which need not be whole; within 1e-9 of scipy."""
    first, second = _checked(numerator), _checked(denominator)
    if math.isnan(f):
        raise DesignError("f: is NaN; without variation between clusters there is nothing to test")
    if f <= 0:
        return 1.0
    log_beta = math.lgamma(first / 2) + math.lgamma(second / 2) - math.lgamma((first + second) / 2)
    whole = second + first * f
    return _incomplete_beta(second / 2, first / 2, second / whole, first * f / whole, log_beta=log_beta)


@lru_cache(maxsize=1024)
def student_t_quantile(probability: float, degrees_of_freedom: float) -> float:
    """The t with P(T <= t) = probability, for a probability above 0 and below 1; the normal quantile where the degrees
    of freedom are infinite."""
    if not 0 < probability < 1:
        raise DesignError(f"probability: must lie above 0 and below 1, not {probability}")
    if degrees_of_freedom == math.inf:
        return NormalDist().inv_cdf(probability)
    df = _checked(degrees_of_freedom)
    if probability < 0.5:
        return -student_t_quantile(1 - probability, df)
    low, high = _bracket(probability, df)
    while (middle := (low + high) / 2) not in (low, high):
        if student_t_upper_tail(middle, df) > 1 - probability:
            low = middle
        else:
            high = middle
    return middle


def _bracket(probability: float, df: float) -> tuple[float, float]:
    """Two numbers, near each other where possible, between which the quantile of a probability of 1/2 or more lies.

    Newton's method from the normal quantile; where it does not end, doubling.
    """
    tail = 1 - probability
    normal = NormalDist().inv_cdf(probability)
    t = normal + (normal**3 + normal) / (4 * df)
    scale = math.exp(_log_gamma_step(df / 2)) / math.sqrt(df * math.pi)
    for _ in range(20 if df >= 2 else 0):
        density = scale * (1 + t * t / df) ** (-(df + 1) / 2)
        step = (student_t_upper_tail(t, df) - tail) / density
        t += step
        if not 0 <= t < math.inf:
            break
        if abs(step) <= 1e-7 * t:
            # Newton's steps square the error, so that the next one would be far smaller than this.
            low, high = t * (1 - 1e-13), t * (1 + 1e-13)
            if student_t_upper_tail(low, df) > tail >= student_t_upper_tail(high, df):
                return low, high
            break
    low, high = 0.0, 1.0
    while student_t_upper_tail(high, df) > tail:
        low, high = high, 2 * high
    return low, high


def _incomplete_beta(a: float, b: float, x: float, complement: float, *, log_beta: float) -> float:
    """I_x(a, b). 1 - x is a separate argument because floats lose it for x near 1; so is log B(a, b)."""
    if x <= 0 or complement >= 1:
        return 0.0
    if complement <= 0:
        return 1.0
    # x^a (1 - x)^b / B(a, b); log1p keeps x^a exact where x is near 1 and a is large.
    log_x = math.log1p(-complement) if complement < 0.5 else math.log(x)
    log_complement = math.log1p(-x) if x < 0.5 else math.log(complement)
    front = math.exp(a * log_x + b * log_complement - log_beta)
    if x < (a + 1) / (a + b + 2):
        return front * _continued_fraction(a, b, x) / a
    return 1 - front * _continued_fraction(b, a, complement) / b


def _log_gamma_step(a: float) -> float:
    """log(Gamma(a + 1/2) / Gamma(a)); the difference of two lgammas would lose digits for a large a."""
    if a < 30:
        return math.lgamma(a + 0.5) - math.lgamma(a)
    return math.log(a) / 2 - 1 / (8 * a) + 1 / (192 * a**3) - 1 / (640 * a**5) + 17 / (14336 * a**7)


def _continued_fraction(a: float, b: float, x: float) -> float:
    c, d = 1.0, 1 / _away_from_zero(1 - (a + b) * x / (a + 1))
    result = d
    for m in range(1, 10_000):
        place = a + 2 * m
        # `_away_from_zero`, written out: half of the time of every interval was its calls.
        even = m * (b - m) * x / ((place - 1) * place)
        d = 1 + even * d
        d = 1 / (d if d > _TINY or d < -_TINY else _TINY)
        c = 1 + even / c
        c = c if c > _TINY or c < -_TINY else _TINY
        result *= c * d
        odd = -(a + m) * (a + b + m) * x / (place * (place + 1))
        d = 1 + odd * d
        d = 1 / (d if d > _TINY or d < -_TINY else _TINY)
        c = 1 + odd / c
        c = c if c > _TINY or c < -_TINY else _TINY
        result *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return result


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def _checked(degrees_of_freedom: float) -> float:
    if not (degrees_of_freedom > 0 and math.isfinite(degrees_of_freedom)):
        raise DesignError(f"degrees_of_freedom: must be a number above 0, not {degrees_of_freedom}")
    return float(degrees_of_freedom)
