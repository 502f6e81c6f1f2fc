"""A transformer in an ONNX file with its tokenizer: loaded at first use, checked by hash, shared by threads."""

from __future__ import annotations

import hashlib
import importlib
import mmap
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from recollect.domain.errors import ModelUnavailable
from recollect.encoders.catalogue import Recipe
from recollect.encoders.fetch import file_sha256
from recollect.encoders.vectors import clean

if TYPE_CHECKING:
    from tokenizers import Tokenizer

NO_TELEMETRY = "ORT_DISABLE_TELEMETRY"
_REFETCH = "run `recollect models fetch` to get the files again"


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """The files of one model with the content they must have, and the recipe to run them."""

    name: str
    weights: Path
    weights_sha256: str
    tokenizer: Path
    tokenizer_sha256: str
    recipe: Recipe

    @property
    def id(self) -> str:
        """Name, content and recipe: what changes the vectors changes the id."""
        recipe = hashlib.sha256(repr((self.tokenizer_sha256, astuple(self.recipe))).encode()).hexdigest()
        return f"{self.name}@{self.weights_sha256[:12]}-{recipe[:6]}"


def check_content(path: Path, sha256: str, name: str) -> None:
    """Refuse a file that is gone or is not the one that was promised."""
    try:
        found = file_sha256(path)
    except OSError as error:
        raise ModelUnavailable(f"{path.name} of {name} cannot be read: {error.strerror}", _REFETCH) from error
    if found != sha256:
        raise ModelUnavailable(f"{path.name} of {name} is damaged or was replaced", _REFETCH)


def load_tokenizer(definition: bytes, name: str) -> Tokenizer:
    """A tokenizer that neither pads nor cuts: both are done here, so that counts are true and batches are ours."""
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_str(definition.decode("utf-8"))
    except Exception as error:  # tokenizers raises plain Exception for every kind of bad file
        raise ModelUnavailable(f"the tokenizer of {name} cannot be read: {error}", _REFETCH) from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def is_whole(tokenizer: Tokenizer, word: str) -> bool:
    """Whether the tokenizer leaves a word in one piece, as it does with words that are written often."""
    ids = tokenizer.encode(word, add_special_tokens=False).ids
    return len(ids) == 1 and ids[0] not in (tokenizer.token_to_id(name) for name in ("[UNK]", "<unk>"))


def cut(ids: Sequence[int], special: Sequence[int], limit: int) -> list[int]:
    """At most `limit` token ids; the closing special tokens stay, as the model has seen them in training."""
    if len(ids) <= limit:
        return list(ids)
    closing = 0
    while closing < limit and special[-1 - closing]:
        closing += 1
    return [*ids[: limit - closing], *ids[len(ids) - closing :]]


@dataclass(frozen=True, slots=True)
class _Loaded:
    session: Any
    tokenizer: Tokenizer
    inputs: Mapping[str, type[np.integer[Any]]]
    output: str
    batches_freely: bool


class OnnxModel:
    """Turns token ids into the model's main output. `run` may be called by many threads at once."""

    def __init__(self, files: ModelFiles, threads: int = 1) -> None:
        self.files = files
        self._threads = threads
        self._lock = threading.Lock()
        self._loaded: _Loaded | None = None
        self._tokenizer: Tokenizer | None = None

    @property
    def tokenizer(self) -> Tokenizer:
        """By itself: who only looks at words does not wait for the network to be loaded.

        Two threads may both load it at first, which does no harm.
        """
        if self._tokenizer is None:
            files = self.files
            check_content(files.tokenizer, files.tokenizer_sha256, files.name)
            self._tokenizer = load_tokenizer(files.tokenizer.read_bytes(), files.name)
        return self._tokenizer

    def encode(self, text: str, pair: str | None = None) -> tuple[list[int], list[int]]:
        """Token ids and segment ids of a text (or of a pair), cut to the model's window."""
        encoding = self._load().tokenizer.encode(clean(text), None if pair is None else clean(pair))
        limit = self.files.recipe.max_tokens
        special = encoding.special_tokens_mask
        return cut(encoding.ids, special, limit), cut(encoding.type_ids, special, limit)

    def count_tokens(self, text: str) -> int:
        """How many tokens the whole text has, special ones included."""
        return len(self._load().tokenizer.encode(clean(text)).ids)

    @property
    def batches_freely(self) -> bool:
        """False where other texts in a batch would change the result: dynamic quantisation has one scale a batch."""
        return self._load().batches_freely

    @property
    def output_width(self) -> int | None:
        """The last axis of the output, where the file tells it."""
        shape = next(o for o in self._load().session.get_outputs() if o.name == self._load().output).shape
        return shape[-1] if isinstance(shape[-1], int) else None

    def run(
        self, encodings: Sequence[tuple[Sequence[int], Sequence[int]]]
    ) -> tuple[NDArray[np.floating], NDArray[np.int64]]:
        """The main output for a batch of encodings, and its attention mask."""
        loaded = self._load()
        longest = max(len(ids) for ids, _ in encodings)
        ids = np.zeros((len(encodings), longest), dtype=np.int64)
        mask, segments = np.zeros_like(ids), np.zeros_like(ids)
        for row, (tokens, types) in enumerate(encodings):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
            segments[row, : len(types)] = types
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": segments}
        feed = {name: given[name].astype(kind) for name, kind in loaded.inputs.items()}
        try:
            return np.asarray(loaded.session.run([loaded.output], feed)[0]), mask
        except Exception as error:  # onnxruntime's errors share no base but Exception
            raise ModelUnavailable(f"{self.files.name} failed while running: {_first_line(error)}", _REFETCH) from error

    def _load(self) -> _Loaded:
        # Read without the lock: once set, it never changes.
        if self._loaded is None:
            with self._lock:
                if self._loaded is None:
                    self._loaded = self._open()
        return self._loaded

    def _open(self) -> _Loaded:
        files = self.files
        check_content(files.weights, files.weights_sha256, files.name)
        tokenizer = self.tokenizer
        session = _open_session(files, self._threads)
        inputs = _wanted_inputs(session.get_inputs(), files.name)
        outputs: list[str] = [output.name for output in session.get_outputs()]
        preferred = ("sentence_embedding", "last_hidden_state", "token_embeddings", "logits")
        output = next((name for name in preferred if name in outputs), outputs[0])
        return _Loaded(session, tokenizer, inputs, output, not _quantises_at_run_time(files.weights))


def _runtime() -> Any:
    """The library that runs models. It reports its use to its makers, unless the environment says no before it is
    imported; where somebody else has imported it, it is told now."""
    os.environ.setdefault(NO_TELEMETRY, "1")
    # Its types are not published; importing it by name says so once.
    onnxruntime: Any = importlib.import_module("onnxruntime")
    if os.environ[NO_TELEMETRY] != "0":
        onnxruntime.disable_telemetry_events()
    return onnxruntime


def _open_session(files: ModelFiles, threads: int) -> Any:
    onnxruntime = _runtime()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Errors come back as exceptions: nothing is to be written to the terminal of whoever uses the library.
    options.log_severity_level = 4
    # Threads that spin while they wait take the cores from everything else on a small machine.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(str(files.weights), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's errors share no base but Exception
        raise ModelUnavailable(f"{files.name} cannot be loaded: {_first_line(error)}", _REFETCH) from error


def _wanted_inputs(inputs: Sequence[Any], name: str) -> dict[str, type[np.integer[Any]]]:
    kinds: dict[str, type[np.integer[Any]]] = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
    wanted: dict[str, type[np.integer[Any]]] = {}
    for entry in inputs:
        if entry.name not in ("input_ids", "attention_mask", "token_type_ids") or entry.type not in kinds:
            raise ModelUnavailable(
                f"{name} wants the input {entry.name} ({entry.type}), which is unknown here",
                "use a model exported with input_ids, attention_mask and token_type_ids",
            )
        wanted[entry.name] = kinds[entry.type]
    return wanted


def _quantises_at_run_time(weights: Path) -> bool:
    """Whether activations get one scale per batch; the operators' names stand in the file as plain text."""
    with weights.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return any(content.find(operator) >= 0 for operator in (b"DynamicQuantizeLinear", b"DynamicQuantizeMatMul"))


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
