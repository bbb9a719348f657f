# SPDX-License-Identifier: Apache-2.0
"""deploy/monitoring against the real server, by Debian's Prometheus: it scrapes the server, evaluates
every rule, and knows every name that rules, dashboard and pages use.

usage: monitoring.py SERVER_BINARY MODEL_REPOSITORY [CHECK]
"""
import contextlib
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import urllib.parse
import urllib.request

import yaml

from real_server import PATIENCE, INFER, Server, digits_request, expect, run_checks, until

DEPLOY = pathlib.Path('deploy')
MONITORING = DEPLOY / 'monitoring'
LIST = pathlib.Path('service/observe/metric_list.inc')
NAME = re.compile(r'(?<![\w:])(?:tilewire|process|nv|ovms)_\w+')
# Words of the same form that name something else.
OTHERS = {'tilewire_queue_seconds_mean'}  # the adapter's name of a recorded one
PARTS = ('_bucket', '_sum', '_count')  # of a histogram


def rows():
    """(name, type, labels, help) of each metric that the server tells."""
    text = re.sub(r'^//.*$', '', LIST.read_text(), flags=re.MULTILINE)
    pattern = r'TILEWIRE_METRIC\(\w+, "(\w+)", (\w+),\s*"([\w,]*)",\s*((?:"[^"]*"\s*)+)\)'
    found = [(name, kind, labels, ''.join(re.findall(r'"([^"]*)"', words)))
             for name, kind, labels, words in re.findall(pattern, text)]
    expect(len(found), text.count('TILEWIRE_METRIC('))
    return found


def rules():
    return [rule for group in yaml.safe_load((MONITORING / 'rules.yaml').read_text())['groups']
            for rule in group['rules']]


def panels():
    return [panel for panel in json.loads((MONITORING / 'dashboard.json').read_text())['panels']
            if panel['type'] != 'row']


def queries():
    """Every query of the dashboard, as Grafana sends it for all jobs and models."""
    for panel in panels():
        for target in panel['targets']:
            yield panel['title'], (target['expr'].replace('$job', '.*').replace('$model', '.*')
                                   .replace('$__rate_interval', '1m'))


def family(name):
    known = {row[0]: row[1] for row in rows()}
    for part in PARTS:
        base = name.removesuffix(part)
        if base != name and known.get(base) == 'kHistogram':
            return base
    return name


class Prometheus:
    """Debian's, which scrapes `server` each second and evaluates the deployed rules."""

    def __init__(self, server, folder):
        config = yaml.safe_load((MONITORING / 'prometheus.yaml').read_text())
        config['global'] = {'scrape_interval': '1s', 'evaluation_interval': '1s'}
        config['scrape_configs'][0]['static_configs'] = [
            {'targets': [server.monitoring.removeprefix('http://')]}]
        for name in config['rule_files']:
            shutil.copy(MONITORING / name, folder)
        (folder / 'prometheus.yml').write_text(yaml.safe_dump(config))
        self.log = (folder / 'log').open('w+')
        self.process = subprocess.Popen(
            ['prometheus', f'--config.file={folder}/prometheus.yml', f'--storage.tsdb.path={folder}/data',
             '--web.listen-address=127.0.0.1:0'], stderr=self.log)
        self.folder, self.url = folder, None
        until(self.listens, 'Prometheus does not listen')

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.log.close()

    def listens(self):
        text = (self.folder / 'log').read_text()
        assert self.process.poll() is None, text
        found = re.search(r'msg="Listening on" address=(\S+)', text)
        self.url = found and f'http://{found.group(1)}'
        return bool(found) and 'Server is ready to receive web requests' in text

    def ask(self, path, **arguments):
        query = '?' + urllib.parse.urlencode(arguments) if arguments else ''
        with urllib.request.urlopen(f'{self.url}/api/v1/{path}{query}', timeout=PATIENCE) as answer:
            told = json.load(answer)
        expect(told['status'], 'success')
        return told['data']

    def value(self, query):
        """The first result's value; None if there is no result."""
        result = self.ask('query', query=query)['result']
        return float(result[0]['value'][1]) if result else None


@contextlib.contextmanager
def watched():
    """A server that has served, and Prometheus that has seen it serve."""
    with Server('--metrics_port=0', '--metrics_compatibility=triton,ovms') as server, tempfile.TemporaryDirectory() as folder:
        with Prometheus(server, pathlib.Path(folder)) as prometheus:
            until(lambda: prometheus.value('tilewire_ready') == 1, 'it is not scraped')

            def rises():
                assert isinstance(server.infer(), bytes)
                server.ask(INFER + 'ModelInfer', digits_request(name=b'nobody'))
                return (prometheus.value('rate(tilewire_runs_total[5m])') or 0) > 0
            until(rises, 'no request is seen')
            yield server, prometheus
        server.end()


def files_are_sound():
    """promtool takes rules and configuration; the operator's copy of the rules is the same."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ('rules.yaml', 'prometheus.yaml'):
            shutil.copy(MONITORING / name, folder)
        for check in (['check', 'rules', f'{folder}/rules.yaml'],
                      ['check', 'config', f'{folder}/prometheus.yaml']):
            run = subprocess.run(['promtool', *check], capture_output=True, text=True, check=False)
            expect((run.returncode, run.stderr), (0, ''))
    copy = yaml.safe_load((MONITORING / 'kubernetes/prometheus_rule.yaml').read_text())
    expect(copy['spec'], yaml.safe_load((MONITORING / 'rules.yaml').read_text()))


def alerts_fire():
    """Each alert fires for what it is for, and for nothing else: promtool on made-up series."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(MONITORING / 'rules.yaml', folder)
        shutil.copy('tests/deploy/alerts.yaml', folder)
        run = subprocess.run(['promtool', 'test', 'rules', f'{folder}/alerts.yaml'],
                             capture_output=True, text=True, check=False)
        expect((run.returncode, run.stdout + run.stderr if run.returncode else ''), (0, ''))
    tested = yaml.safe_load(pathlib.Path('tests/deploy/alerts.yaml').read_text())
    fired = {case['alertname'] for test in tested['tests'] for case in test['alert_rule_test']
             if case.get('exp_alerts')}
    expect(fired, {rule['alert'] for rule in rules() if 'alert' in rule})


def prometheus_knows_every_name():
    """Debian's Prometheus scrapes the server, evaluates every rule and every query of the dashboard,
    and knows each name that rules, dashboard, page and list use."""
    with watched() as (_, prometheus):
        known = set(prometheus.ask('label/__name__/values'))
        missing = {row[0] for row in rows()} - {family(name) for name in known}
        expect(missing, set())
        texts = {path: path.read_text() for path in sorted(MONITORING.rglob('*')) if path.is_file()}
        texts[DEPLOY / 'coming_from_triton.md'] = (DEPLOY / 'coming_from_triton.md').read_text()
        for path, text in texts.items():
            unknown = {name for name in NAME.findall(text)
                       if name not in known and family(name) not in {row[0] for row in rows()}}
            expect((str(path), unknown - OTHERS), (str(path), set()))

        def evaluated():
            groups = prometheus.ask('rules')['groups']
            states = [rule['health'] for group in groups for rule in group['rules']]
            assert 'err' not in states, groups
            return len(states) == len(rules()) and set(states) == {'ok'}
        until(evaluated, 'not every rule is evaluated')
        for title, query in queries():
            prometheus.ask('query', query=query)
            assert query.count('(') == query.count(')'), (title, query)
        for rule in rules():
            if 'record' in rule and 'pod' not in rule['expr']:
                until(lambda rule=rule: prometheus.value(rule['record']) is not None
                      or 'refused' in rule['record'], rule['record'])
        firing = [alert for alert in prometheus.ask('alerts')['alerts'] if alert['state'] == 'firing']
        expect(firing, [])


def the_dashboard_is_whole():
    """Its panels do not overlap, each has a title of its own, and all come from its data source."""
    cells, titles = set(), set()
    for panel in panels():
        place = panel['gridPos']
        mine = {(x, y) for x in range(place['x'], place['x'] + place['w'])
                for y in range(place['y'], place['y'] + place['h'])}
        assert not mine & cells and place['x'] + place['w'] <= 24, panel['title']
        cells |= mine
        assert panel['title'] not in titles, panel['title']
        titles.add(panel['title'])
        expect(panel['datasource']['uid'], '${datasource}')


def the_page_names_every_metric():
    """deploy/monitoring/metrics.md has the list's rows: name, type, labels and help."""
    text = (MONITORING / 'metrics.md').read_text()
    for name, kind, labels, words in rows():
        row = f'| `{name}` | {kind[1:].lower()} | {labels.replace(",", ", ")} | {words} |'
        assert row in text, f'deploy/monitoring/metrics.md lacks: {row}'


def compose_is_whole():
    """Compose mounts files that are there, and its services meet at the ports they have."""
    compose = yaml.safe_load((DEPLOY / 'compose.yaml').read_text())['services']
    for service in compose.values():
        for volume in service.get('volumes', []):
            assert (DEPLOY / volume.split(':')[0]).is_file(), volume
    target = yaml.safe_load((MONITORING / 'prometheus.yaml').read_text())
    (target,) = target['scrape_configs'][0]['static_configs'][0]['targets']
    name, port = target.split(':')
    assert name in compose, name
    exposed = re.findall(r'^EXPOSE (.*)$', (DEPLOY / 'Dockerfile').read_text(), re.MULTILINE)
    assert port in exposed[0].split(), exposed
    source = yaml.safe_load((MONITORING / 'grafana/datasource.yaml').read_text())['datasources'][0]
    expect(source['url'], 'http://prometheus:9090')
    assert 'prometheus' in compose


CHECKS = (files_are_sound, alerts_fire, prometheus_knows_every_name, the_dashboard_is_whole,
          the_page_names_every_metric, compose_is_whole)

if __name__ == '__main__':
    run_checks(CHECKS)
