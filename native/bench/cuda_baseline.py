"""Rows and queries for cuda_bench.cpp, and the same searches by the method of FAISS on a GPU: cuBLAS products of all rows in parts,
top k of each part, merged.

    cuda_baseline.py rows   --folder DIR --rows N --sample FAISS-FLAT-FILE   makes DIR/rows.f16 and DIR/queries.f32
    cuda_baseline.py search --folder DIR --rows N --json FILE [--queries 1,8,64,1024] [--k 10] [--types float16,float16-coarse,float32,tf32]

float16 has scores in float32, float16-coarse in float16.

Rows are unit vectors with the mean and covariance of the sample, as in synthetic.cpp. `recall` compares the top k with
DIR/answers.i64, the exact ones.
"""

import argparse
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch

STARTED = time.monotonic()
DIMENSION = 768
ALL_QUERIES = 1024
DEVICE = 'cuda' if torch.cuda.is_available() else 'cpu'  # the CPU only rehearses


def progress(text):
    print(f'[{time.monotonic() - STARTED:7.2f} s] {text}', flush=True)


def generator(sample_path):
    sample = np.fromfile(sample_path, dtype=np.uint8)[45:].view(np.float32).reshape(-1, DIMENSION)
    sample = torch.from_numpy(sample.astype(np.float64)).to(DEVICE)
    mean = sample.mean(0)
    centred = sample - mean
    covariance = centred.T @ centred / sample.shape[0]
    covariance += torch.eye(DIMENSION, device=DEVICE, dtype=torch.float64) * 1e-6 * covariance.trace() / DIMENSION
    factor = torch.linalg.cholesky(covariance).T.float().contiguous()
    mean = mean.float()

    def rows(count):
        made = torch.addmm(mean, torch.randn(count, DIMENSION, device=DEVICE), factor)
        return made / made.norm(dim=1, keepdim=True)

    return rows


def make_rows(options):
    torch.backends.cuda.matmul.allow_tf32 = False
    os.makedirs(options.folder, exist_ok=True)
    rows = generator(options.sample)
    torch.manual_seed(2)
    rows(ALL_QUERIES).cpu().numpy().tofile(f'{options.folder}/queries.f32')
    torch.manual_seed(1)
    path = f'{options.folder}/rows.f16'
    with open(path, 'wb') as file:
        file.truncate(options.rows * DIMENSION * 2)
    at_once = 262144
    out = os.open(path, os.O_WRONLY)
    # Copies and writes overlap the generation.
    with ThreadPoolExecutor(8) as writers:
        running = []
        for first in range(0, options.rows, at_once):
            count = min(at_once, options.rows - first)
            host = rows(count).half().cpu().numpy()
            running.append(writers.submit(os.pwrite, out, host, first * DIMENSION * 2))
            while len(running) > 8:
                running.pop(0).result()
        for write in running:
            write.result()
    os.close(out)
    progress(f'{options.rows} rows made, {os.path.getsize(path)} bytes')


class Stopwatch:
    """Time of the GPU alone."""

    def __init__(self):
        if DEVICE == 'cuda':
            torch.cuda.synchronize()
            self.events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]

    def start(self):
        if DEVICE == 'cuda':
            self.events[0].record()

    def stop(self):
        if DEVICE == 'cuda':
            self.events[1].record()

    def milliseconds(self):
        return self.events[0].elapsed_time(self.events[1]) if DEVICE == 'cuda' else 0.0


def product(queries, rows, out_type):
    if rows.dtype == torch.float16 and out_type is not None:
        return torch.mm(queries, rows.T, out_dtype=out_type)
    return torch.mm(queries, rows.T)


def search(queries, rows, k, at_once, out_type):
    scores, numbers = [], []
    for first in range(0, rows.shape[0], at_once):
        part = product(queries, rows[first:first + at_once], out_type)
        best = torch.topk(part, k, dim=1)
        scores.append(best.values)
        numbers.append(best.indices + first)
    best = torch.topk(torch.cat(scores, 1), k, dim=1)
    return torch.gather(torch.cat(numbers, 1), 1, best.indices), best.values


def measure(options):
    report = []

    def add(part):
        report.append(part)
        progress(json.dumps(part))
        with open(options.json, 'w') as file:
            json.dump(report, file, indent=1)

    add({'part': 'machine', 'gpu': torch.cuda.get_device_name() if DEVICE == 'cuda' else 'none', 'torch': torch.__version__, 'cuda': torch.version.cuda})
    halves = np.memmap(f'{options.folder}/rows.f16', dtype=np.float16, mode='r+', shape=(options.rows, DIMENSION))
    rows16 = torch.empty(options.rows, DIMENSION, dtype=torch.float16, device=DEVICE)
    for first in range(0, options.rows, 1 << 20):
        rows16[first:first + (1 << 20)].copy_(torch.from_numpy(np.asarray(halves[first:first + (1 << 20)])))
    progress('rows uploaded')
    queries32 = torch.from_numpy(np.fromfile(f'{options.folder}/queries.f32', dtype=np.float32).reshape(-1, DIMENSION))
    answers = f'{options.folder}/answers.i64'
    exact = None
    if os.path.exists(answers):
        exact = torch.from_numpy(np.fromfile(answers, dtype=np.int64).reshape(ALL_QUERIES, -1)[:, :options.k].copy())
    out_type = torch.float32
    try:
        product(queries32[:2].half().to(DEVICE), rows16[:16], out_type)
    except (TypeError, RuntimeError) as error:
        progress(f'products of float16 give float16 here: {str(error)[:120]}')
        out_type = None
    for name in options.types.split(','):
        try:
            torch.backends.cuda.matmul.allow_tf32 = name == 'tf32'
            halved = name.startswith('float16')
            rows = rows16 if halved else rows16.float()
            for count in map(int, options.queries.split(',')):
                host = queries32[:count].to(rows.dtype)
                host = host.pin_memory() if DEVICE == 'cuda' else host
                at_once = min(options.rows, max(262144, (1 << 30) // max(count, 64)))
                times, device_times = [], []
                for repeat in range(options.repeats + 2):
                    stopwatch = Stopwatch()
                    clock = time.perf_counter()
                    queries = host.to(DEVICE, non_blocking=True)
                    stopwatch.start()
                    numbers, scores = search(queries, rows, options.k, at_once, out_type if name == 'float16' else None)
                    stopwatch.stop()
                    numbers = numbers.cpu()
                    if repeat >= 2:
                        times.append((time.perf_counter() - clock) * 1e3)
                        device_times.append(stopwatch.milliseconds())
                part = {'part': 'baseline', 'type': name, 'scores': str(scores.dtype), 'queries': count, 'k': options.k, 'rows': options.rows,
                        'rows_at_once': at_once, 'search_ms': float(np.median(times)), 'search_best_ms': min(times),
                        'search_worst_ms': max(times), 'device_ms': float(np.median(device_times)), 'repeats': len(times)}
                if exact is not None:
                    found = (numbers.unsqueeze(2) == exact[:count].unsqueeze(1)).any(2)
                    part['recall'] = found.float().mean().item()
                    part['queries_with_all'] = int(found.all(1).sum())
                    part['same_order'] = int((numbers == exact[:count]).all(1).sum())
                add(part)
            if not halved:
                del rows
                torch.cuda.empty_cache()
        except Exception as error:  # the other types are still measured
            add({'part': 'baseline', 'type': name, 'error': str(error)[:500]})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('command', choices=['rows', 'search'])
    parser.add_argument('--folder', required=True)
    parser.add_argument('--rows', type=int, default=10_000_000)
    parser.add_argument('--sample', default='')
    parser.add_argument('--json', default='cuda-baseline.json')
    parser.add_argument('--queries', default='1,8,64,1024')
    parser.add_argument('--k', type=int, default=10)
    parser.add_argument('--repeats', type=int, default=7)
    parser.add_argument('--types', default='float16,float16-coarse,float32,tf32')
    options = parser.parse_args()
    make_rows(options) if options.command == 'rows' else measure(options)


main()
