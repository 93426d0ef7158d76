"""Where keys come from. In: ``FIB_SIGNING_KEY[_FILE]``, ``FIB_TRUSTED_KEYS``, paths. Out: a Signer, public keys.

Knows no store and signs nothing. A private key given by the environment is taken out of it by :func:`hold_signing_key`,
before any process is started that runs other people's code and would inherit it.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from fib_core.errors import ContractError
from fib_core.publication.signing import MARK, PublicKey, Signer, new_private_key, public_key_from, signer_from

SIGNING_KEY, SIGNING_KEY_FILE, TRUSTED_KEYS = "FIB_SIGNING_KEY", "FIB_SIGNING_KEY_FILE", "FIB_TRUSTED_KEYS"
PUBLIC_SUFFIX = ".pub"


class _Held:
    """The text of a private key; nothing prints it."""

    text = ""


def hold_signing_key() -> None:
    """Take the private key out of this process's environment and keep it for :func:`signer`; may be called again."""
    _Held.text = os.environ.pop(SIGNING_KEY, "") or _Held.text


def release_signing_key() -> None:
    """Forget the key that was held."""
    _Held.text = ""


def signer() -> Signer | None:
    """The signing key of this process, or None; raises ContractError if it is given twice, absent or unreadable."""
    hold_signing_key()
    path = os.environ.get(SIGNING_KEY_FILE, "")
    if path and _Held.text:
        raise ContractError(f"both {SIGNING_KEY} and {SIGNING_KEY_FILE} are set; unset one")
    if path:
        return signer_from(_text_of(Path(path), SIGNING_KEY_FILE), f"the file of {SIGNING_KEY_FILE}")
    return signer_from(_Held.text, SIGNING_KEY) if _Held.text else None


def trusted_keys() -> tuple[PublicKey, ...]:
    """The public keys of ``FIB_TRUSTED_KEYS``: a file, a folder of ``*.pub`` files, or the keys themselves.

    Empty only if the variable is unset or empty: a variable that names nothing usable raises ContractError, since
    otherwise a mistyped path would switch the checks off.
    """
    given = os.environ.get(TRUSTED_KEYS, "").strip()
    if not given:
        return ()
    texts = given.replace(",", " ").split() if given.startswith(MARK) else list(_listed(Path(given)))
    keys = tuple(dict.fromkeys(public_key_from(text, TRUSTED_KEYS) for text in texts))
    if not keys:
        raise ContractError(f"{TRUSTED_KEYS}={given} holds no public key; unset it to follow unsigned channels")
    return keys


def write_new_keys(path: Path) -> PublicKey:
    """Write a fresh private key to ``path`` (mode 0600) and its public half beside it; raises ContractError."""
    pem, public = new_private_key()
    beside = path.with_name(path.name + PUBLIC_SUFFIX)
    if beside.exists():
        raise ContractError(f"{beside} exists; a key is never overwritten, choose another name")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _create(path, pem, 0o600)
        _create(beside, f"{public}\n".encode(), 0o644)
    except FileExistsError as error:
        raise ContractError(f"{error.filename} exists; a key is never overwritten, choose another name") from None
    except OSError as error:
        raise ContractError(f"cannot write {error.filename}: {error.strerror}") from None
    return public


def _listed(path: Path) -> Iterator[str]:
    files = sorted(path.glob("*" + PUBLIC_SUFFIX)) if path.is_dir() else [path]
    for file in files:
        for line in _text_of(file, TRUSTED_KEYS).splitlines():
            text = line.partition("#")[0].strip()
            if text:
                yield text


def _text_of(path: Path, variable: str) -> str:
    try:
        return path.expanduser().read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a text file"
        raise ContractError(f"{variable} names {path}, which cannot be read: {reason}") from None


def _create(path: Path, body: bytes, mode: int) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(handle, "wb") as file:
        file.write(body)
        file.flush()
        os.fsync(handle)
