"""`python -m ragdocs` is the `ragdocs` command."""

import sys

from ragdocs.serve.cli import main

if __name__ == "__main__":
    sys.exit(main())
