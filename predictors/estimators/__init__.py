"""The estimators, one subject a module. Only here are torch, transformers and scikit-learn imported."""
