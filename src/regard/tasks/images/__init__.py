"""Images for the tasks that look at them: opened with care, turned into grids of features, kept for later."""

from regard.tasks.images.efficientnet import EfficientNetLite0, load_pretrained
from regard.tasks.images.features import FeatureGrids, ImageFiles, compute_grids, decode_images
from regard.tasks.images.photos import as_tensor, make_thumbnail, open_photo, resize_to_square

__all__ = [
    "EfficientNetLite0",
    "FeatureGrids",
    "ImageFiles",
    "as_tensor",
    "compute_grids",
    "decode_images",
    "load_pretrained",
    "make_thumbnail",
    "open_photo",
    "resize_to_square",
]
