"""Runs FlashRAG's SequentialPipeline with the FlashRAGRetriever of a package and a generator that answers with the first document's title."""

import contextlib
import importlib
import json
import sys

request = json.load(sys.stdin)
sys.path.append(request["libraries"])

with contextlib.redirect_stdout(sys.stderr):
    from flashrag.dataset.dataset import Dataset, Item
    from flashrag.pipeline import SequentialPipeline

    FlashRAGRetriever = importlib.import_module(request["package"]).FlashRAGRetriever

    class Prompts:
        """Replaces the prompt template: passes on what the pipeline gives it."""

        def get_string(self, question, retrieval_result):
            return (question, retrieval_result)

    class FirstTitle:
        """Replaces the language model."""

        def generate(self, prompts):
            return [documents[0]["title"] for _, documents in prompts]

    class Config(dict):
        """Like FlashRAG's Config, returns None for missing keys."""

        def __getitem__(self, key):
            return self.get(key)

    config = Config(
        retrieval_topk=3,
        retrieval_batch_size=2,
        remote_retriever_url=request["url"],
        save_retrieval_cache=True,
        metrics=["em"],
    )
    retriever = FlashRAGRetriever.from_config(config)
    pipeline = SequentialPipeline(config, Prompts(), retriever=retriever, generator=FirstTitle())
    data = [Item({"id": i, **item, "output": {}}) for i, item in enumerate(request["items"])]
    dataset = pipeline.run(Dataset(config=config, data=data))

json.dump(
    {
        "pred": dataset.pred,
        "contents": [[document["contents"] for document in documents] for documents in dataset.retrieval_result],
        "em": [item.output["metric_score"]["em"] for item in dataset],
    },
    sys.stdout,
)
