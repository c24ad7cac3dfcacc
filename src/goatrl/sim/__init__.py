"""How the world moves."""
