import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { TrawlError } from '../../../src/base/errors.ts';
import { readTrajectories } from '../../../training/trajectories/read-trajectories.ts';
import type { Trajectory } from '../../../training/trajectories/trajectory.ts';
import { runs } from '../../helpers/runs.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { step1Item } from './step1-item.ts';

async function read(t: TestContext, items: unknown): Promise<Trajectory[]> {
  const path = join(await tempFolder(t), 'hotpotqa.json');
  await writeFile(path, JSON.stringify(items));
  const trajectories: Trajectory[] = [];
  for await (const trajectory of readTrajectories(path)) trajectories.push(trajectory);
  return trajectories;
}

test('an item of step 1 becomes a trajectory: searches in order, passages, and output without its search results', async (t) => {
  const [trajectory] = await read(t, [
    step1Item({
      id: 'train_7',
      question: 'Who founded it?',
      answers: ['Ada', 'A. L.'],
      em: 1,
      searches: [
        { query: 'first', searchedText: 'Who founded it? [SEP] first', shown: ['3', '9'] },
        { query: 'second' },
      ],
    }),
  ]);
  assert.equal(trajectory!.id, 'train_7');
  assert.equal(trajectory!.question, 'Who founded it?');
  assert.deepEqual(trajectory!.goldenAnswers, ['Ada', 'A. L.']);
  assert.deepEqual(Object.keys(trajectory!.output), [
    'prompt',
    'pred',
    'finish_flag',
    'retrieved_times',
    'metric_score',
  ]);
  assert.deepEqual(
    trajectory!.searches.map(({ query, searchedText, turn }) => [query, searchedText, turn]),
    [
      ['first', 'Who founded it? [SEP] first', 1],
      ['second', 'second', 2],
    ],
  );
  assert.deepEqual(trajectory!.searches[0]!.shown, [
    { id: '3', contents: '"T 3"\ntext of 3' },
    { id: '9', contents: '"T 9"\ntext of 9' },
  ]);
});

test('the searches of a trajectory are ordered by their keys as numbers', async (t) => {
  const searches = Array.from({ length: 12 }, (_, i) => ({ query: `q${i}` }));
  const item = step1Item({ searches });
  const { retrieval_results: results } = item.output;
  item.output.retrieval_results = Object.fromEntries(Object.entries(results).sort(([a], [b]) => (a < b ? 1 : -1)));
  const [trajectory] = await read(t, [item]);
  assert.deepEqual(
    trajectory!.searches.map(({ query }) => query),
    searches.map(({ query }) => query),
  );
});

test('ids may be numbers, passages may have docid, title and text, and missing parts are empty', async (t) => {
  const item = {
    id: 12,
    question: 'q',
    output: {
      retrieval_results: { 0: { query: 'a', docs: [{ docid: 5, title: 'T', text: 'x' }, { id: 'p' }] } },
    },
  };
  const [trajectory, other] = await read(t, [item, { id: 'b', question: 'q' }]);
  assert.equal(trajectory!.id, '12');
  assert.deepEqual(trajectory!.goldenAnswers, []);
  assert.equal(trajectory!.searches[0]!.searchedText, 'a');
  assert.deepEqual(trajectory!.searches[0]!.shown, [
    { id: '5', contents: '"T"\nx' },
    { id: 'p', contents: undefined },
  ]);
  assert.deepEqual(other!.searches, []);
});

test('items of another shape are refused with their place', async (t) => {
  const withResults = (results: unknown) => [{ id: 'a', question: 'q', output: { retrieval_results: results } }];
  for (const [items, message] of [
    [[{ question: 'q' }], /item 1: "id" is missing/],
    [[{ id: 1.5, question: 'q' }], /"id" is 1\.5; expected a string/],
    [[{ id: 'a' }], /"question" is missing/],
    [[{ id: 'a', question: 'q', golden_answers: 'Ada' }], /"golden_answers" is a string; expected a list of strings/],
    [[{ id: 'a', question: 'q', output: [] }], /"output" is a list; expected an object/],
    [withResults([1]), /"retrieval_results" is a list/],
    [withResults({ 0: { query: 'a' }, 2: { query: 'b' } }), /2 searches, but none with the key "1"/],
    [withResults({ 0: 'a' }), /retrieval_results\["0"\]: is a string/],
    [withResults({ 0: { docs: [] } }), /retrieval_results\["0"\]: "query" is missing/],
    [withResults({ 0: { query: 'a', query_for_retrieval: 3 } }), /"query_for_retrieval" is 3/],
    [withResults({ 0: { query: 'a', docs: {} } }), /"docs" is an object; expected a list/],
    [withResults({ 0: { query: 'a', docs: ['x'] } }), /docs\[0\]: is a string; expected a passage/],
    [withResults({ 0: { query: 'a', docs: [{ contents: 'x' }] } }), /docs\[0\]: "docid" is missing/],
  ] as const) {
    await assert.rejects(read(t, items), trawlError('CORPUS_BAD_LINE', message), JSON.stringify(items));
  }
});

test('any JSON is either read or refused with CORPUS_BAD_LINE', async (t) => {
  const path = join(await tempFolder(t), 'any.json');
  const field = fc.oneof(fc.jsonValue(), fc.constantFrom('a', [], {}, { 0: { query: 'q' } }));
  const item = fc.record(
    {
      id: field,
      question: field,
      golden_answers: field,
      output: fc.record({ retrieval_results: field, prompt: field }),
    },
    { requiredKeys: [] },
  );
  await fc.assert(
    fc.asyncProperty(fc.array(item, { maxLength: 3 }), async (items) => {
      await writeFile(path, JSON.stringify(items));
      try {
        for await (const trajectory of readTrajectories(path)) assert.equal(typeof trajectory.id, 'string');
      } catch (error) {
        assert.ok(error instanceof TrawlError && error.code === 'CORPUS_BAD_LINE', String(error));
      }
    }),
    { numRuns: runs(60, 200) },
  );
});
