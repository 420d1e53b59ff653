"""Images for the tasks that look at them: opened with care, turned into grids of features, kept for later."""

from regard.tasks.images.efficientnet import EfficientNetLite0, load_pretrained
from regard.tasks.images.features import FeatureGrids, ImageFiles, decode_images, compute_grids
from regard.tasks.images.photos import as_tensor, open_photo, make_thumbnail, resize_to_square

__all__ = [
    "EfficientNetLite0",
    "FeatureGrids",
    "ImageFiles",
    "as_tensor",
    "decode_images",
    "compute_grids",
    "open_photo",
    "load_pretrained",
    "make_thumbnail",
    "resize_to_square",
]
