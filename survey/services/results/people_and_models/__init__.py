"""People and models: agreement, calibration, gaps over `survey.contracts.expectations`; people alone; texts alone."""
