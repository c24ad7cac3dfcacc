"""Policies at work: in tasks or Gymnasium environments, one raw row per episode."""
