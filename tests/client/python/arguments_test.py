# SPDX-License-Identifier: Apache-2.0
"""Both clients when they are given wrong things, fixed batches, BF16 and odd timeouts."""
import math
import sys
import time
import types
import unittest
from unittest import mock

import numpy
import tilewire
from clients import PATIENCE, Awaited, Blocking
from double import Double, describe
from tilewire import bfloat16

X = numpy.arange(120, dtype=numpy.float32).reshape(2, 3, 4, 5)
ROWS = numpy.arange(12 * 60, dtype=numpy.float32).reshape(12, 3, 4, 5)
SURROGATE = '\udcff'
# (float32, what of its bits BF16 keeps): to the nearest, to even halfway; infinities and NaNs.
ROUNDED = [(0x3F800000, 0x3F80), (0x3F807FFF, 0x3F80), (0x3F808000, 0x3F80), (0x3F808001, 0x3F81),
           (0x3F818000, 0x3F82), (0xBF818000, 0xBF82), (0x7F7FFFFF, 0x7F80), (0x7F800000, 0x7F80),
           (0xFF800000, 0xFF80), (0x7F800001, 0x7FC0), (0xFFFFFFFF, 0xFFFF), (0x80000000, 0x8000),
           (0x00000001, 0x0000), (0x0001C000, 0x0002)]


class ArgumentsTest(unittest.TestCase):
    """Each test is run with each client."""

    Client = Blocking

    def setUp(self):
        self.double = Double()
        self.addCleanup(self.double.__exit__)
        self.client = self.Client(self.double.address)
        self.addCleanup(self.client.close)

    def test_wrong_types_are_invalid_arguments(self):
        infer = self.client.infer
        cases = (
            (lambda: infer('echo', X, version=1), 'version=1: expected a str'),
            (lambda: infer(SURROGATE, X), r"model='\\udcff': expected a str that UTF-8 has"),
            (lambda: infer(['echo'], X), 'model=.*expected a str'),
            (lambda: infer('echo', X, id=7), 'id=7: expected a str'),
            (lambda: infer('echo', X, outputs='y'), r"outputs='y': expected a list of names: \['y'\]"),
            (lambda: infer('echo', X, outputs=3), 'outputs=3: expected a list of names, or None'),
            (lambda: infer('echo', X, outputs=[3]), "output 3: unknown; the model has 'y'"),
            (lambda: infer('echo', X, layout=['nchw']), 'layout=.*expected .nchw. or .nhwc.'),
            (lambda: infer('echo', X, output_layout='NC'), "output_layout='NC': expected"),
            (lambda: infer('echo', X, batch='2'), "batch='2': expected a whole number from 1"),
            (lambda: infer('echo', X, batch=1.5), 'batch=1.5: expected'),
            (lambda: infer('echo', X, priority='high'), "priority='high': expected a whole number from 0"),
            (lambda: infer('echo', X, priority=1 << 70), 'expected a whole number$'),
            (lambda: infer('echo', X, timing=X), 'timing=.*expected True or False'),
            (lambda: infer('echo', X, parameters=[1]), 'parameters=.*expected a dict'),
            (lambda: infer('echo', X, parameters={1: 2}), 'parameters=1: expected a str'),
            (lambda: infer('echo', X, parameters={'a': SURROGATE}), 'string_param=.*expected a str'),
            (lambda: infer('echo', [[1.0], [2.0, 3.0]]), "input 'x': numpy makes no array of it"),
            (lambda: infer('echo', X.tolist()), r"got FP64.*numpy.asarray\(x, 'float32'\)$"),
            (lambda: infer('echo', None), 'got object'),
            (lambda: infer('echo', {3: X}), "input 3: unknown"),
            (lambda: self.client.ready(5), 'model=5: expected a str'),
            (lambda: self.client.ready('echo', 5), 'version=5: expected a str'),
            (lambda: self.client.metadata(None), 'model=None: expected a str'),
            (lambda: self.client.healthy(3), 'service=3: expected a str'),
            (lambda: self.client.explain('echo', batch='x'), "batch='x': expected a whole number"),
            (lambda: self.client.explain('echo', runs=1 << 40), 'runs=1099511627776: expected'),
            (lambda: self.client.create_primitive('relu'), "primitive='relu': expected a dict"),
            (lambda: self.client.create_primitive({'eltwise': 3}), 'primitive: '),
            (lambda: self.client.create_primitive({SURROGATE: 3}), 'primitive: '),
            (lambda: self.client.run_primitive(None, {}), 'primitive=None: expected a dict'),
        )
        for wrong, text in cases:
            with self.subTest(text), self.assertRaisesRegex(tilewire.InvalidArgument, text):
                wrong()
        self.assertEqual(self.double.seen, [])

    def test_odd_timeouts(self):
        for timeout in (math.inf, 1e12, 10 ** 400, None, numpy.float32(PATIENCE), PATIENCE):
            self.assertTrue((self.client.infer('echo', X, timeout=timeout)['y'] == X).all())
        self.double.seen.clear()
        for ask in (lambda **time: self.client.infer('echo', X, **time),
                    lambda **time: self.client.infer('echo', X, batch=1, **time),
                    lambda **time: self.client.metadata('echo', refresh=True, **time),
                    lambda **time: self.client.ready('echo', **time),
                    lambda **time: self.client.explain('echo', **time),
                    lambda **time: self.client.create_primitive({}, **time),
                    lambda **time: self.client.run_primitive({}, {}, **time),
                    self.client.models, self.client.server, self.client.healthy):
            with self.assertRaises(tilewire.DeadlineExceeded):
                ask(timeout=0)
            for timeout in (math.nan, -1, '5', [1]):
                with self.assertRaisesRegex(tilewire.InvalidArgument, 'timeout=.*: expected seconds'):
                    ask(timeout=timeout)
        self.assertFalse(self.client.live(timeout=0))
        self.assertEqual(self.double.seen, [])

    def test_what_no_message_can_hold_is_not_sent(self):
        huge = numpy.zeros((9_000_000, 3, 4, 5), numpy.float32)  # which takes no memory until it is read
        begin = time.monotonic()
        with self.assertRaisesRegex(tilewire.ResourceExhausted, '2160000000 bytes; .*batch'):
            self.client.infer('echo', huge, timeout=5)
        self.assertLess(time.monotonic() - begin, 5)

    def test_a_fixed_batch_is_split(self):
        self.double.model = describe([1, 3, 4, 5])
        self.assertTrue((self.client.infer('echo', ROWS, batch=1)['y'] == ROWS).all())
        self.assertEqual([request.inputs[0].shape[0] for request in self.double.seen], [1] * 12)
        self.assertTrue((self.client.infer('echo', ROWS[:3], batch=8)['y'] == ROWS[:3]).all())
        with self.assertRaisesRegex(tilewire.InvalidArgument, r'got FP32\[12,3,4,5\]; batch=1 sends'):
            self.client.infer('echo', ROWS)

    def test_a_fixed_batch_of_several_rows(self):
        self.double.model = describe([4, 3, 4, 5])
        for batch in (4, 7):
            self.double.seen.clear()
            self.assertTrue((self.client.infer('echo', ROWS, batch=batch)['y'] == ROWS).all())
            self.assertEqual(len(self.double.seen), 3)
        for rows, batch, text in ((12, 3, 'the model takes 4 rows at a time, no fewer'),
                                  (10, 4, 'takes 4 rows at a time, and 10 .*: add 2'),
                                  (3, 4, r'expected FP32\[4,3,4,5\], got FP32\[3,3,4,5\]$')):
            with self.assertRaisesRegex(tilewire.InvalidArgument, text):
                self.client.infer('echo', ROWS[:rows], batch=batch)
        with self.assertRaisesRegex(tilewire.InvalidArgument, r'expected FP32\[4,3,4,5\], got FP32\[12,3,4\]'):
            self.client.infer('echo', ROWS[:, :, :, 0], batch=4)

    def test_parts_that_cannot_be_put_together(self):
        def one_more_row(response):
            """As many rows as objects were detected."""
            shape = response.outputs[0].shape
            shape[0] += 1
            response.raw_output_contents[0] += bytes(240)
        self.double.edit = one_more_row
        with self.assertRaisesRegex(tilewire.InvalidArgument, "output 'y' has 9 rows for 8 of .* and 5 for 4"):
            self.client.infer('echo', ROWS, batch=8)
        self.assertEqual(len(self.client.infer('echo', ROWS, batch=6)['y']), 14)  # 7 for each 6

        def scalar(response):
            response.outputs[0].shape[:] = []
            response.raw_output_contents[0] = response.raw_output_contents[0][:4]
        self.double.edit = scalar
        with self.assertRaisesRegex(tilewire.InvalidArgument, r"'y' has no rows .*: \[\]"):
            self.client.infer('echo', ROWS, batch=6)

    def test_times_of_parts_are_added_up(self):
        def timed(response):
            response.parameters['compute_us'].int64_param = response.outputs[0].shape[0]
            response.parameters['word'].string_param = 'yes'
        self.double.edit = timed
        whole = self.client.infer('echo', ROWS, batch=5, timing=True)
        self.assertEqual(whole.parameters, {'compute_us': 12, 'word': 'yes'})
        self.assertEqual([part['compute_us'] for part in whole.parts], [5, 5, 2])
        alone = self.client.infer('echo', ROWS, timing=True)
        self.assertEqual((alone.parameters['compute_us'], alone.parts), (12, [alone.parameters]))

    def test_bf16_is_its_bits(self):
        self.double.model = describe([-1, 3, 4, 5], 'BF16')
        bits = tilewire.to_bfloat16(X)
        self.assertEqual(bits.dtype, numpy.uint16)
        for array in (bits, bits.astype('>u2'), bits[:, ::-1]):
            answered = self.client.infer('echo', array)['y']
            self.assertEqual(answered.dtype, numpy.uint16)
            self.assertTrue((answered == array).all())
        self.assertEqual(self.double.seen[0].inputs[0].datatype, 'BF16')
        self.assertEqual(self.double.seen[0].raw_input_contents[0], bits.tobytes())
        with self.assertRaisesRegex(tilewire.InvalidArgument,
                                    r'expected BF16.*got FP32.*; tilewire.to_bfloat16\(x\) rounds'):
            self.client.infer('echo', X)
        self.double.model = describe([-1, 3, 4, 5])
        self.client.metadata('echo', refresh=True)
        with self.assertRaisesRegex(tilewire.InvalidArgument, 'got UINT16'):
            self.client.infer('echo', bits)

    def test_bf16_is_of_ml_dtypes_where_that_is_installed(self):
        # A stand-in, as Debian has no such package: another type of two bytes.
        halves = numpy.dtype('V2')
        with mock.patch.dict(sys.modules, ml_dtypes=types.SimpleNamespace(bfloat16=halves)):
            bfloat16.dtype.cache_clear()
            self.addCleanup(bfloat16.dtype.cache_clear)
            self.double.model = describe([-1, 3, 4, 5], 'BF16')
            rounded = tilewire.to_bfloat16(X)
            self.assertEqual(rounded.dtype, halves)
            for array in (rounded, rounded.view(numpy.uint16)):
                answered = self.client.infer('echo', array)['y']
                self.assertEqual(answered.dtype, halves)
                self.assertTrue((tilewire.from_bfloat16(answered) == X).all())
            self.double.model = describe([-1, 3, 4, 5])
            self.client.metadata('echo', refresh=True)
            with self.assertRaisesRegex(tilewire.InvalidArgument, 'got BF16'):
                self.client.infer('echo', rounded)


class AwaitedArgumentsTest(ArgumentsTest):
    Client = Awaited


class ConstructorTest(unittest.TestCase):
    def test_wrong_arguments(self):
        address = '127.0.0.1:1'
        cases = (
            ((None,), {}, "address=None: expected 'HOST:PORT', or a list"),
            ((8001,), {}, 'address=8001: expected'),
            ((b'localhost:1',), {}, 'address=.*expected'),
            (([None],), {}, 'address=None: expected'),
            ((SURROGATE + ':1',), {}, 'address=.*that UTF-8 has'),
            ((f"{'a' * 70}.b:1,{address}",), {}, 'no host has such a name'),
            ((address,), {'timeout': math.nan}, 'timeout=nan: expected seconds from 0, or None'),
            ((address,), {'attempt_timeout': 'x'}, "attempt_timeout='x': expected"),
            ((address,), {'keepalive': 0}, 'keepalive=0: expected seconds above 0'),
            ((address,), {'credentials': 'secret'}, "credentials='secret': expected grpc.ChannelCred"),
            ((address,), {'options': 3}, 'options=3: expected pairs'),
            ((address,), {'options': ['ab', 'c']}, 'options=.*: expected pairs'),
            ((address,), {'options': [(3, 4)]}, 'options=3: expected a str'),
        )
        for client in (tilewire.Client, tilewire.aio.Client):
            for args, options, text in cases:
                with self.subTest(text), self.assertRaisesRegex(tilewire.InvalidArgument, text):
                    client(*args, **options)
        with self.assertRaisesRegex(tilewire.InvalidArgument, 'gRPC takes no such channel'):
            tilewire.Client(address, options=[('grpc.lb_policy_name', object())])

    def test_the_constructor_is_documented_where_readers_look(self):
        for client in (tilewire.Client, tilewire.aio.Client):
            for name in ('address', 'timeout', 'attempts', 'attempt_timeout', 'keepalive',
                         'watch_health', 'credentials', 'options'):
                self.assertIn(f'    {name}: ', client.__init__.__doc__)


class Bfloat16Test(unittest.TestCase):
    def test_rounding(self):
        whole, halves = (numpy.array(bits) for bits in zip(*ROUNDED))
        values = whole.astype('<u4').view('<f4')
        self.assertEqual(tilewire.to_bfloat16(values).tolist(), halves.tolist())
        self.assertEqual(tilewire.to_bfloat16(values.astype('>f4')).tolist(), halves.tolist())
        self.assertEqual(tilewire.to_bfloat16(numpy.float16(1.5)), 0x3FC0)
        self.assertEqual(tilewire.from_bfloat16(numpy.uint16(0x3FC0)), 1.5)
        every = numpy.arange(1 << 16, dtype=numpy.uint16)
        numbers = ~numpy.isnan(tilewire.from_bfloat16(every))
        again = tilewire.to_bfloat16(tilewire.from_bfloat16(every))
        self.assertTrue((again == every)[numbers].all())
        self.assertTrue(numpy.isnan(tilewire.from_bfloat16(again))[~numbers].all())

    def test_other_types_are_refused(self):
        for wrong in (numpy.ones(2), numpy.ones(2, int), 'x'):
            with self.assertRaisesRegex(tilewire.InvalidArgument, 'rounds float32 and float16, not'):
                tilewire.to_bfloat16(wrong)
            with self.assertRaisesRegex(tilewire.InvalidArgument, 'takes bfloat16 or uint16, not'):
                tilewire.from_bfloat16(wrong)


if __name__ == '__main__':
    unittest.main()
