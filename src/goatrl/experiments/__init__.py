"""Suites (the tables and figures of the paper as grids of cells), their raw records on disk, and
claims checked from them.
"""
