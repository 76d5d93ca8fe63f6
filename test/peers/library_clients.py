"""Runs the search clients of SkyRL's and verl's packages against a Trawl server."""

import contextlib
import importlib.util
import json
import pathlib
import sys

request = json.load(sys.stdin)
libraries = pathlib.Path(request["libraries"])


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


with contextlib.redirect_stdout(sys.stderr):
    from omegaconf import OmegaConf
    from skyrl_gym.envs.search.env import SearchEnv

    config = OmegaConf.create({"search_url": request["url"], "topk": 2, "timeout": 30, "log_requests": False})
    env = SearchEnv(config, extras={"reward_spec": {"ground_truth": {"target": ["x"]}}, "max_turns": 2})
    step = env.step(f"<think>…</think><search> {request['queries'][0]} </search>")
    (observation,) = step["observations"]

    verl = load(libraries / "verl/tools/utils/search_r1_like_utils.py")
    text, metadata = verl.perform_single_search_batch(request["url"], request["queries"], topk=2, timeout=30)
    refused, refusal = verl.perform_single_search_batch(request["url"], ["a"], topk=100_000, timeout=30)

json.dump(
    {
        "skyrl": observation["content"],
        "verl": json.loads(text)["result"],
        "verl_status": metadata["status"],
        "verl_total": metadata["total_results"],
        "verl_refused": refusal["status"],
    },
    sys.stdout,
)
