"""The official client of OpenAI's embeddings against a server of ours, as a program would use it."""

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


def fault(**options):
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
        "tokens": fault(model=model, input=[[1, 2, 3]]),
        "unknown": fault(model="text-embedding-3-small", input="a"),
        "dimensions": fault(model=model, input="a", dimensions=2),
    },
    sys.stdout,
)
