import { buildForecast, type SearchForecast } from '../../evaluation/speed/search-forecast.ts';
import type { BuildOptions } from '../../indexer/building/build.ts';
import { buildIndex } from '../../indexer/building/build-index.ts';
import { buildShardJob, type JobShard } from '../../indexer/building/build-shard-job.ts';
import { planBuild } from '../../indexer/building/plan-build.ts';
import { asUsage, usageError } from '../../src/base/errors.ts';
import { type OpenEncoderOptions, openEncoder } from '../../src/encoder/open-encoder.ts';
import type { TextEncoder } from '../../src/encoder/text-encoder.ts';
import { type Kernel, loadKernel } from '../../src/engine/native/kernel.ts';
import { shareWeights } from '../model/model-options.ts';
import { type AnyContext, type CommandContext, EXIT, resumable } from '../program/command.ts';
import { type BUILD_OPTIONS, parseShard } from './build-options.ts';
import { buildProgress, type ShownProgress } from './build-progress.ts';
import { jsonJobSummary, jsonSummary, planReport, textJobSummary, textSummary } from './build-summary.ts';
import type { CORPUS_OPTIONS } from './corpus-options.ts';

/** What builds need of the options that `trawl index` and `trawl import` have in common. */
type BuildContext = CommandContext<typeof BUILD_OPTIONS & Pick<typeof CORPUS_OPTIONS, 'unique-ids'>>;

/** Build options that do not depend on the corpus and the model. */
export function sharedBuildOptions(progress: ShownProgress, { options, signal, note }: BuildContext) {
  return {
    kernel: codesEngine(note),
    restart: options.restart,
    uniqueIds: options['unique-ids'],
    shardRows: options['shard-rows'],
    checkpointMs: options['checkpoint-seconds'] * 1000,
    onProgress: progress.update,
    onNote: note,
    signal,
  };
}

/** The shard of `--shard i/n`. @throws TrawlError USAGE. */
export function shardOf(shard: string | undefined, given: ReadonlySet<string>): JobShard | undefined {
  const parsed = parseShard(shard);
  if (parsed !== undefined && given.has('shard-rows')) {
    throw usageError('--shard already sets the number of shards. Omit --shard-rows.');
  }
  return parsed;
}

/** Runs with a progress display, and ends the display. */
export async function withBuildProgress(
  { options: { quiet, json } }: BuildContext,
  run: (progress: ShownProgress) => Promise<number>,
): Promise<number> {
  const progress = buildProgress({ silent: quiet, json });
  try {
    return await run(progress);
  } finally {
    progress.stop();
  }
}

/**
 * Plans or builds the index, or only `shard`, and prints the result. Resolves to the exit code.
 *
 * @param buildWhole builds the whole index.
 */
export async function runBuild(
  build: BuildOptions,
  shard: JobShard | undefined,
  progress: ShownProgress,
  context: BuildContext,
  buildWhole = buildIndex,
): Promise<number> {
  const { options, out, note } = context;
  if (options.plan) {
    const plan = await planBuild(build, shard);
    // A job builds one shard; searches are of the whole index.
    return printPlan(plan, shard === undefined ? await buildForecast(plan, build) : null, progress, context);
  }
  let json: object;
  let text: readonly string[];
  if (shard === undefined) {
    const summary = await buildWhole(build);
    [json, text] = [jsonSummary(summary), textSummary(summary)];
  } else {
    const summary = await buildShardJob({ ...build, shard });
    [json, text] = [jsonJobSummary(summary), textJobSummary(summary)];
  }
  progress.stop();
  if (options.json) out(JSON.stringify(json));
  else for (const line of text) note(line);
  return EXIT.ok;
}

/**
 * Opens the encoder of a build. After SIGTERM a scheduler is to start the build again, also if the encoder was not open yet.
 *
 * @param settings take precedence over the options.
 * @throws TrawlError as `asUsage`; CANCELLED with `resumable`.
 */
export function openForBuild(
  model: string,
  options: Pick<OpenEncoderOptions, 'workers' | 'device' | 'precision'> & { 'share-weights'?: 'auto' | 'yes' | 'no' },
  { signal, note }: AnyContext,
  settings: OpenEncoderOptions,
): Promise<TextEncoder> {
  const { workers, device, precision, 'share-weights': shared = 'auto' } = options;
  const given = { workers, device, shareWeights: shareWeights(shared), precision, signal, onWarning: note };
  const opening = openEncoder(model, { ...given, ...settings });
  return resumable(asUsage(opening), 'Stopped before the encoder was open. Run the same command again.');
}

export function printPlan(
  plan: Parameters<typeof planReport>[0],
  search: SearchForecast | null,
  progress: ShownProgress,
  { options, out }: BuildContext,
): number {
  progress.stop();
  out(options.json ? JSON.stringify({ ...plan, search }) : planReport(plan, search));
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
