import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { importModel } from '../../indexer/model-import/import-model.ts';
import { packageRoot } from '../../src/base/package-root.ts';
import { openCrossEncoder } from '../../src/encoder/cross-encoder.ts';
import { fixture } from '../encoder/model-fixtures.ts';
import { PEERS } from '../helpers/peers.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const MAX_TOKENS = 128;
const LONG = 'The river rises in the mountains and reaches the sea after a long way. '.repeat(20);
const PAIRS: [string, string][] = [
  ['Which river flows through Vienna?', 'The Danube flows through Vienna.'],
  ['Which river flows through Vienna?', LONG],
  [LONG, 'The Danube'],
  [LONG, LONG],
  [`${LONG} a`, LONG],
  ['', ''],
  ['', 'only a passage'],
  ['it’s [SEP] here </s> ﬁ', 'two\n\nlines  <mask>'],
];

/** For the `skip` option of a test: false if transformers is installed, else the reason. */
function withoutTransformers(): string | false {
  if (PEERS.missing() !== false) return PEERS.missing();
  const { status } = spawnSync(PEERS.python, ['-c', 'import torch, transformers']);
  return status === 0 ? false : 'torch and transformers are not among the installed peers';
}

for (const architecture of ['bert', 'xlm-roberta'] as const) {
  test(`pairs have the same scores as in transformers: ${architecture}`, {
    skip: withoutTransformers(),
  }, async (t) => {
    const folder = await tempFolder(t);
    const tokenizer = join(folder, 'tokenizer.json');
    writeFileSync(
      tokenizer,
      architecture === 'bert'
        ? readFileSync(join(packageRoot, 'models/token-average-256/tokenizer.json'))
        : gunzipSync(readFileSync(fixture('xlm-roberta-tokenizer.json.gz'))),
    );
    const checkpoint = join(folder, 'checkpoint');
    const request = { tokenizer, architecture, folder: checkpoint, pairs: PAIRS, maxTokens: MAX_TOKENS };
    const expected = (await PEERS.run('cross_encoder.py', request)) as number[];
    assert.ok(Math.max(...expected) - Math.min(...expected) > 0.01, 'the scores differ');
    const out = join(folder, 'model');
    await importModel(checkpoint, { out, precisions: ['float32'] });
    const crossEncoder = await openCrossEncoder(out, { workers: 2 });
    t.after(() => crossEncoder.close());
    for (const [i, [query, passage]] of PAIRS.entries()) {
      const { scores, outcomes } = await crossEncoder.score(query, [passage]);
      assert.ok(outcomes[0]!.ok);
      assert.ok(Math.abs(scores[0]! - expected[i]!) < 1e-4, `pair ${i}: ${scores[0]}, expected ${expected[i]}`);
    }
    const passages = PAIRS.map(([, passage]) => passage);
    const together = await crossEncoder.score('Vienna', [...passages, ...passages].reverse());
    const alone = await crossEncoder.score('Vienna', passages);
    assert.deepEqual(together.scores.slice(0, passages.length).reverse(), alone.scores, 'the same bits in any batch');
    const activated = await crossEncoder.score('Vienna', passages, { activation: 'model' });
    for (const [i, score] of activated.scores.entries()) {
      assert.ok(Math.abs(score - 1 / (1 + Math.exp(-alone.scores[i]!))) < 1e-6);
    }
    const { scores, outcomes } = await crossEncoder.score(LONG, ['a'], { truncate: 'passage' });
    assert.ok(Number.isNaN(scores[0]) && !outcomes[0]!.ok && outcomes[0]!.error.code === 'ENCODING_FAILED');
  });
}
