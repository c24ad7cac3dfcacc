"""What was seen: datasets made, imported, stored and loaded."""

from goatrl.data.making import make
from goatrl.data.storage import load, save

__all__ = ["load", "make", "save"]
