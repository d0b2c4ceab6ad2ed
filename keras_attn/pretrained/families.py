"""The model families that can be loaded and saved."""

from keras_attn.pretrained.bert import BERT
from keras_attn.pretrained.gpt2 import GPT2
from keras_attn.pretrained.marian import MARIAN
from keras_attn.pretrained.roberta import ROBERTA, XLM_ROBERTA
from keras_attn.pretrained.xlnet import XLNET

# Of several families that fit a model, `save` takes the first.
FAMILIES = BERT, GPT2, MARIAN, ROBERTA, XLM_ROBERTA, XLNET
