"""Texts that decoder and encoder propose, and which both find likeliest."""

from typing import Any, NamedTuple

import numpy as np
from letters import END, PAD, UNKNOWN

from keras_attn.decoding import BeamSearch

_WIDTH = 4
# Every token that is written is a character: so each has its own weights.
_SEARCH = BeamSearch(
    num_beams=_WIDTH,
    num_return_sequences=_WIDTH,
    length_penalty=0,
    suppress_tokens=[UNKNOWN],
)
WAYS = "both", "decoder", "encoder"


class Proposals(NamedTuple):
    """Holds the texts proposed for B sounds, and what speaks for each.

    Args:
        tokens: int32 (B, n, L), with the end behind each. The last one is the
            encoder's, the others are the decoder's.
        decoder: float (B, n), log p(text | sound) of the decoder, in nats.
        encoder: float (B, n), that of the encoder's own spelling.
    """

    tokens: Any
    decoder: Any
    encoder: Any

    def choose(self, by="both"):
        """Returns one text for each sound, int32 (B, L).

            argmax over y of log p_decoder(y) + log p_encoder(y)

        The decoder knows which texts are likely, and may lose its place in the
        sound; the encoder's spelling never goes back, and writes each
        character without looking at the others (Hori et al. 2017, sec. 3.3,
        https://aclanthology.org/P17-1048).

        Args:
            by: `"both"`, or `"decoder"` or `"encoder"`: what each of them would
                write alone.

        Raises:
            ValueError: another `by`.
        """
        if by not in WAYS:
            raise ValueError(
                f"`by` must be one of {', '.join(WAYS)}. Received: by={by!r}"
            )
        if by == "encoder":
            return self.tokens[:, -1]
        if by == "decoder":
            best = self.decoder[:, :-1].argmax(1)
        else:
            best = (self.decoder + self.encoder).argmax(1)
        return self.tokens[np.arange(len(best)), best]


def propose(model, frames, longest):
    """Lets decoder and encoder propose texts, and scores all of them by both.

    Args:
        model: `SpeechTransformer`.
        frames: float (B, F, bands + 1).
        longest: int. L, most tokens of a text, the end included.

    Returns:
        `Proposals`, n = 5.
    """
    found = model.generate(frames, longest, _SEARCH, batch_size=len(frames))
    tokens = np.full((len(frames), _WIDTH + 1, longest), PAD, "int32")
    tokens[:, :_WIDTH, : found.tokens.shape[2]] = found.tokens
    for row, ids in zip(tokens[:, -1], model.spell(frames), strict=True):
        ids = [i for i in ids if i > UNKNOWN][: longest - 1]
        row[: len(ids) + 1] = [*ids, END]
    decoder, encoder = model.score(frames, tokens)
    # There may be fewer texts than a beam is wide.
    there = np.append(
        np.isfinite(found.scores), np.ones((len(frames), 1), "bool"), axis=1
    )
    return Proposals(
        tokens,
        np.where(there, decoder, -np.inf),
        np.where(there, encoder, -np.inf),
    )
