"""docs/models.md, made from the catalogue."""

from __future__ import annotations

from recollect.encoders.catalogue import EMBEDDER_CHAIN, MODELS, CatalogueModel

PAGE = """\
# Models

This page is generated from the catalogue (`make docs`).

recollect works without any model, by words alone, and says so. With one, it also finds by meaning. Models are fetched
once, checked by sha256, kept in the user's cache and never asked for over the network again:

```sh
recollect models fetch              # the default embedder
recollect models fetch minilm-l6    # another one
recollect models list               # what is known, what is here, what is in use
recollect models use NAME           # choose; every vector carries its model, so the store is embedded anew
recollect models test               # one sentence through the models in use
```

The files travel inside packages of the Python package index, so your own index or mirror settings hold. These packages
are uploads by others and could vanish: each is pinned by hash, and with `embedder = "default"` the first one installed
of this chain is used: {chain}. Without any, search goes on by words.

{models}
## Your own

- **A folder** with `model.onnx` and `tokenizer.json` (an exported sentence model): `recollect models use ./my-model`.
  An optional `recollect-model.toml` beside them sets `pooling`, `max_tokens`, `query_prefix` and `document_prefix`.
- **An HTTP endpoint** of the OpenAI shape (OpenAI, Voyage, Ollama, vLLM …): set `embedder` to its base URL,
  `embedder_model` and `embedder_key`. Options go into the fragment:
  `http://localhost:11434/v1#query_prefix=search_query:%20&max_tokens=2048`.
- **A reranker over HTTP** of the Cohere, Jina or Voyage shape: set `reranker` to its URL, `reranker_model` and
  `reranker_key`; or `reranker = "judge"` to let the chat model of `language_model` judge.
- **In Python**: any object with the methods of `recollect.ports.Embedder` or `Reranker`:
  `recollect.open("notes.db", embedder=mine)` ([an example](library.md#an-embedder-or-a-reranker-of-your-own)).

A memory marked sensitive is never embedded and never shown to a model. A memory longer than the model's window is
embedded as overlapping passages cut at sentence ends; its score is that of its best passage, and the hit says which.
Models that quantise at run time are given one text at a time, because in a batch a text's vector would depend on its
neighbours.
"""


def page() -> str:
    """The whole page."""
    return PAGE.format(
        chain=", ".join(f"`{one.name}`" for one in EMBEDDER_CHAIN), models="\n".join(map(_entry, MODELS.values()))
    )


def _entry(model: CatalogueModel) -> str:
    megabytes = f"{model.wheel_size / 1e6:.0f} MB to download"
    shape = f", {model.dimension} dimensions, {model.recipe.max_tokens} tokens" if model.is_embedder else ""
    return (
        f"**`{model.name}`**: {model.summary}.\n\n"
        f"- {megabytes}{shape}\n"
        f"- from package `{model.package}` {model.version}, sha256 `{model.wheel_sha256[:16]}…`\n"
        f"- {model.licence}; {model.notice}; origin <{model.origin}>\n"
    )
