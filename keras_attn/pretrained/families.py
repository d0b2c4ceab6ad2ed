"""The model families that can be loaded and saved."""

from keras_attn.pretrained.albert import ALBERT
from keras_attn.pretrained.bart import BART, MARIAN, MBART
from keras_attn.pretrained.bert import BERT
from keras_attn.pretrained.decoder_families import DECODER_FAMILIES
from keras_attn.pretrained.distilbert import DISTILBERT
from keras_attn.pretrained.electra import ELECTRA
from keras_attn.pretrained.family import Family
from keras_attn.pretrained.gpt2 import GPT2
from keras_attn.pretrained.modernbert import MODERNBERT
from keras_attn.pretrained.roberta import ROBERTA, XLM_ROBERTA
from keras_attn.pretrained.t5 import MT5, T5
from keras_attn.pretrained.vit import DEIT, VIT
from keras_attn.pretrained.xlnet import XLNET

# Of several families that fit a model, `save` takes the first: BERT before
# ELECTRA, which has the same encoder.
FAMILIES = (
    ALBERT,
    BERT,
    DEIT,
    DISTILBERT,
    ELECTRA,
    MODERNBERT,
    GPT2,
    MARIAN,
    BART,
    MBART,
    T5,
    MT5,
    ROBERTA,
    VIT,
    XLM_ROBERTA,
    XLNET,
    *DECODER_FAMILIES,
)
# Those that users have added, by `model_type`.
registered: dict[str, Family] = {}


def families() -> tuple[Family, ...]:
    """Returns the families of this package, then the registered ones."""
    return (*FAMILIES, *registered.values())
