import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { loadKernel } from '../../src/engine/native/kernel.ts';
import { jsonOf, runTrawl } from '../cli/run-trawl.ts';
import { sharedData, withoutSharedData } from '../helpers/shared-data.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const DATA = 'hotpot_val500_pooled';
const loaded = loadKernel();
const skip = withoutSharedData(`${DATA}/corpus.jsonl`) || (loaded.ok ? false : `no native engine: ${loaded.reason}`);

/** Recall at 1, 5 and 10 of Elasticsearch 8.17.1 with its standard analyser, measured over its own HTTP interface. */
const ELASTICSEARCH = [
  { query: 'multi_match over title and text', options: [], recall: [0.369, 0.705, 0.858] },
  { query: 'match on text', options: ['--bm25-weights', 'title=0'], recall: [0.363, 0.687, 0.846] },
  { query: 'multi_match of type most_fields', options: ['--tie-breaker', '1'], recall: [0.399, 0.752, 0.861] },
] as const;

test(`title and text of ${DATA} have the recall of Elasticsearch`, { skip }, async (t) => {
  const out = join(await tempFolder(t), 'ix');
  const [corpus, queries] = [sharedData(`${DATA}/corpus.jsonl`), sharedData(`${DATA}/queries.jsonl`)];
  const fields = ['--bm25', '--bm25-fields', 'title,text', '--analyser', 'standard', '--shard-rows', '620'];
  const { code, stderr } = await runTrawl(['index', corpus, '--out', out, '--quiet', ...fields]);
  assert.equal(code, 0, stderr);
  for (const { query, options, recall } of ELASTICSEARCH) {
    const ranking = ['--mode', 'bm25', '--bm25-profile', 'elasticsearch', ...options];
    const { metrics } = jsonOf<{ metrics: Record<string, number> }>(
      await runTrawl(['eval', out, '--queries', queries, '--cutoffs', '1,5,10', '--json', ...ranking]),
    );
    const found = [1, 5, 10].map((k) => Number(metrics[`recall@${k}`]!.toFixed(4)));
    assert.deepEqual(found, [...recall], query);
  }
});
