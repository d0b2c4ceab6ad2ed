"""Synthetic sentences: a grammar of English with Spanish translations.

`lexicon` has the words, `inflection` their forms, `noun_phrases` and `clauses`
build both languages together, and `sampler` draws sentences. `facts` and
`passages` write what is known to be true, for questions. `held_out` decides
which sentences belong to which split.
"""
