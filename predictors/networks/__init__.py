"""Pretrained networks: finding them, reading texts with them, fine-tuning them. Imports torch and transformers."""
