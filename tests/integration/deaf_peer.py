# SPDX-License-Identifier: Apache-2.0
"""HTTP/2 spoken by hand, for clients that no library would be."""
import socket
import struct
import time


def frame(kind, flags, stream, payload):
    return struct.pack('>I', len(payload))[1:] + bytes([kind, flags]) + struct.pack(
        '>I', stream) + payload


def literal(name, value):
    return b'\0' + bytes([len(name)]) + name + bytes([len(value)]) + value


class DeafPeer:
    """A connection that sends requests and never takes an answer: its windows are of 0 bytes.
    It gives up when the server has read nothing for `patience` seconds. `secured` puts TLS on the
    socket, if there is to be TLS."""

    def __init__(self, port, patience=60, secured=lambda plain: plain):
        self.patience = patience
        self.socket = secured(socket.create_connection(('127.0.0.1', port)))
        self.socket.settimeout(patience)
        self.windows = {0: 65535}
        self.initial = 65535
        self.received = b''
        self.headers = b''  # of all answers; gRPC writes those of a call that it ends in plain text
        self.ended = set()  # streams that the server has reset
        self.socket.sendall(b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'
                            + frame(4, 0, 0, struct.pack('>HI', 4, 0)))

    def read(self):
        received = self.socket.recv(65536)
        if not received:
            raise ConnectionError('the server has closed the connection')
        self.received += received
        while len(self.received) >= 9:
            size = struct.unpack('>I', b'\0' + self.received[:3])[0]
            kind, flags = self.received[3:5]
            if len(self.received) < 9 + size:
                return
            stream = struct.unpack('>I', self.received[5:9])[0]
            payload, self.received = self.received[9:9 + size], self.received[9 + size:]
            if kind == 1:
                self.headers += payload
            elif kind == 3:
                self.ended.add(stream)
            elif kind == 8:
                self.windows[stream] = self.windows.get(stream, self.initial) + struct.unpack(
                    '>I', payload)[0]
            elif kind == 6 and not flags:
                self.socket.sendall(frame(6, 1, 0, payload))
            elif kind == 4 and not flags:
                for at in range(0, size, 6):
                    name, value = struct.unpack('>HI', payload[at:at + 6])
                    if name == 4:
                        for open_stream in self.windows.keys() - {0}:
                            self.windows[open_stream] += value - self.initial
                        self.initial = value
                self.socket.sendall(frame(4, 1, 0, b''))

    def await_window(self, stream):
        """Returns when the server takes more of the stream, or has reset it."""
        begin = time.time()
        while min(self.windows[0], self.windows[stream]) <= 0 and stream not in self.ended:
            if time.time() - begin > self.patience:  # it may ask whether this peer lives, and read nothing
                raise TimeoutError(f'the server reads nothing of stream {stream}: windows {self.windows[0]} '
                                   f'and {self.windows[stream]}')
            self.read()

    def ask(self, stream, method, body, left_out=0):
        """Sends a request, all but its last `left_out` bytes, as fast as the server reads. Whether all of it was
        sent: not if the server has reset the stream."""
        headers = b'\x83\x86' + literal(b':path', method.encode()) + literal(
            b':authority', b'x') + literal(b'content-type', b'application/grpc') + literal(
                b'te', b'trailers')
        self.windows[stream] = self.initial
        self.socket.sendall(frame(1, 4, stream, headers))
        message = b'\0' + struct.pack('>I', len(body)) + body
        message = memoryview(message)[:len(message) - left_out]
        while message:
            self.await_window(stream)
            if stream in self.ended:
                return False
            size = min(len(message), 16384, self.windows[0], self.windows[stream])
            piece, message = message[:size], message[size:]
            self.windows[0] -= size
            self.windows[stream] -= size
            self.socket.sendall(frame(0, int(not message and not left_out), stream, piece))
        return True
