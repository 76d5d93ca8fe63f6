"""Fills an index with elasticsearch-py as ArtSearch's build script does: rows of Wikipedia in bulk, without a mapping, ids and
a refresh. Input: {"url", "key"}."""

import json
import sys
import time

from elasticsearch import BadRequestError, Elasticsearch, helpers

request = json.load(sys.stdin)
client = Elasticsearch(request["url"], basic_auth=("elastic", request["key"]))
INDEX = "wiki_en"


def rows():
    for number in range(1_200):
        title = "Brooklyn Bridge" if number == 700 else f"Article {number}"
        yield {"_index": INDEX, "id": str(number), "url": f"https://en.wikipedia.org/{number}", "title": title, "text": "A text."}


answer = {"before": bool(client.indices.exists(index=INDEX))}
client.indices.delete(index=INDEX, ignore_unavailable=True)
client.indices.create(index=INDEX)
answer["bulk"] = [*helpers.bulk(client, rows(), stats_only=True)]
deadline = time.monotonic() + 60
while client.count(index=INDEX)["count"] < 1_200 and time.monotonic() < deadline:
    time.sleep(0.05)
answer["count"] = client.count(index=INDEX)["count"]
query = {"multi_match": {"query": "the Brooklyn bridge", "fields": ["title", "text"]}}
hit = client.search(index=INDEX, query=query, size=1)["hits"]["hits"][0]
answer["title"] = hit["_source"]["title"]
answer["keys"] = sorted(hit["_source"])
client.index(index=INDEX, id="one", document={"text": "again"}, refresh=True)
answer["again"] = client.get(index=INDEX, id="one")["_source"] == {"text": "again"}
done, errors = helpers.bulk(
    client,
    [{"_op_type": "create", "_index": INDEX, "_id": "one", "text": "a"}, {"_op_type": "delete", "_index": INDEX, "_id": "one"}],
    raise_on_error=False,
    refresh="wait_for",
)
answer["conflict"] = [done, errors[0]["create"]["error"]["type"]]
try:
    client.indices.create(index=INDEX)
except BadRequestError as error:
    answer["exists"] = error.error
client.indices.delete(index=INDEX)
answer["deleted"] = bool(client.indices.exists(index=INDEX))
json.dump(answer, sys.stdout)
