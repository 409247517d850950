"""Makes the images of the tests with OpenJPEG, through imagecodecs and Pillow: pip install numpy imagecodecs pillow && python make.py

Pixel (x, y) of component c is 3x + 5y + 40c in 8 bits and 300x + 500y - 9000 in 16.
"""

import imagecodecs as ic
import numpy as np
from PIL import Image

y, x, c = np.mgrid[0:20, 0:30, 0:3]
rgb = (3 * x + 5 * y + 40 * c).astype("u1")
deep = (300 * x[..., 0] + 500 * y[..., 0] - 9000).astype("i2")
open("rgb.j2k", "wb").write(ic.jpeg2k_encode(rgb, level=0, codecformat="J2K", reversible=True, resolutions=3))
Image.fromarray(rgb).save("rgb.jp2", tile_size=(16, 16), num_resolutions=3)
open("deep.j2k", "wb").write(ic.jpeg2k_encode(deep, level=0, codecformat="J2K", reversible=True, resolutions=2))
