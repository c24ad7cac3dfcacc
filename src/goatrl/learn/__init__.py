"""How to learn: small pure functions and the parts that algorithms are composed of."""
