# SPDX-License-Identifier: Apache-2.0
"""Where calls go and what gRPC does with them: addresses, round robin, retries, keepalive."""
from __future__ import annotations

import functools
import inspect
import ipaddress
import json
import socket
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any, TypeVar

import grpc

from tilewire import arguments, wire
from tilewire.attempts import Bounds, Remaining
from tilewire.errors import FailedPrecondition, InvalidArgument, Unavailable
from tilewire.operations import Operations

M = TypeVar('M', bound=Callable[..., Any])

# gRPC makes no more than five attempts, whatever is asked for.
MOST_ATTEMPTS = 5
# An attempt that failed is repeated from what is kept of the request; gRPC keeps 256 KiB of it
# unless told otherwise, less than one image.
_KEPT_BYTES = 1 << 30

# Requests of one operation that are on their way at once.
SIDE_BY_SIDE = 4


def _split(address: str) -> tuple[str, int]:
    host, colon, port = address.rpartition(':')
    if not colon or not host or not port.isdigit() or int(port) > 65535:
        raise InvalidArgument(f'{address!r} is not HOST:PORT')
    return host.strip('[]'), int(port)


def _resolve(address: str) -> list[tuple[str, int]]:
    host, port = _split(address)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError as error:
        raise InvalidArgument(f'{address!r}: no host has such a name') from error
    except OSError as error:
        raise Unavailable(f'{address}: {error.strerror}') from error
    return list(dict.fromkeys((str(entry[4][0]), port) for entry in found))


def listed(address: str | Sequence[str]) -> list[str]:
    """The addresses of the replicas: `address` is one, or several with commas or in a sequence."""
    found = address.split(',') if isinstance(address, str) else address
    wanted = "'HOST:PORT', or a list of such addresses"
    if isinstance(found, bytes) or not isinstance(found, Sequence):
        raise arguments.refused('address', address, wanted)
    if not found:
        raise InvalidArgument(f'no address: expected {wanted}')
    return [arguments.text('address', one, wanted) for one in found]


def target_of(addresses: Sequence[str]) -> str:
    """The target to give to gRPC.

    One address is left to gRPC, which looks its name up again when a connection breaks, and uses
    each replica that the name stands for. So is what names a resolver of gRPC's, such as
    "dns:///replicas:8001". Several addresses are looked up here, once.
    """
    if len(addresses) == 1:
        if '/' not in addresses[0]:
            _split(addresses[0])
        return addresses[0]
    replicas = [replica for address in addresses for replica in _resolve(address)]
    versions = {ipaddress.ip_address(host).version for host, _ in replicas}
    if versions == {4}:
        return 'ipv4:' + ','.join(f'{host}:{port}' for host, port in replicas)
    # A target has one kind of address; each IPv4 address has an IPv6 one that stands for it.
    return 'ipv6:' + ','.join(
        f'[{host}]:{port}' if ':' in host else f'[::ffff:{host}]:{port}' for host, port in replicas)


def is_loopback(target: str) -> bool:
    """Whether it is a server of this machine, which no proxy reaches."""
    return target.startswith(('localhost:', '127.', '[::1]:'))


def service_config(attempts: int, watch_health: bool) -> str:
    """Round robin over replicas, and `attempts` at a call that was refused as UNAVAILABLE or that a
    server which ended has CANCELLED, on the next replica and after the pause that the server asked
    for, or after a growing one. A call may be repeated: no server of the protocol remembers it.
    """
    config: dict[str, Any] = {'loadBalancingConfig': [{'round_robin': {}}]}
    if watch_health:
        config['healthCheckConfig'] = {'serviceName': ''}
    if attempts > 1:
        config['methodConfig'] = [{'name': [{}], 'retryPolicy': {
            'maxAttempts': attempts, 'initialBackoff': '0.05s', 'maxBackoff': '2s',
            'backoffMultiplier': 2, 'retryableStatusCodes': ['UNAVAILABLE', 'CANCELLED']}}]
    return json.dumps(config)


def channel_options(attempts: int, keepalive: float | None,
                    watch_health: bool) -> list[tuple[str, str | int]]:
    """gRPC's options of a channel: messages of any size, retries, keepalive."""
    options: list[tuple[str, str | int]] = [
        ('grpc.service_config', service_config(attempts, watch_health)),
        ('grpc.enable_retries', int(attempts > 1)),
        ('grpc.per_rpc_retry_buffer_size', _KEPT_BYTES),
        ('grpc.max_receive_message_length', -1),
        ('grpc.max_send_message_length', -1),
        # Each client has connections of its own.
        ('grpc.use_local_subchannel_pool', 1),
    ]
    if keepalive is not None:
        # gRPC sends two pings at most without a message of this client's between them, which
        # servers of gRPC's stand even where they were told to allow none so soon.
        options += [('grpc.keepalive_time_ms', max(1, int(keepalive * 1000))),
                    ('grpc.keepalive_timeout_ms', max(1, int(keepalive * 1000 / 3)))]
    return options


def presented(method: M, operation: Any) -> M:
    """The method under the operation's name, with its text and its signature, but for the type of
    what comes back: the result itself.
    """
    functools.update_wrapper(method, operation)
    signature = inspect.signature(operation)
    result = signature.return_annotation.removeprefix('Operation[').removesuffix(']')
    setattr(method, '__signature__', signature.replace(return_annotation=result))
    return method


class Connected:
    """The base of both clients: connections to one server, or to replicas that take turns."""

    def __init__(self, address: str | Sequence[str], *, timeout: float | None = 60,
                 attempts: int = 4, attempt_timeout: float | None = None,
                 keepalive: float | None = 15, watch_health: bool = False,
                 credentials: grpc.ChannelCredentials | None = None,
                 options: Sequence[tuple[str, Any]] = ()):
        """Connections are made when the first call needs them.

        Args:
            address: 'HOST:PORT'; several, in a list or with commas between them, are replicas, and
                so are the addresses of a name that has more than one.
            timeout: seconds that an operation may take, its retries included, unless the operation
                is given a timeout of its own; None: any time.
            attempts: how often a call is tried that a server refuses as unavailable, or cancels
                because it ends, up to 5; 1: no retries. gRPC waits between attempts for as long as
                the server asked.
            attempt_timeout: seconds after which an attempt is given up and the next replica is
                asked; only the last attempt may take all that is left of `timeout`. None: half of
                what is left if several addresses were given, and all of it if there is one.
            keepalive: seconds without a word from a server that owes an answer, until it is asked
                whether it is there. If it says nothing for a third of that time, the connection is
                given up and its calls are tried elsewhere. None: it is not asked.
            watch_health: leaves out replicas that do not serve, by gRPC's health service; each of
                them answers a call that watches it.
            credentials: such as `grpc.ssl_channel_credentials()`; without them, in the clear.
            options: further options of gRPC's for the channel.

        Raises:
            InvalidArgument: one of these is not what is described here.
            Unavailable: one of several addresses cannot be looked up.
        """
        replicas = listed(address)
        attempts = arguments.whole('attempts', attempts, 1, MOST_ATTEMPTS)
        self._bounds = Bounds(arguments.seconds('timeout', timeout),
                              arguments.seconds('attempt_timeout', attempt_timeout),
                              attempts, len(replicas) > 1 and attempt_timeout is None)
        self._operations = Operations()
        self._target = target_of(replicas)
        pause = arguments.seconds('keepalive', keepalive)
        if pause == 0:
            raise arguments.refused('keepalive', keepalive, 'seconds above 0, or None')
        if not (credentials is None or isinstance(credentials, grpc.ChannelCredentials)):
            raise arguments.refused('credentials', credentials, 'grpc.ChannelCredentials, or None')
        self._credentials = credentials
        self._options = [*channel_options(attempts, pause, watch_health),
                         ('grpc.enable_http_proxy', int(not is_loopback(self._target))),
                         *arguments.options(options)]
        self._closed = False
        self._started()

    def _started(self) -> None:
        """Called at the end of the constructor."""

    def _time_of(self, passed: Mapping[str, Any]) -> Remaining:
        """For an operation with these arguments."""
        if passed.get('timeout') is None:
            return Remaining(self._bounds)
        return Remaining(self._bounds._replace(
            timeout=arguments.seconds('timeout', passed['timeout'])))

    def _connect(self, of: ModuleType) -> tuple[Any, dict[str, Any]]:
        """A channel made by `grpc` or by `grpc.aio`, and its methods by the names in `wire`: they take
        requests that are written already, so that writing a large one counts as time of the call.
        """
        try:
            if self._credentials is None:
                channel = of.insecure_channel(self._target, self._options)
            else:
                channel = of.secure_channel(self._target, self._credentials, self._options)
        except (TypeError, ValueError) as error:
            raise InvalidArgument(f'gRPC takes no such channel: {error}') from error
        return channel, {
            name: channel.unary_unary(method.path, response_deserializer=method.response.FromString)
            for name, method in wire.METHODS.items()}

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise FailedPrecondition('this client was closed')
