"""What judgements of two replies say: rankings, agreement, judges held against people. Numpy, `bandit` and
`predictors` alone: these modules know neither Django nor the survey, and get plain arrays."""
