"""Malformed calls whose errors are obscure, with the reason.

The messages of these calls do not name the argument in the usual form. A call
that is obscure and matches no pattern fails, and so does a pattern that matches
no obscure call: both lists shrink together with the number of obscure calls.
"""

# Patterns of call names, as `fnmatch` takes them, to reasons.
KNOWN = {
    # Not those of `pretrained`, which names the key of the config.
    "[!p]*: *activation, *": "Keras's own message, which quotes the value",
    "*: *initializer, *": "Keras's own message, which quotes the value",
    "*: *regularizer, *": "Keras's own message, which quotes the value",
    "*: *constraint, *": "Keras's own message, which quotes the value",
    "layers.Reinforce: loss, text": "Keras's own message",
    "layers.Reinforce: loss, number": "Keras's own message",
}
# Share of all calls.
MOST_KNOWN = 0.02
