"""Training loops: on a dataset, and while acting."""
