"""Certificates for daemons and clients of tests."""

import subprocess


def make_certificate(certificate, key, name, *arguments, alternatives="", days=2):
    """Writes a certificate and its key, as PEM. It is its own authority, unless `arguments` name another one.

    Args:
        certificate, key: the files' paths.
        name: the common name.
        arguments: more of `openssl req`.
        alternatives: alternative names, as in subjectAltName.
        days: how long it is valid.
    """
    extension = ["-addext", f"subjectAltName={alternatives}"] if alternatives else []
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-days", str(days), "-subj", f"/CN={name}", *extension, "-keyout", key, "-out", certificate,
                    *arguments], check=True, capture_output=True)
