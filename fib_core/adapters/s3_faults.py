"""Who is guilty when S3 says no. In: botocore's exceptions. Out: ours, with what to do next. Knows no keys' meaning."""

import contextlib
from collections.abc import Iterator

from botocore import exceptions as boto
from botocore.exceptions import ClientError

from fib_core.errors import DeviceError, StoreRefused

FAILED_CONDITION = frozenset({404, 409, 412})
TRANSPORT = (boto.ConnectionError, boto.HTTPClientError, boto.IncompleteReadError, boto.ResponseStreamingError)

_ADVICE = {
    "NoSuchBucket": "create the bucket first, or correct its name",
    "InvalidAccessKeyId": "the server does not know this access key; set AWS_ACCESS_KEY_ID or AWS_PROFILE",
    "SignatureDoesNotMatch": "the secret is wrong for this key; set AWS_SECRET_ACCESS_KEY or AWS_PROFILE",
    "ExpiredToken": "the session token has expired; log in again",
    "RequestTimeTooSkewed": "set this machine's clock",
    "BadDigest": "the bytes changed on the way; look for a proxy that rewrites bodies, then run again",
    "NotImplemented": "this server cannot do what publishing needs; use another one or a directory",
}
_FORBIDDEN = "use other credentials, or grant s3:GetObject, s3:PutObject, s3:ListBucket (and s3:DeleteObject on .probe)"
_UNWELL = frozenset({"SlowDown", "RequestTimeout", "Throttling", "InternalError"})


def status_of(error: ClientError) -> int:
    """The HTTP status of an answer."""
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def code_of(error: ClientError) -> str:
    """The server's own word for it; a bare number where the answer had no body."""
    return str(error.response.get("Error", {}).get("Code", ""))


def is_failed_condition(error: ClientError) -> bool:
    """Servers answer a failed If-Match or If-None-Match with 404, 409 or 412; a missing bucket is not one."""
    return status_of(error) in FAILED_CONDITION and code_of(error) != "NoSuchBucket"


@contextlib.contextmanager
def s3_faults(where: str) -> Iterator[None]:
    """Translate everything that botocore raises while talking about ``where``."""
    try:
        yield
    except ClientError as error:
        raise _from_answer(error, where) from error
    except (boto.NoCredentialsError, boto.PartialCredentialsError) as error:
        advice = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
        raise StoreRefused(f"no complete credentials for {where} ({error}); {advice}") from error
    except boto.FlexibleChecksumError as error:
        raise StoreRefused(f"{where} fails its checksum ({error}); restore it from a good copy") from error
    except TRANSPORT as error:
        advice = "check AWS_ENDPOINT_URL and the network, then run again"
        raise DeviceError(f"cannot reach {where} ({error}); {advice}") from error
    except boto.BotoCoreError as error:
        raise StoreRefused(f"cannot use {where}: {error}; check the AWS_* settings") from error


def _from_answer(error: ClientError, where: str) -> StoreRefused | DeviceError:
    status, code = status_of(error), code_of(error)
    message = str(error.response.get("Error", {}).get("Message", "")) or "no message"
    said = f"{where} answered {status} {code}: {message}"
    if (status >= 500 and status != 501) or code in _UNWELL:
        return DeviceError(f"{said}; the server is unwell, run again later")
    advice = _FORBIDDEN if status in (401, 403) else "see the server's documentation for this code"
    return StoreRefused(f"{said}; {_ADVICE.get(code, advice)}")
