# SPDX-License-Identifier: Apache-2.0
"""The package in one process with stubs of the same protocol from elsewhere, as tritonclient has
them: messages of the same full names, in a file of another name, with fields of their own, in the
default descriptor pool. Whichever comes first, both talk to a server.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).absolute().parent
TREE = HERE.parents[2]
OURS = 'import numpy, tilewire\nfrom double import Double\n'
FOREIGN = 'import grpc, grpc_service_pb2 as pb, grpc_service_pb2_grpc as rpc\n'
ASK_BOTH = '''
def ask_foreign(address):
    stub = rpc.GRPCInferenceServiceStub(grpc.insecure_channel(address))
    request = pb.ModelMetadataRequest(name='echo', of_elsewhere='yes')
    assert stub.ModelMetadata(request, timeout=60).inputs[0].name == 'x'

with Double() as double, tilewire.Client(double.address) as client:
    x = numpy.ones((1, 3, 4, 5), numpy.float32)
    ask_foreign(double.address)
    assert (client.infer('echo', x)['y'] == 1).all()
    ask_foreign(double.address)
print('both')
'''


class BesideOtherStubsTest(unittest.TestCase):
    def setUp(self):
        self.stubs = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.stubs)
        text = (TREE / 'protos/open_inference.proto').read_text()
        head = 'message ModelMetadataRequest {\n'
        self.assertIn(head, text)
        pathlib.Path(self.stubs, 'protos').mkdir()
        config = 'protos/model_config.proto'
        self.generate(config, (TREE / config).read_text())
        self.generate('grpc_service.proto', text.replace(head, head + '  string of_elsewhere = 99;\n'))

    def generate(self, name, text):
        """The stubs that protoc makes of a file with this name."""
        pathlib.Path(self.stubs, name).write_text(text)
        plugin = shutil.which('grpc_python_plugin')
        subprocess.run(['protoc', '-I.', '--python_out=.', '--grpc_out=.',
                        f'--plugin=protoc-gen-grpc={plugin}', name], cwd=self.stubs, check=True)

    def output_of(self, script):
        path = os.pathsep.join([str(TREE / 'client/python'), str(HERE), self.stubs])
        run = subprocess.run([sys.executable, '-c', script], capture_output=True, text=True,
                             check=False, env={**os.environ, 'PYTHONPATH': path})
        return run.stdout + run.stderr

    def test_the_others_first(self):
        self.assertEqual(self.output_of(FOREIGN + OURS + ASK_BOTH), 'both\n')

    def test_ours_first(self):
        self.assertEqual(self.output_of(OURS + FOREIGN + ASK_BOTH), 'both\n')

    def test_in_one_pool_they_would_not_stand_each_other(self):
        self.generate('open_inference.proto', (TREE / 'protos/open_inference.proto').read_text())
        self.assertIn('TypeError', self.output_of(FOREIGN + 'import open_inference_pb2\n'))

    def test_our_messages_are_those_of_protos(self):
        made = os.path.join(self.stubs, 'protos.binpb')
        names = ('model_config', 'open_inference', 'tilewire', 'model_service', 'health')
        subprocess.run(['protoc', '-I.', f'--descriptor_set_out={made}',
                        *(f'protos/{name}.proto' for name in names)], cwd=TREE, check=True)
        committed = TREE / 'client/python/tilewire/protos.binpb'
        self.assertEqual(pathlib.Path(made).read_bytes(), committed.read_bytes(),
                         'protos/ has changed: run the command that client/python/README.md names')


if __name__ == '__main__':
    unittest.main()
