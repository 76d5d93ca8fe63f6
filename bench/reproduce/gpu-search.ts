import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../src/base/package-root.ts';
import { machineFacts } from '../environment.ts';
import { gpuSearchResult } from './gpu-search-parts.ts';
import type { Measurement } from './measurement.ts';

/** Builds native/bench/cuda_bench.cpp and runs the whole comparison. Needs an NVIDIA GPU, python3 with torch, 26 GB of memory. */
export async function measureGpuSearch(run: Measurement): Promise<unknown> {
  const native = join(packageRoot, 'native');
  const out = join(run.scratch, 'gpu-search');
  mkdirSync(out, { recursive: true });
  await run.run('make', ['-C', native, 'bench-cuda']);
  const program = join(native, 'build', 'bench-cuda', 'trawl-cuda-bench');
  const sample = run.data('flashrag_sample', 'e5_flat_sample.index');
  await run.run('bash', [join(native, 'bench', 'cuda_bench.sh'), program, out, sample, '10000000']);
  return gpuSearchResult(out, machineFacts({ engines: [], loadBefore: 0 }));
}
