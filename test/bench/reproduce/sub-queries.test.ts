import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { queriesOfCalls, queriesOfSteps, writeQuestions } from '../../../bench/reproduce/sub-queries.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';

const lines = (...objects: object[]): string => objects.map((object) => `${JSON.stringify(object)}\n`).join('');

test('sub-queries of a question are joined, with the gold passages of all, and written a line each', async (t) => {
  const folder = await tempFolder(t);
  const steps = join(folder, 'sub-queries.jsonl');
  await writeFile(
    steps,
    lines(
      { id: 'q-1.1', question: 'where was he born', query: 'who', gold_ids: ['a'] },
      { id: 'q-1.2', question: 'where was he born', query: 'where', gold_ids: ['a', 'b'] },
      { id: 'q-10.1', question: 'when', query: 'year', gold_ids: ['c'] },
    ),
  );
  const questions = await queriesOfSteps(steps);
  assert.deepEqual(questions, [
    { id: 'q-1', question: 'where was he born', queries: ['who', 'where'], gold_ids: ['a', 'b'] },
    { id: 'q-10', question: 'when', queries: ['year'], gold_ids: ['c'] },
  ]);
  const file = join(folder, 'questions.jsonl');
  await writeQuestions(questions, file);
  assert.equal(await readFile(file, 'utf8'), lines(...questions));
});

test('a question has the other queries of the first trajectory that sent it too, over all of its turns', async (t) => {
  const folder = await tempFolder(t);
  const files = { questions: join(folder, 'queries.jsonl'), calls: join(folder, 'calls.jsonl') };
  const question = (id: string, text: string): object => ({
    id,
    question: text,
    type: 'bridge',
    gold_ids: [`g-${id}`],
  });
  await writeFile(files.questions, lines(question('1', 'Asked '), question('2', 'never'), question('3', 'alone')));
  await writeFile(
    files.calls,
    lines(
      { source: 'a', traj: 0, turn: 0, queries: ['first part'] },
      { source: 'b', traj: 0, turn: 0, queries: ['of another agent'] },
      { source: 'a', traj: 0, turn: 1, queries: ['second part', 'asked'] },
      { source: 'a', traj: 1, turn: 0, queries: ['later', 'asked'] },
      { source: 'a', traj: 2, turn: 0, queries: ['alone'] },
    ),
  );
  assert.deepEqual(await queriesOfCalls(files.questions, files.calls), [
    { id: '1', question: 'Asked ', queries: ['first part', 'second part'], gold_ids: ['g-1'] },
  ]);
});
