"""Pictures of predictors. matplotlib is imported when one is drawn; no web process loads it."""
