import { statSync } from 'node:fs';
import { formatBytes } from '../../src/base/format.ts';
import { memoryLimit } from '../../src/base/system/memory.ts';
import { loadKernel } from '../../src/engine/native/kernel.ts';
import type { IndexSource } from '../../src/engine/vectors/vector-index.ts';
import { openIndexDirectory } from '../../src/search/opening/index-directory.ts';
import { openIndexEncoder } from '../../src/search/opening/open-index-encoder.ts';
import type { OpenRetrieverOptions } from '../../src/search/opening/open-retriever.ts';
import { forecast, type SearchedRows } from './search-forecast.ts';

export type ServePlan = Awaited<ReturnType<typeof planServing>>;

/** Finds out what serving the indexes takes, by a trial on this machine. `wordsOnly`: no search has an encoder. */
export async function planServing(
  indexes: readonly { readonly name: string; readonly folder: string }[],
  {
    wordsOnly,
    opening,
    signal,
  }: { readonly wordsOnly: boolean; readonly opening: OpenRetrieverOptions; readonly signal: AbortSignal },
) {
  const loaded = loadKernel();
  const kernel = loaded.ok ? loaded.kernel : undefined;
  if (opening.searchThreads !== undefined) kernel?.setThreads(opening.searchThreads);
  const plans = [];
  for (const { name, folder } of indexes) {
    const { source, manifest } = openIndexDirectory(folder);
    const searched = searchedRows(source?.shards ?? []);
    const residentBytes = searched.prefiltered.bytes + searched.coded.bytes;
    // 0 dimensions without vectors. Every search of vectors reads the resident bytes, which should be in memory.
    const plan = { index: name, rows: manifest.rows, dimension: source?.dimension ?? 0, residentBytes };
    if (source === undefined || kernel === undefined) {
      plans.push({ ...plan, search: null });
      continue;
    }
    const isLocal = !wordsOnly && manifest.model?.endpoint === undefined;
    const encoder = isLocal ? await openIndexEncoder(folder, manifest, opening) : undefined;
    try {
      const parts = [{ rows: 'this index', searched }] as const;
      const search = await forecast(parts, source.dimension, { kernel, encoder, signal });
      plans.push({ ...plan, search });
    } finally {
      await encoder?.close();
    }
  }
  const residentBytes = plans.reduce((sum, plan) => sum + plan.residentBytes, 0);
  const memoryLimitBytes = memoryLimit();
  const problem = `Fast searches need ${formatBytes(residentBytes)} of memory, but this process may only use ${formatBytes(memoryLimitBytes)}: each search would read the rest from the disk.`;
  return {
    indexes: plans,
    residentBytes,
    memoryLimitBytes,
    /** Sentences about what does not fit. */
    problems: residentBytes > memoryLimitBytes ? [problem] : [],
  };
}

/** Shards without codes count as codes of their rows, which is too favourable for them: `trawl optimize` makes their codes. */
function searchedRows(shards: IndexSource['shards']): SearchedRows {
  const prefiltered = { rows: 0, bytes: 0 };
  const coded = { rows: 0, bytes: 0 };
  for (const { rows, prefilter, codes, segments } of shards) {
    const part = prefilter === undefined ? coded : prefiltered;
    const path = prefilter ?? codes;
    part.rows += rows;
    part.bytes += path === undefined ? segments.reduce((sum, { bytes }) => sum + bytes, 0) : statSync(path).size;
  }
  return { prefiltered, coded };
}
