import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fuseLists } from '../../../evaluation/run.ts';
import { matchPassages, orderedByScore } from '../../../evaluation/systems/search-server.ts';
import type { ServerPassage } from '../../../src/server/dialects/dialect.ts';

const passage = (contents: string, more: Partial<ServerPassage> = {}): ServerPassage => ({
  id: undefined,
  title: undefined,
  contents,
  text: contents,
  score: undefined,
  ...more,
});
const NONE = new Set<string>();
const NONES = [NONE, NONE];
const idsOf = (lists: readonly (readonly { readonly id: string }[])[]) => lists.map((list) => list.map(({ id }) => id));

test('passages without ids are the same if title and text are, whatever their rank and query', () => {
  const { lists, by } = matchPassages(
    [
      [passage('one'), passage('two'), passage(''), passage('same', { title: 'A' })],
      [passage('three'), passage('“ONE”'), passage(''), passage('same', { title: 'B' })],
    ],
    undefined,
    NONES,
    NONE,
  );
  const [[one, two, , titled], [three, again, , other]] = idsOf(lists) as [string[], string[]];
  assert.equal(by, null);
  assert.equal(again, one);
  assert.equal(new Set([one, two, three, titled, other]).size, 5);
  assert.equal(new Set(idsOf(lists).flat()).size, 7, 'passages without text differ');
  const fused = fuseLists(lists, 10);
  assert.equal(fused.length, 7);
  assert.equal(fused[0]!.text, 'one');
});

test('with texts, the id of a server is never that of a judgement', () => {
  const texts = new Map([['gold text', ['g1']]]);
  const { lists, by, relevant } = matchPassages(
    [[passage('another text', { id: 'g1' }), passage('Gold  text', { id: '7' }), passage('no id')]],
    texts,
    [new Set(['g1'])],
    new Set(['g1']),
  );
  assert.deepEqual([idsOf(lists), by, relevant], [[['server:g1', 'g1', 'no-id:1']], 'text', 1]);
});

test('a text that relevant passages of several questions have is relevant for each of them', () => {
  const texts = new Map([['same text', ['g1', 'g2', 'g3']]]);
  const same = passage('Same text');
  const { lists, relevant } = matchPassages(
    [[same], [same, same, same], [same]],
    texts,
    [new Set(['g2']), new Set(['g1', 'g3']), new Set(['g4'])],
    new Set(['g1', 'g2', 'g3', 'g4']),
  );
  // The copies in a list are the relevant ones in turn.
  assert.deepEqual(idsOf(lists), [['g2'], ['g1', 'g3', 'g1'], ['g1']]);
  assert.equal(relevant, 5);
});

test('repeated ids stay in the list with their texts', () => {
  const { lists, withoutScore } = matchPassages(
    [[passage('first', { id: 'd', score: 2 }), passage('second', { id: 'd' }), passage('third', { id: 'e' })]],
    undefined,
    NONES,
    NONE,
  );
  assert.deepEqual(
    lists[0]!.map(({ id, text }) => [id, text]),
    [
      ['d', 'first'],
      ['d', 'second'],
      ['e', 'third'],
    ],
  );
  assert.equal(withoutScore, 2);
});

test('scores for a run file fall: distances and missing scores become −rank', () => {
  const run = (...scores: number[]) => new Map([['q', scores.map((score, i) => ({ id: `p${i}`, score }))]]);
  const scoresOf = (made: ReturnType<typeof orderedByScore>) => made.run.get('q')!.map(({ score }) => score);
  assert.deepEqual(orderedByScore(run(3, 2, 2), false), { run: run(3, 2, 2), replaced: false });
  assert.deepEqual(scoresOf(orderedByScore(run(0.1, 0.5), false)), [-1, -2]);
  assert.deepEqual(scoresOf(orderedByScore(run(0, -1), true)), [-1, -2]);
  assert.equal(orderedByScore(run(0.1, 0.5), false).replaced, true);
});
