
import hashlib, json, sys
from keras_attn.text import *
from tests.text.samples import SCRIPTS
lines = [line for part in SCRIPTS.values() for line in part] * 3
found = [
    WordPieceTokenizer.train_from_lines(lines, 700),
    BytePairTokenizer.train_from_lines(lines, 500),
    UnigramTokenizer.train_from_lines(lines, 420),
]
values = [tokenizer._engine.to_str() for tokenizer in found]
print(hashlib.sha256("".join(values).encode()).hexdigest())

