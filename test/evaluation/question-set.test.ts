import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { readQuestionSet } from '../../evaluation/question-set.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const lines = (...rows: readonly object[]): string => rows.map((row) => `${JSON.stringify(row)}\n`).join('');

test("Trawl's own columns count before those of a format", async (t) => {
  const file = join(await tempFolder(t), 'questions.jsonl');
  const own = { gold_ids: ['p1'], gold_titles: ['T'], query: 'sub' };
  await writeFile(file, lines({ _id: 'a', question: 'Q', answer: 'A', supporting_facts: [['P', 0]], ...own }));
  const { questions, judgements } = await readQuestionSet(file);
  assert.deepEqual(questions, [
    { id: 'a', question: 'Q', query: 'sub', goldIds: ['p1'], goldTitles: ['T'], goldenAnswers: ['A'] },
  ]);
  assert.deepEqual(judgements, new Map([['a', new Map([['p1', 1]])]]));
});

test('of a question that MuSiQue-Full has twice, the answerable one counts', async (t) => {
  const file = join(await tempFolder(t), 'questions.jsonl');
  const entry = (id: string, title: string, answerable: boolean): object => ({
    id,
    paragraphs: [{ title, is_supporting: true }],
    question: 'When?',
    answer: '1999',
    answer_aliases: [],
    answerable,
  });
  const [a, b] = ['2hop__1_2', '3hop__4_5_6'] as const;
  await writeFile(
    file,
    lines(entry(a, 'A', true), entry(a, 'B', false), entry(b, 'C', false), entry(b, 'D', true), entry('x', 'E', false)),
  );
  const { questions, notes } = await readQuestionSet(file);
  assert.deepEqual(
    questions.map(({ id, goldTitles, goldenAnswers }) => [id, goldTitles, goldenAnswers]),
    [
      [a, ['A'], ['1999']],
      [b, ['D'], ['1999']],
      ['x', ['E'], undefined],
    ],
  );
  assert.deepEqual(notes, [
    '2 of 5 questions cannot be answered and are left out, because answerable ones have the same ids (MuSiQue).',
  ]);
});

test("an entry that also has another format's columns is read by that of the first, if it has judgements of its own or the other has none", async (t) => {
  const file = join(await tempFolder(t), 'questions.jsonl');
  const own = { question: 'q', gold_ids: ['p'] };
  await writeFile(
    file,
    lines(
      { id: '1', ...own },
      { id: '2', ...own, supporting_facts: [['T', 0]] },
      { id: '3', question: 'q', supporting_facts: [] },
    ),
  );
  const { questions } = await readQuestionSet(file);
  assert.deepEqual(
    questions.map(({ goldIds, goldTitles }) => [goldIds, goldTitles]),
    [
      [['p'], undefined],
      [['p'], undefined],
      [undefined, undefined],
    ],
  );
});

test('a missing file and a folder that is none of BEIR are refused', async (t) => {
  const folder = await tempFolder(t);
  await assert.rejects(readQuestionSet(join(folder, 'none')), { code: 'CORPUS_NOT_FOUND' });
  await assert.rejects(readQuestionSet(folder), { code: 'CORPUS_FORMAT_UNKNOWN', message: /without queries\.jsonl/ });
});

test('an empty file has no questions', async (t) => {
  for (const text of ['', '\n', '[]']) {
    const file = join(await tempFolder(t), 'questions');
    await writeFile(file, text);
    assert.deepEqual((await readQuestionSet(file)).questions, []);
  }
});
