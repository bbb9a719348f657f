# SPDX-License-Identifier: Apache-2.0
"""Both clients when servers stand still, end or are not ready, and when the client itself ends."""
import asyncio
import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
import unittest
import unittest.mock

import grpc
import numpy
import tilewire
from clients import PATIENCE, Awaited, Blocking
from double import Double

UNAVAILABLE, CANCELLED = grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED
X = numpy.arange(120, dtype=numpy.float32).reshape(2, 3, 4, 5)
# Longer than any test's calls take, unless something that they wait for does not come.
LONG = PATIENCE / 2


@contextlib.contextmanager
def double_that_stands_still():
    """The address of a double whose process is stopped by a signal when the first element is called."""
    process = subprocess.Popen([sys.executable, pathlib.Path(__file__).with_name('double.py')],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def stop():
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)  # its threads stop some time after the signal
    with process:
        try:
            yield stop, process.stdout.readline().strip()
        finally:
            process.kill()


class ReplicasTest(unittest.TestCase):
    """Each test is run with each client."""

    Client = Blocking

    def setUp(self):
        self.double = Double()
        self.addCleanup(self.double.__exit__)

    def client(self, *addresses, **options):
        made = self.Client(list(addresses) or self.double.address, **options)
        self.addCleanup(made.close)
        made.metadata('echo')
        return made

    def other(self):
        double = Double()
        self.addCleanup(double.__exit__)
        return double

    def both(self, other, **options):
        """A client that is connected to both doubles."""
        client = self.client(self.double.address, other.address, **options)
        while not (self.double.seen and other.seen):
            client.infer('echo', X)
        return client

    def test_a_replica_that_stands_still_costs_an_attempt(self):
        other = self.other()
        client = self.both(other)
        self.double.seen.clear()
        self.double.going.clear()
        while not self.double.seen:  # every other call goes there first
            self.assertTrue((client.infer('echo', X, timeout=24)['y'] == X).all())

    def test_an_attempt_may_be_given_less_time(self):
        client = self.client(attempt_timeout=0.5)
        begin = time.monotonic()
        for batch in (None, 1):
            self.double.ignored = 2
            self.assertTrue((client.infer('echo', X, batch=batch)['y'] == X).all())
        self.assertLess(time.monotonic() - begin, LONG)

    def test_the_last_attempt_has_the_rest_of_the_time(self):
        client = self.client(attempt_timeout=0.5, attempts=2)
        self.double.going.clear()
        begin = time.monotonic()
        with self.assertRaises(tilewire.DeadlineExceeded):
            client.infer('echo', X, timeout=2)
        self.assertGreaterEqual(time.monotonic() - begin, 1.9)  # gRPC's clock has milliseconds
        # On a machine that stalls an attempt may end before the double has seen it.
        self.assertLessEqual(len(self.double.seen), 2)

    def test_one_server_has_all_of_the_time(self):
        client = self.client()
        self.double.going.clear()
        with self.assertRaises(tilewire.DeadlineExceeded):
            client.infer('echo', X, timeout=1)
        self.assertLessEqual(len(self.double.seen), 1)

    def test_a_server_of_this_machine_is_not_asked_through_a_proxy(self):
        nothing_answers = 'http://127.0.0.1:1'
        with unittest.mock.patch.dict(os.environ, http_proxy=nothing_answers):
            self.client().infer('echo', X, timeout=PATIENCE)

    def test_a_connection_that_says_nothing_is_given_up(self):
        with double_that_stands_still() as (stop, address):
            # Without keepalive the attempt would take all of the time.
            client = self.client(address, self.double.address, keepalive=2.4,
                                 attempt_timeout=float('inf'))
            alone = self.client(address, keepalive=2.4, attempts=1)
            for _ in range(8):
                client.infer('echo', X)
            stop()
            begin = time.monotonic()
            for _ in range(4):
                self.assertTrue((client.infer('echo', X)['y'] == X).all())
            with self.assertRaises(tilewire.Unavailable):
                alone.infer('echo', X)
            self.assertLess(time.monotonic() - begin, LONG)

    def test_what_a_server_cancels_is_tried_again_and_unavailable(self):
        client = self.client()
        self.double.refusals = [(CANCELLED, 1)] * 3
        self.assertTrue((client.infer('echo', X)['y'] == X).all())
        self.assertEqual(len(self.double.seen), 4)
        once = self.client(attempts=1)
        self.double.refusals = [(CANCELLED, 1)]
        with self.assertRaisesRegex(tilewire.Unavailable, 'the server cancelled the call') as caught:
            once.infer('echo', X)
        self.assertEqual(caught.exception.code, UNAVAILABLE)

    def test_replicas_that_do_not_serve_are_left_out(self):
        other = self.other()
        client = self.both(other, watch_health=True)
        other.serving = False
        end = time.monotonic() + PATIENCE
        of_other = -1
        while of_other != len(other.seen):
            self.assertLess(time.monotonic(), end, 'it still gets calls')
            of_other = len(other.seen)
            for _ in range(10):
                client.infer('echo', X)

    def test_a_closed_client(self):
        client = self.client()
        client.close()
        for ask in (lambda: client.infer('echo', X), lambda: client.infer('echo', X, batch=1),
                    client.models, client.live):
            with self.assertRaisesRegex(tilewire.FailedPrecondition, 'this client was closed'):
                ask()
        client.close()


class AwaitedReplicasTest(ReplicasTest):
    Client = Awaited

    def test_calls_on_their_way_fail_when_the_client_is_closed(self):
        async def run(batch):
            client = tilewire.aio.Client(self.double.address)
            await client.metadata('echo')
            self.double.seen.clear()
            self.double.going.clear()
            task = asyncio.create_task(client.infer('echo', X, batch=batch))
            while not self.double.seen:
                await asyncio.sleep(0.01)
            await client.close()
            with self.assertRaisesRegex(tilewire.FailedPrecondition, 'this client was closed'):
                await task
            self.double.going.set()
        for batch in (None, 1):
            Awaited.loop.run_until_complete(run(batch))

    def test_what_the_caller_cancels_is_not_tried_again(self):
        async def run():
            async with tilewire.aio.Client(self.double.address) as client:
                await client.metadata('echo')
                self.double.going.clear()
                task = asyncio.create_task(client.infer('echo', X))
                while not self.double.seen:
                    await asyncio.sleep(0.01)
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
                self.double.going.set()
                await client.infer('echo', X)
                self.assertEqual(len(self.double.seen), 2)
        Awaited.loop.run_until_complete(run())

    def test_one_client_in_several_loops(self):
        client = tilewire.aio.Client(self.double.address)
        first, second = asyncio.new_event_loop(), asyncio.new_event_loop()
        first.run_until_complete(client.infer('echo', X))
        with self.assertRaisesRegex(tilewire.FailedPrecondition, 'another event loop'):
            second.run_until_complete(client.infer('echo', X))
        first.close()
        self.assertTrue((second.run_until_complete(client.infer('echo', X))['y'] == X).all())
        second.run_until_complete(client.close())
        second.close()


class ClosingTest(unittest.TestCase):
    def test_calls_on_their_way_fail_when_the_client_is_closed(self):
        for batch in (None, 1):
            with Double() as double, self.subTest(batch=batch):
                client = tilewire.Client(double.address)
                client.metadata('echo')
                double.going.clear()
                failures = []

                def ask():
                    try:
                        client.infer('echo', X, batch=batch)
                    except tilewire.Error as error:
                        failures.append(error)

                thread = threading.Thread(target=ask)
                thread.start()
                while not double.seen:
                    time.sleep(0.01)
                client.close()
                thread.join()
                self.assertEqual([type(error) for error in failures], [tilewire.FailedPrecondition])


if __name__ == '__main__':
    unittest.main()
