import { throwIfCancelled } from '../../src/base/abort.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { existingResult, writeAllResult } from './all-file.ts';
import { ALL_STAGES, type AllResult, type AllStage, type StageOutcome } from './all-result.ts';
import { benchInputs, type InputOptions } from './bench-inputs.ts';
import { type BenchSizeName, SIZES } from './bench-sizes.ts';
import { RUN_STAGE, type StageContext } from './run-stage.ts';

export interface BenchAllOptions extends Omit<InputOptions, 'sampleTexts'>, Omit<StageContext, 'size' | 'inputs'> {
  readonly size: BenchSizeName;
  readonly stages: readonly AllStage[];
  /** The JSON file, written after each stage. Stages that it lacks or that failed are measured, if it is of the same run. */
  readonly file: string;
  readonly restart: boolean;
}

/**
 * Runs the stages one after the other, except those that the file has a result of. A stage that fails is recorded with its reason,
 * and the next one runs.
 *
 * @throws TrawlError USAGE if the file is of another size, number of threads or seed, or of other inputs.
 */
export async function benchAll(options: BenchAllOptions): Promise<AllResult> {
  const { size, threads, seed, file, stages, signal, note } = options;
  const earlier = options.restart ? undefined : await existingResult(file);
  // Before the inputs are made, which may take a while.
  if (earlier !== undefined) refuseForeign(file, earlier, { size, threads, seed });
  const inputs = await benchInputs({ ...options, sampleTexts: SIZES[size].sampleTexts });
  if (earlier !== undefined) refuseForeign(file, earlier.inputs, inputs.named);
  const done: { [Stage in AllStage]?: StageOutcome<Stage> } = { ...earlier?.stages };
  const write = async (): Promise<AllResult> => {
    const complete = [...stages, ...Object.keys(done)].every((stage) => hasResult(done[stage as AllStage]));
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
    if (hasResult(done[stage])) {
      note(`${stage}: measured before (--restart measures every stage again)`);
      continue;
    }
    throwIfCancelled(signal);
    note(`${stage}: measuring`);
    const outcome = await timed(stage, { ...options, size: SIZES[size], inputs });
    (done as Record<AllStage, unknown>)[stage] = outcome;
    note('failed' in outcome ? `${stage}: ${outcome.failed}` : `${stage}: ${outcome.seconds.toFixed(0)} s`);
    await write();
  }
  return write();
}

function hasResult(outcome: StageOutcome<AllStage> | undefined): boolean {
  return outcome !== undefined && 'result' in outcome;
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

/** Refuses to add stages to a file whose stages were measured with something else. */
function refuseForeign(file: string, earlier: object, asked: object): void {
  const values = new Map<string, unknown>(Object.entries(earlier));
  const others = Object.entries(asked).filter(([name, value]) => values.get(name) !== value);
  if (others.length === 0) return;
  const differences = others.map(
    ([name, value]) => `${name} ${values.get(name) ?? 'not recorded'}, asked for: ${value}`,
  );
  throw new TrawlError(
    'USAGE',
    `${file} was measured with other settings: ${differences.join('; ')}. Use the same, name another file with --out, or begin again with --restart.`,
  );
}
