import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { memoryLimit } from '../../src/base/system/memory.ts';
import { openIndexDirectory, residentBytes } from '../../src/search/opening/index-directory.ts';
import { scanFiles } from '../building/build.ts';
import { expectedResident, sampleCorpus } from '../building/expected-size.ts';
import { assemblePlan, type BuildPlan } from '../building/plan-build.ts';
import { totalRows } from '../building/planned-shard.ts';
import { compareCorpus } from './compare-corpus.ts';
import { pipedCorpus, planShards, resolveUpdate, type UpdateOptions } from './update-index.ts';

/** Expected size, time and memory of an update. `rows`, `shards` and `bytes` count only what it adds. */
export interface UpdatePlan extends BuildPlan {
  readonly update: {
    readonly kept: number;
    readonly restored: number;
    readonly added: number;
    readonly removed: number;
    /** Rows of the updated index, including deleted ones. */
    readonly rowsAfter: number;
  };
}

/** Plans an update: compares index and corpus and runs the encoder for a few seconds. Changes nothing. */
export async function planUpdate(
  options: UpdateOptions,
  memoryLimitBytes: number = memoryLimit(),
): Promise<UpdatePlan> {
  const directory = openIndexDirectory(options.out);
  const { manifest } = directory;
  const build = resolveUpdate(options, manifest);
  const scan = await scanFiles(build);
  if (scan === undefined) throw pipedCorpus();
  const temporary = await mkdtemp(join(tmpdir(), 'trawl-plan-'));
  try {
    const changes = await compareCorpus(directory, scan, build, join(temporary, 'compare'));
    const { scan: scanMs, compare: compareMs = 0 } = build.clock.stop();
    const places = planShards(changes.addedPositions, build.shardRows, () => '');
    const added = totalRows(places);
    const sample = await sampleCorpus(build, { scan, first: places[0]?.first ?? 0, end: places.at(-1)?.end ?? 0 });
    const existing = directory.shards.reduce((sum, shard) => sum + residentBytes(shard), 0);
    const ofAdded = expectedResident(added, places.length, build);
    const { kept, restored, removed } = changes;
    const plan = await assemblePlan(build, {
      rows: added,
      passages: kept + added,
      shards: places.length,
      scan,
      sample,
      resident: {
        withPrefilters: existing + ofAdded.withPrefilters,
        withoutPrefilters: existing + ofAdded.withoutPrefilters,
      },
      memoryLimitBytes,
      secondsBefore: { scan: scanMs / 1000, read: compareMs / 1000 },
    });
    const rowsAfter = manifest.rows + added;
    return { ...plan, update: { kept, restored, added, removed, rowsAfter } };
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}
