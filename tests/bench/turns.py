# SPDX-License-Identifier: Apache-2.0
"""Phases with an action and phases without it, in turns, and what the action adds to the latency of requests.

What else a machine does changes within seconds, and p99 with it: each phase with the action is compared
with the one that follows it, as long and without. The range of a ratio is what 95 of 100 choices of the
rounds (with repetition) lie within. The same ratio of the second halves of the phases without the action
over their first halves tells how much of it is noise; with half of the requests it varies a little more.
"""
import os
import pathlib
import re
import time

import numpy

CHOICES = 1000


class Phases:
    """Begin and end of each phase."""

    def __init__(self):
        self.meanwhile, self.between = [], []

    def round(self, action, wait):
        """Does the action, then only `wait(seconds)` for as long. Returns what the action returned."""
        begin = time.monotonic()
        result = action()
        end = time.monotonic()
        wait(end - begin)
        self.meanwhile.append((begin, end))
        self.between.append((end, time.monotonic()))
        return result


def latencies(times, spans):
    """For each span, the milliseconds of the requests, pairs of begin and end, that overlap it."""
    begins, ends = numpy.array(times).T
    return [(ends - begins)[(ends > begin) & (begins < end)] * 1000 for begin, end in spans]


def p99(rounds):
    return numpy.quantile(numpy.concatenate(rounds), 0.99)


def p99_ratio(above, below):
    """p99 of all rounds of the one over that of the other, and the range of that ratio."""
    count = len(above)
    choose, ratios = numpy.random.default_rng(1), []
    for _ in range(CHOICES):
        chosen = choose.integers(count, size=count)
        ratios.append(p99([above[i] for i in chosen]) / p99([below[i] for i in chosen]))
    low, high = numpy.quantile(ratios, (0.025, 0.975))
    return f'{p99(above) / p99(below):.2f} ({low:.2f} to {high:.2f})'


def summary(rounds):
    every = numpy.concatenate(rounds)
    return (f'{len(every):6} answers, p50 {numpy.median(every):7.2f}, p99 {p99(rounds):7.2f}, '
            f'longest {every.max():7.2f} ms')


def report(name, times, phases):
    meanwhile, between = latencies(times, phases.meanwhile), latencies(times, phases.between)
    first = latencies(times, [(begin, (begin + end) / 2) for begin, end in phases.between])
    second = latencies(times, [((begin + end) / 2, end) for begin, end in phases.between])
    print(f'{name}: meanwhile  {summary(meanwhile)}\n{name}: in between {summary(between)}\n'
          f'{name}: p99 meanwhile {p99_ratio(meanwhile, between)} of that in between; '
          f'noise {p99_ratio(second, first)}')


def machine():
    """The CPU, its cores, the system, and how busy it is."""
    model = re.search(r'^model name\s*:\s*(.*)$', pathlib.Path('/proc/cpuinfo').read_text(), re.MULTILINE)
    return (f'{model.group(1) if model else os.uname().machine}, {len(os.sched_getaffinity(0))} cores, Linux '
            f'{os.uname().release}, load average {os.getloadavg()[0]:.1f}')
