"""The words of the spelling data, and a model of spelling errors."""
