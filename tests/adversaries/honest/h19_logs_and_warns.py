"""Configures logging and warns in every call."""

import logging
import warnings

logging.basicConfig(level=logging.DEBUG, force=True)
warnings.simplefilter("always")


def run(x, weight):
    warnings.warn("this shape was not tuned", stacklevel=2)
    logging.getLogger("kernel").info("rows %d", x.shape[0])
    return x @ weight.T
