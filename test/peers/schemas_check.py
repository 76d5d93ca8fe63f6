"""Reads YAML files, and validates lists of parts strictly by CycloneDX's schema of their version.

Input: {"yaml": [path], "boms": [path]}. Output: {"yaml": [document], "boms": [error or null]}.
"""

import json
import sys

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from ruamel.yaml import YAML


def problem(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    version = SchemaVersion.from_version(json.loads(text)["specVersion"])
    error = JsonStrictValidator(version).validate_str(text)
    return None if error is None else str(error)


def document(path):
    with open(path, encoding="utf-8") as file:
        return YAML(typ="safe", pure=True).load(file)


given = json.load(sys.stdin)
json.dump({"yaml": [document(path) for path in given["yaml"]], "boms": [problem(path) for path in given["boms"]]}, sys.stdout)
