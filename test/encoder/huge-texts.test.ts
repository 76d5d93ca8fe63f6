import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openEncoder } from '../../src/encoder/open-encoder.ts';
import { toyModel } from './model-fixtures.ts';

const LIMIT = 32;

/** Texts that once kept a worker busy for seconds to hours, or overflowed its stack. */
const HUGE_TEXTS: Record<string, string> = {
  'combining marks on one letter': `a${'\u0301\u0323'.repeat(300_000)}`,
  'combining marks with removed characters between them': `a${'\u0301\u200d\u0323'.repeat(300_000)}`,
  'combining marks that are not stripped': `a${'\u08ca\u0899'.repeat(300_000)}`,
  'one word of ASCII': 'a'.repeat(5e6),
  emoji: '😀'.repeat(3e6),
  'letters with accents': 'é'.repeat(1e7),
  'Chinese without a space': '漢'.repeat(1e6),
  'white space': ' '.repeat(1e6),
  'special tokens': '[SEP]'.repeat(200_000),
  'beginnings of special tokens': '['.repeat(1e6),
  'words of 100 letters that end in an unknown one': `${'ab'.repeat(49)}a\u{1d10} `.repeat(20_000),
};

test('a huge text is truncated without using much CPU time, and the other texts of its call are unaffected', async (t) => {
  const encoder = await openEncoder(await toyModel(t), { workers: 1 });
  t.after(() => encoder.close());
  const alone = await encoder.encode(['what is a'], { inputType: 'query' });
  const before = process.cpuUsage();
  for (const [name, text] of Object.entries(HUGE_TEXTS)) {
    const inputs = [text, { question: text, query: 'b' }, 'what is a'];
    const { outcomes, vectors } = await encoder.encode(inputs, { inputType: 'query', truncate: 'question' });
    for (const outcome of outcomes.slice(0, 2)) {
      assert.ok(outcome.ok && outcome.tokens! <= LIMIT, name);
      assert.equal(outcome.truncated, true, name);
    }
    assert.deepEqual(outcomes[2], alone.outcomes[0], name);
    assert.deepEqual(vectors.slice(2 * encoder.dimension), alone.vectors, name);
  }
  // CPU time of all threads: about 2 s for all texts together.
  const { user, system } = process.cpuUsage(before);
  assert.ok(user + system < 30e6);
});
