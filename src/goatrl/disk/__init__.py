"""What lies on disk: whole files, locks, checkpoints, metrics, and what made them."""
