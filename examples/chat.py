"""Chat with a language model in the terminal.

    python examples/chat.py SmolLM2-135M-Instruct
    python examples/chat.py Qwen3-0.6B --system "Answer in one sentence."

The folder has a decoder-only model of a family that `keras_attn.pretrained`
reads, and its tokenizer, as published on the Hugging Face Hub. If the tokenizer
has a chat template, the model answers; otherwise it continues your text.
"""

import argparse
import os
import sys
import time

HELP = "/new starts again, Ctrl-C stops an answer, Ctrl-D ends."


def parse_arguments():
    """Returns the arguments of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("folder", help="folder with the model and its tokenizer")
    add("--system", metavar="TEXT", help="what the model is told first")
    add(
        "--max-new-tokens",
        type=int,
        default=512,
        help="longest answer, default 512",
    )
    add(
        "--temperature",
        type=float,
        default=0.7,
        help="randomness, default 0.7; 0: the most probable token",
    )
    add("--top-k", type=int, help="number of candidates")
    add("--top-p", type=float, help="total probability of the candidates")
    add("--seed", type=int, help="random seed; a new one each time")
    add(
        "--backend",
        choices=["jax", "tensorflow", "torch"],
        help="Keras backend",
    )
    return parser.parse_args()


def keeps_state(model):
    """Returns whether a model can continue what it has read.

    Not with dynamic scaling and LongRoPE (Phi-3), which rotate all keys by
    another angle once the text grows.
    """
    positions = getattr(model, "attention_position", None)
    positions = positions if isinstance(positions, list) else [positions]
    scalings = [getattr(one, "scaling", None) or {} for one in positions]
    types = {one.get("rope_type", one.get("type")) for one in scalings}
    return hasattr(model, "read") and types.isdisjoint({"dynamic", "longrope"})


class Chat:
    """A conversation with a model, which reads every message once.

    Args:
        model: a decoder-only model.
        tokenizer: its tokenizer, of `keras_attn.text`.
        system: str. What the model is told first. Default None.

    Attributes:
        forgotten: int. How many messages no longer fit into the context.
        generated: int. Number of tokens of all answers.
    """

    def __init__(self, model, tokenizer, system=None):
        self.model, self.tokenizer = model, tokenizer
        self._keeps_state = keeps_state(model)
        self._has_template = getattr(tokenizer, "chat_template", None)
        if system and not self._has_template:
            raise ValueError("`--system` needs a model with a chat template.")
        self._system = [{"role": "system", "content": system}] if system else []
        self.generated = 0
        self.clear()

    def clear(self):
        """Starts a new conversation."""
        self._messages, self._state, self.forgotten = [], None, 0

    def answer(self, message, max_new_tokens, strategy):
        """Yields the parts of an answer as they are generated.

        Args:
            message: str.
            max_new_tokens: int. The longest answer.
            strategy: a strategy of `keras_attn.decoding`.
        """
        answer = {"role": "assistant", "content": ""}
        self._messages.append({"role": "user", "content": message})
        try:
            ids = self._fitting(max_new_tokens)
            state = self._read(ids) if self._keeps_state else None
            steps = self.model.stream(
                None if state else [ids],
                max_new_tokens,
                strategy,
                tokenizer=self.tokenizer,
                state=state,
            )
        except ValueError:
            # The next message does not follow one that was not read.
            self._messages.pop()
            raise
        # What was generated of an answer that is interrupted stays.
        self._messages.append(answer)
        for item in steps:
            self.generated += 1
            answer["content"] += item.texts[0][0]
            yield item.texts[0][0]

    def _read(self, ids):
        """Reads what is new since the last turn, or all if the start changed.

        Templates may write earlier messages in another way, for example
        without the thoughts of the model.
        """
        known = [] if self._state is None else self._state.tokens[0].tolist()
        if not known or len(ids) == len(known) or ids[: len(known)] != known:
            self._state, known = None, []
        self._state = self.model.read([ids[len(known) :]], self._state)
        return self._state

    def _fitting(self, max_new_tokens):
        """Returns the ids of the latest messages, with room for the answer."""
        longest = getattr(self.model, "max_sequence_length", None)
        # Without a question and its answer each time.
        for first in range(0, len(self._messages), 2):
            ids = self._prompt(self._messages[first:])
            if longest is None or len(ids) + max_new_tokens <= longest:
                del self._messages[:first]
                self.forgotten += first
                return ids
        raise ValueError(
            f"The message has {len(ids):,} tokens. With an answer of up to "
            f"{max_new_tokens:,} (--max-new-tokens), it must fit into the "
            f"{longest:,} tokens that the model can read."
        )

    def _prompt(self, messages):
        if self._has_template:
            return self.tokenizer.apply_chat_template(
                self._system + messages, add_generation_prompt=True
            )
        text = "\n".join(message["content"] for message in messages)
        if not hasattr(self.tokenizer, "pack"):
            return self.tokenizer.encode(text)
        # With the token that starts a text, if texts of the model have one.
        ids = self.tokenizer.pack([text])["token_ids"][0].tolist()
        ends = self.model.end_id
        ends = ends if isinstance(ends, tuple) else (ends,)
        return ids[:-1] if len(ids) > 1 and ids[-1] in ends else ids


def lines():
    """Yields the lines that are typed, or those of a file."""
    interactive = sys.stdin.isatty()
    while True:
        try:
            line = input("> " if interactive else "")
        except EOFError:
            print(end="\n" if interactive else "")
            return
        if line.strip():
            yield line


def run(arguments):
    """Loads the model and answers until the input ends."""
    from keras_attn import pretrained
    from keras_attn.decoding import GreedySearch, Sampling
    from keras_attn.models import GPT, XLNet
    from keras_attn.text import load_tokenizer

    if arguments.max_new_tokens < 1:
        raise ValueError("`--max-new-tokens` must be at least 1.")
    strategy = GreedySearch()
    if arguments.temperature:
        names = "temperature", "top_k", "top_p", "seed"
        strategy = Sampling(**{n: getattr(arguments, n) for n in names})
    model = pretrained.load(arguments.folder)
    if not isinstance(model, (GPT, XLNet)):
        raise ValueError(
            f"{arguments.folder} must have a decoder-only model. It has a "
            f"{type(model).__name__}."
        )
    tokenizer = load_tokenizer(arguments.folder)
    chat = Chat(model, tokenizer, arguments.system)
    print(f"{model.count_params():,} parameters. {HELP}", file=sys.stderr)
    seconds = 0.0
    for line in lines():
        if line.strip() == "/new":
            chat.clear()
            continue
        forgotten, started = chat.forgotten, time.monotonic()
        try:
            for part in chat.answer(line, arguments.max_new_tokens, strategy):
                print(part, end="", flush=True)
        except KeyboardInterrupt:
            print(" ...", end="")
        except ValueError as error:
            print(error, file=sys.stderr)
            continue
        print("\n", flush=True)
        seconds += time.monotonic() - started
        if chat.forgotten > forgotten:
            print(
                "(The oldest messages no longer fit and are forgotten.)",
                file=sys.stderr,
            )
    if chat.generated:
        rate = chat.generated / seconds
        print(
            f"{chat.generated:,} tokens, {rate:.1f} tokens/s", file=sys.stderr
        )


def main():
    """Runs the command; prints errors in one line."""
    arguments = parse_arguments()
    if arguments.backend:
        os.environ["KERAS_BACKEND"] = arguments.backend
    try:
        run(arguments)
    except (ImportError, OSError, ValueError) as error:
        sys.exit(f"{sys.argv[0]}: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
