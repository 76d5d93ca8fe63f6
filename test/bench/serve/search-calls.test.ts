import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import {
  distinctQueries,
  readSearchCalls,
  rolloutTrace,
  SAME_QUERY_PROBABILITY,
} from '../../../bench/serve/search-calls.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';

const CALLS = Array.from({ length: 600 }, (_, i) => ({
  source: i % 2 === 0 ? 'a' : 'b',
  trajectory: Math.floor(i / 4),
  queries: [`words of query number ${i}`],
}));

test('recorded calls are read, and an invalid line is refused with its number', async (t) => {
  const file = join(await tempFolder(t), 'calls.jsonl');
  await writeFile(file, '{"source":"s","traj":3,"turn":0,"queries":["x","y"]}\n');
  assert.deepEqual(await readSearchCalls(file), [{ source: 's', trajectory: 3, queries: ['x', 'y'] }]);
  for (const line of [
    '{',
    'null',
    '[]',
    '{"source":"s","traj":3,"queries":[]}',
    '{"source":"s","traj":"3","queries":["x"]}',
  ]) {
    await writeFile(file, `{"source":"s","traj":3,"turn":0,"queries":["x"]}\n${line}\n`);
    await assert.rejects(readSearchCalls(file), { code: 'USAGE', message: /line 2/ });
  }
  await assert.rejects(readSearchCalls(`${file}-not`), { code: 'USAGE', message: /--calls/ });
});

test('distinctQueries has each query once, shuffled by the seed', () => {
  const twice = [...CALLS, ...CALLS];
  const queries = distinctQueries(twice, 1);
  assert.equal(queries.length, CALLS.length);
  assert.deepEqual(new Set(queries), new Set(CALLS.flatMap((call) => call.queries)));
  assert.deepEqual(distinctQueries(twice, 1), queries);
  assert.notDeepEqual(distinctQueries(twice, 2), queries);
});

test('rollouts of a question are adjacent, have as many steps, and keep a query with the given probability', () => {
  const options = { questions: 200, rollouts: 5, seed: 3 };
  const trace = rolloutTrace(CALLS, options);
  assert.deepEqual(rolloutTrace(CALLS, options), trace);
  const recorded = new Set(CALLS.flatMap(({ queries }) => queries));
  const queriesOf = new Map<string, readonly string[]>();
  for (const { source, trajectory, queries } of CALLS) {
    const key = `${source} ${trajectory}`;
    queriesOf.set(key, [...(queriesOf.get(key) ?? []), ...queries]);
  }
  const questions = [...queriesOf.values()];
  let kept = 0;
  let sent = 0;
  for (let at = 0; at < trace.length; at += 5) {
    const rollouts = trace.slice(at, at + 5);
    const own = rollouts.flat(2).filter((query) => recorded.has(query));
    const question = questions.find((queries) => own.every((query) => queries.includes(query)))!;
    assert.ok(question, 'a rollout sends only queries of its own question');
    for (const rollout of rollouts) {
      assert.equal(rollout.length, question.length);
      for (const [step, [query]] of rollout.entries()) {
        sent++;
        if (query === question[step]) kept++;
      }
    }
  }
  const share = kept / sent;
  assert.ok(Math.abs(share - SAME_QUERY_PROBABILITY) < 0.05, `${share}`);
});
