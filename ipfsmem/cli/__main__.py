"""`python -m ipfsmem.cli`: the same as `ipfsmem`, for installations whose scripts are not on the PATH."""

from __future__ import annotations

import sys

from ipfsmem.cli import main

sys.exit(main())
