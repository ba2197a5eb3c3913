"""Certificates change without a restart, and errors about files show nothing of their contents."""

import shutil
import socket
import ssl
import threading
from pathlib import Path

import pytest

from conf.security.authority import Authority
from conf.security.tls import TlsError, TlsFiles, client_contexts, server_context
from tests.support.waiting import TIMEOUT_S


def answered(server: ssl.SSLContext, client: ssl.SSLContext) -> str:
    """Connect once, and return the text that the server sends: the name in the client's certificate."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            accepted, _ = listening.accept()
            accepted.settimeout(TIMEOUT_S)
            try:
                with server.wrap_socket(accepted, server_side=True) as wrapped:
                    subject = (wrapped.getpeercert() or {}).get("subject", ())
                    wrapped.sendall(repr(subject).encode())
            except OSError:
                accepted.close()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            with (
                socket.create_connection(listening.getsockname(), 20) as plain,
                client.wrap_socket(plain, server_hostname="127.0.0.1") as wrapped,
            ):
                return wrapped.recv(1_000).decode()
        finally:
            thread.join(TIMEOUT_S)


def files(authority: Authority, name: str) -> TlsFiles:
    return TlsFiles(keystore=str(authority.issue(name)), truststore=str(authority.certificate_file))


def test_a_changed_authority_is_in_force_at_the_next_handshake(tmp_path: Path) -> None:
    former, later = Authority(tmp_path / "former"), Authority(tmp_path / "later")
    served, clients = files(former, "server"), files(former, "client")
    server = server_context(served, "required", look_interval_s=0)
    assert "client" in answered(server, client_contexts(clients)())
    shutil.copy(later.issue("server"), served.keystore)
    shutil.copy(later.certificate_file, served.truststore)
    with pytest.raises(ssl.SSLError):
        answered(server, client_contexts(TlsFiles(keystore=clients.keystore, truststore=clients.truststore))())
    renewed = TlsFiles(keystore=str(later.issue("client")), truststore=served.truststore)
    assert "client" in answered(server, client_contexts(renewed)())


def test_files_that_cannot_be_used_leave_the_former_certificate_in_force(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    served, clients = files(authority, "server"), files(authority, "client")
    server = server_context(served, "required", look_interval_s=0)
    Path(served.keystore).write_text("half a file")
    assert "client" in answered(server, client_contexts(clients)())
    Path(served.keystore).unlink()
    assert "client" in answered(server, client_contexts(clients)())


def test_an_error_names_the_setting_and_the_file(tmp_path: Path) -> None:
    secret = tmp_path / "secret.pem"
    secret.write_text("canary-4711")
    for wrong in (TlsFiles(keystore=str(secret)), TlsFiles(truststore=str(tmp_path / "none.pem"))):
        with pytest.raises(TlsError, match=r"ssl\.(key|trust)store\.location: .*\.pem: .*; expected PEM") as caught:
            server_context(wrong)
        assert "canary" not in str(caught.value)


def test_only_the_owner_can_read_keys(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca")
    authority.issue("broker-1")
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "ca").iterdir()} == {0o600}
