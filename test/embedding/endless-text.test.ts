import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openEncoder } from '../../src/embedding/open-encoder.ts';
import { toyModel } from './model-fixtures.ts';

const LIMIT = 32;

/** Texts that once took a worker for seconds to hours, or failed with a full stack. */
const ENDLESS: Record<string, string> = {
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
  'words of a hundred letters, the last unknown': `${'ab'.repeat(49)}a\u{1d10} `.repeat(20_000),
};

test('no text occupies a worker for long, fails or keeps others from being answered', async (t) => {
  const encoder = await openEncoder(await toyModel(t), { workers: 1 });
  t.after(() => encoder.close());
  const alone = await encoder.encode(['what is a'], { kind: 'query' });
  const before = process.cpuUsage();
  for (const [name, text] of Object.entries(ENDLESS)) {
    const inputs = [text, { question: text, query: 'b' }, 'what is a'];
    const { outcomes, vectors } = await encoder.encode(inputs, { kind: 'query', truncate: 'question' });
    for (const outcome of outcomes.slice(0, 2)) {
      assert.ok(outcome.ok && outcome.tokens <= LIMIT, name);
      assert.equal(outcome.truncated, true, name);
    }
    assert.deepEqual(outcomes[2], alone.outcomes[0], name);
    assert.deepEqual(vectors.slice(2 * encoder.dimension), alone.vectors, name);
  }
  // Some 2 s of a core, its threads' time included; a single one of them once took more.
  const { user, system } = process.cpuUsage(before);
  assert.ok(user + system < 30e6);
});
