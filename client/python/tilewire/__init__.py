# SPDX-License-Identifier: Apache-2.0
"""Client of a Tilewire server, or of any server of the Open Inference Protocol: numpy in and out.

    import tilewire

    client = tilewire.Client('127.0.0.1:8001')
    result = client.infer('resnet18', x, layout='nhwc')   # x: float32 [N, 224, 224, 3]
    scores = result['logits']

`tilewire.aio` has the same client for asyncio, `tilewire.images` makes inputs of pictures as
torchvision does. Whatever fails raises a subclass of `tilewire.Error`, with a code and a text.
"""
from tilewire import aio, images
from tilewire.bfloat16 import from_bfloat16, to_bfloat16
from tilewire.client import Client
from tilewire.errors import (DeadlineExceeded, Error, FailedPrecondition, InvalidArgument, NotFound,
                             ResourceExhausted, Unavailable, Unimplemented)
from tilewire.inference import Inputs, Result
from tilewire.metadata import ModelEntry, ModelMetadata, ServerMetadata, TensorMetadata
from tilewire.tensors import Layout

__version__ = '0.1.0'
__all__ = [
    'Client', 'DeadlineExceeded', 'Error', 'FailedPrecondition', 'Inputs', 'InvalidArgument', 'Layout',
    'ModelEntry', 'ModelMetadata', 'NotFound', 'ResourceExhausted', 'Result', 'ServerMetadata',
    'TensorMetadata', 'Unavailable', 'Unimplemented', 'aio', 'from_bfloat16', 'images', 'to_bfloat16']
