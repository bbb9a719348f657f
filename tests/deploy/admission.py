# SPDX-License-Identifier: Apache-2.0
"""Rules by which clusters refuse a pod before it exists, as published: Knative's fields of a pod
and its ports (knative/serving, pkg/apis/serving/fieldmask.go and k8s_validation.go), and the level
"restricted" of Kubernetes' pod security standards. Both functions return the offending paths."""

# The fields that Knative accepts without a feature flag of the cluster.
KNATIVE_POD = {'serviceAccountName', 'containers', 'volumes', 'imagePullSecrets',
               'enableServiceLinks', 'automountServiceAccountToken'}
KNATIVE_CONTAINER = {'name', 'args', 'command', 'env', 'workingDir', 'envFrom', 'image',
                     'imagePullPolicy', 'livenessProbe', 'ports', 'readinessProbe', 'resources',
                     'securityContext', 'startupProbe', 'terminationMessagePath',
                     'terminationMessagePolicy', 'volumeMounts'}
KNATIVE_SECURITY = {'capabilities', 'readOnlyRootFilesystem', 'runAsUser', 'runAsGroup',
                    'runAsNonRoot', 'allowPrivilegeEscalation', 'seccompProfile'}
KNATIVE_PORT = {'containerPort', 'name', 'protocol'}
KNATIVE_PORT_NAMES = {'', 'h2c', 'http1'}
KNATIVE_RESERVED_PORTS = {8008, 8012, 8013, 8022, 9090, 9091}  # of its queue-proxy


def _unknown(given, known, path):
    return [f'{path}{field}' for field in sorted(set(given) - known)]


def _knative_container(container, path):
    security, ports = container.get('securityContext', {}), container.get('ports', [])
    refused = _unknown(container, KNATIVE_CONTAINER, path)
    refused += _unknown(security, KNATIVE_SECURITY, f'{path}securityContext.')
    refused += _unknown(security.get('capabilities', {}), {'drop'},
                        f'{path}securityContext.capabilities.')
    refused += [f'{path}ports[1]'] if len(ports) > 1 else []
    for port in ports[:1]:
        refused += _unknown(port, KNATIVE_PORT, f'{path}ports[0].')
        if port.get('name', '') not in KNATIVE_PORT_NAMES:
            refused.append(f'{path}ports[0].name')
        if port['containerPort'] in KNATIVE_RESERVED_PORTS:
            refused.append(f'{path}ports[0].containerPort')
    return refused


def refused_by_knative(pod):
    """The fields of a pod's spec for which Knative refuses the revision."""
    refused = _unknown(pod, KNATIVE_POD, '')
    for i, container in enumerate(pod['containers']):
        refused += _knative_container(container, f'containers[{i}].')
    return refused


def refused_when_restricted(pod):
    """The settings that a namespace of the pod security level "restricted" misses in a pod."""
    refused, outer = [], pod.get('securityContext', {})
    refused += [field for field in ('hostNetwork', 'hostPID', 'hostIPC') if pod.get(field)]
    for i, container in enumerate(pod['containers']):
        path, inner = f'containers[{i}].securityContext.', container.get('securityContext', {})
        both = {**outer, **inner}  # the container's own settings win
        wanted = {
            'allowPrivilegeEscalation': inner.get('allowPrivilegeEscalation') is False,
            'capabilities.drop': 'ALL' in inner.get('capabilities', {}).get('drop', []),
            'capabilities.add':
                set(inner.get('capabilities', {}).get('add', [])) <= {'NET_BIND_SERVICE'},
            'privileged': not inner.get('privileged'),
            'runAsNonRoot': both.get('runAsNonRoot') is True,
            'runAsUser': both.get('runAsUser', 1) != 0,
            'seccompProfile':
                both.get('seccompProfile', {}).get('type') in ('RuntimeDefault', 'Localhost'),
        }
        refused += [path + setting for setting, fine in wanted.items() if not fine]
    return refused
