"""The families of models that can be read and written."""

from keras_attn.pretrained.marian import MARIAN

FAMILIES = (MARIAN,)
