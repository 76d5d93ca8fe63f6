import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir, totalmem } from 'node:os';
import { basename, join } from 'node:path';
import { openIndexDirectory } from '../../src/retrieval/index-directory.ts';
import { beginBuild } from '../build/begin-build.ts';
import type { BuildOptions } from '../build/build-options.ts';
import { type BuildPlan, problemsOf, trial } from '../build/plan-build.ts';
import { DEFAULT_SHARD_ROWS } from '../build/shard-cut.ts';
import { freeBytes } from '../disk-room.ts';
import { expectedBytes, sampleCorpus } from '../expected-size.ts';
import { CODES_FILE, PASSAGES_FILE, VECTORS_FILE } from '../index-files.ts';
import { compareCorpus } from './compare-corpus.ts';
import { encoderOfIndex } from './update-encoder.ts';
import { pipedCorpus, type UpdateOptions } from './update-index.ts';
import { placesOf } from './update-places.ts';

/** What an update would take: rows, shards and bytes are of what is added. */
export interface UpdatePlan extends BuildPlan {
  readonly update: {
    readonly kept: number;
    readonly restored: number;
    readonly added: number;
    readonly removed: number;
    /** Rows of the index then, removed ones included. */
    readonly rows: number;
  };
}

/** Compares index and corpus, tries the encoder for a few seconds, and changes nothing. */
export async function planUpdate(options: UpdateOptions): Promise<UpdatePlan> {
  const directory = openIndexDirectory(options.out);
  const { manifest, folder } = directory;
  const { corpus, corpusOptions, kernel } = options;
  const encoder = encoderOfIndex(manifest.model, options.encoder);
  const build: BuildOptions = {
    ...options,
    encoder,
    overwrite: true,
    passageTemplate: manifest.corpus.passageTemplate,
  };
  const begun = beginBuild(build);
  const scan = await begun.scan();
  if (scan === undefined) throw pipedCorpus();
  begun.times.start('compare');
  const temporary = await mkdtemp(join(tmpdir(), 'trawl-plan-'));
  try {
    const changes = await compareCorpus(directory, scan, { ...options, scratch: join(temporary, 'compare') });
    begun.times.stop();
    const added = changes.addedPositions.count();
    const places = placesOf(changes.addedPositions, options.shardRows ?? DEFAULT_SHARD_ROWS, () => '');
    const range = { scan, first: places[0]?.first ?? 0, end: places.at(-1)?.end ?? 0 };
    const sample = await sampleCorpus(corpus, corpusOptions, range);
    const bytes = expectedBytes(added, { dimension: manifest.dimension, codes: kernel !== undefined, sample });
    const speed = await trial(encoder, sample, build);
    const rows = manifest.rows + added;
    const { scan: scanMs, compare: compareMs = 0 } = begun.times.stages;
    const plan = {
      folder,
      rows: added,
      dimension: manifest.dimension,
      shards: places.length,
      corpus: scan.files.map(({ path, sizeBytes, positions }) => ({
        name: basename(path),
        bytes: sizeBytes,
        lines: positions,
      })),
      bytes: { ...bytes, total: bytes.vectors + bytes.codes + bytes.screen + bytes.passages },
      files: { vectors: VECTORS_FILE, codes: kernel === undefined ? null : CODES_FILE, passages: PASSAGES_FILE },
      vectors: null,
      freeBytes: await freeBytes(folder),
      buildMemoryBytes: process.memoryUsage().rss,
      searchMemoryBytes: expectedBytes(rows, { dimension: manifest.dimension, codes: kernel !== undefined }).codes,
      machineMemoryBytes: totalmem(),
      ...speed,
      seconds: {
        scan: scanMs / 1000,
        read: compareMs / 1000 + (sample.ms / 1000 / Math.max(1, sample.documents.length)) * added,
        encode: added === 0 ? 0 : added / speed.passagesPerS,
      },
    };
    const { kept, restored, removed } = changes;
    const problems = problemsOf({ ...plan, rows: kept + added });
    return { ...plan, problems, update: { kept, restored, added, removed, rows } };
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}
