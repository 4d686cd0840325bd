"""`python -m ipfsmem`: the same as `ipfsmem`, for installations whose scripts are not on the path."""

from __future__ import annotations

import sys

from ipfsmem.cli import main

sys.exit(main())
