"""Own answers: people answer a bank's questions themselves, and are judged like language models."""
