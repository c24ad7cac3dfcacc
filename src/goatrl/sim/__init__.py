"""The robots' tasks for Gymnasium."""
