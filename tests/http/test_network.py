"""How a server is reached: TLS, proxies, several projects, and where it refuses to listen."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import os
import ssl
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tests.faults.nursery import Forked, shared_nursery
from tests.http.site import Site, make_token, serving
from tests.serve.windows import until

from ragdocs.project import registry

if TYPE_CHECKING:
    from tests.conftest import Project

SEARCH = "/api/search_docs?query=tokens"
EVERYWHERE = ("--host", "0.0.0.0")


def certificate(folder: Path, password: bytes = b"") -> tuple[str, str]:
    """Make a certificate for this machine, signed by itself, and return its files."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "ragdocs test")])
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .sign(key, hashes.SHA256())
    )
    encryption: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if password:
        encryption = serialization.BestAvailableEncryption(password)
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    files = (folder / "cert.pem", folder / "key.pem")
    files[0].write_bytes(signed.public_bytes(pem))
    files[1].write_bytes(key.private_bytes(pem, pkcs8, encryption))
    return str(files[0]), str(files[1])


def refusal(project: Project, *options: str) -> str:
    """Start a server that must refuse to listen, and return what it says."""
    words = ["serve", "--http", "--port", "0", "--project", str(project.root), *options]
    back, theirs = os.pipe()
    process = Forked(shared_nursery(), words, os.environ, theirs)
    os.close(theirs)
    with os.fdopen(back, encoding="utf-8") as output:
        said = output.read()
    assert process.wait() > 0
    assert "Traceback" not in said
    return said


# --- TLS ---


def test_a_server_with_a_certificate_speaks_tls_alone(project: Project, tmp_path: Path) -> None:
    project.write("config.toml", "")
    cert, key = certificate(tmp_path)
    token = make_token(project.root)
    with serving(project.root, "--tls-cert", cert, "--tls-key", key) as site:
        assert site.invitation.startswith(f"https://{site.host}/open?token=")
        # A client in the clear is not answered in any way that could be read as an answer.
        with pytest.raises(OSError, match=r"."):
            site.ask("/healthz")
        site.tls = ssl.create_default_context()
        with pytest.raises(ssl.SSLCertVerificationError):
            site.ask("/healthz")
        site.tls = ssl.create_default_context(cafile=cert)
        assert site.ask(SEARCH, token=token).status == 200
        assert site.ask(SEARCH, token=token, origin=f"https://{site.host}").status == 200
        assert site.ask(SEARCH, token=token, origin=f"http://{site.host}").status == 403
        opened = site.ask(site.invitation.partition(site.host)[2])
        assert "Secure" in opened.headers["set-cookie"].split("; ")


def test_a_certificate_that_cannot_be_used_is_said_at_once(
    project: Project, tmp_path: Path
) -> None:
    project.write("config.toml", "")
    cert, key = certificate(tmp_path)
    assert "--tls-cert and --tls-key together" in refusal(project, "--tls-cert", cert)
    missing = refusal(project, "--tls-cert", cert, "--tls-key", str(tmp_path / "none.pem"))
    assert "none.pem cannot be used for TLS" in missing
    swapped = refusal(project, "--tls-cert", key, "--tls-key", cert)
    assert "cannot be used for TLS" in swapped
    cert, key = certificate(tmp_path, b"password")
    assert "the key without a password" in refusal(project, "--tls-cert", cert, "--tls-key", key)


# --- other machines ---


@pytest.mark.parametrize("address", ["0.0.0.0", "::"])
def test_a_server_for_other_machines_says_how_to_make_it_safe(
    project: Project, address: str
) -> None:
    project.write("config.toml", "")
    without_token = refusal(project, "--host", address, "--plain-http")
    assert f"{address} can be reached from other machines" in without_token
    assert "ragdocs token create" in without_token
    make_token(project.root)
    in_the_open = refusal(project, "--host", address)
    assert "tokens would be sent unencrypted" in in_the_open
    for way in ("--tls-cert", "--forwarded-allow-ips", "--plain-http"):
        assert way in in_the_open


def test_with_a_token_and_a_way_that_was_chosen_other_machines_are_served(
    project: Project, tmp_path: Path
) -> None:
    project.write("config.toml", "")
    token = make_token(project.root)
    with serving(project.root, *EVERYWHERE, "--plain-http") as site:
        assert site.ask(SEARCH, token=token).status == 200
        assert site.ask(SEARCH).status == 401
        # An address that opens the page is for whoever sits at this machine.
        assert not any("/open?" in line for line in site.log)
    cert, key = certificate(tmp_path)
    with serving(project.root, *EVERYWHERE, "--tls-cert", cert, "--tls-key", key) as site:
        site.tls = ssl.create_default_context(cafile=cert)
        assert site.ask(SEARCH, token=token).status == 200


# --- proxies ---


def addresses(site: Site) -> list[str]:
    """Return the addresses of callers as the log has them."""
    lines = [json.loads(line) for line in site.log]
    return [line["address"] for line in lines if line["message"] == "request"]


@pytest.mark.parametrize(
    ("proxies", "address"),
    [
        ((), "127.0.0.1"),
        (("--forwarded-allow-ips", "10.0.0.2"), "127.0.0.1"),
        (("--forwarded-allow-ips", "10.0.0.2, 127.0.0.1"), "203.0.113.9"),
        (("--forwarded-allow-ips", "127.0.0.0/8"), "203.0.113.9"),
    ],
)
def test_only_a_proxy_that_was_named_speaks_for_its_callers(
    project: Project, proxies: tuple[str, ...], address: str
) -> None:
    project.write("config.toml", "")
    with serving(project.root, *proxies) as site:
        headers = {"x_forwarded_for": "203.0.113.9", "x_forwarded_proto": "https"}
        assert site.ask("/healthz", **headers).status == 200
        until(lambda: bool(addresses(site)))
        assert addresses(site) == [address]
        # A name in a header is never the name of the server, whoever sends it.
        hostile = {**headers, "x_forwarded_host": "127.0.0.1", "host": "evil.example"}
        assert site.ask("/healthz", **hostile).status == 421


def test_behind_a_proxy_the_public_name_is_the_name(project: Project) -> None:
    project.write("config.toml", "")
    options = ("--forwarded-allow-ips", "127.0.0.1", "--name", "docs.example.com")
    with serving(project.root, *options) as site:
        assert site.invitation.startswith("https://docs.example.com/open?token=")
        path = site.invitation.removeprefix("https://docs.example.com")
        answer = site.ask(path, host="docs.example.com", x_forwarded_proto="https")
        assert "Secure" in answer.headers["set-cookie"].split("; ")
        cookie = answer.headers["set-cookie"].partition(";")[0]
        named = {"host": "docs.example.com", "cookie": cookie}
        assert site.ask(SEARCH, **named, origin="https://docs.example.com").status == 200
        assert site.ask(SEARCH, **named, origin="http://docs.example.com").status == 403


def test_a_proxy_that_is_no_address_is_refused(project: Project) -> None:
    project.write("config.toml", "")
    said = refusal(project, "--forwarded-allow-ips", "10.0.0.2,proxy.internal")
    assert "'proxy.internal' is not the address of a proxy" in said


# --- several projects ---


@contextlib.contextmanager
def all_projects(tmp_path: Path, *names: str) -> Iterator[tuple[Site, dict[str, Path]]]:
    """Serve every project of a user, each with one page of documentation and a memory."""
    roots: dict[str, Path] = {}
    for number, name in enumerate(names):
        root = tmp_path / str(number) / name
        (root / "docs").mkdir(parents=True)
        (root / ".memories").mkdir()
        (root / "config.toml").write_text("[memory]\nenabled = true\n")
        (root / "docs/guide.md").write_text(f"# Guide\n\nTokens of project {number}.\n")
        registry.register(root, time.time() - number)
        roots[name] = root
    with serving(roots[names[0]], "--all") as site:
        yield site, roots


def test_all_projects_of_a_user_are_served_apart(tmp_path: Path) -> None:
    with all_projects(tmp_path, "Alpha", "Beta Docs") as (site, roots):
        everything = make_token(roots["Alpha"], "--all-projects", "--role", "writer")
        for number, name in enumerate(("alpha", "beta-docs")):
            found = site.ask(f"/p/{name}{SEARCH}", token=everything).json
            assert f"project {number}" in json.dumps(found["result"])
        memory = {"filename": "here.md", "content": "x", "tags": []}
        written = site.ask("/p/beta-docs/api/create_memory", memory, token=everything)
        assert written.status == 200
        assert (roots["Beta Docs"] / ".memories/here.md").exists()
        assert not (roots["Alpha"] / ".memories/here.md").exists()
        listed = site.ask("/", token=everything).json
        assert listed == {"projects": ["alpha", "beta-docs"]}


def test_a_token_of_one_project_cannot_tell_that_there_are_others(tmp_path: Path) -> None:
    with all_projects(tmp_path, "alpha", "beta") as (site, roots):
        token = make_token(roots["alpha"], "--role", "writer")
        assert site.ask(f"/p/alpha{SEARCH}", token=token).status == 200
        paths = (SEARCH, "/", "/openapi.json", "/api/events", "/mcp", "/memory/x.md")
        for path in paths:
            others = site.ask(f"/p/beta{path}", token=token)
            nobody = site.ask(f"/p/nobody{path}", token=token)
            assert others.status == nobody.status == 404
            assert others.text == nobody.text
        memory = {"filename": "no.md", "content": "x", "tags": []}
        assert site.ask("/p/beta/api/create_memory", memory, token=token).status == 404
        assert not (roots["beta"] / ".memories/no.md").exists()
        assert site.ask("/", token=token).json == {"projects": ["alpha"]}
        figures = site.ask("/metrics", token=token)
        assert figures.status == 403
        assert "beta" not in figures.text


def test_a_project_whose_configuration_is_broken_says_so_and_harms_no_other(
    tmp_path: Path,
) -> None:
    with all_projects(tmp_path, "alpha", "beta") as (site, roots):
        (roots["beta"] / "config.toml").write_text("[memory\n")
        token = make_token(roots["alpha"], "--all-projects")
        broken = site.ask(f"/p/beta{SEARCH}", token=token)
        assert broken.status == 503
        assert "config.toml" in broken.json["error"]
        assert site.ask(f"/p/alpha{SEARCH}", token=token).status == 200
