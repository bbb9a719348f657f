# SPDX-License-Identifier: Apache-2.0
"""The status page and the log of the real server: its JSON, the page without a script, and the page in headless
Chromium at two widths, where its script runs under its policy, nothing is asked of another host, and
hostile texts stay texts; lines of the log as JSON.

usage: statusz.py SERVER_BINARY MODEL_REPOSITORY [CHECK]; with SCREENSHOTS=DIR pictures are kept there
"""
import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.request

from real_server import (INFER, PATIENCE, Server, digits_request, expect, field, infer_request,
                         run_checks, until)

HEIGHT_AT = {1280: 1500, 400: 2400}  # of the window, by its width
HOSTILE = b'<img src=x onerror=document.title=document.domain>'
BROKEN = "br'ok<b>en"
REQUESTS = 20


@contextlib.contextmanager
def served():
    """A server that has served good and hostile requests, and whose pages tell it."""
    with tempfile.TemporaryDirectory() as folder:
        repository = pathlib.Path(folder) / 'models'
        shutil.copytree(sys.argv[2], repository)
        (repository / BROKEN / '1').mkdir(parents=True)
        (repository / BROKEN / '1/model.onnx').write_text('no model')
        options = f'--model_repository={repository}', '--metrics_port=0', '--ready=any'
        with Server(*options) as server:
            for _ in range(REQUESTS):
                assert isinstance(server.infer(), bytes)
            server.ask(INFER + 'ModelInfer', digits_request(name=HOSTILE))
            until(lambda: tells_all(status_of(server)), 'the page does not tell the requests')
            yield server


def get(url):
    with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
        return answer.read().decode(), answer.headers


def status_of(server):
    return json.loads(get(server.monitoring + '/statusz.json')[0])


def model_of(status, name):
    return next(model for model in status['models'] if model['name'] == name)


def tells_all(status):
    return (model_of(status, 'digits')['requests'] == REQUESTS
            and model_of(status, BROKEN)['state'] == 'UNAVAILABLE'
            and any('onerror' in line['text'] for line in status['lines'])
            and any(slow['model'] == 'digits' for slow in status['slowest']))


def the_json_is_whole():
    """The values of the page as JSON tell models, layers, flags and threads."""
    with served() as server:
        status = status_of(server)
        expect(status['state'], 'READY')
        expect(model_of(status, 'digits')['state'], 'READY')
        expect(model_of(status, 'digits')['requests'], REQUESTS)
        assert 0 <= model_of(status, 'digits')['last_minute']['requests'] <= REQUESTS
        assert model_of(status, BROKEN)['remark']
        assert status['layers'][0]['runs'] >= REQUESTS, status['layers']
        given = {flag['name'] for flag in status['flags'] if flag['changed']}
        assert {'model_repository', 'ready', 'metrics_port'} <= given, given
        until(lambda: any(thread['name'] == 'tw-timer' for thread in status_of(server)['threads_of_process']),
              'the thread of timers is not told')
        server.end()


def the_page_needs_no_script():
    """The page is whole without its script, whose nonce serves once, and hostile names are text."""
    with served() as server:
        page, headers = get(server.monitoring + '/statusz')
        nonce = re.search(r"script-src 'nonce-(\w{32})'", headers['Content-Security-Policy']).group(1)
        assert f'<script nonce="{nonce}">' in page
        assert nonce not in get(server.monitoring + '/statusz')[0], 'a nonce serves twice'
        assert '<img' not in page and '<b>en' not in page
        assert 'br&#39;ok&lt;b&gt;en' in page
        expect(headers['Content-Type'], 'text/html; charset=utf-8')
        server.end()


def browse(url, folder, width, *options):
    """The output of Chromium, its log, and the pages that it asked for."""
    net_log = pathlib.Path(folder) / f'net_{width}_{len(options)}.json'
    run = subprocess.run(
        ['chromium', '--headless=new', '--no-sandbox', '--disable-gpu', '--hide-scrollbars',
         '--no-first-run', '--disable-background-networking', '--disable-component-update',
         f'--user-data-dir={folder}/profile', f'--log-net-log={net_log}', '--enable-logging=stderr',
         f'--window-size={width},{HEIGHT_AT[width]}', *options, url],
        capture_output=True, text=True, timeout=3 * PATIENCE, check=True)
    asked = set(re.findall(r'"url":"(https?://[^"]*)"', net_log.read_text()))
    return run.stdout, run.stderr, asked


def a_browser_shows_it():
    """Chromium shows the page at two widths, runs its script, and asks no other host."""
    if shutil.which('chromium') is None:
        raise unittest.SkipTest('there is no chromium here')
    with served() as server, tempfile.TemporaryDirectory() as folder:
        kept = pathlib.Path(os.environ.get('SCREENSHOTS', folder))
        url = server.monitoring + '/statusz'
        for width in HEIGHT_AT:
            picture = kept / f'statusz_{width}.png'
            browse(url, folder, width, f'--screenshot={picture}')
            assert picture.stat().st_size > 10_000
            page, log, asked = browse(url, folder, width, '--dump-dom', '--virtual-time-budget=5000')
            assert 'pause</button>' in page, 'the script does not run'
            assert '<img' not in page
            for wrong in ('Content Security Policy', 'Uncaught'):
                assert wrong not in log, log
            assert url in asked, asked
            # Chromium's own start asks its maker, where the machine lets it.
            others = {one for one in asked if not one.startswith(server.monitoring + '/')
                      and not re.match(r'https?://([\w-]+\.)*(google|googleapis|gvt1)\.com', one)}
            expect(others, set())
        server.end()


def the_log_is_json():
    """Each line is an object; ids and traces of requests are where programs find them."""
    options = '--log_format=json', '--access_log=all', '--verbose=1', '--metrics_port=0'
    trace = '0af7651916cd43dd8448eb211c80319c'
    with Server(*options) as server:
        refused = infer_request(b'nope', b'x', [1], b'\0\0\0\0') + field(3, b'a81f')
        for metadata in (), (('x-request-id', 'from-a-header'),
                             ('traceparent', f'00-{trace}-b7ad6b7169203331-01')):
            assert isinstance(server.infer(metadata=metadata), bytes)
        server.ask(INFER + 'ModelInfer', refused)
        server.await_line('a81f')
        until(lambda: status_of(server)['lines'], 'the page shows no lines')
        shown = [line['text'] for line in status_of(server)['lines']]
        server.end()
        lines = [json.loads(line) for line in server.log.splitlines()]
    for line in lines:
        assert {'time', 'level', 'log', 'text'} <= set(line), line
    told = {line['request_id']: (line['code'], line['trace_id'])
            for line in lines if line.get('method') == 'ModelInfer'}
    expect(told.pop('from-a-header'), ('OK', trace))
    expect(told.pop('a81f'), ('NOT_FOUND', ''))
    ((made, of_made),) = told.items()
    assert re.fullmatch(r'[0-9a-f]{8}-[0-9a-f]+', made), made
    expect(of_made, ('OK', ''))
    assert any(line['log'] == 'verbose' for line in lines)
    assert shown and not any('"request_id"' in text for text in shown), shown


CHECKS = (the_json_is_whole, the_page_needs_no_script, a_browser_shows_it, the_log_is_json)

if __name__ == '__main__':
    run_checks(CHECKS)
