import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type EmbedEngine, openBaselineEncoder } from '../../bench/embed/embed-engine.ts';
import { EngineUnavailable } from '../../bench/script-process.ts';
import { median, sortedSamples } from '../../src/base/statistics.ts';
import { availableCores } from '../../src/base/system/cores.ts';
import { readModelFolder } from '../../src/encoder/model/model-folder.ts';
import { poolOptions } from '../../src/encoder/open-encoder.ts';
import { openGpuEncoder, vectorsOf } from './gpu-encoders.ts';
import type { GpuModel } from './gpu-models.ts';
import type { GpuRun, GpuStep } from './gpu-step.ts';
import { longTexts } from './gpu-texts.ts';

/** Throughput of one model and length, in float16. */
interface GpuSpeed {
  readonly model: string;
  /** Of each text. */
  readonly tokens: number;
  /** Texts a second by the tokens of a batch. */
  readonly trawl: Readonly<Record<number, number>>;
  /** The same of sentence-transformers; null: not measured. */
  readonly torch: Readonly<Record<number, number>> | null;
  /** Trawl with the batches of `--device cuda` beside the best of torch. */
  readonly ratio: number | null;
}

const LENGTHS = [16, 128, 512];
/** Tokens of a batch, for both programs; the best of each counts. */
const BATCHES = [16_384, 65_536];
/** Tokens of a measurement, and the most texts. */
const TOKENS = 2 ** 20;
const MOST_TEXTS = 16_384;
const RUNS = 2;
/** The goal: this many times the texts of sentence-transformers in float16 on the same GPU. */
const GOAL = 1.2;

/** The texts of one length, and where they are in the file of all texts. */
interface Texts {
  readonly tokens: number;
  readonly first: number;
  readonly texts: readonly string[];
}

/** Throughput in float16 by batch and length, in turns with sentence-transformers. */
export const speedStep: GpuStep = {
  name: 'throughput',
  async run(run) {
    const lengths = textsOf(run);
    const file = join(run.folder, 'speed-texts.json');
    writeFileSync(file, JSON.stringify({ passages: lengths.flatMap(({ texts }) => texts), queries: [] }));
    const speeds: GpuSpeed[] = [];
    let reason = run.python === undefined ? 'no Python with torch for this GPU: pass --python PATH' : undefined;
    for (const model of run.models.slice(0, 2)) {
      let torch: EmbedEngine | undefined;
      if (reason === undefined) {
        try {
          torch = await openTorch(run, model, file);
        } catch (error) {
          if (!(error instanceof EngineUnavailable)) throw error;
          reason = error.message;
        }
      }
      try {
        for (const texts of lengths) {
          const speed = await measured(run, model, texts, torch);
          run.say(`  ${lineOf(speed)}`);
          speeds.push(speed);
        }
      } finally {
        await torch?.close();
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

function textsOf({ small }: GpuRun): Texts[] {
  let first = 0;
  return (small ? LENGTHS.slice(0, 1) : LENGTHS).map((tokens) => {
    const texts = longTexts(small ? 16 : Math.min(MOST_TEXTS, TOKENS / tokens), tokens);
    const begin = first;
    first += texts.length;
    return { tokens, first: begin, texts };
  });
}

async function measured(
  run: GpuRun,
  model: GpuModel,
  { tokens, first, texts }: Texts,
  torch: EmbedEngine | undefined,
): Promise<GpuSpeed> {
  const own: Record<number, number> = {};
  const others: Record<number, number> = {};
  for (const batchTokens of run.small ? BATCHES.slice(0, 1) : BATCHES) {
    const encoder = await openGpuEncoder(model.folder, {
      precision: 'float16',
      device: run.device,
      threads: run.device === null ? 1 : null,
      batchTokens,
      overrides: { maxPassageTokens: tokens },
    });
    try {
      // Warmed up, then in turns.
      const [times, torchTimes]: [number[], number[]] = [[], []];
      for (let turn = 0; turn <= RUNS; turn++) {
        const begun = performance.now();
        await vectorsOf(encoder, texts);
        const ms = performance.now() - begun;
        const limits = { batch: Math.max(1, batchTokens / tokens), maxPassageTokens: tokens };
        const torchMs = (await torch?.encode(first, texts.length, limits))?.ms;
        if (turn === 0) continue;
        times.push(ms);
        if (torchMs !== undefined) torchTimes.push(torchMs);
      }
      own[batchTokens] = perSecond(texts.length, times);
      if (torch !== undefined) others[batchTokens] = perSecond(texts.length, torchTimes);
    } finally {
      await encoder.close();
    }
  }
  const best = (speeds: Readonly<Record<number, number>>): number => Math.max(...Object.values(speeds));
  const usual = await usualBatch(model);
  const compared = torch !== undefined;
  return {
    model: model.name,
    tokens,
    trawl: own,
    torch: compared ? others : null,
    ratio: compared ? (own[usual] ?? best(own)) / best(others) : null,
  };
}

/** Tokens of a batch of `--device cuda`. */
async function usualBatch({ folder }: GpuModel): Promise<number> {
  const { batchTokens } = await poolOptions(await readModelFolder(folder, {}, { precision: 'float16' }), [0], {});
  return batchTokens!;
}

function openTorch(run: GpuRun, model: GpuModel, file: string): Promise<EmbedEngine> {
  return openBaselineEncoder('sentence-transformers', {
    python: run.python!,
    threads: availableCores(),
    texts: file,
    model: model.checkpoint,
    queryPrefix: '',
    passagePrefix: '',
    maxQueryTokens: 512,
    maxPassageTokens: 512,
    batch: 32,
    device: run.device === null ? 'cpu' : `cuda:${run.device}`,
    dtype: run.device === null ? 'float32' : 'float16',
  });
}

function perSecond(count: number, times: readonly number[]): number {
  return count / (median(sortedSamples(times)) / 1000);
}

function lineOf({ model, tokens, trawl, torch, ratio }: GpuSpeed): string {
  const list = (speeds: Readonly<Record<number, number>>): string =>
    Object.entries(speeds)
      .map(([batch, speed]) => `${batch}: ${speed.toFixed(0)}`)
      .join(', ');
  const other = torch === null ? '' : `; sentence-transformers ${list(torch)}; ${ratio!.toFixed(2)} ×`;
  return `${model}, ${tokens} tokens, texts/s by tokens of a batch: Trawl ${list(trawl)}${other}`;
}
