import { bug } from '../../src/base/errors.ts';
import type { ShardManifest } from '../../src/index/manifest/shard-manifest.ts';
import { adoptedRows } from '../vectors/adopted-rows.ts';
import type { Build } from './build.ts';
import { completeShard } from './complete-shard.ts';
import { type StoredShard, storedPassages } from './planned-shard.ts';
import { copiedRows, embeddedRows, type MadeRows, noRows, type RowSource, type ShardReport } from './row-sources.ts';
import type { CorpusFileRecord } from './store-passages.ts';

/** Totals over all shards of a command, including the complete ones. */
export interface BuildTotals {
  readonly corpusFiles: readonly CorpusFileRecord[];
  readonly rows: number;
  /** Rows of the shards that were already complete. */
  readonly rowsDone: number;
  readonly shards: number;
}

export interface BuiltShards {
  readonly manifests: readonly ShardManifest[];
  /** Tokens that this call embedded. */
  readonly tokens: number;
  /** Rows whose vectors come from an earlier run, including rows of complete shards. */
  readonly resumedRows: number;
}

/** Completes shards with stored passages, one after another: makes their vectors, words and columns, and writes their manifests. */
export async function buildShards(
  build: Build,
  shards: readonly StoredShard[],
  totals: BuildTotals,
): Promise<BuiltShards> {
  const { clock, onProgress } = build;
  const manifests: ShardManifest[] = [];
  let [rowsBefore, tokensBefore, resumedRows] = [totals.rowsDone, 0, totals.rowsDone];
  clock.start(build.stage);
  for (const shard of shards) {
    const made = await buildShard(build, shard, totals.corpusFiles, (stage, rows, tokens = 0) => {
      clock.start(stage);
      onProgress({
        stage,
        passages: rowsBefore + rows,
        totalPassages: totals.rows,
        tokens: stage === 'encode' ? tokensBefore + tokens : undefined,
        shard: shard.index,
        shards: totals.shards,
      });
    });
    manifests.push(made.manifest);
    rowsBefore += made.manifest.rows;
    tokensBefore += made.tokens;
    resumedRows += made.resumedRows;
  }
  return { manifests, tokens: tokensBefore, resumedRows };
}

async function buildShard(
  build: Build,
  shard: StoredShard,
  corpusFiles: readonly CorpusFileRecord[],
  report: ShardReport,
): Promise<MadeRows & { readonly manifest: ShardManifest }> {
  const { folder, input } = shard;
  const stored = storedPassages(folder);
  if (stored === undefined) throw bug(`${folder} has no passages`);
  const made = await rowSource(build)(build, shard, report);
  const manifest = await completeShard(
    folder,
    {
      rows: stored.rows,
      space: build.space,
      vectors: made.vectors,
      passagesSha256: stored.sha256,
      corpus: {
        files: corpusFiles.map((file, i) => ({ ...file, passages: stored.passagesByFile[i] ?? 0 })),
        skippedLines: stored.skippedLines,
        truncatedPassages: made.truncatedPassages,
        passageTemplate: build.passageTemplate,
      },
      input,
    },
    { ...build, onRows: (rows) => report('words', rows) },
  );
  return { ...made, manifest };
}

/** Where the rows of the build's shards come from. */
function rowSource({ space, vectors }: Build): RowSource {
  if (space === undefined) return noRows;
  if (vectors === undefined) return embeddedRows;
  return vectors.use === 'adopt' ? adoptedRows : copiedRows;
}
