"""The reference client of the Model Context Protocol (PyPI's `mcp`) against `plimsoll mcp`.

Usage: mcp_client.py PLIMSOLL ROOT URL

ROOT has the files of `cargo xtask mcp`, URL is a server of loopback. The client validates each structured result by the tool's
output schema and each message by the protocol; what is asserted here is what the tools come to. Prints the number of calls.
"""

import asyncio
import sys

from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError

PLIMSOLL, ROOT, URL = sys.argv[1:]
SERVER = StdioServerParameters(
    command=PLIMSOLL, args=["mcp", "--root", ROOT, "--max-rate", "500/s", "--max-duration", "30s"]
)

# Tool, arguments, whether it is an error, and a part of its text.
CALLS = [
    ("check", {"url": URL, "expect": ["status == 200"]}, False, "met: GET"),
    ("check", {"url": URL, "expect": ["status == 201"]}, False, "unmet: GET"),
    ("check", {"url": "http://192.0.2.1/"}, True, "--allow-target"),
    ("load", {"url": URL, "rate": 50, "duration": "1s"}, False, "50 ok"),
    ("load", {"url": URL, "rate": 501}, True, "--max-rate"),
    ("load", {"url": URL, "connection": 1}, True, "did you mean `connections`?"),
    ("load_validate", {"url": URL, "rate": 50}, False, "no errors"),
    ("load_validate", {"script": "script.js"}, False, "up to 1 virtual users"),
    ("load_script", {"script": "script.js", "env": [f"BASE={URL}"]}, False, "http_reqs"),
    ("compare", {"urls": [URL, URL], "trials": 2, "seconds": 1, "connections": 2}, False, "against"),
    ("line", {"url": URL, "most": 40, "first": 20, "window": "300ms", "warm_up": "100ms", "confirm": "0s", "rounds": 1,
              "objectives": ["errors<50%"]}, False, "ended"),
    ("mock_check", {"file": "rules.toml"}, False, "1 rule in 1 set"),
    ("mock_match", {"mock": "rules.toml", "path": "/a"}, False, "matches"),
    ("config_check", {"kind": "up", "file": "up.toml"}, False, "no mistakes"),
    ("config_check", {"kind": "up", "file": "rules.toml"}, True, "rules.toml:1"),
    ("report", {"folders": ["result"]}, False, "20 ok"),
    ("monitor_status", {}, True, "http://127.0.0.1:8080/"),
    ("docs_search", {"query": "open loop"}, False, "plimsoll://docs/"),
]


async def use(mode):
    calls = 0
    async with Client(SERVER, mode=mode) as client:
        tools = (await client.list_tools()).tools
        assert len(tools) == 13, [tool.name for tool in tools]
        used = {name for name, _, _, _ in CALLS} | {"incidents"}
        assert used == {tool.name for tool in tools}, used
        resources = (await client.list_resources()).resources
        for resource in resources:
            read = await client.read_resource(resource.uri)
            assert read.contents[0].text, resource.uri
        for name, arguments, is_error, part in CALLS:
            result = await client.call_tool(name, arguments)
            text = result.content[0].text
            assert bool(result.is_error) == is_error and part in text, f"{mode}: {name} {arguments}: {text}"
            calls += 1
        try:
            await client.call_tool("no_such_tool", {})
            raise AssertionError("a tool that is not there")
        except MCPError as error:
            assert "there is no tool" in str(error), error

        seen = []

        async def progress(done, total, message):
            seen.append((done, total, message))

        long = {"url": URL, "rate": 20, "duration": "25s"}
        running = asyncio.create_task(client.call_tool("load", long, progress_callback=progress))
        while len(seen) < 2:
            await asyncio.sleep(0.05)
        assert seen[0][1] == 25 and seen[1][0] > seen[0][0], seen
        running.cancel()
        try:
            await running
        except asyncio.CancelledError:
            pass
        # Measurements take turns: this one waits until the cancelled one has ended.
        started = asyncio.get_running_loop().time()
        result = await client.call_tool("load", {"url": URL, "requests": 5})
        assert "5 ok" in result.content[0].text, result
        assert asyncio.get_running_loop().time() - started < 15, "the cancelled run went on"
        calls += 2
        return f"{mode}: protocol {client.session.protocol_version}, {calls} calls, {len(resources)} resources"


for mode in ("legacy", "auto"):
    print(asyncio.run(use(mode)))
