"""A model's text side: ids, text and bytes."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, normalizers
from transformers import AutoTokenizer

from tartlet_engine.tokenizer import ModelTokenizer

TEXT = "Zwölf Äpfel 🍰,\n\n日本語\t<|im_end|> <|im_start|>x \x00"


@pytest.fixture(scope="module")
def tokenizer(tiny_folder: Path) -> ModelTokenizer:
    return ModelTokenizer(tiny_folder)


@pytest.fixture(scope="module")
def sentencepiece(tmp_path_factory: pytest.TempPathFactory) -> ModelTokenizer:
    """A vocabulary in the style of Llama 2: a space before every text, bytes for what has no token."""
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *"▁helo,w", "he", "▁he"]
    vocabulary = {token: token_id for token_id, token in enumerate(tokens)}
    model = models.BPE(vocabulary, [("h", "e"), ("▁", "he")], unk_token="<unk>", byte_fallback=True, fuse_unk=True)
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    folder = tmp_path_factory.mktemp("sentencepiece")
    tokenizer.save(str(folder / "tokenizer.json"))
    return ModelTokenizer(folder)


def test_encodes_as_transformers_does(tokenizer: ModelTokenizer, tiny_folder: Path) -> None:
    """The ids are transformers' own, without anything added, special tokens written out included."""
    expected = AutoTokenizer.from_pretrained(tiny_folder).encode(TEXT, add_special_tokens=False)

    assert tokenizer.encode(TEXT) == expected
    assert tokenizer.encode("<|im_start|><|im_end|>") == [1, 2]
    assert tokenizer.encode("") == []


@given(st.text())
def test_text_survives_the_round_trip(tokenizer: ModelTokenizer, text: str) -> None:
    """Decoding what was encoded gives the text, byte for byte."""
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert b"".join(map(tokenizer.token_bytes, tokenizer.encode(text))) == text.encode()


def test_decodes_as_transformers_does(tokenizer: ModelTokenizer, tiny_folder: Path) -> None:
    """Any ids give transformers' text, also where the bytes are not UTF-8."""
    reference = AutoTokenizer.from_pretrained(tiny_folder)
    for start in range(0, 512, 7):
        ids = [(start * 31 + step * step) % 512 for step in range(12)]
        assert tokenizer.decode(ids) == reference.decode(ids, clean_up_tokenization_spaces=False)


def test_sentencepiece_vocabulary(sentencepiece: ModelTokenizer) -> None:
    """The space that such a tokenizer puts first is taken off again; characters without a token go through bytes."""
    for text in ("hello, world", " hello", "日本🍰", ""):
        assert sentencepiece.decode(sentencepiece.encode(text)) == text
    assert [sentencepiece.token_bytes(i) for i in sentencepiece.encode("hé")] == [b" ", b"h", b"\xc3", b"\xa9"]


@pytest.mark.parametrize("token_id", [-1, 512, 2**32])
def test_refuses_ids_outside_the_vocabulary(token_id: int, tokenizer: ModelTokenizer) -> None:
    """The error names the id and the range."""
    with pytest.raises(ValueError, match=rf"{token_id} is outside the vocabulary: ids are 0 to 511"):
        tokenizer.decode([1, token_id])
    with pytest.raises(ValueError, match="outside"):
        tokenizer.token_bytes(token_id)


def test_refuses_what_is_no_text(tokenizer: ModelTokenizer) -> None:
    """Half a surrogate pair is a ValueError, as all errors of the text side are."""
    with pytest.raises(ValueError, match="surrogates"):
        tokenizer.encode("\ud83c")
    with pytest.raises(ValueError, match="surrogates"):
        tokenizer.chat_message([], "user", "\ud83c")


def test_ids_that_no_token_has(tiny_folder: Path, tmp_path: Path) -> None:
    """Padding at the end of a model's vocabulary decodes to nothing."""
    folder = changed_folder(tiny_folder, tmp_path, "config.json", vocab_size=600)
    tokenizer = ModelTokenizer(folder)

    assert tokenizer.vocabulary_size == 600
    assert tokenizer.decode([599, *tokenizer.encode("x")]) == "x"


def test_finds_every_eos(tiny_folder: Path, tmp_path: Path) -> None:
    """Those of the generation configuration, in order, and the tokenizer's own."""
    assert ModelTokenizer(tiny_folder).eos_token_ids == (2,)
    folder = changed_folder(tiny_folder, tmp_path, "generation_config.json", eos_token_id=[1, 0, 9999])

    assert ModelTokenizer(folder).eos_token_ids == (1, 0, 2)


def test_says_what_is_missing(tiny_folder: Path, tmp_path: Path) -> None:
    """Without tokenizer.json, or without a chat template, the error says so; the latter hurts only chat."""
    with pytest.raises(ValueError, match=r"no tokenizer\.json"):
        ModelTokenizer(tmp_path)
    shutil.copy(tiny_folder / "tokenizer.json", tmp_path)
    tokenizer = ModelTokenizer(tmp_path)

    assert not tokenizer.has_chat_template
    assert tokenizer.encode("<|im_end|>") == [2]
    with pytest.raises(ValueError, match="no chat template"):
        tokenizer.chat_cue([])


@pytest.mark.parametrize("source", ["{% if %}", "x" * 2_000_000])
def test_a_bad_template_hurts_only_chat(source: str, tiny_folder: Path, tmp_path: Path) -> None:
    """A model whose template cannot be compiled still serves text."""
    shutil.copytree(tiny_folder, tmp_path, dirs_exist_ok=True)
    (tmp_path / "chat_template.jinja").write_text(source)
    tokenizer = ModelTokenizer(tmp_path)

    assert tokenizer.decode(tokenizer.encode("still")) == "still"
    with pytest.raises(ValueError, match="chat template"):
        tokenizer.chat_message([], "user", "hi")


@pytest.mark.parametrize(
    "template", ["A", [{"name": "tool_use", "template": "B"}, {"name": "default", "template": "A"}]]
)
def test_reads_templates_from_the_tokenizer_configuration(template: object, tiny_folder: Path, tmp_path: Path) -> None:
    """Older folders keep the template, or several by name, in tokenizer_config.json."""
    folder = changed_folder(tiny_folder, tmp_path, "tokenizer_config.json", chat_template=template)
    (folder / "chat_template.jinja").unlink()
    tokenizer = ModelTokenizer(folder)

    assert tokenizer.chat_cue([]) == tokenizer.encode("A")


def test_works_from_many_threads(tokenizer: ModelTokenizer) -> None:
    """Threads that use one tokenizer at once all get the right answers."""
    message = tokenizer.chat_message([], "user", "x <|im_end|> y")
    wrong: list[object] = []

    def work() -> None:
        for _ in range(50):
            ids = tokenizer.encode(TEXT)
            if tokenizer.decode(ids) != TEXT or tokenizer.chat_message([], "user", "x <|im_end|> y") != message:
                wrong.append(ids)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_needs_neither_torch_nor_transformers() -> None:
    """The text side is there at once: importing it does not import them."""
    code = (
        "import sys, tartlet_engine.tokenizer, tartlet_engine.stop; print({'torch', 'transformers'} & {*sys.modules})"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert result.stdout.strip() == "set()"


@pytest.mark.model
def test_real_model(real_folder: Path) -> None:
    """The real model's ids and text are transformers' own, and its chat ends with its eos token."""
    tokenizer, reference = ModelTokenizer(real_folder), AutoTokenizer.from_pretrained(real_folder)

    assert tokenizer.encode(TEXT) == reference.encode(TEXT, add_special_tokens=False)
    assert tokenizer.vocabulary_size == 49_152
    assert tokenizer.eos_token_ids == (2,)
    for start in range(0, 49_152, 97):
        ids = list(range(start, min(start + 97, 49_152)))
        assert tokenizer.decode(ids) == reference.decode(ids, clean_up_tokenization_spaces=False)


def changed_folder(folder: Path, copy: Path, name: str, **changes: object) -> Path:
    """Copy a model folder without its weights, with some fields of one JSON file changed."""
    shutil.copytree(folder, copy, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.safetensors"))
    content = json.loads((copy / name).read_text())
    (copy / name).write_text(json.dumps(content | changes))
    return copy
