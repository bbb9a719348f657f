# SPDX-License-Identifier: Apache-2.0
"""`tilewire top` beside the real server under load: its numbers against those that were sent and those of
the metrics, its screen in a terminal, and what it leaves behind there.

usage: top.py SERVER_BINARY MODEL_REPOSITORY [CHECK]
"""
import contextlib
import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time

from real_server import (INFER, PATIENCE, Client, Server, digits_request, expect, infer_request,
                         run_checks, until)

TOOL = 'client/tilewire'
ENTER, LEAVE = b'\x1b[?1049h', b'\x1b[?1049l'
CALLERS = 3


def top(server, *options, **more):
    return subprocess.run([TOOL, 'top', server.address, *options], capture_output=True, text=True,
                          check=False, timeout=PATIENCE, **more)


@contextlib.contextmanager
def loaded(*options):
    """A server, and callers that ask all the time."""
    with Server(*options) as server:
        callers = [Client(server, digits_request(batch=2), lambda answer: True) for _ in range(CALLERS)]
        try:
            until(lambda: all(caller.answers > 20 for caller in callers), 'nothing is answered')
            yield server, callers
        finally:
            answered = [caller.end() for caller in callers]
        assert answered
        server.end()


def its_numbers_are_those_of_the_load():
    """Rates, cores and latencies of an interval are what was sent within it and what the metrics count."""
    with loaded('--metrics_port=0') as (server, callers):
        sums = ('tilewire_runs_total', 'tilewire_core_seconds_total', 'tilewire_queue_seconds_sum')

        def counted():
            time.sleep(0.3)  # a scrape is made anew four times a second at most
            return [sum(caller.answers for caller in callers)] + [server.told(name) for name in sums]
        begin = counted()
        run = top(server, '--json', '--count=4', '--interval=0.5')
        end = counted()
        expect((run.returncode, run.stderr), (0, ''))
        looks = [json.loads(line) for line in run.stdout.splitlines()]
        expect(len(looks), 4)
        answers, runs, cores = (after - before for before, after in zip(begin[:3], end[:3]))
        asked = sum(look['requests_per_s'] * look['interval_s'] for look in looks)
        assert 0 < asked <= answers + CALLERS and asked <= runs + CALLERS, (asked, answers, runs)
        held = sum(look['cores_used'] * look['interval_s'] for look in looks)
        assert 0 < held <= cores + 0.5, (held, cores)
        rows = sum(look['models'][0]['versions'][0]['rows_per_s'] * look['interval_s'] for look in looks)
        assert abs(rows - 2 * asked) <= 2 * CALLERS, (rows, asked)
        for look in looks:
            assert 0.4 < look['interval_s'] < PATIENCE, look
            expect((look['state'], look['unnamed_errors_per_s']), ('READY', 0))
            assert look['connections'] >= CALLERS, look
            (model,) = look['models']
            (version,) = model['versions']
            expect((model['model'], version['state']), ('digits', 'READY'))
            if version['requests_per_s']:  # a machine that stalls answers nothing for a while
                assert 0 < version['p50_ms'] <= version['p99_ms'], version
                assert 0 <= version['queue_share'] <= 1, version
            expect((version['errors_per_s'], version['refused_per_s']), (0, 0))
            # A caller may ask again while its last request is still counted as running.
            assert model['waiting'] + model['running'] <= 2 * CALLERS, model


def a_pipe_gets_one_table():
    """Where standard output is not a terminal, one interval is printed, without a sequence for terminals."""
    with loaded() as (server, _):
        run = top(server, '--interval=0.3')
        expect((run.returncode, run.stderr), (0, ''))
        assert '\x1b' not in run.stdout, run.stdout
        lines = run.stdout.splitlines()
        expect(len(lines), 6)
        assert lines[0].startswith('READY  tilewire '), lines
        assert lines[5].startswith('digits '), lines
        twice = top(server, '--interval=0.3', '--count=2')
        expect(twice.stdout.count('READY  tilewire '), 2)


def errors_are_seen():
    """Requests that fail are told with their version, or with none if they named none."""
    with Server() as server:
        watch = subprocess.Popen([TOOL, 'top', server.address, '--json', '--count=0', '--interval=0.3'],
                                 stdout=subprocess.PIPE, text=True)

        def seen():
            server.ask(INFER + 'ModelInfer', digits_request(name=b'unknown'))
            server.ask(INFER + 'ModelInfer', infer_request(b'digits', b'image', [2, 3, 24, 20], b'few'))
            look = json.loads(watch.stdout.readline())
            return look['unnamed_errors_per_s'] > 0 and look['models'][0]['versions'][0]['errors_per_s'] > 0
        until(seen, 'no error is told')
        watch.terminate()
        expect(watch.wait(PATIENCE), -signal.SIGTERM)
        watch.stdout.close()
        server.end()


class Terminal:
    """The tool in a terminal of its own."""

    def __init__(self, columns, lines, *options, term='xterm'):
        self.master, tool = pty.openpty()
        fcntl.ioctl(tool, termios.TIOCSWINSZ, struct.pack('HHHH', lines, columns, 0, 0))
        self.before, self.shown = termios.tcgetattr(self.master), b''
        self.process = subprocess.Popen([TOOL, 'top', *options], stdin=tool, stdout=tool, stderr=tool,
                                        env={**os.environ, 'TERM': term}, start_new_session=True)
        os.close(tool)

    def await_text(self, text, more=1):
        """Returns when the text has come this many times more."""
        wanted = self.shown.count(text) + more
        begin = time.time()
        while self.shown.count(text) < wanted:
            assert time.time() - begin < PATIENCE, (text, self.shown[-2000:])
            if select.select([self.master], [], [], 0.1)[0]:
                try:
                    self.shown += os.read(self.master, 1 << 16)
                except OSError as ended:
                    raise AssertionError((text, self.shown[-2000:])) from ended

    def rest(self):
        """Reads on until the tool has ended; its exit status."""
        with contextlib.suppress(OSError):
            while piece := os.read(self.master, 1 << 16):
                self.shown += piece
        return self.process.wait(PATIENCE)

    def is_as_before(self):
        expect(termios.tcgetattr(self.master), self.before)
        expect((self.shown.count(ENTER), self.shown.count(LEAVE)), (1, 1))
        assert self.shown.endswith(LEAVE), self.shown[-200:]

    def frames(self):
        return [frame.replace(b'\x1b[K', b'').replace(b'\x1b[J', b'').split(b'\r\n')
                for frame in self.shown.split(b'\x1b[H')[2:]]


def a_terminal_is_drawn_anew_and_left_as_it_was():
    """The screen shows frames that fit it, and is left by whatever signal ends the tool."""
    with loaded() as (server, _):
        for ending in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            terminal = Terminal(50, 12, server.address, '--interval=0.1')
            terminal.await_text(b'digits', more=4)
            terminal.process.send_signal(ending)
            expect(terminal.rest(), -ending)
            terminal.is_as_before()
            for frame in terminal.frames()[:-1]:
                assert len(frame) <= 12 and all(len(line) <= 50 for line in frame), frame
                assert frame[4].split() == [b'model', b'version', b'req/s', b'p50', b'ms', b'p99', b'ms',
                                            b'queued', b'cores'], frame


def a_frame_is_no_taller_than_its_terminal():
    """The last line of a frame that fills the terminal does not make it scroll."""
    with loaded() as (server, _):
        for lines in (1, 2, 6):
            terminal = Terminal(80, lines, server.address, '--interval=0.1')
            terminal.await_text(b'READY', more=4)
            terminal.process.send_signal(signal.SIGINT)
            expect(terminal.rest(), -signal.SIGINT)
            for frame in terminal.frames()[:-1]:
                expect(len(frame), lines)
                assert frame[0].startswith(b'READY'), frame


def a_stopped_tool_gives_the_screen_back():
    """Ctrl-Z shows what was there before, and the shell's `fg` the tool's screen again."""
    with loaded() as (server, _):
        terminal = Terminal(80, 24, server.address, '--interval=0.1')
        terminal.await_text(b'digits', more=2)
        terminal.process.send_signal(signal.SIGTSTP)
        terminal.await_text(LEAVE)
        # A signal to go on that comes before the stop is lost.
        os.waitid(os.P_PID, terminal.process.pid, os.WSTOPPED)
        terminal.process.send_signal(signal.SIGCONT)
        terminal.await_text(ENTER)
        terminal.await_text(b'digits', more=2)
        terminal.process.send_signal(signal.SIGINT)
        expect(terminal.rest(), -signal.SIGINT)
        expect((terminal.shown.count(ENTER), terminal.shown.count(LEAVE)), (2, 2))
        assert terminal.shown.endswith(LEAVE), terminal.shown[-200:]


def a_server_that_goes_away_is_awaited():
    """The screen says that no answer comes, and shows the server that comes back at the address."""
    with Server() as first:
        port = first.port
        terminal = Terminal(80, 24, first.address, '--interval=0.1')
        terminal.await_text(b'READY')
        first.end()
    terminal.await_text(b'no answer from')
    with Server(f'--port={port}') as second:
        terminal.await_text(b'READY', more=3)
        terminal.process.send_signal(signal.SIGINT)
        expect(terminal.rest(), -signal.SIGINT)
        terminal.is_as_before()
        second.end()


def programs_are_told_of_a_server_that_goes_away():
    """Without an end the lines for programs go on with the server that comes back; the gap is told."""
    with Server() as first:
        port = first.port
        watch = subprocess.Popen([TOOL, 'top', first.address, '--json', '--count=0', '--interval=0.1'],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        expect(json.loads(watch.stdout.readline())['state'], 'READY')
        first.end()
    told = watch.stderr.readline()
    assert told.startswith(f'tilewire: no answer from {first.address}; asked again'), told
    with Server(f'--port={port}') as second:
        until(lambda: 'answers again, after' in watch.stderr.readline(), 'nothing tells the end of the gap')
        expect(json.loads(watch.stdout.readline())['state'] != '', True)
        watch.terminate()
        expect(watch.wait(PATIENCE), -signal.SIGTERM)
        watch.stdout.close()
        watch.stderr.close()
        second.end()


def a_plain_terminal_gets_lines():
    """A terminal that knows no sequences gets none."""
    with loaded() as (server, _):
        terminal = Terminal(80, 24, server.address, '--interval=0.1', term='dumb')
        terminal.await_text(b'digits', more=3)
        terminal.process.send_signal(signal.SIGINT)
        expect(terminal.rest(), -signal.SIGINT)
        assert b'\x1b' not in terminal.shown, terminal.shown[-200:]


CHECKS = (its_numbers_are_those_of_the_load, a_pipe_gets_one_table, errors_are_seen,
          a_terminal_is_drawn_anew_and_left_as_it_was, a_frame_is_no_taller_than_its_terminal,
          a_stopped_tool_gives_the_screen_back, a_server_that_goes_away_is_awaited,
          programs_are_told_of_a_server_that_goes_away, a_plain_terminal_gets_lines)

if __name__ == '__main__':
    run_checks(CHECKS)
