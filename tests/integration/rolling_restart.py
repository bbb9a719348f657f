# SPDX-License-Identifier: Apache-2.0
"""Three replicas that are replaced in turn under load, and what their clients see.

usage: rolling_restart.py SERVER_BINARY MODEL_REPOSITORY watching|ignoring [REPLACEMENTS [OPTION...]]

As a Deployment does it: a new replica starts on a host of its own, and when all clients are connected
to it the oldest one is ended. The clients balance in turn over all of them and have no policy of
retries. Those that watch the replicas' health have their library's own resending, too, switched off
(grpc.enable_retries=0); of those that ignore it, one has, and another has not. That resending is of
requests which the library had not yet written to a connection when it read that the connection is to
end; no server can see those requests.

Prints the counts of answers by kind; the exit status is 0 if all were right. Of clients that neither
watch health nor resend, requests that are lost with a connection are counted and allowed: a few, or one
in LOST. That these had not been written, the other client of that kind shows, which loses none.
"""
import contextlib
import sys
import time

from replicas import OWN_NETWORK, Fleet

ROUND_ROBIN = '{"loadBalancingConfig": [{"round_robin": {}}]}'
WATCHING = ROUND_ROBIN[:-1] + ', "healthCheckConfig": {"serviceName": ""}}'
# Clients of each kind: their service config, and whether their library may resend.
CLIENTS = {'watching': {(WATCHING, False): 2},
           'ignoring': {(ROUND_ROBIN, True): 1, (ROUND_ROBIN, False): 1}}
REPLICAS = 3
LOST, FEW = 2000, 5


def replacements(clients, count, *options):
    """The counts of outcomes that the clients of each kind have seen."""
    with contextlib.ExitStack() as stack:
        fleet = Fleet(stack, REPLICAS, clients, *options)
        try:
            for _ in range(count):
                fleet.add()
                time.sleep(1)  # until those that watch health have seen it
                fleet.remove()
        finally:
            counts = fleet.end()
        return counts


def main():
    clients, count = CLIENTS[sys.argv[3]], int((sys.argv[4:] or ['20'])[0])
    good, hosts = True, 'hosts' if OWN_NETWORK else 'ports'
    for (config, resends), counts in replacements(clients, count, *sys.argv[5:]).items():
        watches = config == WATCHING
        print(f'{count} replacements of {REPLICAS} replicas on {hosts} of their own, clients that '
              f'{"watch" if watches else "ignore"} health and '
              f'{"resend" if resends else "never resend"}: {dict(counts)}')
        right, others = counts['right'], sum(counts.values()) - counts['right']
        may_lose = not watches and not resends
        lost = sum(count for what, count in counts.items() if what.startswith('UNAVAILABLE')) if may_lose else 0
        good = good and right > 0 and others == lost and lost <= max(FEW, right / LOST)
    return 0 if good else 1


if __name__ == '__main__':
    sys.exit(main())
