import { throwIfCancelled } from '../../src/abort.ts';
import { TrawlError } from '../../src/errors.ts';
import { existingResult, writeAllResult } from './all-file.ts';
import { ALL_STAGES, type AllResult, type AllStage, type StageOutcome } from './all-result.ts';
import { benchInputs, type InputOptions } from './bench-inputs.ts';
import { type BenchSizeName, SIZES } from './bench-sizes.ts';
import { RUN_STAGE, type StageContext } from './run-stage.ts';

export interface BenchAllOptions extends Omit<InputOptions, 'sampleTexts'>, Omit<StageContext, 'size' | 'inputs'> {
  readonly size: BenchSizeName;
  readonly stages: readonly AllStage[];
  /** The JSON file, written after each stage. A run with the same size and seed that was stopped is resumed. */
  readonly file: string;
  readonly restart: boolean;
}

/**
 * Runs the stages one after the other. A stage that fails is recorded with its reason, and the next one runs.
 *
 * @throws TrawlError USAGE if the file has a complete result, or one of another size.
 */
export async function benchAll(options: BenchAllOptions): Promise<AllResult> {
  const { size, threads, seed, file, stages, signal, note } = options;
  const earlier = options.restart ? undefined : await existingResult(file);
  if (earlier !== undefined) refuseForeign(earlier, options);
  const inputs = await benchInputs({ ...options, sampleTexts: SIZES[size].sampleTexts });
  const done: { [Stage in AllStage]?: StageOutcome<Stage> } = { ...earlier?.stages };
  const write = async (complete: boolean): Promise<AllResult> => {
    const result: AllResult = {
      format: 'trawl-bench-all',
      version: 1,
      ...{ size, threads, seed, inputs: inputs.named, complete, stages: done },
    };
    await writeAllResult(file, result);
    return result;
  };
  for (const stage of ALL_STAGES) {
    if (!stages.includes(stage)) continue;
    const before = done[stage];
    if (before !== undefined && 'result' in before) {
      note(`${stage}: measured before`);
      continue;
    }
    throwIfCancelled(signal);
    note(`${stage}: measuring`);
    const outcome = await timed(stage, { ...options, size: SIZES[size], inputs });
    (done as Record<AllStage, unknown>)[stage] = outcome;
    note('failed' in outcome ? `${stage}: ${outcome.failed}` : `${stage}: ${outcome.seconds.toFixed(0)} s`);
    await write(false);
  }
  return write(stages.every((stage) => done[stage] !== undefined));
}

async function timed<Stage extends AllStage>(stage: Stage, context: StageContext): Promise<StageOutcome<Stage>> {
  const begun = performance.now();
  const seconds = (): number => (performance.now() - begun) / 1000;
  try {
    const result = await RUN_STAGE[stage](context);
    return { seconds: seconds(), environment: result.environment, result };
  } catch (error) {
    throwIfCancelled(context.signal);
    if (!(error instanceof TrawlError)) throw error;
    return { seconds: seconds(), failed: `${error.message} [${error.code}]` };
  }
}

function refuseForeign(earlier: AllResult, { size, seed, threads, file }: BenchAllOptions): void {
  if (earlier.complete) {
    throw new TrawlError(
      'USAGE',
      `${file} has the result of a complete run. Draw it again with --from ${file}, or measure again with --restart.`,
    );
  }
  if (earlier.size === size && earlier.seed === seed && earlier.threads === threads) return;
  throw new TrawlError(
    'USAGE',
    `${file} has an unfinished run of size ${earlier.size} with ${earlier.threads} threads and seed ${earlier.seed}; asked for were ${size}, ${threads} and ${seed}. Use the same, or begin again with --restart.`,
  );
}
