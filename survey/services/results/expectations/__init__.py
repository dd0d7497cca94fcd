"""People and models on the same items: agreement, calibration, gaps, over `survey.contracts.expectations`."""
