"""Lets these tests import the toy task, which is also a script that they start, kill and resume."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
