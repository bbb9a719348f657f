# SPDX-License-Identifier: Apache-2.0
"""Both clients against the real server: server_test.py HOST:PORT DIRECTORY (of the model digits)."""
import asyncio
import pathlib
import sys
import unittest
from concurrent import futures

import numpy
import tilewire

ADDRESS, DIGITS = sys.argv.pop(1), pathlib.Path(sys.argv.pop(1))
LABELS = numpy.fromfile(DIGITS / 'heldout/labels.u8', numpy.uint8)
PICTURES = numpy.fromfile(DIGITS / 'heldout/images.u8', numpy.uint8).reshape(-1, 3, 24, 20)
LOGITS = numpy.fromfile(DIGITS / 'heldout/logits.f32', '<f4').reshape(-1, 10)
X = (PICTURES / 255).astype(numpy.float32)
F32 = 'DATA_TYPE_F32'


def _desc(*dims, tag='any'):
    return {'dims': dims, 'type': F32, 'tag': tag}


class ServerTest(unittest.TestCase):
    def setUp(self):
        self.client = tilewire.Client(ADDRESS)

    def tearDown(self):
        self.client.close()

    def test_digits(self):
        result = self.client.infer('digits', X)
        error = numpy.linalg.norm(result['logits'] - LOGITS) / numpy.linalg.norm(LOGITS)
        self.assertLess(error, 1e-4)
        accuracy = float((DIGITS / 'accuracy.txt').read_text())
        self.assertGreaterEqual((result['logits'].argmax(1) == LABELS).mean(), accuracy)
        self.assertEqual(result['features'].shape, (360, 40, 6, 5))
        self.assertEqual(result.model_version, '1')

    def test_layouts_and_batches_give_the_same_bits(self):
        first = self.client.infer('digits', X[:50])
        nhwc = numpy.ascontiguousarray(X[:50].transpose(0, 2, 3, 1))
        for options in ({}, {'batch': 7}, {'output_layout': 'nchw'}, {'timeout': 60}):
            other = self.client.infer('digits', nhwc, layout='nhwc', **options)
            self.assertTrue((other['logits'] == first['logits']).all())
            features = other['features']
            if other.layouts['features'] == 'nhwc':
                features = features.transpose(0, 3, 1, 2)
            self.assertTrue((features == first['features']).all())
        self.assertEqual(list(self.client.infer('digits', X[:1], outputs=['logits'])), ['logits'])

    def test_threads_share_a_client(self):
        alone = self.client.infer('digits', X[:64])['logits']
        with futures.ThreadPoolExecutor(8) as pool:
            rows = pool.map(lambda i: self.client.infer('digits', X[i:i + 1])['logits'], range(64))
        self.assertTrue((numpy.concatenate(list(rows)) == alone).all())

    def test_asyncio(self):
        async def run():
            async with tilewire.aio.Client(ADDRESS) as client:
                answers = await asyncio.gather(*(
                    client.infer('digits', X[i:i + 4], outputs=['logits']) for i in range(0, 40, 4)))
                together = await client.infer('digits', X[:40], batch=4)
                self.assertTrue(await client.ready('digits'))
            logits = numpy.concatenate([answer['logits'] for answer in answers])
            self.assertTrue((logits == together['logits']).all())
        asyncio.run(run())

    def test_what_the_server_says(self):
        metadata = self.client.metadata('digits')
        self.assertEqual(metadata.inputs, (tilewire.TensorMetadata('image', 'FP32', (-1, 3, 24, 20)),))
        self.assertEqual(metadata.labels, list('0123456789'))
        self.assertEqual([(model.name, model.state) for model in self.client.models()],
                         [('digits', 'READY'), ('halves', 'READY')])
        self.assertTrue(self.client.live() and self.client.ready() and self.client.healthy('digits'))
        self.assertIn('layout', self.client.server().extensions)
        times = self.client.infer('digits', X[:1], timing=True).parameters
        self.assertEqual(set(times), {'queue_us', 'compute_us', 'reorder_us', 'encode_us'})
        self.assertLessEqual(times['reorder_us'], times['compute_us'])

    def test_bf16(self):
        self.assertEqual(self.client.metadata('halves').inputs[0].datatype, 'BF16')
        values = numpy.random.default_rng(3).standard_normal((5, 4), numpy.float32)
        halves = tilewire.to_bfloat16(values)
        out = self.client.infer('halves', halves, batch=1)['y']  # the model has one row
        expected = tilewire.to_bfloat16(numpy.maximum(values, 0))
        self.assertTrue((out == expected).all())
        # The server rounds as the package does, and widens again.
        whole = {'dims': values.shape, 'type': F32, 'tag': 'nc'}
        half = {**whole, 'type': 'DATA_TYPE_BF16'}
        rounded = self.client.run_primitive({'reorder': {'src': whole, 'dst': half}}, {'src': values})
        self.assertTrue((rounded['dst'] == halves).all())
        widened = self.client.run_primitive({'reorder': {'src': half, 'dst': whole}}, {'src': halves})
        self.assertTrue((widened['dst'] == tilewire.from_bfloat16(halves)).all())

    def test_errors_of_the_server(self):
        with self.assertRaisesRegex(tilewire.NotFound, "no model 'nope'"):
            self.client.infer('nope', X)
        with self.assertRaises(tilewire.NotFound):
            self.client.infer('digits', X, version='9')
        with self.assertRaisesRegex(tilewire.InvalidArgument, "parameter 'sequence_id'"):
            self.client.infer('digits', X, parameters={'sequence_id': 1})
        with self.assertRaises(tilewire.InvalidArgument):
            self.client.infer('digits', X[0], layout='nhwc')

    def test_plans_and_primitives(self):
        plan = self.client.explain('digits', batch=2, runs=1)
        self.assertIn('convolution', {step['primitive'] for step in plan['steps']})
        self.assertGreater(plan['run_ns'], 0)
        self.assertEqual(plan['runs'], 1)
        convolution = {'convolution': {
            'src': _desc(1, 3, 6, 6), 'weights': _desc(4, 3, 1, 1), 'dst': _desc(1, 4, 6, 6)}}
        source = numpy.random.default_rng(1).random((1, 3, 6, 6), numpy.float32)
        weights = numpy.random.default_rng(2).random((4, 3, 1, 1), numpy.float32)
        created = self.client.create_primitive(convolution)
        self.assertRegex(created['implementation'], '^convolution/')
        source_desc = created['arguments'][0]['desc']
        self.assertEqual((source_desc['dims'], source_desc['type']), ([1, 3, 6, 6], F32))
        out = self.client.run_primitive(convolution, {'src': source, 'weights': weights})
        expected = numpy.einsum('nchw,ockl->nohw', source, weights)
        numpy.testing.assert_allclose(out['dst'], expected, rtol=1e-5)
        with self.assertRaisesRegex(tilewire.InvalidArgument, "argument 'bias': unknown; it has src"):
            self.client.run_primitive(convolution, {'bias': source})
        with self.assertRaisesRegex(tilewire.InvalidArgument, 'no primitive has the type float64'):
            self.client.run_primitive(convolution, {'src': source.astype('f8')})
        with self.assertRaisesRegex(tilewire.InvalidArgument, 'primitive: .*"convolutions"'):
            self.client.create_primitive({'convolutions': {}})

    def test_gradients(self):
        random = numpy.random.default_rng(5)
        source, weights = random.random((2, 3, 6, 6), 'f4'), random.random((4, 3, 1, 1), 'f4')
        gradient, before = random.random((2, 4, 6, 6), 'f4'), random.random((2, 3, 6, 6), 'f4')
        activation = random.random((2, 3, 6, 6), 'f4') - numpy.float32(0.5)
        tensors = {'src': _desc(2, 3, 6, 6), 'weights': _desc(4, 3, 1, 1), 'dst': _desc(2, 4, 6, 6)}
        of_weights = {'convolution': {
            **tensors, 'prop_kind': 'PROP_KIND_BACKWARD_WEIGHTS', 'bias': _desc(4)}}
        out = self.client.run_primitive(of_weights, {'src': source, 'diff_dst': gradient})
        self.assertEqual(set(out), {'diff_weights', 'diff_bias'})
        numpy.testing.assert_allclose(
            out['diff_weights'][..., 0, 0], numpy.einsum('nohw,nchw->oc', gradient, source), rtol=1e-5)
        numpy.testing.assert_allclose(out['diff_bias'], gradient.sum((0, 2, 3)), rtol=1e-5)
        of_source = {'convolution': {**tensors, 'prop_kind': 'PROP_KIND_BACKWARD_DATA'},
                     'attributes': {'post_ops': [{'sum': {}}, {'mask': {'alpha': 0.25}}]}}
        out = self.client.run_primitive(of_source, {
            'weights': weights, 'diff_dst': gradient, 'diff_src': before, 'src1': activation})
        expected = before + numpy.einsum('ockl,nohw->nchw', weights, gradient)
        expected *= numpy.where(activation > 0, 1, 0.25)
        numpy.testing.assert_allclose(out['diff_src'], expected, rtol=1e-5)

    def test_gathers_of_every_type_of_indices(self):
        table, picks = numpy.arange(12, dtype='f4').reshape(4, 3), numpy.array([[3, 0], [-1, 3]])
        gradient = numpy.random.default_rng(7).random((2, 2, 3), 'f4')
        for kind, name in (('i4', 'S32'), ('i8', 'S64'), ('f4', 'F32')):
            gather = {'src': _desc(4, 3, tag='nc'), 'dst': _desc(2, 2, 3),
                      'indices': {'dims': [2, 2], 'type': f'DATA_TYPE_{name}'}}
            indices = picks.astype(kind)
            out = self.client.run_primitive({'gather': gather}, {'src': table, 'indices': indices})
            numpy.testing.assert_array_equal(out['dst'], table[picks])
            backward = {'gather': {**gather, 'prop_kind': 'PROP_KIND_BACKWARD_WEIGHTS'}}
            out = self.client.run_primitive(backward, {'indices': indices, 'diff_dst': gradient})
            expected = numpy.zeros((4, 3), 'f4')
            numpy.add.at(expected, picks, gradient)
            numpy.testing.assert_allclose(out['diff_weights'], expected, rtol=1e-6)
            with self.assertRaisesRegex(tilewire.InvalidArgument, 'index 4 is outside the 4 elements'):
                self.client.run_primitive({'gather': gather}, {'src': table, 'indices': indices + 1})
        with self.assertRaisesRegex(tilewire.InvalidArgument, 'indices has type s64, not f32'):
            self.client.run_primitive({'gather': gather}, {'src': table, 'indices': picks})

    def test_prelu_learns_its_slopes(self):
        random = numpy.random.default_rng(8)
        x, gradient = random.random((2, 3, 4, 4), 'f4') - 0.5, random.random((2, 3, 4, 4), 'f4')
        slopes = numpy.array([0.5, -1, 2], 'f4').reshape(1, 3, 1, 1)
        image, weights = _desc(2, 3, 4, 4, tag='nchw'), _desc(1, 3, 1, 1)
        out = self.client.run_primitive(
            {'prelu': {'src': image, 'weights': weights, 'dst': image}}, {'src': x, 'weights': slopes})
        numpy.testing.assert_array_equal(out['dst'], numpy.where(x < 0, x * slopes, x))
        backward = {'prop_kind': 'PROP_KIND_BACKWARD', 'src': image, 'weights': weights,
                    'diff_src': image, 'diff_dst': image}
        out = self.client.run_primitive(
            {'prelu': backward}, {'src': x, 'weights': slopes, 'diff_dst': gradient})
        numpy.testing.assert_allclose(out['diff_src'], numpy.where(x > 0, 1, slopes) * gradient, rtol=1e-6)
        numpy.testing.assert_allclose(
            out['diff_weights'].ravel(), (numpy.minimum(x, 0) * gradient).sum((0, 2, 3)), rtol=1e-5)

    def test_a_workspace_goes_from_forward_to_backward(self):
        def pooling(prop_kind, **more):
            return {'pooling': {
                'prop_kind': f'PROP_KIND_{prop_kind}', 'src': _desc(1, 1, 2, 4, tag='nchw'),
                'dst': _desc(1, 1, 1, 2, tag='nchw'), 'kernel': [2, 2], 'strides': [2, 2], **more}}
        source = numpy.array([[[[1, 5, 2, 0], [3, 4, 7, 6]]]], numpy.float32)
        gradient = numpy.array([[[[10, 20]]]], numpy.float32)
        forward = self.client.create_primitive(pooling('FORWARD_TRAINING'))
        saved = self.client.run_primitive(pooling('FORWARD_TRAINING'), {'src': source})
        workspace, = (one['desc'] for one in forward['arguments'] if one['name'] == 'workspace')
        out = self.client.run_primitive(pooling('BACKWARD_DATA', workspace=workspace), {
            'diff_dst': gradient, 'workspace': saved['workspace']})
        self.assertEqual(out['diff_src'].tolist(), [[[[0, 10, 0, 0], [0, 0, 20, 0]]]])
        with self.assertRaisesRegex(tilewire.InvalidArgument, 'has to run as forward_training'):
            self.client.run_primitive(pooling('BACKWARD_DATA'), {'diff_dst': gradient})
        other = {**workspace, 'tag': 'workspace_0000000000000001'}
        with self.assertRaisesRegex(tilewire.InvalidArgument, 'of another problem'):
            self.client.create_primitive(pooling('BACKWARD_DATA', workspace=other))


if __name__ == '__main__':
    unittest.main()
