"""Validates Kubernetes manifests against the API's schemas; unknown fields are errors. Input: {"files": [path], "versions": ["1.31"]}."""

import json
import sys

import kubernetes_validate
import yaml

given = json.load(sys.stdin)
result = []
for path in given["files"]:
    with open(path, encoding="utf-8") as file:
        documents = list(yaml.safe_load_all(file))
    for document in documents:
        problems = []
        for version in given["versions"]:
            try:
                kubernetes_validate.validate(document, version, strict=True)
            except (kubernetes_validate.ValidationError, kubernetes_validate.SchemaNotFoundError) as error:
                problems.append(f"{version}: {getattr(error, 'message', error)}")
        result.append({"path": path, "document": document, "problems": problems})
json.dump(result, sys.stdout)
