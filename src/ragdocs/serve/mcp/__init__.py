"""The MCP rim."""
