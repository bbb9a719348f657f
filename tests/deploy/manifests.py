# SPDX-License-Identifier: Apache-2.0
"""The manifests in deploy/: whole, of one mind with each other, and true of the server.

usage: manifests.py SERVER_BINARY MODEL_REPOSITORY [CHECK]

Containers are run with exactly their arguments, in the namespaces of in_namespaces.sh.
"""
import collections
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

import yaml

from admission import refused_by_knative, refused_when_restricted
from api_server import ApiServer
from real_server import Server, digits_request, expect, run_checks, until, INFER

DEPLOY = pathlib.Path('deploy')
FOLDERS = ('kubernetes', 'kubernetes_volume', 'kserve', 'monitoring/kubernetes')
OPTIONAL = {'autoscaler.yaml'}  # of monitoring/kubernetes: stands in the place of kubernetes's
DEFAULT_GRACE = 30  # seconds that Kubernetes gives a pod to end; Knative gives it 300
KSERVE_FIELDS = {'minReplicas', 'maxReplicas', 'model'}  # of a predictor, none of a pod's
SERVER_ALARM = 10  # seconds that the server adds to its drain before it ends in any case


def documents(folder):
    """By kind; there is one of each."""
    files = sorted((DEPLOY / folder).glob('*.yaml'))
    return {document['kind']: document for file in files
            for document in yaml.safe_load_all(file.read_text())}


def only(items):
    expect(len(items), 1)
    return items[0]


def pod():
    return documents('kubernetes')['Deployment']['spec']['template']


def containers():
    """The containers of both ways to deploy: (container, seconds that its pod has to end)."""
    spec, kserve = pod()['spec'], documents('kserve')
    yield only(spec['containers']), spec['terminationGracePeriodSeconds']
    yield (only(kserve['ClusterServingRuntime']['spec']['containers']),
           kserve['InferenceService']['spec']['predictor'].get('terminationGracePeriodSeconds',
                                                               DEFAULT_GRACE))


def seconds(container, flag, otherwise=0):
    values = [arg.split('=')[1] for arg in container['args'] if arg.startswith(f'--{flag}=')]
    return int(only(values)) if values else otherwise


def image_environment():
    """As `env` takes it, but with this test's models in the place of the image's."""
    variables = dict(re.findall(r'^ENV (\w+)=(\S+)$', (DEPLOY / 'Dockerfile').read_text(),
                                re.MULTILINE))
    expect(variables['TILEWIRE_MODEL_REPOSITORY'], '/models')
    variables['TILEWIRE_MODEL_REPOSITORY'] = pathlib.Path(DEPLOY / 'models').resolve()
    return ['-u', 'TILEWIRE_METRICS_PORT', *(f'{name}={value}' for name, value in variables.items())]


def need_namespaces():
    if 'TILEWIRE_OWN_MNT' not in os.environ:
        raise unittest.SkipTest('this machine permits no namespaces')


def probes(container):
    return {kind: container[kind] for kind in
            ('startupProbe', 'readinessProbe', 'livenessProbe') if kind in container}


def port_named(name, container):
    return only([port['containerPort'] for port in container['ports'] if port['name'] == name])


def passes(server, container, probe):
    """Whether a probe passes, after it is known that it asks a port that the server listens on."""
    if 'httpGet' in probe:
        page = probe['httpGet']
        expect(int(server.monitoring.rsplit(':', 1)[1]), port_named(page['port'], container))
        return server.page(page['path'])[0] == 200
    expect(probe['grpc']['port'], server.port)
    return server.health(probe['grpc'].get('service', '')) is True


def passing(server, container):
    return [kind for kind, probe in probes(container).items() if passes(server, container, probe)]


def serves(container, arguments, environment):
    """Runs it from its start to its end, with its probes, and classifies with it."""
    # A busy machine may take the few seconds of its delay for one probe.
    arguments = [re.sub(r'^--drain_delay=\d+$', '--drain_delay=15', argument) for argument in arguments]
    with Server(*arguments, launcher=('env', *environment), exactly=True) as server:
        expect(container['ports'][0]['containerPort'], server.port)
        expect(passing(server, container), list(probes(container)))
        expect(type(server.ask(INFER + 'ModelInfer', digits_request())), bytes)
        server.process.send_signal(signal.SIGTERM)
        until(lambda: server.health() is False, 'it is still ready after SIGTERM')
        alive = [kind for kind in probes(container) if kind != 'readinessProbe']
        expect(passing(server, container), alive)
        server.ended()


def the_containers_serve():
    """The Deployment's container and KServe's start, pass their probes, classify, drain and end
    with 0; one after the other, as both have the monitoring port."""
    need_namespaces()
    the_deployment_serves()
    the_kserve_runtime_serves()


def the_deployment_serves():
    container = only(pod()['spec']['containers'])
    serves(container, container['args'], image_environment())


def the_kserve_runtime_serves():
    """The folder /mnt/models, under the InferenceService's name."""
    folder = pathlib.Path('/mnt/models')
    folder.mkdir()
    shutil.copy(DEPLOY / 'models/digits/1/model.onnx', folder)
    container = next(c for c, _ in containers() if c['name'] == 'kserve-container')
    name = documents('kserve')['InferenceService']['metadata']['name']
    expect(name, 'digits')  # what digits_request() asks
    arguments = [arg.replace('{{.Name}}', name) for arg in container['args']]
    serves(container, arguments, image_environment())


def pods_have_time_to_drain():
    """Grace periods cover all of the drain, and the drain covers the age of connections."""
    for container, grace in containers():
        hook = container.get('lifecycle', {}).get('preStop', {}).get('sleep', {'seconds': 0})
        drain = seconds(container, 'drain_timeout', otherwise=30)
        needed = hook['seconds'] + seconds(container, 'drain_delay') + drain + SERVER_ALARM
        assert grace >= needed, f'{grace} s to end, {needed} s are needed'
        age = seconds(container, 'max_age')
        assert age <= 0.4 * drain, f'--max_age={age} is too long for --drain_timeout={drain}'
        for kind, amount in container['resources']['limits'].items():
            assert kind != 'cpu' or amount.isdigit(), f'{amount} is not a whole number of cores'


def names_and_ports_meet():
    """Selectors select the pods, ports have the names that are used, KServe's port is h2c."""
    kubernetes, labels = documents('kubernetes'), pod()['metadata']['labels']
    ports = only(pod()['spec']['containers'])['ports']
    service, policy = kubernetes['Service']['spec'], kubernetes['NetworkPolicy']['spec']
    for selector in (kubernetes['Deployment']['spec']['selector']['matchLabels'],
                     service['selector'], policy['podSelector']['matchLabels'],
                     kubernetes['PodDisruptionBudget']['spec']['selector']['matchLabels']):
        expect(selector, labels)
    expect(service['clusterIP'], 'None')
    for inner, outer, rule in zip(ports, service['ports'], policy['ingress'], strict=True):
        expect((outer['targetPort'], outer['port']), (inner['name'], inner['containerPort']))
        expect(only(rule['ports'])['port'], inner['name'])
    monitor = documents('monitoring/kubernetes')['ServiceMonitor']['spec']
    expect(only(monitor['endpoints'])['port'], ports[1]['name'])
    own_labels = kubernetes['Service']['metadata']['labels']
    for label, value in monitor['selector']['matchLabels'].items():
        expect(own_labels[label], value)
    expect(pod()['metadata']['annotations']['prometheus.io/port'], str(ports[1]['containerPort']))
    target = kubernetes['HorizontalPodAutoscaler']['spec']['scaleTargetRef']
    expect((target['kind'], target['name']),
           ('Deployment', kubernetes['Deployment']['metadata']['name']))
    # Links to a service of this name would set TILEWIRE_PORT.
    expect(pod()['spec']['enableServiceLinks'], False)
    kserve = documents('kserve')
    runtime = kserve['ClusterServingRuntime']
    model = kserve['InferenceService']['spec']['predictor']['model']
    expect(model['runtime'], runtime['metadata']['name'])
    expect([model['protocolVersion']], runtime['spec']['protocolVersions'])
    expect([model['modelFormat']], runtime['spec']['supportedModelFormats'])
    expect(model['ports'], only(runtime['spec']['containers'])['ports'])
    expect(only(model['ports'])['name'], 'h2c')


def kserve_pod():
    """The pod that KServe makes of the runtime and the InferenceService, before admission."""
    kserve = documents('kserve')
    predictor = kserve['InferenceService']['spec']['predictor']
    own = {field: value for field, value in predictor.items() if field not in KSERVE_FIELDS}
    return {**own, 'containers': kserve['ClusterServingRuntime']['spec']['containers']}


def clusters_admit_the_pods():
    """Knative's rules and those of restricted namespaces, with a probe of the rules themselves."""
    expect(refused_by_knative(kserve_pod()), [])
    expect(refused_when_restricted(kserve_pod()), [])
    expect(refused_when_restricted(pod()['spec']), [])
    slow = {**kserve_pod(), 'terminationGracePeriodSeconds': 75}
    expect(refused_by_knative(slow), ['terminationGracePeriodSeconds'])
    only(slow['containers'])['securityContext'].pop('seccompProfile')
    expect(refused_when_restricted(slow), ['containers[0].securityContext.seccompProfile'])


def kustomizations_are_whole():
    """Each names the files beside it, all of them."""
    for folder in FOLDERS:
        files = {file.name for file in (DEPLOY / folder).glob('*.yaml')}
        kustomization = documents(folder)['Kustomization']
        listed = {name for name in kustomization['resources'] if not name.startswith('../')}
        patches = {patch['path'] for patch in kustomization.get('patches', [])}
        optional = OPTIONAL if folder == 'monitoring/kubernetes' else set()
        expect(listed | patches, files - {'kustomization.yaml'} - optional)


def the_volume_is_mounted_where_models_are_looked_for():
    """The overlay patches the Deployment's own container, and mounts its claim, read-only, at the
    folder that the image serves."""
    patch, base = documents('kubernetes_volume')['Deployment'], documents('kubernetes')
    expect(patch['metadata']['name'], base['Deployment']['metadata']['name'])
    spec = patch['spec']['template']['spec']
    container, volume = only(spec['containers']), only(spec['volumes'])
    expect(container['name'], only(pod()['spec']['containers'])['name'])
    expect(volume['persistentVolumeClaim']['readOnly'], True)
    served = re.findall(r'^ENV TILEWIRE_MODEL_REPOSITORY=(\S+)$',
                        (DEPLOY / 'Dockerfile').read_text(), re.MULTILINE)
    expect(only(container['volumeMounts']),
           {'name': volume['name'], 'mountPath': only(served), 'readOnly': True})


def kubectl(*arguments):
    run = subprocess.run(['kubectl', *arguments], capture_output=True, text=True, check=False)
    expect((run.returncode, run.stderr), (0, ''))
    return run.stdout


def kubectl_minor():
    version = json.loads(kubectl('version', '--client', '-o', 'json'))['clientVersion']
    return int(version['minor'].rstrip('+'))


def need_kubectl(minor=0):
    if not shutil.which('kubectl'):
        raise unittest.SkipTest('kubectl is not installed')
    if kubectl_minor() < minor:
        raise unittest.SkipTest(f'kubectl 1.{kubectl_minor()} does not know all fields')


def lacks(given, got, path=''):
    """The fields of `given` that `got` has not."""
    if isinstance(given, dict):
        return [field for key, value in given.items()
                for field in (lacks(value, got[key], f'{path}.{key}') if key in got
                              else [f'{path}.{key}'])]
    if isinstance(given, list):
        return [field for i, value in enumerate(given) for field in lacks(value, got[i], path)]
    return []


def objects_of(folder):
    """The objects that applying a folder creates: an overlay creates its base's."""
    base = DEPLOY / ('kubernetes' if folder == 'kubernetes_volume' else folder)
    listed = yaml.safe_load((base / 'kustomization.yaml').read_text())['resources']
    return [document for name in listed for document in yaml.safe_load_all((base / name).read_text())]


def dry_runs_pass():
    """`kubectl apply --dry-run=client -k` takes every folder; Debian's kubectl does, too, but for
    the overlay, whose `patches` it does not know."""
    need_kubectl()
    for folder in FOLDERS:
        if folder == 'kubernetes_volume' and kubectl_minor() < 22:
            continue
        objects = objects_of(folder)
        kinds = collections.defaultdict(dict)
        for document in objects:
            kinds[document['apiVersion']][document['kind']] = not document['kind'].startswith('Cluster')
        with ApiServer(kinds) as server, tempfile.TemporaryDirectory() as copy:
            for needed in {folder, 'kubernetes'}:
                shutil.copytree(DEPLOY / needed, f'{copy}/{needed}')  # files, where Bazel has links
            told = kubectl(f'--server={server}', f'--cache-dir={copy}/cache', 'apply',
                           '--dry-run=client', '--validate=false', '-k', f'{copy}/{folder}')
        expect(sorted(line.split('.')[0].split('/')[0] for line in told.splitlines()),
               sorted(document['kind'].lower() for document in objects))
        expect(told.count('created (dry run)'), len(objects))


def typed_by_kubectl(manifest):
    """The parts of a Deployment that kubectl's own types keep."""
    with tempfile.NamedTemporaryFile('w', suffix='.json') as file:
        json.dump(manifest, file)
        file.flush()
        return json.loads(kubectl('set', 'image', '--local', '-f', file.name, '*=another',
                                  '-o', 'json'))


def fields_are_known():
    """kubectl's types have every field of the Deployment, and of KServe's container in its place;
    the rest of KServe's files has fields of its types (its pkg/apis/serving)."""
    kserve = documents('kserve')
    runtime, predictor = (kserve['ClusterServingRuntime']['spec'],
                          kserve['InferenceService']['spec']['predictor'])
    for given, known in (
            (runtime, {'supportedModelFormats', 'protocolVersions', 'multiModel', 'containers'}),
            (only(runtime['supportedModelFormats']), {'name', 'version'}),
            (predictor, KSERVE_FIELDS),
            (predictor['model'], {'modelFormat', 'protocolVersion', 'runtime', 'storageUri',
                                  'ports'})):
        expect(set(given) - known, set())
    need_kubectl(minor=30)  # which has the preStop sleep
    deployment = documents('kubernetes')['Deployment']
    expect(lacks(deployment, typed_by_kubectl(deployment)), [])
    deployment['spec']['template']['spec']['containers'] = runtime['containers']
    expect(lacks(deployment, typed_by_kubectl(deployment)), [])


if __name__ == '__main__':
    run_checks([the_containers_serve, pods_have_time_to_drain,
                names_and_ports_meet, clusters_admit_the_pods, kustomizations_are_whole,
                the_volume_is_mounted_where_models_are_looked_for, dry_runs_pass,
                fields_are_known])
