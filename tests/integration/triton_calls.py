# SPDX-License-Identifier: Apache-2.0
"""The calls of Triton's clients, byte by byte and in their order, and the fields that they read.

usage: triton_calls.py SERVER MODELS [CHECK...]

Requests are written, and answers read, by the protocol's field numbers alone, so that nothing here
depends on this project's own files of the protocol. `tritonclient_calls` is what tritonclient.grpc
offers, `perf_analyzer_sequence` what perf_analyzer sends before and after it measures.
"""
import pathlib
import shutil
import struct
import sys
import tempfile
import time

import grpc

from real_server import (INFER, LONG_PATIENCE, PATIENCE, Server, digits_request, expect, field,
                         infer_request, run_checks, sum_of, until, varint)

NAME = b'digits'
SWAPPED = b'swapped'  # a model that may be there, too (swaps.py)


class Fields:
    """A message taken apart: the values of each field in their order, by number."""

    def __init__(self, text):
        self.values, at = {}, 0
        while at < len(text):
            tag, at = self.number(text, at)
            if tag & 7 == 0:
                value, at = self.number(text, at)
            elif tag & 7 == 2:
                size, at = self.number(text, at)
                value, at = text[at:at + size], at + size
                assert len(value) == size, 'cut off'
            else:
                size = {1: 8, 5: 4}[tag & 7]
                value, at = text[at:at + size], at + size
            self.values.setdefault(tag >> 3, []).append(value)

    @staticmethod
    def number(text, at):
        value = shift = 0
        while True:
            value |= (text[at] & 127) << shift
            shift, at = shift + 7, at + 1
            if text[at - 1] < 128:
                return value, at

    def all(self, number):
        return self.values.get(number, [])

    def one(self, number, default=b''):
        return self.all(number)[-1] if self.all(number) else default

    def message(self, number):
        return Fields(self.one(number))

    def messages(self, number):
        return [Fields(text) for text in self.all(number)]

    def entries(self, number):
        """A map from strings to messages."""
        return {entry.one(1).decode(): entry.message(2) for entry in self.messages(number)}

    def numbers(self, number):
        """A repeated integer, packed or not; numbers below 0 as they are meant."""
        found = []
        for value in self.all(number):
            if isinstance(value, int):
                found.append(value)
                continue
            at = 0
            while at < len(value):
                one, at = self.number(value, at)
                found.append(one)
        return [value - (1 << 64) if value >> 63 else value for value in found]


def entry(number, key, value):
    return field(number, field(1, key) + field(2, value))


def ask(server, rpc, request=b'', **options):
    answer = server.ask(INFER + rpc, request, **options)
    assert isinstance(answer, bytes), (rpc, answer, server.reasons.get(answer))
    return Fields(answer)


def refused(server, rpc, request, code, text):
    expect(server.ask(INFER + rpc, request), code)
    assert text in server.reasons[code], server.reasons[code]


def elements(content):
    """The elements of a raw tensor of BYTES."""
    found = []
    while content:
        size, = struct.unpack('<I', content[:4])
        found.append(content[4:4 + size].decode())
        content = content[4 + size:]
    return found


def scores(answer):
    """By name: the raw content of each output."""
    names = [output.one(1).decode() for output in answer.messages(5)]
    expect(len(answer.all(6)), len(names))
    return dict(zip(names, answer.all(6)))


def output_request(name, parameter=b''):
    return field(6, field(1, name) + parameter)


def health(server):
    """is_server_live, is_server_ready, is_model_ready."""
    expect(ask(server, 'ServerLive').one(1), 1)
    expect(ask(server, 'ServerReady').one(1), 1)
    expect(ask(server, 'ModelReady', field(1, NAME)).one(1), 1)
    expect(ask(server, 'ModelReady', field(1, NAME) + field(2, b'1')).one(1), 1)
    expect(ask(server, 'ModelReady', field(1, b'nope')).one(1, 0), 0)


def metadata(server):
    """get_server_metadata, get_model_metadata."""
    told = ask(server, 'ServerMetadata')
    assert told.one(1) and told.one(2)
    for extension in (b'classification', b'model_configuration', b'schedule_policy', b'statistics'):
        assert extension in told.all(3), told.all(3)
    model = ask(server, 'ModelMetadata', field(1, NAME))
    expect(model.one(1), NAME)
    expect(model.all(2), [b'1'])
    expect(model.one(3), b'onnxruntime_onnx')
    image = model.messages(4)[0]
    expect((image.one(1), image.one(2), image.numbers(3)), (b'image', b'FP32', [-1, 3, 24, 20]))
    expect([output.one(1) for output in model.messages(5)], [b'logits', b'features'])


def config(server):
    """get_model_config."""
    told = ask(server, 'ModelConfig', field(1, NAME)).message(1)
    expect(told.one(1), NAME)
    expect(told.one(2), b'onnxruntime_onnx')
    expect(told.one(17), b'onnxruntime')
    assert told.one(4) > 0, 'a batch dimension is open'
    image = told.messages(5)[0]
    expect((image.one(1), image.one(2), image.numbers(4)), (b'image', 11, [3, 24, 20]))
    expect(image.one(3, 0), 0)
    logits = told.messages(6)[0]
    expect((logits.one(1), logits.one(2), logits.numbers(3)), (b'logits', 11, [10]))


def repository(server):
    """get_model_repository_index, load_model, unload_model."""
    index = ask(server, 'RepositoryIndex').messages(1)
    expect([(one.one(1), one.one(2), one.one(3), one.one(4)) for one in index if one.one(1) != SWAPPED],
           [(NAME, b'1', b'READY', b'')])
    for rpc in ('RepositoryModelLoad', 'RepositoryModelUnload'):
        refused(server, rpc, field(2, NAME), grpc.StatusCode.PERMISSION_DENIED, '--open_rights')


def statistics(server):
    """get_inference_statistics; counts of requests, runs and rows."""
    def told():
        models = ask(server, 'ModelStatistics', field(1, NAME) + field(2, b'1')).messages(1)
        expect(len(models), 1)
        expect((models[0].one(1), int(models[0].one(2))), (NAME, 1))
        return models[0]
    before = told()
    ask(server, 'ModelInfer', digits_request(2))
    after = told()
    expect(after.one(4) - before.one(4, 0), 2)
    expect(after.one(5) - before.one(5, 0), 1)
    assert after.one(3) > 1_600_000_000_000
    for part in (1, 3, 4, 5, 6):  # success, queue, compute_input, compute_infer, compute_output
        counts = [one.message(6).message(part).one(1, 0) for one in (before, after)]
        expect(counts[1] - counts[0], 1)
    assert 2 in [batch.one(1) for batch in after.messages(7)]
    memory = after.messages(8)[0]
    expect(memory.one(1), b'CPU')
    assert memory.one(3) > 0
    everything = ask(server, 'ModelStatistics').messages(1)
    expect([one.one(1) for one in everything if one.one(1) != SWAPPED], [NAME])


def settings(server):
    """get_trace_settings, update_trace_settings, get_log_settings, update_log_settings."""
    traces = ask(server, 'TraceSetting').entries(1)
    expect(traces['trace_level'].all(1), [b'OFF'])
    for name in ('trace_rate', 'trace_count', 'log_frequency', 'trace_file', 'trace_mode'):
        assert name in traces, traces
    of_model = ask(server, 'TraceSetting', field(2, NAME)).entries(1)
    expect(of_model['trace_rate'].all(1), traces['trace_rate'].all(1))
    log = ask(server, 'LogSettings').entries(1)
    for name in ('log_file', 'log_info', 'log_warning', 'log_error', 'log_verbose_level',
                 'log_format'):
        assert name in log, log
    expect(log['log_error'].one(1), 1)
    change = entry(1, b'log_verbose_level', varint(2, 1))
    refused(server, 'LogSettings', change, grpc.StatusCode.PERMISSION_DENIED, 'settings')


def shared_memory(server):
    """The seven calls about shared memory: status, register, unregister of system and of CUDA."""
    for kind in ('System', 'Cuda'):
        expect(ask(server, f'{kind}SharedMemoryStatus').all(1), [])
        expect(ask(server, f'{kind}SharedMemoryUnregister').values, {})
    region = field(1, b'input_data') + field(2, b'/input') + varint(4, 64)
    refused(server, 'SystemSharedMemoryRegister', region, grpc.StatusCode.UNIMPLEMENTED,
            'not in shared memory')
    refused(server, 'CudaSharedMemoryRegister', region, grpc.StatusCode.UNIMPLEMENTED, 'CUDA')


def infer(server):
    """infer: id, priority, timeout, headers, several outputs, raw answers; compressed too."""
    terms = (entry(4, b'priority', varint(5, 1)) + entry(4, b'timeout', varint(2, 60_000_000))
             + field(3, b'my-id'))
    plain = ask(server, 'ModelInfer', digits_request())
    answer = ask(server, 'ModelInfer', terms + digits_request() + output_request(b'logits'),
                 metadata=[('x-anything', 'is passed')])
    expect((answer.one(1), answer.one(2), answer.one(3)), (NAME, b'1', b'my-id'))
    expect(answer.messages(5)[0].numbers(3), [1, 10])
    expect(scores(answer)['logits'], scores(plain)['logits'])
    for compression in (grpc.Compression.Gzip, grpc.Compression.Deflate):
        with server.channel(compression=compression) as channel:
            packed = ask(server, 'ModelInfer', digits_request(), channel=channel)
            expect(scores(packed), scores(plain))
            expect(ask(server, 'ServerLive', channel=channel).one(1), 1)


def classification(server):
    """infer with class_count: BYTES of "value:index:label", the largest first."""
    classes = entry(2, b'classification', varint(2, 3))
    answer = ask(server, 'ModelInfer', digits_request(2) + output_request(b'logits', classes))
    output = answer.messages(5)[0]
    expect((output.one(2), output.numbers(3)), (b'BYTES', [2, 3]))
    told = elements(scores(answer)['logits'])
    expect(len(told), 6)
    plain = scores(ask(server, 'ModelInfer', digits_request(2)))['logits']
    values = struct.unpack('<20f', plain)
    for row in range(2):
        of_row = values[10 * row:10 * row + 10]
        order = sorted(range(10), key=lambda i: (-of_row[i], i))[:3]
        for text, index in zip(told[3 * row:3 * row + 3], order):
            value, number, label = text.split(':')
            expect((struct.pack('<f', float(value)), int(number)),
                   (struct.pack('<f', of_row[index]), index))
            assert label, text


def stream(server):
    """start_stream, async_stream_infer, stop_stream: in order, errors in the answers."""
    final = entry(4, b'triton_enable_empty_final_response', varint(1, 1))
    requests = [field(3, str(i).encode()) + final + digits_request(1 + i % 3) for i in range(40)]
    requests[7] = field(3, b'7') + digits_request(name=b'nope')
    plain = scores(ask(server, 'ModelInfer', digits_request()))['logits']
    for compression in (None, grpc.Compression.Gzip):
        with server.channel(compression=compression) as channel:
            call = channel.stream_stream(INFER + 'ModelStreamInfer')
            answers = [Fields(text) for text in call(iter(requests), timeout=PATIENCE)]
        expect(len(answers), len(requests))
        for i, answer in enumerate(answers):
            response = answer.message(2)
            expect(response.one(3), str(i).encode())
            if i == 7:
                assert b'nope' in answer.one(1), answer.values
                continue
            expect(answer.one(1), b'')
            expect(scores(response)['logits'], plain * (1 + i % 3))
            expect(response.entries(4)['triton_final_response'].one(1), 1)
    ends_with_code(server, requests[6:9])


def ends_with_code(server, requests):
    with server.channel() as channel:
        call = channel.stream_stream(INFER + 'ModelStreamInfer')(
            iter(requests), timeout=PATIENCE, metadata=[('triton_grpc_error', 'true')])
        answers = []
        try:
            for answer in call:
                answers.append(answer)
            raise AssertionError('the stream goes on after an error')
        except grpc.RpcError as error:
            expect(error.code(), grpc.StatusCode.NOT_FOUND)
        expect(len(answers), 1)


CALLS = (health, metadata, config, repository, statistics, settings, shared_memory, infer, classification, stream)


def tritonclient_calls():
    """Every call of tritonclient.grpc, on a server with its default flags."""
    with Server() as server:
        for check in CALLS:
            check(server)
            print(f'  {check.__doc__}')
        server.end()


UNBATCHED = """
name: "one_picture"
platform: "onnxruntime_onnx"
max_batch_size: 0
input {
  name: "image" data_type: TYPE_FP32 format: FORMAT_NCHW dims: [ 3, 24, 20 ]
  reshape { shape: [ 1, 3, 24, 20 ] }
}
output {
  name: "logits" data_type: TYPE_FP32 dims: [ 10 ]
  reshape { shape: [ 1, 10 ] } label_filename: "names.txt"
}
"""


def image_client_without_a_batch():
    """image_client -m one_picture -c 3: no tensor has a batch, and the classes are one row."""
    name = b'one_picture'
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place) / name.decode()
        (folder / '1').mkdir(parents=True)
        shutil.copyfile(f'{sys.argv[2]}/digits/1/model.onnx', folder / '1/model.onnx')
        (folder / 'config.pbtxt').write_text(UNBATCHED)
        (folder / 'names.txt').write_text(''.join(f'digit {i}\n' for i in range(10)))
        with Server(f'--model_repository={place}') as server:
            model = ask(server, 'ModelMetadata', field(1, name))
            expect(model.messages(4)[0].numbers(3), [3, 24, 20])
            expect(model.messages(5)[0].numbers(3), [10])
            expect(ask(server, 'ModelConfig', field(1, name)).message(1).one(4, 0), 0)
            picture = infer_request(name, b'image', [3, 24, 20], b'\0\0\x80\x3f' * 1440)
            values = struct.unpack('<10f', scores(ask(server, 'ModelInfer', picture))['logits'])
            for most in (3, 99):
                classes = entry(2, b'classification', varint(2, most))
                answer = ask(server, 'ModelInfer', picture + output_request(b'logits', classes))
                output = answer.messages(5)[0]
                expect((output.one(2), output.numbers(3)), (b'BYTES', [min(most, 10)]))
                order = sorted(range(10), key=lambda i: (-values[i], i))[:most]
                told = [text.split(':') for text in elements(scores(answer)['logits'])]
                expect([(int(index), label) for _, index, label in told],
                       [(i, f'digit {i}') for i in order])
            server.end()


def windows(server):
    """Metadata and config, extensions, then statistics around each window of requests."""
    metadata(server)
    config(server)
    assert b'statistics' in ask(server, 'ServerMetadata').all(3)

    def window():
        model = ask(server, 'ModelStatistics', field(1, NAME)).messages(1)[0]
        int(model.one(2))
        return model.one(4, 0), model.one(5, 0), model.message(6).message(3).one(1, 0)
    last = window()
    with server.channel() as channel:
        for _ in range(3):
            for _ in range(20):
                ask(server, 'ModelInfer', digits_request(), channel=channel)
            now = window()
            expect([b - a for a, b in zip(last, now)], [20, 20, 20])
            last = now


def perf_analyzer_sequence():
    """The calls of perf_analyzer, on a server with its default flags."""
    with Server() as server:
        windows(server)
        server.end()


def what_flags_open():
    """Settings of the log, changed where --open_rights opens them; loads say why they are refused."""
    with Server('--open_rights=repository,settings') as server:
        assert b'model_repository' not in ask(server, 'ServerMetadata').all(3), 'every load is refused'
        told = ask(server, 'LogSettings', entry(1, b'log_verbose_level', varint(2, 1))).entries(1)
        expect(told['log_verbose_level'].one(2), 1)
        refused(server, 'LogSettings', entry(1, b'log_file', field(3, b'/tmp/x')),
                grpc.StatusCode.INVALID_ARGUMENT, 'log_file')
        refused(server, 'TraceSetting', entry(1, b'trace_level', field(1, b'TIMESTAMPS')),
                grpc.StatusCode.FAILED_PRECONDITION, 'trace_level')
        refused(server, 'RepositoryModelLoad', field(2, NAME),
                grpc.StatusCode.FAILED_PRECONDITION, "failed to load 'digits': ")
        server.end()
    explicit = '--model_control=explicit', '--load_model=digits', f'--model_repository={sys.argv[2]}'
    with Server('--open_rights=repository', *explicit) as server:
        assert b'model_repository' in ask(server, 'ServerMetadata').all(3)
        ask(server, 'RepositoryModelLoad', field(2, NAME))
        server.end()


def priorities():
    """The request with the highest priority is answered before those that came earlier."""
    with Server('--threads=1', '--metrics_port=0') as server, server.channel() as channel:
        call = channel.unary_unary(INFER + 'ModelInfer')

        def send(batch, order, name, priority=0):
            terms = entry(4, b'priority', varint(5, priority)) if priority else b''
            sent = call.future(terms + digits_request(batch), timeout=LONG_PATIENCE)
            sent.add_done_callback(lambda _: order.append(name))
            return sent

        def overtakes():
            """Whether it does, where few were answered when all had come, which no busy machine promises."""
            order, before = [], server.told('tilewire_runs_total')
            time.sleep(0.3)  # a scrape is made anew four times a second at most
            sent = [send(rows[-1], order, 'ordinary') for _ in range(12)] + [send(rows[-1], order, 'high', 1)]

            def answered_when_all_had_come():
                text = server.page('/metrics')[1]
                runs = sum_of(text, 'tilewire_runs_total') - before
                held = sum_of(text, 'tilewire_waiting') + sum_of(text, 'tilewire_running')
                answered.append(runs)
                return runs + held >= len(sent)
            answered = []
            until(answered_when_all_had_come, 'not all come')
            for one in sent:
                one.result()
            until(lambda: len(order) == len(sent), 'not all are answered')
            print(f'  place {order.index("high")} of 12, of which {answered[-1]:.0f} were answered when all had come')
            rows.append(min(2 * rows[-1], 4000))  # for a machine that was too fast
            return answered[-1] <= 5 and order.index('high') <= answered[-1] + 3
        rows = [500]
        until(overtakes, 'it is answered after those that came earlier', LONG_PATIENCE)
        server.end()


if __name__ == '__main__':
    run_checks((tritonclient_calls, image_client_without_a_batch, perf_analyzer_sequence, what_flags_open, priorities))
