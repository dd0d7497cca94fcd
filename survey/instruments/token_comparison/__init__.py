"""Comparing next tokens: people say how likely each of two tokens comes next, and are paid by a proper rule."""
