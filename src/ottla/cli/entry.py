"""Where the command `ottla` begins: `serve` goes straight to its own module, because a broker starts in an instant."""

from __future__ import annotations

import sys


def main() -> None:
    if sys.argv[1:2] == ["serve"]:
        from ottla.cli.serve import main as serve

        serve.main(sys.argv[2:])
    else:
        from ottla.cli.main import main as others

        others()
