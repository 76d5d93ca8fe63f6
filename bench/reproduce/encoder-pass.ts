import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type ImportedModel, importModel } from '../../indexer/model-import/import-model.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { packageRoot } from '../../src/base/package-root.ts';
import { median, sortedSamples } from '../../src/base/statistics.ts';
import type { Precision } from '../../src/encoder/identity/model-identity.ts';
import { openNativeSession } from '../../src/encoder/inference/native-session.ts';
import { onnxruntimeFacts, openOnnxSession, type Session } from '../../src/encoder/inference/onnx-session.ts';
import type { TokenBatch } from '../../src/encoder/inference/token-batch.ts';
import { graphsOf } from '../../src/encoder/model/trawl-model-file.ts';
import { openEncoder } from '../../src/encoder/open-encoder.ts';
import { type EncoderShape, encoderShape, operations } from '../embed/encoder-operations.ts';
import { loadNow, machineFacts } from '../environment.ts';
import type { Measurement } from './measurement.ts';

/** What runs an encoder on a CPU. */
const PASSES = ['float32 graph', 'int8 graph', 'bfloat16', 'int8'] as const;
type Pass = (typeof PASSES)[number];

const SCRIPT = join(packageRoot, 'bench', 'baselines', 'random_encoders.py');
const TOKENS = [128, 100, 12];
const QUERY_TOKENS = 12;
const RUNS = 9;
const DIVIDED_RUNS = 1_000;
/** Processor time of a run, so that its clock is precise enough. */
const RUN_MS = 400;
const COMPARED_PASSAGES = 60;

/** An encoder in every pass. The graphs of int8 are in a model folder of their own, because a folder has one graph a precision. */
interface Passes {
  readonly shape: string;
  readonly sizes: EncoderShape;
  readonly folders: Readonly<Record<Pass, string>>;
  readonly sessions: Readonly<Record<Pass, Session>>;
}

/**
 * Times BERT encoders on one thread in onnxruntime's graphs and in the engine, and single queries divided among two threads.
 *
 * @throws TrawlError MODEL_NOT_FOUND without the environment of `trawl bench baselines embed`, ENGINE_MISSING without the engine.
 */
export async function timeEncoderPasses(run: Measurement): Promise<unknown> {
  const { checkpoint, scratch } = run;
  const loadBefore = loadNow();
  const random = join(scratch, 'random');
  await run.run(run.python('embed'), [SCRIPT, random, join(checkpoint, 'tokenizer.json'), 'BERT']);
  const shapes = [
    { shape: 'all-MiniLM-L6-v2', source: checkpoint, out: join(scratch, 'mini-lm') },
    { shape: 'BERT-base, random weights', source: join(random, 'BERT'), out: join(scratch, 'bert') },
  ];
  const passes: object[] = [];
  const divided: object[] = [];
  const folders: Passes['folders'][] = [];
  for (const { shape, source, out } of shapes) {
    const encoder = await openPasses(shape, source, out);
    folders.push(encoder.folders);
    for (const tokens of TOKENS) passes.push(...(await timed(encoder, tokens)));
    // A lone query is timed by the clock, which further sessions in the process disturb.
    for (const pass of ['float32 graph', 'int8 graph'] as const) await encoder.sessions[pass].close();
    for (const pass of ['bfloat16', 'int8'] as const) {
      divided.push(await timedDivided(encoder, pass));
      await encoder.sessions[pass].close();
    }
  }
  const passages = await firstPassages(run.data('hotpot_val500_pooled', 'corpus.jsonl'));
  const cosines = await cosinesOf(folders[0]!, passages);
  const engines = [{ version: `onnxruntime ${onnxruntimeFacts().version}` }];
  const environment = machineFacts({ engines, loadBefore });
  return { environment, runs: RUNS, passes, cosines, divided };
}

async function openPasses(shape: string, checkpoint: string, out: string): Promise<Passes> {
  const own = await importModel(checkpoint, { out, precisions: ['float32', 'bfloat16', 'int8'], int8: 'engine' });
  const graph = await importModel(checkpoint, { out: `${out}-graph`, precisions: ['int8'], int8: 'onnxruntime' });
  const sizes = await encoderShape(checkpoint, own.description.dimension);
  if (sizes === null)
    throw new TrawlError('MODEL_INVALID', `${checkpoint}: config.json does not give the sizes of an encoder.`);
  const session = (name: string): Promise<Session> =>
    openOnnxSession(name, {
      use: 'mean',
      cudaDevice: null,
      shareWeights: false,
      externalData: [],
      poolsInGraph: false,
    });
  const pathOf = ({ folder, description }: ImportedModel, precision: Precision): string =>
    join(folder, graphsOf(description).find((one) => one.precision === precision)!.path);
  return {
    shape,
    sizes,
    folders: { 'float32 graph': own.folder, 'int8 graph': graph.folder, bfloat16: own.folder, int8: own.folder },
    sessions: {
      'float32 graph': await session(pathOf(own, 'float32')),
      'int8 graph': await session(pathOf(graph, 'int8')),
      bfloat16: openNativeSession(pathOf(own, 'bfloat16'), 'bfloat16'),
      int8: openNativeSession(pathOf(own, 'int8'), 'int8'),
    },
  };
}

/** Texts whose ids are spread over the vocabulary. */
function batchOf(tokens: number): TokenBatch {
  const ids = Int32Array.from({ length: tokens }, (_, i) => (i * 7919) % 30_000);
  return { rows: 1, length: tokens, ids, tokens: Int32Array.of(tokens) };
}

/** All passes in turns. */
async function timed({ shape, sizes, sessions }: Passes, tokens: number): Promise<object[]> {
  const batch = batchOf(tokens);
  const times = new Map<Pass, number[]>(PASSES.map((pass) => [pass, []]));
  // The first run of a session allocates.
  for (const pass of PASSES) await sessions[pass].run(batch, 1);
  const repeats = new Map<Pass, number>();
  for (let run = -1; run < RUNS; run++) {
    for (const pass of PASSES) {
      const count = repeats.get(pass) ?? 1;
      const before = process.cpuUsage();
      for (let i = 0; i < count; i++) await sessions[pass].run(batch, 1);
      const { user, system } = process.cpuUsage(before);
      const each = (user + system) / 1000 / count;
      if (run < 0) repeats.set(pass, Math.max(1, Math.ceil(RUN_MS / each)));
      else times.get(pass)!.push(each);
    }
  }
  const medians = new Map(PASSES.map((pass) => [pass, median(sortedSamples(times.get(pass)!))]));
  return PASSES.map((pass) => {
    const processorMs = medians.get(pass)!;
    return {
      shape,
      tokens,
      pass,
      processorMs,
      gflopPerS: operations(sizes, tokens, tokens * tokens) / processorMs / 1e6,
      ratioToInt8Graph: medians.get('int8 graph')! / processorMs,
    };
  });
}

/** One thread and two in turns. */
async function timedDivided({ shape, sessions }: Passes, pass: Pass): Promise<object> {
  const batch = batchOf(QUERY_TOKENS);
  const times: [number[], number[]] = [[], []];
  for (let run = -10; run < DIVIDED_RUNS; run++) {
    for (const threads of [1, 2] as const) {
      const start = performance.now();
      await sessions[pass].run(batch, threads);
      if (run >= 0) times[threads - 1]!.push(performance.now() - start);
    }
  }
  const [oneMs, twoMs] = times.map((each) => median(sortedSamples(each))) as [number, number];
  return { shape, pass, oneMs, twoMs, ratio: twoMs / oneMs };
}

async function firstPassages(corpus: string): Promise<string[]> {
  const lines = (await readFile(corpus, 'utf8')).split('\n').slice(0, COMPARED_PASSAGES);
  return lines.map((line) => (JSON.parse(line) as { text: string }).text);
}

async function cosinesOf(folders: Passes['folders'], passages: readonly string[]): Promise<object[]> {
  const vectors = async (pass: Pass): Promise<Float32Array> => {
    const precision = pass === 'bfloat16' ? pass : pass.startsWith('int8') ? 'int8' : 'float32';
    const encoder = await openEncoder(folders[pass], { precision, workers: 2 });
    try {
      return (await encoder.encode(passages, { inputType: 'passage' })).vectors;
    } finally {
      await encoder.close();
    }
  };
  const expected = await vectors('float32 graph');
  const dimension = expected.length / passages.length;
  const cosines: object[] = [];
  for (const pass of PASSES.slice(1)) {
    const found = await vectors(pass);
    const each = passages.map((_, row) => {
      let sum = 0;
      for (let i = row * dimension; i < (row + 1) * dimension; i++) sum += expected[i]! * found[i]!;
      return sum;
    });
    cosines.push({ pass, mean: each.reduce((sum, value) => sum + value) / each.length, least: Math.min(...each) });
  }
  return cosines;
}
