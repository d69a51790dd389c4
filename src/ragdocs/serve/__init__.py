"""Who may ask: MCP tools, command line, watcher."""
