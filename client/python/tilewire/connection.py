# SPDX-License-Identifier: Apache-2.0
"""Where calls go and what gRPC does with them: addresses, round robin, retries."""
from __future__ import annotations

import functools
import inspect
import ipaddress
import json
import socket
import time
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import grpc

from tilewire import wire
from tilewire.errors import InvalidArgument, Unavailable
from tilewire.operations import Operations

# gRPC makes no more than five attempts, whatever is asked for.
MOST_ATTEMPTS = 5
# An attempt that failed is repeated from what is kept of the request; gRPC keeps 256 KiB of it
# unless told otherwise, less than one image.
_KEPT_BYTES = 1 << 30

# Requests of one operation that are on their way at once.
SIDE_BY_SIDE = 4


class Remaining:
    """What is left of the time that one operation may take."""

    def __init__(self, timeout: float | None):
        self._end = None if timeout is None else time.monotonic() + timeout

    def seconds(self) -> float | None:
        return None if self._end is None else max(0.0, self._end - time.monotonic())


def _split(address: str) -> tuple[str, int]:
    host, colon, port = address.rpartition(':')
    if not colon or not host or not port.isdigit() or int(port) > 65535:
        raise InvalidArgument(f'{address!r} is not HOST:PORT')
    return host.strip('[]'), int(port)


def _resolve(address: str) -> list[tuple[str, int]]:
    host, port = _split(address)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise Unavailable(f'{address}: {error.strerror}') from error
    return list(dict.fromkeys((entry[4][0], port) for entry in found))


def target_of(addresses: str | Sequence[str]) -> str:
    """What gRPC connects to.

    One address is left to gRPC, which looks its name up again when a connection breaks, and uses
    each replica that the name stands for. So is what names a resolver of gRPC's, such as
    "dns:///replicas:8001". Several addresses are looked up here, once.
    """
    listed = addresses.split(',') if isinstance(addresses, str) else list(addresses)
    if not listed:
        raise InvalidArgument('no address')
    if len(listed) == 1:
        if '/' not in listed[0]:
            _split(listed[0])
        return listed[0]
    replicas = [replica for address in listed for replica in _resolve(address)]
    versions = {ipaddress.ip_address(host).version for host, _ in replicas}
    if versions == {4}:
        return 'ipv4:' + ','.join(f'{host}:{port}' for host, port in replicas)
    # A target has one kind of address; each IPv4 address has an IPv6 one that stands for it.
    return 'ipv6:' + ','.join(
        f'[{host}]:{port}' if ':' in host else f'[::ffff:{host}]:{port}' for host, port in replicas)


def channel_options(attempts: int) -> list[tuple[str, str | int]]:
    """gRPC's options of a channel: messages of any size, round robin over replicas, and `attempts`
    at a call that was refused as UNAVAILABLE, on the next replica and after the pause that the
    server asked for, or after a growing one.
    """
    if not 1 <= attempts <= MOST_ATTEMPTS:
        raise InvalidArgument(f'attempts={attempts}: expected 1 to {MOST_ATTEMPTS}')
    config: dict = {'loadBalancingConfig': [{'round_robin': {}}]}
    if attempts > 1:
        config['methodConfig'] = [{'name': [{}], 'retryPolicy': {
            'maxAttempts': attempts, 'initialBackoff': '0.05s', 'maxBackoff': '2s',
            'backoffMultiplier': 2, 'retryableStatusCodes': ['UNAVAILABLE']}}]
    return [
        ('grpc.service_config', json.dumps(config)),
        ('grpc.enable_retries', int(attempts > 1)),
        ('grpc.per_rpc_retry_buffer_size', _KEPT_BYTES),
        ('grpc.max_receive_message_length', -1),
        ('grpc.max_send_message_length', -1),
        # Each client has connections of its own.
        ('grpc.use_local_subchannel_pool', 1),
    ]


def presented(method: Any, operation: Any) -> Any:
    """The method under the operation's name, with its text and its signature, but for the type of
    what comes back: the result itself.
    """
    functools.update_wrapper(method, operation)
    signature = inspect.signature(operation)
    result = signature.return_annotation.removeprefix('Operation[').removesuffix(']')
    method.__signature__ = signature.replace(return_annotation=result)
    return method


class Connected:
    """What both clients are: a connection to one server, or to replicas that take turns.

    Args:
        address: HOST:PORT; several, in a list or with commas between them, are replicas, and so are
            the addresses of a name that has more than one.
        timeout: seconds that an operation may take, its retries included, unless the operation is
            given a timeout of its own; None: any time.
        attempts: how often a call is tried that the server refuses as unavailable, up to 5; 1: no
            retries. gRPC waits between attempts for as long as the server asked.
        credentials: such as `grpc.ssl_channel_credentials()`; without them, in the clear.
        options: further options of gRPC's for the channel.
    """

    def __init__(self, address: str | Sequence[str], timeout: float | None, attempts: int,
                 credentials: grpc.ChannelCredentials | None, options: Sequence[tuple[str, Any]]):
        self._timeout = timeout
        self._operations = Operations()
        self._target = target_of(address)
        self._options = [*channel_options(attempts), *options]
        self._credentials = credentials

    def _time_of(self, arguments: Mapping[str, Any]) -> Remaining:
        """For an operation with these arguments."""
        timeout = arguments.get('timeout')
        return Remaining(self._timeout if timeout is None else timeout)

    def _connect(self, of: ModuleType) -> tuple[Any, dict[str, Any]]:
        """A channel made by `grpc` or by `grpc.aio`, and its methods by the names in `wire`."""
        if self._credentials is None:
            channel = of.insecure_channel(self._target, self._options)
        else:
            channel = of.secure_channel(self._target, self._credentials, self._options)
        return channel, {
            name: channel.unary_unary(method.path,
                                      request_serializer=method.request.SerializeToString,
                                      response_deserializer=method.response.FromString)
            for name, method in wire.METHODS.items()}
