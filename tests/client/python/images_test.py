# SPDX-License-Identifier: Apache-2.0
"""`tilewire.images` against torchvision and Pillow: the same settings, the same bytes."""
import os
import subprocess
import sys
import tempfile
import tracemalloc
import unittest
import warnings

import numpy
import tilewire
from PIL import Image
from tilewire import images

warnings.simplefilter('ignore')
import torchvision  # noqa: E402

_RANDOM = numpy.random.default_rng(1)
# Weights that are the beginning of another network, whose inputs have another range.
_NO_CLASSIFIER = 'vgg16:FEATURES'
_MODELS = torchvision.models
_KINDS = {'bilinear': Image.Resampling.BILINEAR, 'bicubic': Image.Resampling.BICUBIC}


def _picture(height, width, channels=3):
    """Smooth and noisy, so that rounding and overshooting both happen."""
    ramp = numpy.linspace(0, 255, height * width * channels).reshape(height, width, channels)
    noise = _RANDOM.integers(-160, 160, ramp.shape)
    return numpy.clip(ramp + noise, 0, 255).astype(numpy.uint8)


def _classifiers():
    """(name as `images.torchvision` takes it, torchvision's transform) of every classifier."""
    for name in _MODELS.list_models(module=_MODELS):
        weights = _MODELS.get_model_weights(name)
        for member in weights:
            yield f"{name}:{member.name.removeprefix('IMAGENET1K_')}", member.transforms()
            if member is weights.DEFAULT:
                yield name, member.transforms()


def _peak(prepare):
    """(the result, the largest memory that was held meanwhile, in bytes)."""
    tracemalloc.start()
    try:
        return prepare(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


class ImagesTest(unittest.TestCase):
    def test_settings_are_those_of_torchvision(self):
        seen = {_NO_CLASSIFIER}
        for name, transform in _classifiers():
            if name == _NO_CLASSIFIER:
                continue
            with self.subTest(name):
                ours = images.torchvision(name)
                self.assertEqual([ours.resize], transform.resize_size)
                self.assertEqual([ours.crop], transform.crop_size)
                self.assertEqual(ours.interpolation, transform.interpolation.value)
                self.assertEqual(list(ours.mean), list(transform.mean))
                self.assertEqual(list(ours.std), list(transform.std))
                seen.add(name)
        for name in _MODELS.list_models(module=_MODELS.segmentation):
            transform = _MODELS.get_model_weights(name).DEFAULT.transforms()
            ours = images.torchvision(name)
            self.assertEqual(([ours.resize], ours.crop), (transform.resize_size, None))
            self.assertEqual((ours.mean, ours.std), (tuple(transform.mean), tuple(transform.std)))
            seen.add(name)
        for name in _MODELS.list_models(module=_MODELS.detection):
            self.assertEqual(images.torchvision(name), images.Preparation())
            seen.add(name)
        self.assertLessEqual(set(images.names()), seen)  # and every name is one of torchvision's

    def test_values_are_those_of_torchvision(self):
        for name, height, width in (('resnet18', 300, 411), ('resnet50', 500, 231),
                                    ('efficientnet_b0', 97, 120), ('inception_v3', 299, 299),
                                    ('swin_t', 231, 500), ('fcn_resnet50', 40, 61),
                                    ('ssd300_vgg16', 40, 61)):
            with self.subTest(name):
                picture = _picture(height, width)
                transform = torchvision.models.get_model_weights(name).DEFAULT.transforms()
                theirs = transform(Image.fromarray(picture)).numpy()
                ours = images.torchvision(name)(picture)
                self.assertEqual(ours.dtype, numpy.float32)
                self.assertEqual(ours.shape, (1, *theirs.shape))
                numpy.testing.assert_allclose(ours[0], theirs, rtol=0, atol=1e-6)

    def test_resizing_is_that_of_pillow(self):
        for height, width, to in ((37, 61, (20, 24)), (20, 24, (37, 61)), (300, 7, (30, 7)),
                                  (5, 5, (5, 9)), (64, 64, (64, 64)), (1, 1, (3, 4)), (9, 200, (1, 3))):
            picture = _picture(height, width)
            for kind, resample in _KINDS.items():
                with self.subTest(kind, size=(height, width), to=to):
                    theirs = Image.fromarray(picture).resize(to[::-1], resample)
                    ours = images.resize(picture, *to, kind)
                    self.assertTrue((ours == numpy.asarray(theirs)).all())

    def test_only_what_the_crop_keeps_is_computed_and_it_is_the_same(self):
        for height, width in ((300, 411), (90, 700), (700, 90), (257, 256), (10, 1000), (3, 2)):
            for kind in ('bilinear', 'bicubic'):
                for size, crop in ((64, 56), (64, 64), (40, 61), ((30, 500), (50, 77))):
                    with self.subTest(kind, of=(height, width), size=size, crop=crop):
                        picture = _picture(height, width)
                        prepare = images.Preparation(size, crop, kind)
                        to = images._size_after(size, height, width)
                        wanted = (crop, crop) if isinstance(crop, int) else crop
                        theirs = torchvision.transforms.functional.center_crop(
                            Image.fromarray(picture).resize(to[::-1], _KINDS[kind]), wanted)
                        ours = numpy.rint(prepare(picture, 'nhwc')[0] * 255).astype(numpy.uint8)
                        self.assertTrue((ours == numpy.asarray(theirs)).all())

    def test_thin_and_large_pictures_take_little_memory(self):
        prepare = images.torchvision('resnet18')
        for height, width in ((3, 20_000), (20_000, 3), (1, 1 << 20), (4000, 4000)):
            picture = numpy.full((height, width, 3), 7, numpy.uint8)
            with self.subTest(size=(height, width)):
                batch, peak = _peak(lambda: prepare(picture))
                self.assertEqual(batch.shape, (1, 3, 224, 224))
                # Some arrays of 16 MB, and two of the size of what the crop keeps.
                self.assertLess(peak, 150 << 20)
        with self.assertRaisesRegex(tilewire.InvalidArgument, r'256 rows of 1706666 pixels, more than 2\^26'):
            images.Preparation(resize=256)(numpy.zeros((3, 20_000, 3), numpy.uint8))
        with self.assertRaisesRegex(tilewire.InvalidArgument, 'more than 2'):
            images.resize(numpy.zeros((3, 3, 3), numpy.uint8), 1 << 14, 1 << 14)

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

    def test_grey_and_transparent_pictures(self):
        prepare = images.torchvision('resnet18')
        colour = _picture(30, 40)
        clear = numpy.concatenate([colour, _picture(30, 40, 1)], axis=2)
        self.assertTrue((prepare(clear) == prepare(colour)).all())
        self.assertTrue((prepare(Image.fromarray(clear)) == prepare(colour)).all())
        grey = colour[:, :, 0]
        for same in (grey, grey[:, :, None], Image.fromarray(grey)):
            self.assertTrue((prepare(same) == prepare(numpy.stack([grey] * 3, axis=2))).all())

    def test_of_16_bits_the_upper_8_count(self):
        grey = _picture(9, 7, 1)[:, :, 0]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'grey.png')
            Image.fromarray(grey.astype(numpy.uint16) * 256 + 200).save(path)
            with Image.open(path) as image:
                self.assertTrue(image.mode.startswith('I'))
                for picture in (path, image):
                    prepared = images.Preparation()(picture)
                    self.assertTrue((prepared == images.Preparation()(numpy.stack([grey] * 3, 2))).all())
        for mode in ('I', 'F'):
            with self.assertRaisesRegex(tilewire.InvalidArgument, f'32 bits .mode {mode}'):
                images.Preparation()(Image.new(mode, (3, 4)))

    def test_files_that_cannot_be_read(self):
        with tempfile.TemporaryDirectory() as folder:
            for suffix in ('jpg', 'png'):
                path = os.path.join(folder, f'half.{suffix}')
                Image.fromarray(_picture(200, 200)).save(path)
                with open(path, 'r+b') as file:
                    file.truncate(os.path.getsize(path) // 2)
                with self.assertRaisesRegex(tilewire.InvalidArgument, f'half.{suffix}: .*truncated'):
                    images.Preparation()(path)
            text = os.path.join(folder, 'text.png')
            with open(text, 'w', encoding='ascii') as file:
                file.write('no picture')
            for path, error in ((text, tilewire.InvalidArgument), (folder, tilewire.InvalidArgument),
                                (os.path.join(folder, 'none.png'), tilewire.NotFound)):
                with self.assertRaises(error):
                    images.Preparation()(path)

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
        for name in ('resnet', 'resnet18:V2', 'vit_h_14:V1', 'yolo'):
            with self.assertRaisesRegex(tilewire.NotFound, f"no preparation for '{name}'") as caught:
                images.torchvision(name)
            self.assertLess(len(str(caught.exception)), 250)
        self.assertRaisesRegex(tilewire.NotFound, 'similar: .*resnet18', images.torchvision, 'resnet')
        prepare, array = images.torchvision('resnet18'), numpy.zeros
        cases = (
            (lambda: prepare(array((4, 5, 3))), r'not float64\[4, 5, 3\]$'),
            (lambda: prepare(array((3, 300, 300), 'u1')), r'uint8\[3, 300, 300\]; .* x.transpose\(1, 2, 0\)$'),
            (lambda: prepare(array((5, 5, 2), 'u1')), r'uint8\[5, 5, 2\]$'),
            (lambda: prepare(array((0, 0, 3), 'u1')), 'has no pixels: 0 rows of 0'),
            (lambda: prepare([]), 'at least one'),
            (lambda: prepare(None), 'a picture is bytes'),
            (lambda: prepare(array((4, 4, 3), 'u1'), 'NHWC'), "layout='NHWC': expected 'nchw' or 'nhwc'"),
            (lambda: images.Preparation()([_picture(4, 5), _picture(5, 4)]), r'picture 1 becomes .*\[5, 4, 3\]'),
            (lambda: images.resize(_picture(4, 5), 2, 2, 'nearest'), 'bilinear'),
            (lambda: images.resize(_picture(4, 5), 0, 2), '0 rows of 2'),
            (lambda: images.Preparation(resize=(0, 0)), r'resize=\(0, 0\): expected a whole number from 1'),
            (lambda: images.Preparation(crop=2.5), 'crop=2.5: expected'),
            (lambda: images.Preparation(interpolation='area'), "interpolation='area': expected"),
            (lambda: images.Preparation(mean=(1.0, 2.0)), 'mean=.*: expected one number'),
            (lambda: images.Preparation(mean=0.5), 'mean=0.5: expected'),
            (lambda: images.Preparation(std=(1.0, 0.0, 1.0)), 'std=.*not 0'),
            (lambda: images.torchvision(None), 'name=None: expected a str'),
        )
        for wrong, text in cases:
            with self.subTest(text), self.assertRaisesRegex(tilewire.InvalidArgument, text):
                wrong()


if __name__ == '__main__':
    unittest.main()
