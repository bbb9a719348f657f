# SPDX-License-Identifier: Apache-2.0
"""Three replicas of which one stands still and another is killed under load.

usage: lost_replicas.py SERVER_BINARY MODEL_REPOSITORY

Every answer is right. A replica that stands still for a moment answers late. Of one that is killed,
clients that retry lose nothing, and those that do not lose what was on its way: a request or two each.
"""
import contextlib
import signal
import sys
import time

from replicas import Fleet, pause_and_continue
from rolling_restart import REPLICAS, ROUND_ROBIN, WATCHING

RETRYING = ROUND_ROBIN[:-1] + (
    ', "methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 5, "initialBackoff": "0.05s",'
    ' "maxBackoff": "1s", "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}}]}')
CLIENTS = {(RETRYING, True): 2, (WATCHING, False): 2}
KILLED, ON_ITS_WAY = 2, 2  # replicas; requests of one client


def failed(counts):
    return {what: count for what, count in counts.items() if what != 'right'}


def main():
    with contextlib.ExitStack() as stack:
        fleet = Fleet(stack, REPLICAS, CLIENTS, '--max_age=5')
        pause_and_continue(fleet.replicas[0], 0.5)
        for _ in range(KILLED):
            fleet.remove(signal.SIGKILL)
            time.sleep(0.5)
            fleet.add()
        counts = fleet.end()
    for (config, _), seen in counts.items():
        print(f'{KILLED} replicas killed, clients that '
              f'{"retry" if config == RETRYING else "never retry"}: {dict(seen)}')
    lost = failed(counts[WATCHING, False])
    assert not failed(counts[RETRYING, True]), 'clients that retry lose requests'
    assert all(what.startswith('UNAVAILABLE') for what in lost), 'wrong or refused'
    assert sum(lost.values()) <= KILLED * ON_ITS_WAY * CLIENTS[WATCHING, False], 'too many'


if __name__ == '__main__':
    sys.exit(main())
