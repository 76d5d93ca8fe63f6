import { buildIndex } from '../indexer/build/build-index.ts';
import type { BuildOptions } from '../indexer/build/build-options.ts';
import { buildShardJob } from '../indexer/build/build-shard-job.ts';
import { planBuild } from '../indexer/build/plan-build.ts';
import { TrawlError } from '../src/errors.ts';
import { codesEngine } from './build-engine.ts';
import { parseShard } from './build-options.ts';
import { planReport } from './build-plan.ts';
import { buildProgress, type ShownProgress } from './build-progress.ts';
import { jsonJobSummary, jsonSummary, textJobSummary, textSummary } from './build-summary.ts';
import { EXIT } from './command.ts';

/** What `trawl index`, `trawl import` and updates are asked alike. */
export interface BuildSettings {
  readonly restart: boolean;
  readonly plan: boolean;
  readonly 'unique-ids': boolean;
  readonly 'shard-rows': number | undefined;
  readonly 'checkpoint-seconds': number;
  readonly json: boolean;
  readonly quiet: boolean;
}

/** How a build speaks, and how it is stopped. */
export interface BuildConsole {
  readonly signal: AbortSignal;
  readonly out: (text: string) => void;
  readonly note: (text: string) => void;
}

/** The options of a build that do not depend on what is built. */
export function sharedBuildOptions(settings: BuildSettings, progress: ShownProgress, { signal, note }: BuildConsole) {
  return {
    kernel: codesEngine(note),
    restart: settings.restart,
    uniqueIds: settings['unique-ids'],
    shardRows: settings['shard-rows'],
    checkpointMs: settings['checkpoint-seconds'] * 1000,
    onProgress: progress.update,
    onNote: note,
    signal,
  };
}

/** `--shard i/n`, which says how many shards there are. */
export function shardOf(
  shard: string | undefined,
  given: ReadonlySet<string>,
): { index: number; of: number } | undefined {
  const parsed = parseShard(shard);
  if (parsed !== undefined && given.has('shard-rows')) {
    throw new TrawlError('USAGE', '--shard says how many shards there are; leave out --shard-rows.');
  }
  return parsed;
}

/** Runs with a progress display, which ends before anything else is said. */
export async function withProgress(
  settings: BuildSettings,
  run: (progress: ShownProgress) => Promise<number>,
): Promise<number> {
  const progress = buildProgress({ silent: settings.quiet, json: settings.json });
  try {
    return await run(progress);
  } finally {
    progress.stop();
  }
}

/** Plans or builds, the whole or one shard, and tells what came of it. Resolves to the exit code. */
export async function runBuild(
  build: BuildOptions,
  shard: { index: number; of: number } | undefined,
  settings: BuildSettings,
  progress: ShownProgress,
  { out, note }: BuildConsole,
  buildWhole: typeof buildIndex = buildIndex,
): Promise<number> {
  const tell = (json: () => object, text: () => readonly string[]): number => {
    progress.stop();
    if (settings.json) out(JSON.stringify(json()));
    else for (const line of text()) note(line);
    return EXIT.ok;
  };
  if (settings.plan) return tellPlan(await planBuild(build, shard), settings, progress, out);
  if (shard !== undefined) {
    const summary = await buildShardJob({ ...build, shard });
    return tell(
      () => jsonJobSummary(summary),
      () => textJobSummary(summary),
    );
  }
  const summary = await buildWhole(build);
  return tell(
    () => jsonSummary(summary),
    () => textSummary(summary),
  );
}

export function tellPlan(
  plan: Parameters<typeof planReport>[0],
  { json }: BuildSettings,
  progress: ShownProgress,
  out: (text: string) => void,
): number {
  progress.stop();
  out(json ? JSON.stringify(plan) : planReport(plan));
  return plan.problems.length === 0 ? EXIT.ok : EXIT.problems;
}
