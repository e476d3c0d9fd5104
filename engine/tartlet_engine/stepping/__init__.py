"""Stepped generations: the program decides before each token is sampled, and may take back or add tokens."""
