# SPDX-License-Identifier: Apache-2.0
"""Both clients as one kind of thing, so that each test is run with each of them."""
import asyncio

import tilewire

PATIENCE = 60


class Blocking:
    """The blocking client."""

    def __init__(self, address, **options):
        self.client = tilewire.Client(address, **{'timeout': PATIENCE, **options})

    def __getattr__(self, name):
        return getattr(self.client, name)


class Awaited:
    """The client for asyncio as if its calls blocked."""

    # One for all: gRPC complains of loops that are closed.
    loop = asyncio.new_event_loop()

    def __init__(self, address, **options):
        self.client = tilewire.aio.Client(address, **{'timeout': PATIENCE, **options})

    def __getattr__(self, name):
        method = getattr(self.client, name)
        return lambda *args, **kwargs: self.loop.run_until_complete(method(*args, **kwargs))
