"""Test statistics for sampling without replacement."""

import numpy as np
from scipy import stats


def p_value_of_counts(counts, *, draws, n):
    """How well inclusion counts over independent draws of n fit equal chances without replacement.

    Within a draw the indicators have variance pi (1 - pi) and covariance -pi (1 - pi) / (N - 1), so the scaled sum of
    squares below is chi-square with N - 1 degrees of freedom. Pearson's own statistic would be too small by 1 - pi.
    """
    counts = np.asarray(counts, dtype=float)
    rate = n / counts.size
    squares = ((counts - draws * rate) ** 2).sum() / (draws * rate * (1 - rate))
    return stats.chi2.sf(squares * (counts.size - 1) / counts.size, counts.size - 1)


def p_value_of_largest_z(counts, *, draws, probability):
    """How well inclusion counts over independent draws fit unequal chances: the largest |z|, by Bonferroni.

    Nothing is assumed about how the candidates of one draw are correlated.
    """
    chance = np.asarray(probability, dtype=float)
    inside = (chance > 0) & (chance < 1)
    counts = np.asarray(counts, dtype=float)
    if (counts[~inside] != draws * chance[~inside]).any():
        return 0.0
    z = (counts - draws * chance)[inside] / np.sqrt(draws * chance * (1 - chance))[inside]
    return min(1.0, float(2 * stats.norm.sf(np.abs(z).max()) * inside.sum()))


def least_variance(contributions, weights, *, answered, strata):
    """The least variance of a mean, term by term: the spread of single answers over Kish's effective size.

    One entry an answer: what it adds to the mean, its weight, the answers of its stratum. `strata` of them have a mean
    that was taken off.
    """
    whole = sum(weights)
    share = [weight / whole for weight in weights]
    kish = 1 / sum(part**2 for part in share)
    distance = [contribution / part for contribution, part in zip(contributions, share, strict=True)]
    own = kish * sum(
        part**2 * far**2 * n / max(n - 1, 1) for part, far, n in zip(share, distance, answered, strict=True)
    )
    plain = sum(far**2 for far in distance) / (len(distance) - strata)
    return (kish * own + 10 * plain) / (kish + 10) / kish
