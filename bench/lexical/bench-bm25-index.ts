import { readFileSync, statSync } from 'node:fs';
import { basename } from 'node:path';
import { TrawlError } from '../../src/base/errors.ts';
import { openLexicalIndex } from '../../src/engine/lexical/open-lexical.ts';
import { shardLexical } from '../../src/index/manifest/shard-manifest.ts';
import { type IndexDirectory, openIndexDirectory } from '../../src/search/opening/index-directory.ts';
import { environment, loadNow } from '../environment.ts';
import { type BenchBm25Options, type BenchBm25Result, type Bm25Record, KS, requiredKernel } from './bench-bm25.ts';
import { runLexicalCase } from './lexical-case.ts';
import { queryLists } from './lexical-corpora.ts';
import { TrawlEngine } from './trawl-engine.ts';

export interface BenchBm25IndexOptions
  extends Pick<
    BenchBm25Options,
    'queryTexts' | 'calls' | 'seed' | 'threads' | 'runs' | 'seconds' | 'scratch' | 'signal'
  > {
  /** Folder of an index with an inverted index of the field `contents`. */
  readonly index: string;
}

/**
 * Measures searches of an existing index, without baselines.
 *
 * @throws TrawlError ENGINE_MISSING without the native engine, USAGE if the index has no inverted index of `contents`.
 */
export async function benchBm25Index(options: BenchBm25IndexOptions): Promise<BenchBm25Result> {
  const { threads, runs, seconds, signal } = options;
  const loadBefore = loadNow();
  const kernel = requiredKernel();
  const threadsBefore = kernel.threads();
  const directory = openIndexDirectory(options.index);
  const source = directory.lexical.get('contents');
  if (source === undefined)
    throw new TrawlError(
      'USAGE',
      `${options.index} has no inverted index of the field contents. Build one with trawl optimize --bm25.`,
    );
  const queries = await queryLists({ ...options, kernel });
  const paths = source.shards.map(({ path }) => path);
  const opening = performance.now();
  const index = await openLexicalIndex(source);
  const openMs = performance.now() - opening;
  const bytes = paths.reduce((sum, path) => sum + statSync(path).size, 0);
  const postings = postingsOf(directory);
  const engine = new TrawlEngine(
    index,
    kernel,
    { seconds: null, bytes, analysisMs: null, openMs, postings },
    { analyser: source.analyser, signal },
  );
  const name = basename(options.index);
  const searches: Bm25Record[] = [];
  try {
    for (const list of queries)
      for (const k of KS)
        for (const count of new Set([1, threads]))
          searches.push(
            ...(await runLexicalCase(
              { corpus: name, queries: list, k, threads: count, runs, limitMs: 1_000 * seconds },
              [engine],
              { signal, onLost: () => undefined },
            )),
          );
    const record = {
      case: `bm25/${name}/index`,
      engine: engine.name,
      version: engine.version,
      rows: index.rows,
      textBytes: null,
      indexBytes: bytes,
      bitsPerPosting: (8 * bytes) / postings,
      buildSeconds: null,
      buildMbPerS: null,
      analysisMbPerS: null,
      openMs,
      residentBytes: residentBytes(paths),
    };
    const facts = { kernel, engines: [{ version: engine.version }], loadBefore, bandwidthGbPerS: null };
    return { environment: environment(facts), records: [record, ...searches], skipped: [] };
  } finally {
    await engine.close();
    kernel.setThreads(threadsBefore);
  }
}

function postingsOf({ shards, manifest }: IndexDirectory): number {
  return shards.reduce((sum, shard) => {
    const indexes = shardLexical(shard.manifest, manifest)?.indexes ?? [];
    return sum + (indexes.find(({ field }) => field === 'contents')?.postings ?? 0);
  }, 0);
}

/** Bytes of the files that this process has mapped and read; null where the system does not tell (only Linux does). */
function residentBytes(paths: readonly string[]): number | null {
  let smaps: string;
  try {
    smaps = readFileSync('/proc/self/smaps', 'utf8');
  } catch {
    return null;
  }
  let bytes = 0;
  let isOurs = false;
  for (const line of smaps.split('\n')) {
    if (/^[0-9a-f]+-[0-9a-f]+ /.test(line)) isOurs = paths.some((path) => line.endsWith(` ${path}`));
    else if (isOurs && line.startsWith('Rss:')) bytes += 1024 * Number.parseInt(line.slice(4), 10);
  }
  return bytes;
}
