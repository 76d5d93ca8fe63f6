import { join } from 'node:path';
import { runTrawl } from '../serve/serve-index.ts';
import { importMiniLm } from './mini-lm.ts';
import type { ReproductionRun } from './reproduction-run.ts';

const LOADS = 'lone,overhead,free-encoder,free-encoder-batch,generator,lone-beside-batch';

/** The loads of `trawl bench serve` that no other result has, and a lone client beside them, of Trawl alone over the passages of HotpotQA. */
export async function benchServerAlone(run: ReproductionRun): Promise<void> {
  const { data, model } = await importMiniLm(run);
  const served = ['--model', model, '--corpus', join(data, 'hotpot_val500_pooled', 'corpus.jsonl')];
  const load = ['--against', 'none', '--loads', LOADS, '--runs', '3', '--seconds', '6'];
  await runTrawl(['bench', 'serve', ...served, ...load, '--out', run.file], run.signal);
}
