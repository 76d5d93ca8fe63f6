import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { BenchEmbedResult } from '../embed/bench-embed.ts';
import { runTrawl } from '../serve/serve-index.ts';
import { importMiniLm } from './mini-lm.ts';
import type { ReproductionRun } from './reproduction-run.ts';

const PRECISIONS = 'float32,bfloat16,int8';
const CORPUS = 'hotpot_val500_pooled';

/**
 * Measures all-MiniLM-L6-v2 in each precision beside sentence-transformers, and writes the result of `trawl bench embed`, without folders of
 * this machine.
 *
 * @throws TrawlError CORPUS_NOT_FOUND without the data sets, MODEL_NOT_FOUND without the model.
 */
export async function benchPrecisions({ file, scratch, signal }: ReproductionRun): Promise<void> {
  const { data, model, checkpoint } = await importMiniLm({ scratch, signal }, PRECISIONS);
  const encoders = ['--model', model, '--baseline-model', checkpoint, '--precision', PRECISIONS];
  const texts = ['--texts', join(data, CORPUS, 'corpus.jsonl'), '--sample', '500', '--runs', '5'];
  await runTrawl(['bench', 'embed', ...encoders, ...texts, '--out', file], signal);
  const result = JSON.parse(await readFile(file, 'utf8')) as BenchEmbedResult;
  await writeFile(file, `${JSON.stringify({ ...result, texts: `500 of ${CORPUS}, seed 1` }, null, 1)}\n`);
}
