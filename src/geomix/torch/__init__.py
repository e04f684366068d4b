"""PyTorch: the soft union of planes in networks.

head     ``GeometricMixtureHead``, a last layer
losses   ``soft_calibration_error`` and ``focal_loss``
chain    ``LinearChain``, transitions between the classes of a sequence
"""

from __future__ import annotations

try:
    import torch
except ImportError as error:
    raise ImportError(
        "geomix.torch needs PyTorch; install it with pip install 'geomix[torch]'."
    ) from error

from geomix.torch.chain import LinearChain
from geomix.torch.head import GeometricMixtureHead
from geomix.torch.losses import focal_loss, soft_calibration_error

del torch

__all__ = ["GeometricMixtureHead", "LinearChain", "focal_loss", "soft_calibration_error"]
