import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { machineFacts } from '../../bench/environment.ts';
import { onnxruntimeFacts } from '../../src/encoder/inference/onnx-session.ts';
import { buildStep } from './build-step.ts';
import { FIRST, firstStep } from './first-step.ts';
import { gpuNames } from './gpu-machine.ts';
import { type GpuModel, makeGpuModels } from './gpu-models.ts';
import type { GpuRun, GpuStep, StepResult } from './gpu-step.ts';
import { memoryStep } from './memory-step.ts';
import { speedStep } from './speed-step.ts';
import { agreementStep, batchStep, cpuStep, workersStep } from './vector-steps.ts';

export interface GpuTestOptions {
  /** The steps on the CPU, with padded batches: tries the test, not a GPU. */
  readonly rehearse: boolean;
  readonly small: boolean;
  /** Indexes and texts are written here. */
  readonly folder: string;
  /** Checkpoints and models are written here, or taken from an earlier run. */
  readonly models: string;
  /** Names of the steps on the GPU to run; undefined: all. */
  readonly only: readonly string[] | undefined;
  /** The report is written here as `gpu-report.json` and `gpu-report.txt`. */
  readonly out: string;
  readonly python: string | undefined;
  readonly say: (line: string) => void;
}

const GPU_STEPS: readonly GpuStep[] = [agreementStep, batchStep, workersStep, memoryStep, buildStep, speedStep];

/** The exit code if the machine lacks what the steps on the GPU need. */
const MISSING = 3;

/** Runs every step, up to the first that the machine cannot do, and writes the report. Returns the exit code. */
export async function runGpuTest(options: GpuTestOptions): Promise<number> {
  const { say, rehearse, only } = options;
  const gpus = gpuNames();
  const results: StepResult[] = [];
  const add = (result: StepResult): void => {
    results.push(result);
    say(`${result.outcome}: ${result.name} (${result.seconds} s)\n${indented(result.text)}`);
  };
  let models: readonly GpuModel[] = [];
  const makeModels: GpuStep = {
    name: 'models',
    async run() {
      models = await makeGpuModels(options.models, options.small);
      return { outcome: 'passed', text: `${models.map(({ name }) => name).join(', ')}, with random weights` };
    },
  };
  const run = (): GpuRun => ({
    ...options,
    models,
    device: rehearse ? null : 0,
    devices: rehearse ? [] : gpus.map((_, i) => i),
  });
  const chosen = GPU_STEPS.filter(({ name }) => only === undefined || only.includes(name));
  for (const step of [makeModels, cpuStep, firstStep(rehearse, gpus), ...chosen]) {
    say(step.name);
    const begun = performance.now();
    const result = await step.run(run()).catch((error: unknown) => ({
      outcome: 'failed' as const,
      text: error instanceof Error ? `${error.message}` : String(error),
    }));
    add({ name: step.name, ...result, seconds: Math.round((performance.now() - begun) / 100) / 10 });
    if (step.name === FIRST && result.outcome !== 'passed') break;
  }
  writeReport(options, gpus, results);
  if (results.some(({ outcome }) => outcome === 'failed')) return 1;
  return results.some(({ name, outcome }) => name === FIRST && outcome === 'missing') ? MISSING : 0;
}

function writeReport(
  { out, rehearse, small }: GpuTestOptions,
  gpus: readonly string[],
  results: readonly StepResult[],
): void {
  const facts = {
    ...machineFacts({ engines: [], loadBefore: 0 }),
    onnxruntime: onnxruntimeFacts().version,
    gpus,
    rehearsal: rehearse,
    small,
  };
  mkdirSync(out, { recursive: true });
  writeFileSync(join(out, 'gpu-report.json'), `${JSON.stringify({ machine: facts, steps: results }, null, 2)}\n`);
  const head = [
    rehearse ? 'A rehearsal on the CPU: these are no figures of a GPU.' : 'Trawl on a GPU',
    `${facts.date.slice(0, 10)}, ${facts.gpus.join(', ') || 'no GPU'}, ${facts.processor}, ${facts.cores} cores, onnxruntime ${facts.onnxruntime}, Node.js ${facts.node}, Trawl ${facts.trawl}`,
  ];
  const lines = results.map(
    ({ name, outcome, text, seconds }) => `${outcome}: ${name} (${seconds} s)\n${indented(text)}`,
  );
  writeFileSync(join(out, 'gpu-report.txt'), `${[...head, '', ...lines].join('\n')}\n`);
}

function indented(text: string): string {
  return text.replaceAll(/^/gm, '  ');
}
