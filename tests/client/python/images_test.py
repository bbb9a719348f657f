# SPDX-License-Identifier: Apache-2.0
"""`tilewire.images` against torchvision and Pillow: the same settings, the same bytes."""
import os
import subprocess
import sys
import tempfile
import unittest
import warnings

import numpy
import tilewire
from PIL import Image
from tilewire import images

warnings.simplefilter('ignore')
import torchvision  # noqa: E402

_RANDOM = numpy.random.default_rng(1)
# Of other families, which the server does not claim to serve.
_NO_CNN = ('vit_', 'swin_', 'maxvit')


def _picture(height, width, channels=3):
    """Smooth and noisy, so that rounding and overshooting both happen."""
    ramp = numpy.linspace(0, 255, height * width * channels).reshape(height, width, channels)
    noise = _RANDOM.integers(-160, 160, ramp.shape)
    return numpy.clip(ramp + noise, 0, 255).astype(numpy.uint8)


def _of_torchvision():
    """(name as `images.torchvision` takes it, torchvision's transform) of every CNN."""
    for name in torchvision.models.list_models(module=torchvision.models):
        if name.startswith(_NO_CNN):
            continue
        weights = torchvision.models.get_model_weights(name)
        for member in weights:
            if member.name in ('IMAGENET1K_V1', 'IMAGENET1K_V2'):
                yield f'{name}:{member.name[-2:]}', member.transforms()
                if member is weights.DEFAULT:
                    yield name, member.transforms()


class ImagesTest(unittest.TestCase):
    def test_settings_are_those_of_torchvision(self):
        count = 0
        for name, transform in _of_torchvision():
            if name.startswith('regnet_y_128gf'):
                continue
            with self.subTest(name):
                ours = images.torchvision(name)
                self.assertEqual([ours.resize], transform.resize_size)
                self.assertEqual([ours.crop], transform.crop_size)
                self.assertEqual(ours.interpolation, transform.interpolation.value)
                self.assertEqual(list(ours.mean), list(transform.mean))
                self.assertEqual(list(ours.std), list(transform.std))
                count += 1
        self.assertGreater(count, 100)

    def test_values_are_those_of_torchvision(self):
        for name, height, width in (('resnet18', 300, 411), ('resnet50', 500, 231),
                                    ('efficientnet_b0', 97, 120), ('inception_v3', 299, 299)):
            with self.subTest(name):
                picture = _picture(height, width)
                transform = torchvision.models.get_model_weights(name).DEFAULT.transforms()
                theirs = transform(Image.fromarray(picture)).numpy()
                ours = images.torchvision(name)(picture)
                self.assertEqual(ours.dtype, numpy.float32)
                self.assertEqual(ours.shape, (1, *theirs.shape))
                numpy.testing.assert_allclose(ours[0], theirs, rtol=0, atol=1e-6)

    def test_resizing_is_that_of_pillow(self):
        kinds = {'bilinear': Image.Resampling.BILINEAR, 'bicubic': Image.Resampling.BICUBIC}
        for height, width, to in ((37, 61, (20, 24)), (20, 24, (37, 61)), (300, 7, (30, 7)),
                                  (5, 5, (5, 9)), (64, 64, (64, 64)), (1, 1, (3, 4)), (9, 200, (1, 3))):
            picture = _picture(height, width)
            for kind, resample in kinds.items():
                with self.subTest(kind, size=(height, width), to=to):
                    theirs = Image.fromarray(picture).resize(to[::-1], resample)
                    ours = images.resize(picture, *to, kind)
                    self.assertTrue((ours == numpy.asarray(theirs)).all())

    def test_a_crop_that_is_larger_than_the_picture_is_padded(self):
        picture = _picture(5, 8)
        theirs = torchvision.transforms.functional.center_crop(Image.fromarray(picture), [8, 7])
        self.assertTrue((images.centre(picture, 8, 7) == numpy.asarray(theirs)).all())

    def test_a_batch_in_both_layouts(self):
        pictures = [_picture(30, 40), _picture(50, 20)]
        prepare = images.Preparation(resize=24, crop=(24, 20))
        nchw, nhwc = prepare(pictures), prepare(pictures, 'nhwc')
        self.assertEqual(nchw.shape, (2, 3, 24, 20))
        self.assertTrue((nchw.transpose(0, 2, 3, 1) == nhwc).all())
        self.assertEqual(images.Preparation()(_picture(4, 5)[:, :, 0]).shape, (1, 1, 4, 5))

    def test_files_are_read_by_pillow(self):
        picture = _picture(24, 20)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'picture.png')
            Image.fromarray(picture).save(path)
            self.assertTrue((images.Preparation()(path) == images.Preparation()(picture)).all())
            # Without Pillow everything but files works.
            script = ('import sys; sys.modules["PIL"] = None\n'
                      'import numpy, tilewire\n'
                      'tilewire.images.torchvision("resnet18")(numpy.zeros((9, 9, 3), "u1"))\n'
                      'try: tilewire.images.Preparation()(sys.argv[1])\n'
                      'except tilewire.InvalidArgument as error: print(error)')
            run = subprocess.run([sys.executable, '-c', script, path], capture_output=True,
                                 text=True, check=True)
            self.assertIn('python3-pil', run.stdout)

    def test_what_is_wrong_is_said(self):
        with self.assertRaisesRegex(tilewire.NotFound, "no preparation for 'resnet'; .*resnet18"):
            images.torchvision('resnet')
        with self.assertRaisesRegex(tilewire.NotFound, 'resnet18:V2'):
            images.torchvision('resnet18:V2')
        with self.assertRaisesRegex(tilewire.InvalidArgument, r'not float64\[4, 5, 3\]'):
            images.Preparation()(numpy.zeros((4, 5, 3)))
        with self.assertRaisesRegex(tilewire.InvalidArgument, 'different sizes'):
            images.Preparation()([_picture(4, 5), _picture(5, 4)])
        with self.assertRaisesRegex(tilewire.InvalidArgument, 'bilinear'):
            images.resize(_picture(4, 5), 2, 2, 'nearest')


if __name__ == '__main__':
    unittest.main()
