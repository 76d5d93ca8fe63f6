import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { memoryLimit } from '../../src/base/system/memory.ts';
import { openIndexDirectory } from '../../src/search/opening/index-directory.ts';
import { residentBytes } from '../../src/search/opening/resident-bytes.ts';
import { Build, scanFiles } from '../building/build.ts';
import { assemblePlan, type BuildPlan, problemsOf, tryEncoder } from '../building/plan-build.ts';
import { rowsOf } from '../building/planned-shard.ts';
import { expectedResident, sampleCorpus } from '../expected-size.ts';
import { compareCorpus } from './compare-corpus.ts';
import { planShards } from './plan-shards.ts';
import { pipedCorpus, type UpdateOptions, updateBuild } from './update-index.ts';

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
  const build = new Build(updateBuild(options, manifest));
  const scan = await scanFiles(build);
  if (scan === undefined) throw pipedCorpus();
  build.clock.start('compare');
  const temporary = await mkdtemp(join(tmpdir(), 'trawl-plan-'));
  try {
    const changes = await compareCorpus(directory, scan, { ...options, scratch: join(temporary, 'compare') });
    const { scan: scanMs, compare: compareMs = 0 } = build.clock.stop();
    const places = planShards(changes.addedPositions, build.shardRows, () => '');
    const added = rowsOf(places);
    const sample = await sampleCorpus(build, { scan, first: places[0]?.first ?? 0, end: places.at(-1)?.end ?? 0 });
    const existing = directory.shards.reduce((sum, shard) => sum + residentBytes(shard), 0);
    const ofAdded = expectedResident(added, places.length, build);
    const plan = await assemblePlan(build, {
      rows: added,
      shards: places.length,
      scan,
      sample,
      resident: {
        withPrefilters: existing + ofAdded.withPrefilters,
        withoutPrefilters: existing + ofAdded.withoutPrefilters,
      },
      memoryLimitBytes,
      speed: await tryEncoder(sample, build),
      seconds: { scan: scanMs / 1000, read: compareMs / 1000 },
    });
    const { kept, restored, deleted: removed } = changes;
    const problems = problemsOf({ ...plan, rows: kept + added });
    const rowsAfter = manifest.rows + added;
    return { ...plan, problems, update: { kept, restored, added, removed, rowsAfter } };
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}
