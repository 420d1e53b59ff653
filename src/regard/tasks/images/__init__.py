"""Images for the tasks that look at them: opened with care, turned into grids of features, kept for later."""

from regard.tasks.images.efficientnet import EfficientNetLite0, pretrained
from regard.tasks.images.features import Grids, Pictures, decoded, grids_of
from regard.tasks.images.photos import as_tensor, open_photo, reduced, squeezed

__all__ = [
    "EfficientNetLite0",
    "Grids",
    "Pictures",
    "as_tensor",
    "decoded",
    "grids_of",
    "open_photo",
    "pretrained",
    "reduced",
    "squeezed",
]
