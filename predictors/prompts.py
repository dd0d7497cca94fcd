"""The words of the prompt that a causal language model is fine-tuned on. Imports nothing heavy.

Texts are put in by concatenation: braces and other marks in a question are words like any other.
"""

from __future__ import annotations

OPENING = (
    "Somebody guesses which questions a computer program can answer. First they are asked how likely it is to answer "
    "the second question below. Then they see how it did on the first one, and may guess again.\n\n"
    "First question:\n"
)
OUTCOMES = ("\n\nThe program got this wrong.", "\n\nThe program got this right.")
BETWEEN = "\n\nSecond question:\n"
CLOSING = "\n\nDoes their guess about the second question change? 0 means no, 1 means yes.\nAnswer:"
ANSWERS = (" 0", " 1")


def change_prompt(evidence_text: str, target_text: str, outcome: int) -> str:
    """The prompt that one of `ANSWERS` follows: was the belief about the target kept (0) or changed (1)?"""
    return OPENING + evidence_text + OUTCOMES[outcome] + BETWEEN + target_text + CLOSING
