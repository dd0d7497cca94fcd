"""Own answers: people answer a bank's questions themselves, to be judged as language models are."""
