"""Trains two steps with files of training rows, by the trainers where they can be installed, else by the loss of their sources.

Input: {"model": folder of all-MiniLM-L6-v2, "corpus": JSONL with "id" and "contents", "files": format -> path, "scored": format -> path of
rows with scores, "cache": folder}. Output: name of the run -> the losses of the two steps.
"""

import contextlib
import json
import random
import sys
import types
from pathlib import Path

import datasets
import torch
from sentence_transformers import CrossEncoder, CrossEncoderTrainer, CrossEncoderTrainingArguments
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.cross_encoder import losses as pair_losses
from sentence_transformers.losses import DistillKLDivLoss, MarginMSELoss, MultipleNegativesRankingLoss
from transformers import AutoModel, AutoTokenizer

request = json.load(sys.stdin)
libraries = Path(datasets.__file__).parent.parent
torch.set_num_threads(1)
torch.manual_seed(7)
random.seed(7)
tokenizer = AutoTokenizer.from_pretrained(request["model"])
BATCH, GROUP, LENGTH = 4, 4, 64


def package(name):
    """Makes a package importable without running its __init__, which imports models of no use here."""
    module = types.ModuleType(name)
    module.__path__ = [str(libraries.joinpath(*name.split(".")))]
    sys.modules[name] = module


def table(path):
    kind = "parquet" if path.endswith(".parquet") else "json"
    return datasets.load_dataset(kind, data_files=path, split="train", cache_dir=request["cache"])


def shortened(model):
    """Its first layer alone: the test is about rows, not about the model."""
    for part in model.modules():
        if isinstance(getattr(part, "layer", None), torch.nn.ModuleList):
            part.layer = part.layer[:1]
    return model


def sentence_transformers(path, loss, pairs=False):
    arguments = (CrossEncoderTrainingArguments if pairs else SentenceTransformerTrainingArguments)(
        output_dir=f"{request['cache']}/out",
        max_steps=2,
        per_device_train_batch_size=BATCH,
        logging_steps=1,
        report_to=[],
        save_strategy="no",
        use_cpu=True,
        disable_tqdm=True,
    )
    if pairs:
        model = CrossEncoder(request["model"], num_labels=1, device="cpu", max_length=LENGTH)
    else:
        model = SentenceTransformer(request["model"], device="cpu")
        model.max_seq_length = LENGTH
    shortened(model)
    trainer = (CrossEncoderTrainer if pairs else SentenceTransformerTrainer)(
        model=model, args=arguments, train_dataset=table(path), loss=loss(model)
    )
    trainer.train()
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


def two_steps(model, losses):
    """Losses are computed one after the other, each with the weights that the step before left."""
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    values = []
    for loss_of in losses:
        loss = loss_of()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        values.append(loss.item())
    return values


def flagembedding(path, distillation):
    for name in [
        "FlagEmbedding",
        "FlagEmbedding.abc",
        "FlagEmbedding.abc.finetune",
        "FlagEmbedding.finetune",
        "FlagEmbedding.finetune.embedder",
        "FlagEmbedding.finetune.embedder.encoder_only",
        "FlagEmbedding.finetune.embedder.encoder_only.base",
    ]:
        package(name)
    from FlagEmbedding.abc.finetune.embedder import AbsEmbedderCollator, AbsEmbedderTrainDataset
    from FlagEmbedding.finetune.embedder.encoder_only.base.modeling import BiEncoderOnlyEmbedderModel

    arguments = types.SimpleNamespace(
        train_data=[path],
        cache_path=request["cache"],
        shuffle_ratio=0.0,
        max_example_num_per_dataset=1_000_000,
        knowledge_distillation=distillation,
        train_group_size=GROUP,
        query_instruction_for_retrieval=None,
        passage_instruction_for_retrieval=None,
    )
    rows = AbsEmbedderTrainDataset(arguments, tokenizer)
    collate = AbsEmbedderCollator(tokenizer, query_max_len=LENGTH, passage_max_len=LENGTH)
    base = shortened(AutoModel.from_pretrained(request["model"]))
    model = BiEncoderOnlyEmbedderModel(base, tokenizer=tokenizer, temperature=0.05, normalize_embeddings=True)
    batches = [collate([rows[i] for i in range(at, at + BATCH)]) for at in (0, BATCH)]
    return two_steps(model, [lambda batch=batch: model(**batch).loss for batch in batches])


class Retriever(torch.nn.Module):
    """The encoder and the loss that DPR, tevatron and Agentic-R's fork share: the first passage of a row, against the passages of all rows."""

    def __init__(self):
        super().__init__()
        self.encoder = shortened(AutoModel.from_pretrained(request["model"]))

    def embed(self, texts):
        inputs = tokenizer(texts, padding=True, truncation=True, max_length=LENGTH, return_tensors="pt")
        hidden = self.encoder(**inputs).last_hidden_state
        mask = inputs["attention_mask"].unsqueeze(-1)
        return torch.nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1), dim=-1)

    def scores(self, queries, passages):
        return self.embed(queries) @ self.embed([text for group in passages for text in group]).T

    def loss(self, queries, passages):
        target = torch.arange(len(queries)) * len(passages[0])
        return torch.nn.functional.cross_entropy(self.scores(queries, passages) / 0.05, target)


def in_batches(examples):
    """examples: pairs of a query and its passages, as many in each."""
    model = Retriever()
    batches = [list(zip(*examples[at : at + BATCH])) for at in (0, BATCH)]
    return two_steps(model, [lambda batch=batch: model.loss(*batch) for batch in batches])


def tevatron(path):
    """tevatron 0.1's own data sets; its trainer needs an older transformers."""
    package("tevatron")
    package("tevatron.datasets")
    from tevatron.data import TrainDataset
    from tevatron.datasets.preprocessor import TrainPreProcessor

    class Words:
        def encode(self, text, max_length, **_):
            return text.split(" ")[:max_length]

        def encode_plus(self, words, max_length, **_):
            return words[:max_length]

    rows = table(path)
    words = rows.map(TrainPreProcessor(Words(), LENGTH, LENGTH), remove_columns=rows.column_names)
    arguments = types.SimpleNamespace(
        q_max_len=LENGTH,
        p_max_len=LENGTH,
        train_n_passages=GROUP,
        positive_passage_no_shuffle=False,
        negative_passage_no_shuffle=False,
    )
    trainer = types.SimpleNamespace(state=types.SimpleNamespace(epoch=0), args=types.SimpleNamespace(seed=0))
    groups = TrainDataset(arguments, words, Words(), trainer)
    return in_batches(
        [(" ".join(query), [" ".join(each) for each in passages]) for query, passages in (groups[i] for i in range(2 * BATCH))]
    )


def corpus():
    with open(request["corpus"], encoding="utf8") as lines:
        return {row["id"]: row.get("contents") or row["text"] for row in map(json.loads, lines)}


def tevatron_ids(path):
    texts = corpus()
    rows = table(path)
    return in_batches(
        [
            (
                row["query_text"],
                [texts[row["positive_document_ids"][0]], *(texts[id] for id in random.choices(row["negative_document_ids"], k=GROUP - 1))],
            )
            for row in (rows[i] for i in range(2 * BATCH))
        ]
    )


def agentic_r(path):
    """What the fork's data set takes of a row, and both of its losses: the ranking loss is over pairs whose scores differ."""
    texts = corpus()
    rows = table(path)
    examples, utilities = [], []
    for row in (rows[i] for i in range(2 * BATCH)):
        assert isinstance(row["history_queries"], list)
        examples.append((f"{row['question']} [SEP] {row['query_text']}", [texts[id] for id in row["passage_ids"]]))
        utilities.append([score["em"] + score["local_utility"] for score in row["scores"]])
    model = Retriever()

    def loss(at):
        queries, passages = zip(*examples[at : at + BATCH])
        scores = model.scores(queries, passages)
        size = len(passages[0])
        own = torch.stack([scores[i, i * size : (i + 1) * size] for i in range(len(queries))])
        wanted = torch.tensor(utilities[at : at + BATCH])
        better = wanted.unsqueeze(2) > wanted.unsqueeze(1)
        gaps = own.unsqueeze(2) - own.unsqueeze(1)
        ranking = torch.nn.functional.softplus(-gaps[better]).mean()
        target = torch.arange(len(queries)) * size
        return 0.8 * torch.nn.functional.cross_entropy(scores / 0.05, target) + 0.2 * ranking

    return two_steps(model, [lambda at=at: loss(at) for at in (0, BATCH)])


def dpr(path):
    with open(path, encoding="utf8") as file:
        rows = [row for row in json.load(file) if row["positive_ctxs"]][: 2 * BATCH]
    joined = lambda passage: f"{passage['title']} {passage['text']}"
    return in_batches(
        [(row["question"], [joined(row["positive_ctxs"][0]), joined(row["hard_negative_ctxs"][0])]) for row in rows]
    )


files, scored = request["files"], request["scored"]
# Trainers print, and the output of this script is JSON.
with contextlib.redirect_stdout(sys.stderr):
    result = {
        "triplet": sentence_transformers(files["triplet"], MultipleNegativesRankingLoss),
        "triplet, scores": sentence_transformers(scored["triplet"], MarginMSELoss),
        "n-tuple": sentence_transformers(files["n-tuple"], MultipleNegativesRankingLoss),
        "n-tuple, scores": sentence_transformers(scored["n-tuple"], DistillKLDivLoss),
        "labeled-pair": sentence_transformers(files["labeled-pair"], pair_losses.BinaryCrossEntropyLoss, True),
        "labeled-pair, scores": sentence_transformers(scored["labeled-pair"], pair_losses.MSELoss, True),
        "labeled-list": sentence_transformers(files["labeled-list"], pair_losses.ListNetLoss, True),
        "labeled-list, scores": sentence_transformers(scored["labeled-list"], pair_losses.ListNetLoss, True),
        "flagembedding": flagembedding(files["flagembedding"], False),
        "flagembedding, distillation": flagembedding(files["flagembedding"], True),
        "tevatron": tevatron(files["tevatron"]),
        "tevatron-ids": tevatron_ids(files["tevatron-ids"]),
        "agentic-r": agentic_r(files["agentic-r"]),
        "dpr": dpr(files["dpr"]),
    }
json.dump(result, sys.stdout)
