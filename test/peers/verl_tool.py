"""Reads a tool configuration, and its schema with verl's own classes."""

import importlib.util
import json
import pathlib
import sys

import yaml

request = json.load(sys.stdin)
path = pathlib.Path(request["libraries"]) / "verl/tools/schemas.py"
spec = importlib.util.spec_from_file_location("schemas", path)
schemas = importlib.util.module_from_spec(spec)
sys.modules["schemas"] = schemas
spec.loader.exec_module(schemas)

(tool,) = yaml.safe_load(request["yaml"])["tools"]
schema = schemas.OpenAIFunctionToolSchema.model_validate(tool["tool_schema"])
json.dump({"tool": tool, "type": schema.type}, sys.stdout)
