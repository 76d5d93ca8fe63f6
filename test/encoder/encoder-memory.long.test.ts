import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { packageRoot } from '../../src/base/package-root.ts';
import { readModelFolder } from '../../src/encoder/model/model-folder.ts';
import { openModelEncoder } from '../../src/encoder/open-encoder.ts';

test('memory stops growing while texts with ever new words are encoded', {
  skip: existsSync(join(packageRoot, 'models/token-average-256')) ? false : 'models/token-average-256 does not exist',
}, async (t) => {
  const pool = await openModelEncoder({ model: await readModelFolder('token-average-256'), workers: 2 });
  t.after(() => pool.close());
  const rounds = async (from: number, to: number): Promise<number> => {
    for (let round = from; round < to; round++) {
      // Every round has new words, so that an unbounded cache of words would show.
      const texts = Array.from({ length: 500 }, (_, i) => `${(round * 500 + i).toString(36)}wörd `.repeat(40));
      await pool.encode(texts, { inputType: 'passage' });
    }
    return process.memoryUsage().rss;
  };
  const warm = await rounds(0, 12);
  const after = await rounds(12, 36);
  assert.ok(after - warm < 100 * 1024 * 1024, `${(after - warm) / 1024 / 1024} MiB more after 12,000 texts`);
});
