"""Serve the project that the user chose over MCP."""

import sys

from ragdocs.__main__ import main

if __name__ == "__main__":
    sys.argv.insert(1, "mcp")
    sys.exit(main())
