"""Invisible characters and those that change the direction of text, which make a line differ from what a person reads.

Format sections 1.3 and 4. Patterns only.
"""

from __future__ import annotations

from typing import Final

from ipfsmem.lazy_pattern import lazy_pattern

#: A run of control characters or line breaks of any kind.
CONTROLS_AND_BREAKS: Final = lazy_pattern(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
#: A run of Unicode's default ignorables except U+FE0F (which makes a heart an emoji), or of U+FFF9 to U+FFFB.
INVISIBLE: Final = lazy_pattern(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]+"
)
