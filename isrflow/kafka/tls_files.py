"""A check of the TLS files that a Kafka client is given, because the client's own errors name no file."""

import ssl
from pathlib import Path

_AUTHORITIES = "expected PEM with certificates of authorities"
_KEY = "expected PEM with a private key, and its certificate"


def complaint_about_truststore(file: str) -> str:
    """Return why a client cannot use a truststore, and what is expected; empty if it can."""
    try:
        Path(file).open("rb").close()
        _context().load_verify_locations(file)
    except ssl.SSLError:
        return _AUTHORITIES
    except OSError as error:
        return str(error.strerror)
    return ""


def complaint_about_keystore(file: str, password: str) -> str:
    """Return why a client cannot use a keystore with the password of its key, and what is expected; empty if it can."""
    try:
        is_encrypted = b"ENCRYPTED" in Path(file).read_bytes()
        # First, because OpenSSL does not say whether the certificate or the key is wrong.
        _context().load_verify_locations(file)
    except ssl.SSLError:
        return _KEY
    except OSError as error:
        return str(error.strerror)
    try:
        # An empty password, because otherwise OpenSSL asks the terminal for one.
        _context().load_cert_chain(file, password=password)
    except (ssl.SSLError, ValueError) as error:
        if getattr(error, "reason", None) == "KEY_VALUES_MISMATCH":
            return "its first certificate is not that of its private key"
        if is_encrypted:
            opens = "ssl.key.password does not open its private key"
            return opens if password else "its private key is encrypted: ssl.key.password is needed"
        return _KEY
    return ""


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # The client refuses short keys itself, and may have other rules than this machine's OpenSSL.
    context.set_ciphers("DEFAULT@SECLEVEL=0")
    return context
