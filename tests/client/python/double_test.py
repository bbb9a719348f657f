# SPDX-License-Identifier: Apache-2.0
"""Both clients against a double that refuses, lies and changes."""
import asyncio
import inspect
import pathlib
import re
import time
import unittest

import grpc
import numpy
import tilewire
from clients import PATIENCE, Awaited, Blocking
from double import Double, describe
from tilewire import connection

UNAVAILABLE = grpc.StatusCode.UNAVAILABLE
X = numpy.arange(120, dtype=numpy.float32).reshape(2, 3, 4, 5)


class DoubleTest(unittest.TestCase):
    """Each test is run with each client."""

    Client = Blocking

    def setUp(self):
        self.double = Double()
        self.client = self.Client(self.double.address)

    def tearDown(self):
        self.client.close()
        self.double.__exit__()

    def test_metadata_is_asked_for_once(self):
        for _ in range(3):
            self.assertTrue((self.client.infer('echo', X)['y'] == X).all())
        self.assertEqual(self.double.metadata_calls, 1)
        self.client.metadata('echo', refresh=True)
        self.assertEqual(self.double.metadata_calls, 2)

    def test_a_replaced_model_is_asked_for_again(self):
        self.client.infer('echo', X)
        self.double.model = describe([-1, 4, 5])
        self.assertEqual(self.client.infer('echo', X[0])['y'].shape, (3, 4, 5))
        self.assertEqual(self.double.metadata_calls, 2)
        # An array that fits neither is refused in the terms of the server's present metadata.
        with self.assertRaisesRegex(tilewire.InvalidArgument, r'expected FP32\[-1,4,5\], got FP32\[2,3,4,5\]'):
            self.client.infer('echo', X)

    def test_one_open_dimension_may_be_any_rank(self):
        self.double.model = describe([-1])
        for x in (X, X[0, 0, 0], numpy.float32(3)):
            self.assertEqual(self.client.infer('echo', x)['y'].shape, numpy.shape(x))
        with self.assertRaisesRegex(tilewire.InvalidArgument, 'got FP64'):
            self.client.infer('echo', X.astype('f8'))

    def test_what_does_not_fit_is_not_sent(self):
        self.client.metadata('echo')
        cases = [
            (X[0, 0], r"^input 'x': expected FP32\[-1,3,4,5\], got FP32\[4,5\]$"),
            (X.astype('f8')[0], r"^input 'x': expected FP32\[-1,3,4,5\], got FP64\[3,4,5\]; it lacks the batch"),
            (X.astype('i4'), r"got INT32\[2,3,4,5\]; convert it with numpy.asarray\(x, 'float32'\)$"),
            (X.transpose(0, 2, 3, 1), r"got FP32\[2,4,5,3\]; it looks like layout='nhwc'$"),
            (X.astype('c8'), r'got complex64\[2,3,4,5\]'),
            ({'z': X}, r"^input 'z': unknown; the model has 'x'$"),
            ({}, r"^input 'x' is missing$"),
        ]
        for inputs, text in cases:
            with self.subTest(text), self.assertRaisesRegex(tilewire.InvalidArgument, text) as caught:
                self.client.infer('echo', inputs)
            self.assertEqual(caught.exception.code, grpc.StatusCode.INVALID_ARGUMENT)
        for options, text in (({'layout': 'NHWC'}, 'layout'), ({'batch': 0}, 'batch=0'),
                              ({'outputs': ['w']}, "output 'w': unknown; the model has 'y'"),
                              ({'parameters': {'a': None}}, "parameter 'a': None")):
            with self.assertRaisesRegex(tilewire.InvalidArgument, text):
                self.client.infer('echo', X, **options)
        self.assertEqual(self.double.seen, [])

    def test_arrays_of_any_strides_and_byte_order(self):
        for array in (X[:, ::-1], X.transpose(0, 1, 2, 3)[::2], X.astype('>f4'), numpy.asfortranarray(X)):
            answered = self.client.infer('echo', array)['y']
            self.assertTrue((answered == array).all())
            answered += 1  # may be written to
        self.assertEqual(self.client.infer('echo', X[:0])['y'].shape, (0, 3, 4, 5))

    def test_layout_and_parameters_are_sent(self):
        nhwc = X.transpose(0, 2, 3, 1)
        self.double.edit = lambda response: response.outputs[0].parameters['layout'].MergeFrom(
            self.double.seen[-1].outputs[0].parameters['layout'])
        with self.assertRaises(tilewire.InvalidArgument):  # the double takes nchw alone
            self.client.infer('echo', nhwc, layout='nhwc', id='7', priority=1, timing=True,
                              parameters={'word': 'yes', 'half': 0.5})
        request = self.double.seen[0]
        self.assertEqual(request.inputs[0].parameters['layout'].string_param, 'nhwc')
        self.assertEqual(list(request.inputs[0].shape), [2, 4, 5, 3])
        self.assertEqual(request.outputs[0].parameters['layout'].string_param, 'nhwc')
        self.assertEqual(request.id, '7')
        self.assertEqual(request.parameters['priority'].int64_param, 1)
        self.assertTrue(request.parameters['timing'].bool_param)
        self.assertEqual(request.parameters['word'].string_param, 'yes')
        self.assertEqual(request.parameters['half'].double_param, 0.5)
        result = self.client.infer('echo', X, output_layout='nhwc', outputs=['y'])
        self.assertEqual(result.layouts, {'y': 'nhwc'})
        self.assertEqual(len(self.double.seen[-1].inputs[0].parameters), 0)

    def test_rows_are_sent_in_batches_and_put_together_in_order(self):
        rows = numpy.arange(13 * 60, dtype=numpy.float32).reshape(13, 3, 4, 5)
        self.assertTrue((self.client.infer('echo', rows, batch=3)['y'] == rows).all())
        self.assertEqual(sorted(request.inputs[0].shape[0] for request in self.double.seen),
                         [1, 3, 3, 3, 3])
        self.client.infer('echo', rows, batch=13)
        self.assertEqual(len(self.double.seen), 6)
        self.double.refusals = [(grpc.StatusCode.INTERNAL, None)]
        with self.assertRaisesRegex(tilewire.Error, 'refused by the double'):
            self.client.infer('echo', rows, batch=1)

    def test_unavailable_is_tried_again_with_all_of_the_request(self):
        large = numpy.ones((3000, 3, 4, 5), numpy.float32)  # more than gRPC keeps by default
        self.client.metadata('echo')
        self.double.refusals = [(UNAVAILABLE, 1)] * 3
        self.assertTrue((self.client.infer('echo', large)['y'] == 1).all())
        self.assertEqual(len(self.double.seen), 4)

    def test_the_server_says_how_long_to_wait(self):
        self.client.metadata('echo')
        self.double.refusals = [(UNAVAILABLE, 1500)]
        begin = time.monotonic()
        self.client.infer('echo', X)
        # The pause that gRPC would make of itself is at most 50 ms, give or take a fifth.
        self.assertGreaterEqual(time.monotonic() - begin, 1.4)

    def test_attempts_end(self):
        self.client.metadata('echo')
        self.double.refusals = [(UNAVAILABLE, 1)] * 9
        with self.assertRaisesRegex(tilewire.Unavailable, '^refused by the double$') as caught:
            self.client.infer('echo', X)
        self.assertEqual(caught.exception.code, UNAVAILABLE)
        self.assertIsInstance(caught.exception, ConnectionError)
        self.assertEqual(len(self.double.seen), 4)
        # A negative pushback says: not again. So does a client of one attempt.
        self.double.refusals = [(UNAVAILABLE, -1)]
        with self.assertRaises(tilewire.Unavailable):
            self.client.infer('echo', X)
        once = self.Client(self.double.address, attempts=1)
        once.metadata('echo')
        self.double.refusals = [(UNAVAILABLE, 1)]
        with self.assertRaises(tilewire.Unavailable):
            once.infer('echo', X)
        once.close()
        self.assertEqual(len(self.double.seen), 6)

    def test_other_codes_are_not_tried_again(self):
        self.client.metadata('echo')
        for code, error in ((grpc.StatusCode.RESOURCE_EXHAUSTED, tilewire.ResourceExhausted),
                            (grpc.StatusCode.DEADLINE_EXCEEDED, tilewire.DeadlineExceeded),
                            (grpc.StatusCode.INTERNAL, tilewire.Error)):
            self.double.seen.clear()
            self.double.refusals = [(code, None)]
            with self.assertRaises(error) as caught:
                self.client.infer('echo', X)
            self.assertEqual(caught.exception.code, code)
            self.assertEqual(len(self.double.seen), 1)

    def test_a_timeout_spans_the_retries(self):
        self.client.metadata('echo')
        self.double.refusals = [(UNAVAILABLE, 60_000)]
        with self.assertRaises(tilewire.DeadlineExceeded) as caught:
            self.client.infer('echo', X, timeout=0.5)
        self.assertIsInstance(caught.exception, TimeoutError)

    def test_replicas_take_turns_and_stand_in_for_each_other(self):
        with Double() as other:
            both = self.Client([self.double.address, other.address])
            while not (self.double.seen and other.seen):  # until both connections stand
                both.infer('echo', X)
            self.double.seen.clear()
            other.seen.clear()
            for _ in range(20):
                both.infer('echo', X)
            self.assertEqual((len(self.double.seen), len(other.seen)), (10, 10))
            # One that refuses once does not fail the call: the next replica is asked.
            self.double.refusals = [(UNAVAILABLE, 1)] * 2
            for _ in range(8):
                both.infer('echo', X)
            both.close()

    def test_answers_that_contradict_themselves(self):
        for edit, text in ((lambda r: r.raw_output_contents.append(b''), '1 outputs with 2 raw'),
                           (lambda r: r.outputs[0].shape.append(2), '480 bytes are not FP32'),
                           (lambda r: setattr(r.outputs[0], 'datatype', 'BYTES'), 'no type for BYTES')):
            self.double.edit = edit
            with self.subTest(text), self.assertRaisesRegex(tilewire.Error, text):
                self.client.infer('echo', X)

    def test_tls(self):
        # The key and the certificate, of "double.test", are those of the C++ client's test.
        text = (pathlib.Path(__file__).parent / '../tls_test.cc').read_text()
        key, certificate = (pem.encode() for pem in re.findall(r'-----BEGIN(?s:.)*?-----END.*\n', text))
        named = [('grpc.ssl_target_name_override', 'double.test')]
        with Double(grpc.ssl_server_credentials([(key, certificate)])) as double:
            trusting = self.Client(double.address, options=named,
                                   credentials=grpc.ssl_channel_credentials(certificate))
            self.assertTrue((trusting.infer('echo', X)['y'] == X).all())
            trusting.close()
            in_the_clear = self.Client(double.address)
            with self.assertRaises(tilewire.Unavailable):
                in_the_clear.infer('echo', X)
            in_the_clear.close()

    def test_methods_that_a_server_lacks(self):
        for ask in (self.client.models, lambda: self.client.explain('echo'), self.client.healthy):
            with self.assertRaises(tilewire.Unimplemented):
                ask()


class AwaitedDoubleTest(DoubleTest):
    Client = Awaited

    def test_a_cancelled_task_cancels_its_calls(self):
        async def run():
            async with tilewire.aio.Client(self.double.address) as client:
                await client.metadata('echo')
                self.double.refusals = [(UNAVAILABLE, 60_000)]
                task = asyncio.ensure_future(client.infer('echo', X))
                while not self.double.seen:
                    await asyncio.sleep(0.01)
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
                self.assertTrue((await client.infer('echo', X))['y'].any())
        Awaited.loop.run_until_complete(run())


class AddressTest(unittest.TestCase):
    def test_targets(self):
        cases = {
            '127.0.0.1:8001': '127.0.0.1:8001',
            'replicas.example:8001': 'replicas.example:8001',
            'dns:///replicas.example:8001': 'dns:///replicas.example:8001',
            '127.0.0.1:1,127.0.0.2:2': 'ipv4:127.0.0.1:1,127.0.0.2:2',
            '[::1]:1,[::2]:2': 'ipv6:[::1]:1,[::2]:2',
            '127.0.0.1:1,[::1]:2': 'ipv6:[::ffff:127.0.0.1]:1,[::1]:2',
        }
        for addresses, target in cases.items():
            self.assertEqual(connection.target_of(connection.listed(addresses)), target)

    def test_bad_addresses_and_attempts(self):
        for address in ('localhost', '127.0.0.1:99999', ':8001', '127.0.0.1:x'):
            with self.assertRaisesRegex(tilewire.InvalidArgument, 'is not HOST:PORT'):
                tilewire.Client(address)
        with self.assertRaisesRegex(tilewire.InvalidArgument, 'no address'):
            tilewire.Client([])
        for attempts in (0, 6, '4', None):
            with self.assertRaisesRegex(tilewire.InvalidArgument, 'attempts=.*a whole number from 1 to 5'):
                tilewire.Client('127.0.0.1:1', attempts=attempts)

    def test_no_server(self):
        with Double() as double:
            address = double.address
        client = tilewire.Client(address, timeout=PATIENCE)
        self.assertFalse(client.live())
        with self.assertRaises(tilewire.Unavailable):
            client.infer('echo', X)

    def test_both_clients_are_the_same_to_readers(self):
        for name in ('infer', 'metadata', 'models', 'ready', 'run_primitive'):
            blocking = inspect.signature(getattr(tilewire.Client, name))
            self.assertEqual(blocking, inspect.signature(getattr(tilewire.aio.Client, name)))
            self.assertNotIn('Operation', str(blocking))
            self.assertTrue(getattr(tilewire.Client, name).__doc__)
        self.assertIn('ModelMetadata', str(inspect.signature(tilewire.Client.metadata)))


if __name__ == '__main__':
    unittest.main()
