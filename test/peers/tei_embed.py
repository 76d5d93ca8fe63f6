"""Embeds with the clients of text-embeddings-inference: huggingface_hub's InferenceClient and LlamaIndex's TextEmbeddingsInference."""

import asyncio
import json
import os
import sys

# Offline, it would not even ask this machine.
os.environ.pop("HF_HUB_OFFLINE", None)

from huggingface_hub import InferenceClient
from huggingface_hub.errors import HfHubHTTPError
from llama_index.embeddings.text_embeddings_inference import TextEmbeddingsInference

request = json.load(sys.stdin)
url, texts = request["url"], request["texts"]
client = InferenceClient(url)


def refused(**options):
    try:
        client.feature_extraction(texts, **options)
    except HfHubHTTPError as error:
        return [error.response.status_code, error.response.json()["error"]]
    return None


# LlamaIndex knows the prompts of some models by their names, and puts them before the texts itself.
llama = TextEmbeddingsInference(model_name="BAAI/bge-small-en-v1.5", base_url=url, text_instruction="passage:")
json.dump(
    {
        "single": client.feature_extraction(texts[0]).tolist(),
        "list": client.feature_extraction(texts, normalize=True, truncate=True, truncation_direction="right").tolist(),
        "query": client.feature_extraction(texts, prompt_name="query").tolist(),
        "embed": InferenceClient(f"{url}/embed").feature_extraction(texts).tolist(),
        "prompt": refused(prompt_name="classification"),
        "dimensions": refused(dimensions=2),
        "llama_query": llama.get_query_embedding(texts[0]),
        "llama_texts": llama.get_text_embedding_batch(texts),
        "llama_async": asyncio.run(llama.aget_text_embedding(texts[0])),
    },
    sys.stdout,
)
