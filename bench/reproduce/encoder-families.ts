import { execFile } from 'node:child_process';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { TrawlError } from '../../src/base/errors.ts';
import { cacheFolder } from '../../src/base/options/cache-folder.ts';
import { packageRoot } from '../../src/base/package-root.ts';
import { installedMiniLm } from '../all/bench-inputs.ts';
import { baselinePython } from '../baselines.ts';
import { benchEmbed } from '../embed/bench-embed.ts';
import { loadNow } from '../environment.ts';
import { runTrawl } from '../serve/serve-index.ts';
import type { FamiliesResult } from '../tables/families-result.ts';

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
 * Measures every family beside sentence-transformers, over the same passages and queries, in turns, and writes a FamiliesResult. The weights
 * are random: they take as long as trained ones. sentence-transformers gets one text at a time, its best batch here.
 *
 * @throws TrawlError MODEL_NOT_FOUND without the environment of `trawl bench baselines embed`, ENGINE_MISSING if a family could not be
 * compared.
 */
export async function measureFamilies(file: string, scratch: string, signal: AbortSignal): Promise<void> {
  const cache = cacheFolder('trawl');
  const [python, miniLm] = [baselinePython(cache, 'embed'), installedMiniLm(cache)];
  if (python === undefined || miniLm === undefined) {
    throw new TrawlError('MODEL_NOT_FOUND', 'torch is not installed. Install it: trawl bench baselines embed.');
  }
  const checkpoints = join(scratch, 'checkpoints');
  await mkdir(checkpoints, { recursive: true });
  const { stdout } = await promisify(execFile)(python, [SCRIPT, checkpoints, join(miniLm, 'tokenizer.json')], {
    signal,
  });
  const before = loadNow();
  const rows: FamiliesResult['rows'][number][] = [];
  let facts: { readonly trawl: string; readonly date: string; readonly processor: string } | undefined;
  for (const { family, shape, folder } of JSON.parse(stdout) as readonly Written[]) {
    const model = join(scratch, `model-${family}`);
    await runTrawl(['model', 'add', folder, '--out', model, '--precision', 'float32,int8', '--quiet'], signal);
    const { environment, records, skipped } = await benchEmbed({
      ...MEASURED,
      model,
      precisions: ['float32', 'int8'],
      texts: PASSAGES,
      queryTexts: undefined,
      against: ['sentence-transformers'],
      baselineModel: folder,
      cache,
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
  const result: FamiliesResult = {
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
  await writeFile(file, `${JSON.stringify(result, null, 2)}\n`);
}
