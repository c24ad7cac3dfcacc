"""See `everything`."""

import sys

from crashes.everything import main

if __name__ == "__main__":
    sys.exit(main())
