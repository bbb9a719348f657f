# SPDX-License-Identifier: Apache-2.0
"""The time that an operation may take, and how the attempts at its calls share it."""
from __future__ import annotations

import time
from typing import NamedTuple

import grpc

from tilewire.errors import DeadlineExceeded, Error, from_rpc


class Bounds(NamedTuple):
    """Bounds on the calls of one client."""

    timeout: float | None  # seconds for an operation; None: any time
    attempt: float | None  # for an attempt at a call that is not the last one
    attempts: int
    replicas: bool  # whether there is another server to try: if so, `attempt` has a default


class Remaining:
    """The time that one operation may still take."""

    def __init__(self, bounds: Bounds):
        self.bounds = bounds
        self._end = None if bounds.timeout is None else time.monotonic() + bounds.timeout

    def seconds(self) -> float | None:
        """Raises DeadlineExceeded if it is nothing."""
        if self._end is None:
            return None
        left = self._end - time.monotonic()
        if left <= 0:
            raise DeadlineExceeded(f'there was no answer within {self.bounds.timeout:g} s')
        return left


class Attempts:
    """The attempts at one call. One that has used up its share of the time is given up, and the next
    replica is asked: a server that stands still must not cost all of it. What a server refuses or
    cancels gRPC itself tries again, by the service config.
    """

    def __init__(self, remaining: Remaining):
        self._remaining = remaining
        self._left = remaining.bounds.attempts
        self._cut = False  # the attempt that is under way ends before the time does

    def timeout(self) -> float | None:
        """The time limit of the next attempt, which begins now."""
        whole, bounds = self._remaining.seconds(), self._remaining.bounds
        self._left -= 1
        share = bounds.attempt
        if share is None and bounds.replicas and whole is not None:
            share = whole / 2
        self._cut = self._left > 0 and share is not None and (whole is None or share < whole)
        return share if self._cut else whole

    def failed(self, error: grpc.RpcError) -> Error | None:
        """The error that the call fails with; None if it is to be tried again."""
        if self._cut and error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
            return None
        return from_rpc(error)
