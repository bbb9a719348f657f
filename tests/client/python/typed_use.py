# SPDX-License-Identifier: Apache-2.0
"""Code as users write it, for a type checker: mypy accepts all of it, and would complain of an
`ignore` that is not needed, so each marked line is one that it refuses.
"""
import asyncio
from typing import Any

import tilewire
from numpy.typing import NDArray


def blocking(x: NDArray[Any]) -> NDArray[Any]:
    with tilewire.Client(['a:1', 'b:2'], timeout=5, watch_health=True, keepalive=None) as client:
        result: tilewire.Result = client.infer('digits', {'image': x}, layout='nhwc', batch=1)
        labels: list[str] = client.metadata('digits', timeout=1).labels
        ready: bool = client.ready(timeout=1)
        print(labels, ready, client.models()[0].state, client.run_primitive({}, {'src': x}, timeout=2))
        client.infer('digits', x, layout='nchv')  # type: ignore[arg-type]
        client.infer('digits', x, timeout='5')  # type: ignore[arg-type]
        client.infer(5, x)  # type: ignore[arg-type]
        wrong: int = client.infer('digits', x)  # type: ignore[assignment]
        print(wrong, tilewire.Client('a:1', attempt=3))  # type: ignore[call-arg]
        return result['logits']


async def awaited(x: NDArray[Any]) -> list[tilewire.Result]:
    async with tilewire.aio.Client('a:1') as client:
        task = asyncio.create_task(client.infer('digits', x))
        done = await asyncio.wait_for(client.infer('digits', x), 1)
        return [await task, done, *await asyncio.gather(client.infer('digits', x))]


def prepared() -> NDArray[Any]:
    other = tilewire.images.Preparation(resize=(24, 20), mean=(0.5,) * 3, std=(0.5,) * 3)
    return tilewire.to_bfloat16(other(['cat.jpg'], 'nhwc'))
