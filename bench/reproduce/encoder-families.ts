import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { TrawlError } from '../../src/base/errors.ts';
import { cacheFolder } from '../../src/base/options/environment.ts';
import { packageRoot } from '../../src/base/package-root.ts';
import { benchEmbed } from '../embed/bench-embed.ts';
import { loadNow, type MachineFacts } from '../environment.ts';
import type { Measurement } from './measurement.ts';

const SCRIPT = join(packageRoot, 'bench', 'baselines', 'random_encoders.py');
const PASSAGES = join(packageRoot, 'corpus', 'sample', 'passages.jsonl');
/** Of one encoder thread, because a machine with other work has no two at the same time. */
const MEASURED = { sample: 12, threads: 1, runs: 5, seed: 1, batch: 1 } as const;

interface Written {
  readonly family: string;
  readonly shape: string;
  readonly folder: string;
}

/**
 * Measures every family beside sentence-transformers, over the same passages and queries, in turns, with random weights:
 * they take as long as trained ones. sentence-transformers gets one text at a time, its best batch here.
 *
 * @throws TrawlError MODEL_NOT_FOUND without the environment of `trawl bench baselines embed`, ENGINE_MISSING if a family could not be
 * compared.
 */
export async function measureFamilies(run: Measurement): Promise<unknown> {
  const { scratch, signal } = run;
  const python = run.python('embed');
  const checkpoints = join(scratch, 'checkpoints');
  const written = await run.run(python, [SCRIPT, checkpoints, join(run.checkpoint, 'tokenizer.json')]);
  const before = loadNow();
  const rows: object[] = [];
  let facts: MachineFacts | undefined;
  for (const { family, shape, folder } of JSON.parse(written) as readonly Written[]) {
    const model = join(scratch, `model-${family}`);
    await run.trawl('model', 'add', folder, '--out', model, '--precision', 'float32,int8', '--quiet');
    const { environment, records, skipped } = await benchEmbed({
      ...MEASURED,
      model,
      precisions: ['float32', 'int8'],
      texts: PASSAGES,
      queryTexts: undefined,
      against: ['sentence-transformers'],
      baselineModel: folder,
      cache: cacheFolder('trawl'),
      scratch,
      python,
      signal,
      note: (text) => process.stderr.write(`${text}\n`),
    });
    const [missing] = skipped;
    if (missing !== undefined) {
      throw new TrawlError('ENGINE_MISSING', `${family}: ${missing.engine} could not be measured: ${missing.reason}`);
    }
    facts = environment;
    const baseline = records.find(({ engine }) => engine !== 'trawl')!;
    for (const record of records) {
      const isBaseline = record === baseline;
      rows.push({
        family,
        shape,
        engine: record.engine,
        precision: record.precision,
        tokensPerPassage: record.tokens / record.texts,
        medianMs: record.medianMs,
        ratioToBaseline: isBaseline ? null : record.ratioToBaseline,
        queryP50Ms: record.queryP50Ms,
        queryRatioToBaseline: isBaseline ? null : baseline.queryP50Ms / record.queryP50Ms,
        cosineToBaseline: isBaseline ? null : record.cosineToBaseline,
      });
    }
    await Promise.all([folder, model].map((path) => rm(path, { recursive: true, force: true })));
  }
  return {
    format: 'trawl-families',
    version: 1,
    trawl: facts!.trawl,
    date: facts!.date.slice(0, 10),
    processor: facts!.processor,
    threads: MEASURED.threads,
    runs: MEASURED.runs,
    passages: MEASURED.sample,
    load: { before, after: loadNow() },
    rows,
  };
}
