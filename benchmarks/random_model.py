"""A model of the shape of Llama 3.1 8B without weights, for `--engine-args load-format=dummy`.

    PYTHON benchmarks/random_model.py FOLDER [--layers 32]

PYTHON is of an environment that has vLLM. What a GPU does with a question depends on shapes, so its speed is
real; the answers are noise. Nothing is downloaded: the tokenizer learns its words from this project's texts.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
SUFFIXES = {".md", ".py", ".toml"}
WORDS = 32_000
CONTEXT = 32_768


def make(folder: Path, layers: int) -> None:
    """Write the configuration and the tokenizer."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, PreTrainedTokenizerFast

    from tests.judges.clients.tiny_model import TEMPLATE

    raw: Any = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    rooms = ("docs", "schemas", "pipeline", "judges", "annotation", "dashboards")
    paths = [
        path for room in rooms for path in sorted(ROOT.glob(f"{room}/**/*.*")) if path.suffix in SUFFIXES
    ]
    raw.train_from_iterator(
        (path.read_text() for path in paths),
        trainers.BpeTrainer(
            vocab_size=WORDS,
            special_tokens=["<s>", "</s>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, bos_token="<s>", eos_token="</s>")
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)
    LlamaConfig(
        architectures=["LlamaForCausalLM"],
        dtype="bfloat16",
        vocab_size=len(tokenizer),
        hidden_size=4096,
        intermediate_size=14_336,
        num_hidden_layers=layers,
        num_attention_heads=32,
        num_key_value_heads=8,
        max_position_embeddings=CONTEXT,
        bos_token_id=0,
        eos_token_id=1,
    ).save_pretrained(folder)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("folder", type=Path)
    options.add_argument("--layers", type=int, default=32)
    given = options.parse_args()
    make(given.folder, given.layers)
