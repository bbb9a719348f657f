# SPDX-License-Identifier: Apache-2.0
"""The errors that calls raise: a code and a text, from the server or from checks made before
sending."""
from __future__ import annotations

import grpc

# The class for each code that has one.
_CLASSES: dict[grpc.StatusCode, type[Error]] = {}


class Error(Exception):
    """A call that failed. `str(error)` is `text` alone.

    Attributes:
        code: gRPC's status code.
        text: what is wrong and what is allowed, in the server's words unless this client refused.
    """

    code: grpc.StatusCode = grpc.StatusCode.UNKNOWN

    def __init_subclass__(cls, code: grpc.StatusCode | None = None):
        if code is not None:
            cls.code = code
            _CLASSES[code] = cls

    def __init__(self, text: str, code: grpc.StatusCode | None = None):
        super().__init__(text)
        self.text = text
        if code is not None:
            self.code = code


class InvalidArgument(Error, ValueError, code=grpc.StatusCode.INVALID_ARGUMENT):
    """The request does not fit the model, or itself."""


class NotFound(Error, LookupError, code=grpc.StatusCode.NOT_FOUND):
    """There is no such model, version or primitive."""


class FailedPrecondition(Error, code=grpc.StatusCode.FAILED_PRECONDITION):
    """The model is on the server, but it failed to load; or the client was closed."""


class Unavailable(Error, ConnectionError, code=grpc.StatusCode.UNAVAILABLE):
    """No server answers, or every one that was tried is full, draining or ending."""


class DeadlineExceeded(Error, TimeoutError, code=grpc.StatusCode.DEADLINE_EXCEEDED):
    """There was no answer within the timeout."""


class ResourceExhausted(Error, code=grpc.StatusCode.RESOURCE_EXHAUSTED):
    """The message, or what it needs, is larger than the server accepts."""


class Unimplemented(Error, code=grpc.StatusCode.UNIMPLEMENTED):
    """The server does not have this method, or nothing implements this primitive."""


def from_rpc(error: grpc.RpcError) -> Error:
    """The exception for what gRPC raised: of the class that its code has, with the server's text.

    A server that ends cancels what it has not answered, which is no other failure than its absence.
    The caller's own cancelling never comes here.
    """
    code = error.code()
    text = error.details() or code.name
    if code is grpc.StatusCode.CANCELLED:
        return Unavailable(f'the server cancelled the call, as it does when it ends ({text})')
    return _CLASSES.get(code, Error)(text, code)
