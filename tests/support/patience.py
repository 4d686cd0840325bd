"""How long a test waits for what must happen. Nothing here is a test.

The bound only ends a hang: it says nothing about how long anything may take, so it is as long as a loaded machine might need.
"""

from typing import Final

#: Seconds after which what a test waits for is taken as lost.
PATIENCE: Final = 60.0
