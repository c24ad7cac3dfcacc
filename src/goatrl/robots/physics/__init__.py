"""MuJoCo at work. Importing any of these modules takes a second."""
