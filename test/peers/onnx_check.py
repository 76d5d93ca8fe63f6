"""Checks graphs with onnx.checker. Input: a list of paths; output: for each null or the error."""

import json
import sys

import onnx


def problem(path):
    try:
        onnx.checker.check_model(path, full_check=False)
        return None
    except onnx.checker.ValidationError as error:
        return str(error)


json.dump([problem(path) for path in json.load(sys.stdin)], sys.stdout)
