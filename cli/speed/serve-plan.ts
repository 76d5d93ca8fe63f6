import { statSync } from 'node:fs';
import type { SearchedRows } from '../../evaluation/speed/expected-search.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { memoryLimit } from '../../src/base/system/memory.ts';
import { loadKernel } from '../../src/engine/native/kernel.ts';
import type { IndexSource } from '../../src/engine/vectors/index-source.ts';
import { openIndexDirectory } from '../../src/search/opening/index-directory.ts';
import { openIndexEncoder } from '../../src/search/opening/open-index-encoder.ts';
import { isPublishedAddress } from '../../src/stores/published/published-address.ts';
import { retrieverOptions } from '../options/retriever-options.ts';
import { formatBytes, formatCount, formatNumberOf } from '../../src/base/format.ts';
import { type CommandContext, EXIT } from '../program/command.ts';
import type { SERVE_OPTIONS } from '../serve/serve-options.ts';
import type { ServeSettings } from '../serve/serve-settings.ts';
import { forecast, forecastLines, type SearchForecast } from '../../evaluation/speed/search-forecast.ts';

/** What `trawl serve --plan` says about an index. */
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

interface ServePlan {
  readonly indexes: readonly IndexPlan[];
  readonly residentBytes: number;
  readonly memoryLimitBytes: number;
  /** Sentences about what does not fit. */
  readonly problems: readonly string[];
}

/** Prints what serving the indexes takes and how fast searches should be. Opens no port. Resolves to the exit code. */
export async function printServePlan(
  { indexes, options }: ServeSettings,
  { out, note, signal }: CommandContext<typeof SERVE_OPTIONS>,
): Promise<number> {
  if (options.replay !== undefined || indexes.length === 0) {
    throw new TrawlError('USAGE', '--plan needs an index. Omit --plan, or name an index directory without --replay.');
  }
  if (indexes.some(({ folder }) => isPublishedAddress(folder))) {
    throw new TrawlError(
      'USAGE',
      '--plan measures this machine, which does not search an index in Milvus or OpenSearch (docs/cluster.md has sizes).',
    );
  }
  const loaded = loadKernel();
  const kernel = loaded.ok ? loaded.kernel : undefined;
  const retriever = { ...retrieverOptions(options), onWarning: note };
  if (retriever.searchThreads !== undefined) kernel?.setThreads(retriever.searchThreads);
  const plans: IndexPlan[] = [];
  for (const { name, folder } of indexes) {
    const { source, manifest } = openIndexDirectory(folder);
    const parts = source === undefined ? undefined : searchedRows(source);
    const needsEncoder = options.mode !== 'bm25' && manifest.model?.endpoint === undefined;
    const encoder =
      source === undefined || kernel === undefined || !needsEncoder
        ? undefined
        : await openIndexEncoder(folder, manifest, retriever);
    try {
      plans.push({
        index: name,
        rows: manifest.rows,
        dimension: source?.dimension ?? 0,
        residentBytes: parts === undefined ? 0 : parts.prefiltered.bytes + parts.coded.bytes,
        search:
          parts === undefined || kernel === undefined
            ? null
            : await forecast([{ rows: 'this index', searched: parts }], {
                dimension: source!.dimension,
                kernel,
                encoder: encoder?.identity.endpoint === undefined ? encoder : undefined,
                signal,
              }),
      });
    } finally {
      await encoder?.close();
    }
  }
  const plan = withProblems(plans);
  out(options.json ? JSON.stringify(plan) : planLines(plan).join('\n'));
  return plan.problems.length === 0 ? EXIT.ok : EXIT.problems;
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

function planLines({ indexes, residentBytes, memoryLimitBytes, problems }: ServePlan): string[] {
  const lines = indexes.flatMap(({ index, rows, dimension, residentBytes: own, search }) => [
    `${index}: ${formatNumberOf(rows, 'passage')}${dimension === 0 ? ', without vectors' : ` × ${formatCount(dimension)}; searches read ${formatBytes(own)}`}`,
    ...(search === null ? [] : forecastLines(search)),
  ]);
  lines.push(`memory for searching: ${formatBytes(residentBytes)} of ${formatBytes(memoryLimitBytes)}`);
  if (problems.length > 0) lines.push('does not fit', ...problems.map((problem) => `  ${problem}`));
  return lines;
}
