"""Uses a Trawl server with OpenAI's official client for embeddings."""

import json
import sys

import openai

request = json.load(sys.stdin)
client = openai.OpenAI(base_url=request["url"] + "/v1", api_key="none", max_retries=0)


def embed(**options):
    answer = client.embeddings.create(**options)
    return {
        "vectors": [item.embedding for item in answer.data],
        "indexes": [item.index for item in answer.data],
        "model": answer.model,
        "tokens": answer.usage.total_tokens,
    }


def error_of(**options):
    try:
        client.embeddings.create(**options)
    except openai.APIStatusError as error:
        return {"type": type(error).__name__, "code": error.code, "param": error.param}
    return None


model = request["model"]
texts = request["texts"]
json.dump(
    {
        "default": embed(model=model, input=texts),
        "float": embed(model=model, input=texts, encoding_format="float"),
        "single": embed(model=model, input=texts[0]),
        "passage": embed(model=model, input=texts[0], extra_body={"input_type": "passage"}),
        "tokens": error_of(model=model, input=[[1, 2, 3]]),
        "unknown": error_of(model="text-embedding-3-small", input="a"),
        "dimensions": error_of(model=model, input="a", dimensions=2),
    },
    sys.stdout,
)
