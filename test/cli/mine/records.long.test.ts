import assert from 'node:assert/strict';
import { chmodSync, existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { linesOf, QUESTIONS, questions } from '../../training/mining/mining-corpus.ts';
import { folder, mine, mineRefused, writeRecords } from './planted-index.ts';

test('recorded queries have the positives of their question; rollouts of a question are siblings', async () => {
  const { report } = await mine();
  const { generation } = report.origin;
  const [first, second] = questions();
  const records = writeRecords('record.jsonl', generation, [
    { question: first!.question, query: 'Brooklyn Bridge engineer', trajectory: 'a', turn: 1, split: 'train' },
    { question: first!.question, query: 'Brooklyn Bridge engineer', trajectory: 'b', turn: 2, split: 'train' },
    { query: `${first!.question} [SEP] who designed it`, split: 'train' },
    { question: 'An unknown question?', query: 'x', split: 'train' },
    { question: second!.question, query: 'held out', split: 'validation' },
    { question: first!.question, query: 'broken', split: 'train', error: 'EMPTY_QUERY' },
  ]);
  const mined = await mine(['--records', records, '--split', 'train']);
  assert.deepEqual(mined.report.read, { read: 6, excluded: 0, unjudged: 1, failed: 1, other_split: 1, merged: 1 });
  assert.deepEqual(
    mined.rows.map(({ query_id, query }) => [query_id, query]),
    [
      [first!.id, `${first!.question} [SEP] Brooklyn Bridge engineer`],
      [first!.id, `${first!.question} [SEP] who designed it`],
    ],
  );
  assert.equal(new Set(mined.origins.map(({ group }) => group)).size, 1);
  for (const row of mined.rows)
    assert.deepEqual(
      row.positive_passages.map(({ docid }) => docid),
      first!.gold_ids,
    );
});

test('a recorded query belongs to the question with its id, else to the one with its text', async () => {
  const { report } = await mine();
  const [first, second] = questions();
  const records = writeRecords('ids.jsonl', report.origin.generation, [
    { query: 'the engineer', questionId: first!.id },
    {
      query: 'its length',
      question: second!.question.replace('?', ' !'),
      questionId: second!.id,
      dataset: 'nq',
    },
    // Neither question nor data set say that it is the question with this id.
    { query: 'its length', question: `Answer the question: ${second!.question}`, questionId: second!.id },
    { query: 'another id', question: first!.question, questionId: 'unknown' },
    { query: 'no such question', questionId: 'unknown' },
  ]);
  const { rows, origins, report: mined } = await mine(['--records', records, '--range-max', '50']);
  assert.deepEqual([mined.read.read, mined.read.unjudged], [5, 2]);
  assert.deepEqual(
    rows.map(({ query, positive_passages }) => [query, positive_passages.map(({ docid }) => docid)]),
    [
      [`${first!.question} [SEP] the engineer`, first!.gold_ids],
      [`${second!.question} [SEP] its length`, second!.gold_ids],
      [`${first!.question} [SEP] another id`, first!.gold_ids],
    ],
  );
  assert.equal(origins[0]!.group, origins[2]!.group);
});

test('records of another generation are refused unless they are allowed', async () => {
  const [first] = questions();
  const records = writeRecords('other.jsonl', 'an-older-generation', [{ question: first!.question, query: 'bridge' }]);
  const out = join(folder, 'other-rows.jsonl');
  const run = ['--queries', QUESTIONS, '--records', records, '--out', out, '--format', 'tevatron'];
  const { code, stderr } = await mineRefused(...run);
  assert.equal(code, 1);
  assert.match(
    stderr,
    /other\.jsonl:1: the query was asked in index generation an-older-generation.*--any-generation/s,
  );
  assert.equal(existsSync(out), false);
  assert.equal((await mineRefused(...run, '--any-generation')).code, 0);
  assert.equal(linesOf(out).length, 1);
});

test('files that are made of records are as private as these', async () => {
  const { report } = await mine();
  const [first] = questions();
  const records = writeRecords('private.jsonl', report.origin.generation, [{ query: first!.question }]);
  chmodSync(records, 0o600);
  const out = join(folder, 'private-rows.jsonl');
  const run = ['--queries', QUESTIONS, '--records', records, '--out', out, '--format', 'triplet'];
  const { code, stderr } = await mineRefused(...run);
  assert.equal(code, 0, stderr);
  for (const path of [out, `${out}.origins.jsonl`, `${out}.report.json`]) {
    assert.equal(statSync(path).mode & 0o777, 0o600, path);
  }
});
