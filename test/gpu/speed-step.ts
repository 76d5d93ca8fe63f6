import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openBaselineEncoder } from '../../bench/embed/embed-engine.ts';
import { EngineUnavailable } from '../../bench/script-process.ts';
import { median, sortedSamples } from '../../bench/statistics.ts';
import { openGpuEncoder, vectorsOf } from './gpu-encoders.ts';
import type { GpuModel } from './gpu-models.ts';
import type { GpuRun, GpuStep } from './gpu-step.ts';
import { longTexts } from './gpu-texts.ts';

const LENGTHS = [16, 64, 128, 256, 512];
const BATCHES = [2_048, 8_192, 16_384, 65_536];
/** Texts of a batch of sentence-transformers: the best of these counts. */
const TORCH_BATCHES = [32, 128, 512];
const RUNS = 3;
/** The goal: this many times the texts of sentence-transformers in float16 on the same GPU. */
const GOAL = 1.2;

interface Speed {
  readonly model: string;
  readonly tokens: number;
  /** Texts a second by the tokens of a batch. */
  readonly trawl: Readonly<Record<number, number>>;
  /** Texts a second by the texts of a batch; null: not measured. */
  readonly torch: Readonly<Record<number, number>> | null;
  /** The best of Trawl beside the best of torch. */
  readonly ratio: number | null;
}

/** Throughput in float16 by batch and length, in turns with sentence-transformers. */
export const speedStep: GpuStep = {
  name: 'throughput',
  async run(run) {
    const speeds: Speed[] = [];
    let reason = run.python === undefined ? 'no Python with torch for this GPU: pass --python PATH' : undefined;
    for (const model of run.models.slice(0, 2)) {
      for (const tokens of run.small ? LENGTHS.slice(0, 1) : LENGTHS) {
        run.say(`  ${model.name}, ${tokens} tokens`);
        try {
          speeds.push(await measured(run, model, tokens, reason === undefined));
        } catch (error) {
          if (!(error instanceof EngineUnavailable)) throw error;
          reason = error.message;
          speeds.push(await measured(run, model, tokens, false));
        }
      }
    }
    const ratios = speeds.flatMap(({ ratio }) => ratio ?? []);
    const goal =
      ratios.length === 0
        ? `Not compared: ${reason}.`
        : `${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)} × sentence-transformers; the goal is ${GOAL} ×.`;
    return {
      outcome: ratios.length === 0 ? 'missing' : 'passed',
      text: [goal, ...speeds.map(lineOf)].join('\n'),
      figures: speeds,
    };
  },
};

async function measured(run: GpuRun, model: GpuModel, tokens: number, withTorch: boolean): Promise<Speed> {
  const count = run.small ? 16 : Math.min(16_384, Math.ceil(2 ** 20 / tokens));
  const texts = longTexts(count, tokens);
  const file = join(run.folder, `texts-${tokens}.json`);
  writeFileSync(file, JSON.stringify({ passages: texts, queries: [] }));
  const trawl: Record<number, number> = {};
  const torch: Record<number, number> = {};
  const overrides = { maxPassageTokens: tokens };
  for (const [i, batchTokens] of (run.small ? BATCHES.slice(0, 1) : BATCHES).entries()) {
    const encoder = await openGpuEncoder(model.folder, {
      precision: 'float16',
      device: run.device,
      batchTokens,
      overrides,
    });
    const batch = withTorch ? TORCH_BATCHES[i] : undefined;
    const other = batch === undefined ? undefined : await openTorch(run, model, { tokens, file, batch });
    try {
      // Warmed up, then in turns.
      const [own, others]: [number[], number[]] = [[], []];
      for (let turn = 0; turn <= RUNS; turn++) {
        const begun = performance.now();
        await vectorsOf(encoder, texts);
        const ms = performance.now() - begun;
        const torchMs = (await other?.encode(0, count))?.ms;
        if (turn === 0) continue;
        own.push(ms);
        if (torchMs !== undefined) others.push(torchMs);
      }
      trawl[batchTokens] = perSecond(count, own);
      if (batch !== undefined) torch[batch] = perSecond(count, others);
    } finally {
      await encoder.close();
      await other?.close();
    }
  }
  const best = (speeds: Readonly<Record<number, number>>): number => Math.max(...Object.values(speeds));
  const ratio = withTorch ? best(trawl) / best(torch) : null;
  return { model: model.name, tokens, trawl, torch: withTorch ? torch : null, ratio };
}

function openTorch(
  run: GpuRun,
  model: GpuModel,
  { tokens, file, batch }: { tokens: number; file: string; batch: number },
) {
  const device = run.device === null ? 'cpu' : `cuda:${run.device}`;
  return openBaselineEncoder('sentence-transformers', {
    python: run.python!,
    threads: 1,
    texts: file,
    model: model.checkpoint,
    queryPrefix: '',
    passagePrefix: '',
    maxQueryTokens: tokens,
    maxPassageTokens: tokens,
    batch,
    device,
    dtype: run.device === null ? 'float32' : 'float16',
  });
}

function perSecond(count: number, times: readonly number[]): number {
  return count / (median(sortedSamples(times)) / 1000);
}

function lineOf({ model, tokens, trawl, torch, ratio }: Speed): string {
  const list = (speeds: Readonly<Record<number, number>>): string =>
    Object.entries(speeds)
      .map(([batch, speed]) => `${batch}: ${speed.toFixed(0)}`)
      .join(', ');
  const other = torch === null ? '' : `; torch by texts of a batch ${list(torch)} texts/s; ${ratio!.toFixed(2)} ×`;
  return `${model}, ${tokens} tokens: by tokens of a batch ${list(trawl)} texts/s${other}`;
}
