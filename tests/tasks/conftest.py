"""Lets the tests of tasks import the walk that they all take."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
