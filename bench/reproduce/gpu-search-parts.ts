import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageVersion } from '../../src/base/package-root.ts';

type Part = Readonly<Record<string, number> & Record<string, string>> & { readonly part: string };

/**
 * What native/bench/cuda_bench.sh left in a folder, as one result. Throws if a part of Trawl is missing or failed, as one does whose
 * answers differ from those of the CPU. A type of torch's that failed is left out.
 */
export function gpuSearchResult(
  folder: string,
  { date, processor }: { readonly date: string; readonly processor: string },
) {
  const read = (name: string): Part[] => JSON.parse(readFileSync(join(folder, name), 'utf8')) as Part[];
  const [search, check] = [wholeParts(folder, read('search.json')), wholeParts(folder, read('check.json'))];
  const baseline = read('baseline.json').filter(({ error }) => error === undefined);
  const one = (parts: readonly Part[], name: string, is: (part: Part) => boolean = () => true): Part => {
    const found = parts.find((part) => part.part === name && is(part));
    if (found === undefined) throw new Error(`${folder} lacks a part ${name}; its logs say why.`);
    return found;
  };
  const all = (parts: readonly Part[], name: string): Part[] => parts.filter(({ part }) => part === name);
  const [, driver = ''] = readFileSync(join(folder, 'gpu.csv'), 'utf8').split('\n')[1]!.split(', ');
  const [index, upload, checked] = [one(search, 'index'), one(search, 'upload'), one(check, 'check')];
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
    k: one(search, 'gpu')['k']!,
    checked: { cases: checked['cases']!, different: checked['different']! },
    upload: { seconds: upload['seconds']!, gpuBytes: upload['gpu_bytes']! },
    searches: searches.map((found) => {
      const other = one(search, 'cpu', ({ queries }) => queries === found['queries']);
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

/** A part that failed has its error instead of figures. */
function wholeParts(folder: string, parts: Part[]): Part[] {
  const failed = parts.find(({ error }) => error !== undefined);
  if (failed !== undefined) throw new Error(`${folder}: the part ${failed.part} failed: ${failed['error']}`);
  return parts;
}
