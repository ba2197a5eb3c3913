"""A certificate authority for a cluster on one machine: it signs a certificate for each gateway, broker and client.

A network of several machines has an authority already, or a tool for it. What such a certificate needs is in
docs/security.md.
"""

import datetime
import ipaddress
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from conf.whole_file import replace

CERTIFICATE, KEY = "ca.pem", "ca.key"
AUTHORITY_DAYS, DAYS = 3_650, 365
# Certificates are backdated by this much, because the clocks of two machines may differ.
_EARLIER = datetime.timedelta(minutes=5)
_PURPOSES = (ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH)


class Authority:
    """An authority whose private key is a file in a folder. Only the file's owner can read it."""

    def __init__(self, folder: Path) -> None:
        """Open the authority in ``folder``, or make one."""
        self.folder = folder
        self.certificate_file = folder / CERTIFICATE
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not (folder / KEY).exists() or not self.certificate_file.exists():
            self._create()
        loaded = load_pem_private_key((folder / KEY).read_bytes(), None)
        assert isinstance(loaded, ec.EllipticCurvePrivateKey)
        self._key = loaded
        self._certificate = x509.load_pem_x509_certificate(self.certificate_file.read_bytes())

    def _create(self) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name("isrflow cluster CA")
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        built = (
            _builder(name, name, key, _now(), datetime.timedelta(days=AUTHORITY_DAYS))
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        )
        replace(self.folder / KEY, _pem(key), 0o600)
        replace(self.certificate_file, built.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM), 0o600)

    def issue(
        self,
        common_name: str,
        hosts: Sequence[str] = ("127.0.0.1", "localhost"),
        *,
        begin: datetime.datetime | None = None,
        valid: datetime.timedelta = datetime.timedelta(days=DAYS),
    ) -> Path:
        """Sign a certificate for a TLS server or client, and return the file with its key and certificates.

        An existing file is replaced in one step.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        signed = (
            _builder(_name(common_name), self._certificate.subject, key, begin or _now(), valid)
            .add_extension(x509.SubjectAlternativeName([_general(host) for host in hosts]), critical=False)
            .add_extension(x509.ExtendedKeyUsage(_PURPOSES), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        file = self.folder / f"{common_name}.pem"
        body = _pem(key) + signed.public_bytes(Encoding.PEM) + self.certificate_file.read_bytes()
        replace(file, body, 0o600)
        return file


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    begin: datetime.datetime,
    valid: datetime.timedelta,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin - _EARLIER)
        .not_valid_after(begin + valid)
    )


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _general(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
