import { buildForecast, type SearchForecast } from '../../evaluation/speed/search-forecast.ts';
import type { BuildOptions } from '../../indexer/building/build.ts';
import { buildIndex } from '../../indexer/building/build-index.ts';
import { buildShardJob } from '../../indexer/building/build-shard-job.ts';
import { planBuild } from '../../indexer/building/plan-build.ts';
import { usageError } from '../../src/base/errors.ts';
import { type Kernel, loadKernel } from '../../src/engine/native/kernel.ts';
import { EXIT } from '../program/command.ts';
import { parseShard } from './build-options.ts';
import { planReport } from './build-plan.ts';
import { buildProgress, type ShownProgress } from './build-progress.ts';
import { jsonJobSummary, jsonSummary, textJobSummary, textSummary } from './build-summary.ts';

/** Options that `trawl index`, `trawl import` and updates have in common. */
export interface BuildSettings {
  readonly restart: boolean;
  readonly plan: boolean;
  readonly 'unique-ids': boolean;
  readonly 'shard-rows': number | undefined;
  readonly 'checkpoint-seconds': number;
  readonly json: boolean;
  readonly quiet: boolean;
}

/** Where a build prints, and the signal that stops it. */
export interface BuildConsole {
  readonly signal: AbortSignal;
  readonly out: (text: string) => void;
  readonly note: (text: string) => void;
}

/** Build options that do not depend on the corpus and the model. */
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

/**
 * The shard of `--shard i/n`.
 *
 * @throws TrawlError USAGE.
 */
export function shardOf(
  shard: string | undefined,
  given: ReadonlySet<string>,
): { index: number; of: number } | undefined {
  const parsed = parseShard(shard);
  if (parsed !== undefined && given.has('shard-rows')) {
    throw usageError('--shard already sets the number of shards. Omit --shard-rows.');
  }
  return parsed;
}

/** Runs with a progress display, and ends the display. */
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

export interface RunBuildOptions {
  /** The shard that this job builds; undefined: the whole index. */
  readonly shard: { readonly index: number; readonly of: number } | undefined;
  readonly settings: BuildSettings;
  readonly progress: ShownProgress;
  readonly console: BuildConsole;
  /** Default: `buildIndex`. */
  readonly buildWhole?: typeof buildIndex;
}

/** Plans or builds the index or one shard, and prints the result. Resolves to the exit code. */
export async function runBuild(
  build: BuildOptions,
  { shard, settings, progress, console: { out, note }, buildWhole = buildIndex }: RunBuildOptions,
): Promise<number> {
  const print = (json: () => object, text: () => readonly string[]): number => {
    progress.stop();
    if (settings.json) out(JSON.stringify(json()));
    else for (const line of text()) note(line);
    return EXIT.ok;
  };
  if (settings.plan) {
    const plan = await planBuild(build, shard);
    // A job builds one shard; searches are of the whole index.
    const search = shard === undefined ? await buildForecast(plan, build) : null;
    return printPlan({ plan, search }, settings, progress, out);
  }
  if (shard !== undefined) {
    const summary = await buildShardJob({ ...build, shard });
    return print(
      () => jsonJobSummary(summary),
      () => textJobSummary(summary),
    );
  }
  const summary = await buildWhole(build);
  return print(
    () => jsonSummary(summary),
    () => textSummary(summary),
  );
}

export function printPlan(
  { plan, search }: { readonly plan: Parameters<typeof planReport>[0]; readonly search: SearchForecast | null },
  { json }: BuildSettings,
  progress: ShownProgress,
  out: (text: string) => void,
): number {
  progress.stop();
  out(json ? JSON.stringify({ ...plan, search }) : planReport(plan, search));
  return plan.problems.length === 0 ? EXIT.ok : EXIT.problems;
}

/** The engine that writes search codes. Without it the index is complete, but slow to search. */
export function codesEngine(note: (text: string) => void): Kernel | undefined {
  const loaded = loadKernel();
  if (loaded.ok) return loaded.kernel;
  note(
    `The native engine is missing (${loaded.reason}), so the index gets no search codes. \`trawl optimize\` can add them later.`,
  );
  return undefined;
}
