"""Reads files of training rows with the readers of the trainers.

Input: {"files": format -> path, "tables": paths of Parquet files, "cache": folder}. Output: format -> what the trainer gets, and
"tables", see each function.
sentence-transformers trains on tables of datasets, and its collators take labels and inputs apart. DPR, the rows of tevatron with
ids and those of Agentic-R have no reader on PyPI: the last three functions do what their sources do with a row.
"""

import json
import sys
import types
from pathlib import Path

import datasets
from sentence_transformers.base.data_collator import BaseDataCollator
from sentence_transformers.cross_encoder.data_collator import CrossEncoderDataCollator

request = json.load(sys.stdin)
libraries = Path(datasets.__file__).parent.parent


def package(name):
    """Makes a package importable without running its __init__, which imports models."""
    module = types.ModuleType(name)
    module.__path__ = [str(libraries.joinpath(*name.split(".")))]
    sys.modules[name] = module


def table(path):
    kind = "parquet" if path.endswith(".parquet") else "json"
    return datasets.load_dataset(kind, data_files=path, split="train", cache_dir=request["cache"])


def bi_encoder(path):
    """The inputs of each column, in their order, and the scores."""
    rows = table(path)
    collate = BaseDataCollator(preprocess_fn=lambda texts, **_: {"texts": texts})
    batch = collate([rows[i] for i in range(len(rows))])
    label = batch.pop("label", None)
    return {"inputs": list(batch.values()), "label": None if label is None else label.tolist()}


def cross_encoder(path):
    """The columns, and the labels."""
    rows = table(path)
    batch = CrossEncoderDataCollator(preprocess_fn=None)([rows[i] for i in range(len(rows))])
    labels = batch.pop("label")
    labels = [label.tolist() for label in labels] if isinstance(labels, list) else labels.tolist()
    return {"inputs": list(batch.values()), "label": labels}


def flagembedding(path):
    """Of each row: query, passages and teacher scores of a group of 4."""
    for name in ["FlagEmbedding", "FlagEmbedding.abc", "FlagEmbedding.abc.finetune", "FlagEmbedding.abc.finetune.embedder"]:
        package(name)
    from FlagEmbedding.abc.finetune.embedder.AbsDataset import AbsEmbedderTrainDataset

    arguments = types.SimpleNamespace(
        train_data=[path],
        cache_path=request["cache"],
        shuffle_ratio=0.0,
        max_example_num_per_dataset=1_000_000,
        knowledge_distillation=True,
        train_group_size=4,
        query_instruction_for_retrieval=None,
        passage_instruction_for_retrieval=None,
    )
    rows = AbsEmbedderTrainDataset(arguments, None)
    return [list(rows[i]) for i in range(len(rows))]


class Words:
    """Stands in for a tokenizer: its tokens are words."""

    def encode(self, text, max_length, **_):
        return text.split(" ")[:max_length]

    def encode_plus(self, words, max_length, **_):
        return words[:max_length]


def tevatron(path):
    """Of each row: query and passages of a group of 4, as words."""
    package("tevatron")
    package("tevatron.datasets")
    from tevatron.data import TrainDataset
    from tevatron.datasets.preprocessor import TrainPreProcessor

    rows = table(path)
    words = rows.map(TrainPreProcessor(Words(), 1000, 1000), remove_columns=rows.column_names)
    arguments = types.SimpleNamespace(
        q_max_len=1000,
        p_max_len=1000,
        train_n_passages=4,
        positive_passage_no_shuffle=True,
        negative_passage_no_shuffle=True,
    )
    trainer = types.SimpleNamespace(state=types.SimpleNamespace(epoch=0), args=types.SimpleNamespace(seed=0))
    groups = TrainDataset(arguments, words, Words(), trainer)
    return [list(groups[i]) for i in range(len(groups))]


def dpr(path):
    """Of each row: question, the first positive and the hard negatives, as pairs of title and text."""
    with open(path, encoding="utf8") as file:
        rows = [row for row in json.load(file) if len(row["positive_ctxs"]) > 0]
    for row in rows:
        assert isinstance(row["answers"], list) and isinstance(row["negative_ctxs"], list)
    pair = lambda passage: [passage["title"], passage["text"]]
    return [
        [row["question"], pair(row["positive_ctxs"][0]), [pair(one) for one in row["hard_negative_ctxs"]]] for row in rows
    ]


def tevatron_ids(path):
    """Of each row: query and the ids of its passages."""
    return [
        [row["query_text"], row["positive_document_ids"] + row["negative_document_ids"]] for row in table(path)
    ]


def agentic_r(path):
    """Of each row: the text that is embedded and the ids; all rows have as many."""
    rows = table(path)
    assert len({len(row["passage_ids"]) for row in rows}) == 1
    for row in rows:
        assert isinstance(row["history_queries"], list) and len(row["scores"]) == len(row["passage_ids"])
        # Read for every row, also without the ranking loss.
        utilities = [score["local_utility"] + score["em"] for score in row["scores"]]
        assert utilities == sorted(utilities, reverse=True) and utilities[0] > utilities[1]
    return [[f"{row['question']} [SEP] {row['query_text']}", row["passage_ids"]] for row in rows]


READERS = {
    "triplet": bi_encoder,
    "n-tuple": bi_encoder,
    "labeled-pair": cross_encoder,
    "labeled-list": cross_encoder,
    "flagembedding": flagembedding,
    "tevatron": tevatron,
    "tevatron-ids": tevatron_ids,
    "agentic-r": agentic_r,
    "dpr": dpr,
}

def read_tables(path):
    """What datasets, pandas and pyarrow read of a Parquet file: the types of its columns, and its rows."""
    import pandas
    import pyarrow.parquet

    rows = table(path)
    read = pyarrow.parquet.read_table(path)
    frame = pandas.read_parquet(path)
    return {
        "types": {field.name: str(field.type) for field in read.schema},
        "datasets": [rows[i] for i in range(len(rows))],
        "pyarrow": read.to_pylist(),
        "pandas": json.loads(frame.to_json(orient="records", double_precision=15)),
    }


result = {name: READERS[name](path) for name, path in request.get("files", {}).items()}
result["tables"] = [read_tables(path) for path in request.get("tables", [])]
json.dump(result, sys.stdout)
