"""Do people foresee what people and language models get right: figure 7 and perplexity."""
