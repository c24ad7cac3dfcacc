"""How actions are made noisy, wherever data is collected."""

from __future__ import annotations

import numpy as np


def explore(
    actions: np.ndarray, generator: np.random.Generator, noise: float, random: float
) -> np.ndarray:
    """Gaussian noise on every action, and a share of the actions drawn at random instead: (N,
    action_dim) → (N, action_dim).
    """
    noisy = np.clip(actions + generator.normal(0.0, noise, actions.shape), -1.0, 1.0)
    anything = generator.uniform(-1.0, 1.0, actions.shape)
    return np.where(generator.uniform(size=(len(actions), 1)) < random, anything, noisy)
