"""Parse YAML with PyYAML's pure Python loader and libyaml's rules for white space, for equal results without libyaml."""

from __future__ import annotations

import re
from typing import Any, Final

from yaml import BaseLoader
from yaml.scanner import ScannerError

_AFTER_INDICATOR = re.compile(r"[-+0-9]{0,2}([ \t]*)")
_BREAKS: Final = "\r\n\x85\u2028\u2029"


class PlainLoader(BaseLoader):
    """A loader that accepts tabs where libyaml does: between tokens, in a plain scalar, after a block scalar
    indicator."""

    def scan_to_next_token(self) -> None:
        """Skip white space, comments and line ends. Tabs are not allowed as indentation."""
        scanner: Any = self
        while True:
            while scanner.peek() == " " or (
                scanner.peek() == "\t" and (scanner.flow_level or not scanner.allow_simple_key)
            ):
                scanner.forward()
            if scanner.peek() == "#":
                while scanner.peek() not in f"\0{_BREAKS}":
                    scanner.forward()
            if not scanner.scan_line_break():
                return
            if not scanner.flow_level:
                scanner.allow_simple_key = True

    def scan_plain_spaces(self, indent: int, start_mark: Any) -> list[str] | None:
        """Return the white space within a plain scalar, lines folded; None at the end of the document."""
        scanner: Any = self
        length = 0
        while scanner.peek(length) in " \t":
            length += 1
        spaces = str(scanner.prefix(length))
        scanner.forward(length)
        if scanner.peek() not in _BREAKS:
            return [spaces] if spaces else []
        scanner.scan_line_break()
        scanner.allow_simple_key = True
        breaks: list[str] = []
        while True:
            if scanner.prefix(3) in ("---", "...") and scanner.peek(3) in f"\0 \t{_BREAKS}":
                return None
            while scanner.peek() in " \t":
                if scanner.peek() == "\t" and scanner.column < indent:
                    raise ScannerError(None, None, "a tab indents a line", scanner.get_mark())
                scanner.forward()
            if scanner.peek() not in _BREAKS:
                return breaks or [" "]
            breaks.append(scanner.scan_line_break())

    def scan_block_scalar_indicators(self, start_mark: Any) -> Any:
        """Parse the rest of a line after a block scalar indicator."""
        scanner: Any = self
        match = _AFTER_INDICATOR.match(scanner.buffer, scanner.pointer)
        assert match is not None  # the pattern also matches the empty text
        spaces = " " * len(match[1])
        scanner.buffer = scanner.buffer[: match.start(1)] + spaces + scanner.buffer[match.end(1) :]
        return super().scan_block_scalar_indicators(start_mark)
