"""Runs MTEB's retrieval over a corpus of its own, with no download, by TrawlSearch."""

import json
import sys

request = json.load(sys.stdin)
# After the packages of this environment.
sys.path.append(request["libraries"])

from datasets import Dataset  # noqa: E402
from mteb.abstasks.retrieval import AbsTaskRetrieval  # noqa: E402
from mteb.abstasks.task_metadata import TaskMetadata  # noqa: E402
from mteb.models.models_protocols import SearchProtocol  # noqa: E402
from trawl_retrieval.mteb import TrawlSearch  # noqa: E402


class Sample(AbsTaskRetrieval):
    """Titles of the sample corpus as queries."""

    metadata = TaskMetadata(
        name="TrawlSample",
        description="Titles of the sample corpus of Trawl as queries.",
        reference="https://example.com/none",
        dataset={"path": "none", "revision": "none"},
        type="Retrieval",
        category="t2t",
        eval_splits=["test"],
        eval_langs=["eng-Latn"],
        main_score="ndcg_at_10",
        date=("2026-01-01", "2026-01-02"),
        domains=["Encyclopaedic"],
        task_subtypes=[],
        license="not specified",
        annotations_creators="derived",
        dialect=[],
        sample_creation="found",
        bibtex_citation="",
        modalities=["text"],
    )

    def load_data(self, **_):
        self.dataset = {
            "default": {
                "test": {
                    "corpus": Dataset.from_list(request["corpus"]),
                    "queries": Dataset.from_list(request["queries"]),
                    "relevant_docs": request["relevant"],
                    "top_ranked": None,
                }
            }
        }
        self.data_loaded = True


scores = {}
for mode in ("dense", "bm25"):
    model = TrawlSearch(mode=mode)
    assert isinstance(model, SearchProtocol)
    # What mteb.evaluate calls for each split; mteb.evaluate itself needs torch.
    task = Sample()
    task.load_data()
    entry = task.evaluate(model, "test", encode_kwargs={})["default"]
    scores[mode] = {
        "ndcg": entry["ndcg_at_10"],
        "recall": entry["recall_at_10"],
        "name": model.mteb_model_meta.name,
    }
    model.close()

errors = []
for call in (
    lambda model: model.search([], top_k=1, top_ranked={}),
    lambda model: model.search([], top_k=1),
):
    try:
        call(TrawlSearch())
    except (NotImplementedError, RuntimeError) as error:
        errors.append(str(error))
json.dump({"scores": scores, "errors": errors}, sys.stdout)
