"""The OpenAI endpoints: requests are checked and translated here, and carried out by the programs in `inferlets`."""
