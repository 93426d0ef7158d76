"""Keys as the command line needs them. In: paths, the environment. Out: public keys; a private one is never shown."""

from pathlib import Path

from fib_core.adapters import key_files
from fib_core.publication.signing import PublicKey


def hold_signing_key() -> None:
    """Take a private key out of the environment, before a process is started that runs other people's code."""
    key_files.hold_signing_key()


def new_keys(path: Path) -> PublicKey:
    """Write a fresh pair of key files; raises ContractError if one exists."""
    return key_files.write_new_keys(path)


def public_keys() -> tuple[PublicKey | None, tuple[PublicKey, ...]]:
    """The public half of this process's signing key, and the keys that it trusts; raises ContractError."""
    signer = key_files.signer()
    return signer.public if signer else None, key_files.trusted_keys()
