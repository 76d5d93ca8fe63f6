import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../src/base/package-root.ts';
import { machineFacts } from '../environment.ts';
import { SHARED } from '../serve/serve-index.ts';
import { gpuSearchResult } from './gpu-search-parts.ts';

const SAMPLE = join(SHARED, 'flashrag_sample', 'e5_flat_sample.index');

/** Builds native/bench/cuda_bench.cpp and runs the whole comparison. Needs an NVIDIA GPU, python3 with torch, 26 GB of memory. */
export async function measureGpuSearch(file: string, scratch: string, signal: AbortSignal): Promise<void> {
  const native = join(packageRoot, 'native');
  const out = join(scratch, 'gpu-search');
  mkdirSync(out, { recursive: true });
  await run('make', ['-C', native, 'bench-cuda'], signal);
  const program = join(native, 'build', 'bench-cuda', 'trawl-cuda-bench');
  await run('bash', [join(native, 'bench', 'cuda_bench.sh'), program, out, SAMPLE, '10000000'], signal);
  writeFileSync(
    file,
    `${JSON.stringify(gpuSearchResult(out, machineFacts({ engines: [], loadBefore: 0 })), null, 2)}\n`,
  );
}

async function run(program: string, args: readonly string[], signal: AbortSignal): Promise<void> {
  const child = spawn(program, args, { signal, stdio: ['ignore', 'ignore', 'inherit'] });
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`${program} ${args.join(' ')} ended with ${code}.`);
}
