"""What becomes of files when a process ends, or a disk fails, at every step of every write.

cd tests && python -m crashes        all of it, as `make test-faults` does
"""
