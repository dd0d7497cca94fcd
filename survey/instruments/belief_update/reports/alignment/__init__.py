"""Do language models perform as people expect: alignment, deployment, domination."""
