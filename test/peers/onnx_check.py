"""What onnx.checker says of graphs. Input: a list of paths; output: for each null or the complaint."""

import json
import sys

import onnx


def complaint(path):
    try:
        onnx.checker.check_model(path, full_check=False)
        return None
    except onnx.checker.ValidationError as error:
        return str(error)


json.dump([complaint(path) for path in json.load(sys.stdin)], sys.stdout)
