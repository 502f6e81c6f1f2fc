"""The MCP door: eleven tools, a resource and a prompt over one engine, on stdio and over streamable HTTP.

Needs the `mcp` extra. Importing this package loads nothing: `server`, `http` and `stdio` are imported where needed.
"""
