# SPDX-License-Identifier: Apache-2.0
"""A double of a Kubernetes API server that only tells which kinds it has: all that `kubectl apply
--dry-run=client` asks for. It holds no objects and accepts none.

usage:
  with ApiServer({'apps/v1': {'Deployment': True}}) as address: ...   # kind: whether namespaced
"""
import http.server
import json
import threading


def _resource(kind, namespaced):
    plural = kind.lower() + ('es' if kind.endswith('s') else 's')
    if kind.endswith('y'):
        plural = kind.lower()[:-1] + 'ies'
    return {'name': plural, 'singularName': kind.lower(), 'namespaced': namespaced, 'kind': kind,
            'verbs': ['create', 'get', 'list', 'patch']}


def _discovery(kinds):
    """The answers, by path."""
    groups = {}
    for version in kinds:
        group, _, name = version.rpartition('/')
        groups.setdefault(group, []).append({'groupVersion': version, 'version': name})
    answers = {
        '/api': {'kind': 'APIVersions', 'versions': ['v1']},
        '/apis': {'kind': 'APIGroupList', 'apiVersion': 'v1',
                  'groups': [{'name': group, 'versions': versions, 'preferredVersion': versions[0]}
                             for group, versions in groups.items() if group]},
    }
    for version, resources in kinds.items():
        path = ('/apis/' if '/' in version else '/api/') + version
        answers[path] = {'kind': 'APIResourceList', 'apiVersion': 'v1', 'groupVersion': version,
                         'resources': [_resource(*item) for item in resources.items()]}
    return answers


class ApiServer:
    def __init__(self, kinds):
        answers = _discovery(kinds)

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):  # pylint: disable=invalid-name
                found = answers.get(self.path.split('?')[0])
                body = json.dumps(found or {
                    'kind': 'Status', 'apiVersion': 'v1', 'status': 'Failure',
                    'reason': 'NotFound', 'code': 404}).encode()
                self.send_response(200 if found else 404)
                self.send_header('Content-Type', 'application/json')
                self.send_header('Content-Length', str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return f'http://127.0.0.1:{self._server.server_port}'

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()
