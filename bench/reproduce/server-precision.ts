import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { BenchServeResult } from '../serve/bench-serve.ts';
import { runTrawl } from '../serve/serve-index.ts';
import { importMiniLm } from './mini-lm.ts';
import type { ReproductionRun } from './reproduction-run.ts';

const CORPUS = 'hotpot_val500_pooled';

/**
 * Measures a server whose queries are embedded in `precision` over vectors in float32, beside a server in float32, and writes the result of
 * `trawl bench serve`, without folders of this machine.
 *
 * @throws TrawlError CORPUS_NOT_FOUND without the data sets, MODEL_NOT_FOUND without the model.
 */
export async function benchPrecisionServer(
  precision: 'bfloat16' | 'int8',
  { file, scratch, signal }: ReproductionRun,
): Promise<void> {
  const { data, model, checkpoint } = await importMiniLm({ scratch, signal }, `float32,${precision}`);
  const servers = ['--model', model, '--baseline-model', checkpoint, '--precision', precision];
  const load = ['--loads', 'lone,batch,verl,skyrl', '--runs', '3', '--seconds', '8'];
  const corpus = join(data, CORPUS, 'corpus.jsonl');
  await runTrawl(['bench', 'serve', ...servers, ...load, '--corpus', corpus, '--out', file], signal);
  const result = JSON.parse(await readFile(file, 'utf8')) as BenchServeResult;
  await writeFile(file, `${JSON.stringify({ ...result, index: CORPUS }, null, 1)}\n`);
}
