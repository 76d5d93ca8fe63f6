import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runTrawl } from '../serve/serve-index.ts';
import { importMiniLm } from './mini-lm.ts';
import type { ReproductionRun } from './reproduction-run.ts';

const PASSAGES = 2_000;

/** A build of the first passages of pool_wiki_dev, beside one as FlashRAG does it. */
export async function benchBuild(run: ReproductionRun): Promise<void> {
  const { data, model, checkpoint } = await importMiniLm(run);
  const corpus = join(run.scratch, 'passages.jsonl');
  const lines = (await readFile(join(data, 'pool_wiki_dev', 'corpus.jsonl'), 'utf8')).split('\n');
  await writeFile(corpus, `${lines.slice(0, PASSAGES).join('\n')}\n`);
  const built = ['--model', model, '--corpus', corpus, '--baseline-model', checkpoint];
  await runTrawl(['bench', 'index', ...built, '--out', run.file], run.signal);
}
