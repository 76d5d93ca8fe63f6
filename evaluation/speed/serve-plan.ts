import { statSync } from 'node:fs';
import { formatBytes } from '../../src/base/format.ts';
import { memoryLimit } from '../../src/base/system/memory.ts';
import { loadKernel } from '../../src/engine/native/kernel.ts';
import type { IndexSource } from '../../src/engine/vectors/index-source.ts';
import { openIndexDirectory } from '../../src/search/opening/index-directory.ts';
import { openIndexEncoder } from '../../src/search/opening/open-index-encoder.ts';
import type { OpenRetrieverOptions } from '../../src/search/opening/open-retriever.ts';
import type { SearchedRows } from './expected-search.ts';
import { forecast, type SearchForecast } from './search-forecast.ts';

/** What serving an index takes, and how fast its searches should be. */
interface IndexPlan {
  readonly index: string;
  readonly rows: number;
  /** 0 without vectors. */
  readonly dimension: number;
  /** Bytes that every search of vectors reads, and that should be in memory. */
  readonly residentBytes: number;
  /** Null without vectors or the native engine, and for few passages. */
  readonly search: SearchForecast | null;
}

export interface ServePlan {
  readonly indexes: readonly IndexPlan[];
  readonly residentBytes: number;
  readonly memoryLimitBytes: number;
  /** Sentences about what does not fit. */
  readonly problems: readonly string[];
}

/** Finds out what serving the indexes takes, by a trial on this machine. `wordsOnly`: no search has an encoder. */
export async function planServing(
  indexes: readonly { readonly name: string; readonly folder: string }[],
  {
    wordsOnly,
    opening,
    signal,
  }: { readonly wordsOnly: boolean; readonly opening: OpenRetrieverOptions; readonly signal: AbortSignal },
): Promise<ServePlan> {
  const loaded = loadKernel();
  const kernel = loaded.ok ? loaded.kernel : undefined;
  if (opening.searchThreads !== undefined) kernel?.setThreads(opening.searchThreads);
  const plans: IndexPlan[] = [];
  for (const { name, folder } of indexes) {
    const { source, manifest } = openIndexDirectory(folder);
    const plan = { index: name, rows: manifest.rows, dimension: source?.dimension ?? 0 };
    if (source === undefined) {
      plans.push({ ...plan, residentBytes: 0, search: null });
      continue;
    }
    const searched = searchedRows(source);
    const residentBytes = searched.prefiltered.bytes + searched.coded.bytes;
    if (kernel === undefined) {
      plans.push({ ...plan, residentBytes, search: null });
      continue;
    }
    // What an endpoint can do is not a matter of this machine.
    const isLocal = !wordsOnly && manifest.model?.endpoint === undefined;
    const encoder = isLocal ? await openIndexEncoder(folder, manifest, opening) : undefined;
    try {
      const search = await forecast([{ rows: 'this index', searched }], {
        dimension: source.dimension,
        kernel,
        encoder: encoder?.identity.endpoint === undefined ? encoder : undefined,
        signal,
      });
      plans.push({ ...plan, residentBytes, search });
    } finally {
      await encoder?.close();
    }
  }
  return withProblems(plans);
}

/** Shards without codes count as codes of their rows, which is too favourable for them: `trawl optimize` makes their codes. */
function searchedRows({ shards }: IndexSource): SearchedRows {
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

function withProblems(indexes: readonly IndexPlan[]): ServePlan {
  const residentBytes = indexes.reduce((sum, index) => sum + index.residentBytes, 0);
  const memoryLimitBytes = memoryLimit();
  const problems =
    residentBytes <= memoryLimitBytes
      ? []
      : [
          `Fast searches need ${formatBytes(residentBytes)} of memory, but this process may only use ${formatBytes(memoryLimitBytes)}: each search would read the rest from the disk.`,
        ];
  return { indexes, residentBytes, memoryLimitBytes, problems };
}
