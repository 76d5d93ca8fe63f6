import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { packageRoot } from '../../../src/base/package-root.ts';
import { floatText } from '../../../src/server/elasticsearch/java-numbers.ts';
import { articleIndex, ask, elasticsearch, withoutWords } from './elasticsearch-server.ts';
import { comparableReply, RANDOM_COLUMNS, type RecordedReply, randomArticles } from './random-bodies.ts';

const RECORDED = join(packageRoot, 'test', 'fixtures', 'elasticsearch-replies.jsonl');

// test/peers/elasticsearch.peer.test.ts records them, and compares further bodies with a running node.
test('400 random bodies get the replies that Elasticsearch 8.17.1 gave, with the bits of its scores', {
  skip: withoutWords,
}, async (t) => {
  const app = elasticsearch(t, await articleIndex(t, randomArticles(), { name: 'wiki_en', columns: RANDOM_COLUMNS }));
  let compared = 0;
  for (const line of readFileSync(RECORDED, 'utf8').trim().split('\n')) {
    const { body, reply } = JSON.parse(line) as RecordedReply;
    const { status, text } = await ask(app, 'POST', '/wiki_en/_search', body);
    assert.deepEqual(comparableReply(status, text), reply, JSON.stringify(body));
    compared++;
  }
  assert.equal(compared, 400);
});

test('a score is the shortest decimal that reads back as the same float32', () => {
  const cases: readonly (readonly [number, string])[] = [
    [0, '0.0'],
    [1, '1.0'],
    [7.651336, '7.651336'],
    [29.9140625, '29.914062'],
    [0.001, '0.001'],
    [0.0009, '9.0E-4'],
    [1e7, '1.0E7'],
    [123456.7, '123456.7'],
    [3.4028234663852886e38, '3.4028235E38'],
    [1e-45, '1.0E-45'],
  ];
  for (const [value, text] of cases) {
    assert.equal(floatText(Math.fround(value)), text);
    assert.equal(Math.fround(Number(text)), Math.fround(value));
  }
});
