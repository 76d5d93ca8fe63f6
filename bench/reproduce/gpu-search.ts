import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot, packageVersion } from '../../src/package-root.ts';
import { machineFacts } from '../environment.ts';
import { SHARED } from '../serve/serve-index.ts';
import type { GpuSearchResult } from '../tables/gpu-search-result.ts';

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

type Part = Readonly<Record<string, number> & Record<string, string>> & { readonly part: string };

/** What the script left in a folder, as one result. */
function gpuSearchResult(
  folder: string,
  { date, processor }: { readonly date: string; readonly processor: string },
): GpuSearchResult {
  const read = (name: string): Part[] => JSON.parse(readFileSync(join(folder, name), 'utf8')) as Part[];
  const [search, baseline, check] = ['search.json', 'baseline.json', 'check.json'].map(read) as [
    Part[],
    Part[],
    Part[],
  ];
  const one = (parts: readonly Part[], name: string): Part => {
    const found = parts.find(({ part }) => part === name);
    if (found === undefined) throw new Error(`${folder} has no part ${name}; its logs say why.`);
    return found;
  };
  const all = (parts: readonly Part[], name: string): Part[] => parts.filter(({ part }) => part === name);
  const [, driver = ''] = readFileSync(join(folder, 'gpu.csv'), 'utf8').split('\n')[1]!.split(', ');
  const [index, upload, checked] = [one(search, 'index'), one(search, 'upload'), one(check, 'check')];
  const cpu = all(search, 'cpu');
  const searches = all(search, 'gpu');
  return {
    format: 'trawl-gpu-search',
    version: 1,
    date,
    trawl: packageVersion,
    gpu: upload['gpu']!,
    driver,
    processor,
    threads: one(search, 'machine')['threads']!,
    torch: one(baseline, 'machine')['torch']!,
    rows: index['rows']!,
    dimension: index['dimension']!,
    k: searches[0]!['k']!,
    checked: { cases: checked['cases']!, different: checked['different']! },
    upload: { seconds: upload['seconds']!, gpuBytes: upload['gpu_bytes']! },
    searches: searches.map((found) => {
      const other = cpu.find(({ queries }) => queries === found['queries'])!;
      return {
        queries: found['queries']!,
        ms: found['search_ms']!,
        fastestMs: found['search_best_ms']!,
        slowestMs: found['search_worst_ms']!,
        deviceMs: found['device_ms']!,
        hitsPerQuery: found['hits_per_query']!,
        rescoredPerQuery: found['rescored_per_query']!,
        cpuMs: other['search_ms']!,
        sameBits: other['same_bits_as_gpu'] === 'yes',
      };
    }),
    baselines: all(baseline, 'baseline').map((found) => ({
      type: found['type']!,
      queries: found['queries']!,
      ms: found['search_ms']!,
      recall: found['recall']!,
    })),
  };
}
