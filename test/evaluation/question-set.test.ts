import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { questionFiles, readQuestionSet } from '../../evaluation/question-set.ts';
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

const TOPIC = '<top>\n<num> 301\n<title> organized crime\n</top>\n';

const REFUSED: readonly { what: string; text: string; code: string; message: RegExp }[] = [
  {
    what: 'an entry of another format than the first',
    text: lines({ id: '1', question: 'q', golden_answers: ['a'] }, { question: 'q', answer: ['a'] }),
    code: 'CORPUS_BAD_LINE',
    message: /:2: its format is questions with answers, and the first entry is questions with ids/,
  },
  {
    what: 'an entry of HotpotQA among questions with ids, whose judgements would be lost',
    text: lines(
      { id: '1', question: 'q', gold_ids: ['p'] },
      { _id: '2', question: 'q', answer: 'a', supporting_facts: [['T', 0]] },
    ),
    code: 'CORPUS_BAD_LINE',
    message: /:2: its format is HotpotQA or 2WikiMultihopQA, and the first entry is questions with ids/,
  },
  {
    what: "an answer of TriviaQA's that is none",
    text: lines({ QuestionId: 'a', Question: 'q', Answer: 'V' }),
    code: 'CORPUS_FORMAT_UNKNOWN',
    message: /has the columns QuestionId, Question, Answer\. Expected the columns of /,
  },
  {
    what: 'an answerable question of MuSiQue that occurs twice',
    text: lines(...[1, 2].map(() => ({ id: 'x', question: 'q', paragraphs: [], answerable: true }))),
    code: 'CORPUS_BAD_LINE',
    message: /:2: the id "x" is already used by entry 1/,
  },
  {
    what: 'supporting facts of another form',
    text: lines({ id: 'x', question: 'q', supporting_facts: ['P'] }),
    code: 'CORPUS_BAD_LINE',
    message: /:1: "supporting_facts" must be a list of pairs/,
  },
  {
    what: 'a repeated id',
    text: JSON.stringify([
      { _id: 'x', question: 'q', supporting_facts: [] },
      { _id: 'x', question: 'r', supporting_facts: [] },
    ]),
    code: 'CORPUS_BAD_LINE',
    message: /entry 2 of the file: the id "x" is already used by entry 1/,
  },
  {
    what: 'a repeated topic',
    text: `${TOPIC}${TOPIC}`,
    code: 'CORPUS_BAD_LINE',
    message: /:8: an earlier topic has the number 301, too/,
  },
  { what: 'an array that is cut off', text: '[{"question":"q"', code: 'CORPUS_BAD_LINE', message: /not valid JSON/ },
  {
    what: 'an array of texts',
    text: '["q"]',
    code: 'CORPUS_BAD_LINE',
    message: /entry 1 of the file: expected a JSON object/,
  },
  {
    what: 'an object of something else',
    text: '{\n"data": []\n}',
    code: 'CORPUS_FORMAT_UNKNOWN',
    message: /without "Data"/,
  },
  {
    what: 'a corpus',
    text: lines({ id: '1', text: 'a passage' }),
    code: 'CORPUS_FORMAT_UNKNOWN',
    message: /has the columns id, text\. Expected the columns of MuSiQue, /,
  },
  {
    what: 'a table without questions',
    text: 'a,b\n1,2\n',
    code: 'CORPUS_FORMAT_UNKNOWN',
    message: /starts with "a,b"/,
  },
  {
    what: 'a row with a missing column',
    text: 'question,answer\nonly\n',
    code: 'CORPUS_BAD_LINE',
    message: /row 1: it has 1 columns; expected 2: question, answer/,
  },
  {
    what: 'a table of questions and answers that is none of ids and questions',
    text: 'who sat on the mat\tthe cat\n',
    code: 'CORPUS_BAD_LINE',
    message: /row 1: the first of two columns is the id of a question, and it has spaces\. Write answers as a list/,
  },
  {
    what: 'a list of answers that is none',
    text: 'q\t["a]\n',
    code: 'CORPUS_BAD_LINE',
    message: /row 1: "answers" is "\[\\"a\]"; expected a list of strings/,
  },
  {
    what: 'a line that is not JSON',
    text: '{"id":"1","question":"q"}\nnope\n',
    code: 'CORPUS_BAD_LINE',
    message: /:2: not valid JSON/,
  },
];

for (const { what, text, code, message } of REFUSED) {
  test(`${what} is refused with its place`, async (t) => {
    const file = join(await tempFolder(t), 'questions');
    await writeFile(file, text);
    await assert.rejects(readQuestionSet(file), { code, message });
  });
}

/** A folder of BEIR with the judgements of these splits, each a line of a file without its header. */
async function beirFolder(t: TestContext, splits: Readonly<Record<string, string>>): Promise<string> {
  const folder = await tempFolder(t);
  await writeFile(
    join(folder, 'queries.jsonl'),
    ['one', 'two', 'three'].map((text, i) => `${JSON.stringify({ _id: String(i + 1), text })}\n`).join(''),
  );
  await mkdir(join(folder, 'qrels'));
  for (const [name, line] of Object.entries(splits))
    await writeFile(join(folder, 'qrels', `${name}.tsv`), `query-id\tcorpus-id\tscore\n${line}\n`);
  return folder;
}

test('a folder of BEIR has the questions that its test judgements have, with their grades', async (t) => {
  const folder = await beirFolder(t, { train: '2\td\t1', test: '1\td\t2' });
  const { questions, judgements, source } = await readQuestionSet(folder);
  assert.deepEqual(questions, [{ id: '1', question: 'one', goldIds: ['d'] }]);
  assert.deepEqual(judgements, new Map([['1', new Map([['d', 2]])]]));
  assert.match(source, /qrels\/test\.tsv/);
});

test('the split of a folder of BEIR can be chosen', async (t) => {
  const folder = await beirFolder(t, { train: '2\td\t1', dev: '3\te\t1', test: '1\td\t2' });
  const { questions, judgements, source } = await readQuestionSet(folder, { split: 'dev' });
  assert.deepEqual(questions, [{ id: '3', question: 'three', goldIds: ['e'] }]);
  assert.deepEqual([...judgements.keys()], ['3']);
  assert.equal(source, 'BEIR, judgements of qrels/dev.tsv');
});

test('a file of judgements takes the place of those in a folder of BEIR, which needs none', async (t) => {
  for (const splits of [{ test: '1\td\t2' }, {}] as Record<string, string>[]) {
    const folder = await beirFolder(t, splits);
    const qrels = join(await tempFolder(t), 'own.qrels');
    await writeFile(qrels, '2 0 d 1\n2 0 e 0\n3 0 f 2\nelsewhere 0 g 1\n');
    const { questions, judgements, source } = await readQuestionSet(folder, { qrels });
    assert.deepEqual(questions, [
      { id: '2', question: 'two', goldIds: ['d'] },
      { id: '3', question: 'three', goldIds: ['f'] },
    ]);
    assert.deepEqual([...judgements.keys()], ['2', '3', 'elsewhere']);
    assert.equal(source, `BEIR, judgements of ${qrels}`);
    assert.deepEqual(await questionFiles(folder, { qrels }), [join(folder, 'queries.jsonl')]);
  }
});

test('a split that the folder does not have is refused with the ones that it has', async (t) => {
  const folder = await beirFolder(t, { train: '2\td\t1', test: '1\td\t2' });
  await assert.rejects(readQuestionSet(folder, { split: 'dev' }), {
    code: 'CORPUS_FORMAT_UNKNOWN',
    message: /without the judgements qrels\/dev\.tsv\. It has judgements of test and train: choose by --split/,
  });
  await assert.rejects(readQuestionSet(await beirFolder(t, {})), {
    code: 'CORPUS_FORMAT_UNKNOWN',
    message: /without the judgements qrels\/test\.tsv\. Pass --qrels FILE, or name the file of the questions\./,
  });
});

test('a split is refused of a file, and beside a file of judgements', async (t) => {
  const folder = await beirFolder(t, { dev: '3\te\t1' });
  await assert.rejects(readQuestionSet(join(folder, 'queries.jsonl'), { split: 'dev' }), {
    code: 'USAGE',
    message: /--split dev chooses judgements of a BEIR folder, and .*queries\.jsonl is a file/,
  });
  await assert.rejects(readQuestionSet(folder, { split: 'dev', qrels: 'own.qrels' }), {
    code: 'USAGE',
    message: /come from own\.qrels, so --split dev has no effect/,
  });
});
