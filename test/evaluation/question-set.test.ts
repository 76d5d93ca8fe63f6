import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { pythonStrings } from '../../evaluation/formats/python-strings.ts';
import { readQuestionSet } from '../../evaluation/question-set.ts';
import type { Question } from '../../evaluation/read-questions.ts';
import { sharedData, withoutSharedData } from '../helpers/shared-data.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const lines = (...rows: readonly object[]): string => rows.map((row) => `${JSON.stringify(row)}\n`).join('');

const FILES: readonly { name: string; text: string; source: RegExp; questions: readonly Question[] }[] = [
  {
    name: 'FlashRAG',
    text: lines(
      {
        id: 'dev_0',
        question: 'Who?',
        golden_answers: ['A', 'B'],
        metadata: { type: 'bridge', level: 'hard', supporting_facts: { title: ['P', 'P', 'Q'], sent_id: [0, 1, 0] } },
      },
      { id: 'dev_1', question: 'What?', golden_answers: ['C'], metadata: {} },
    ),
    source: /^questions with ids, JSON lines$/,
    questions: [
      { id: 'dev_0', question: 'Who?', goldenAnswers: ['A', 'B'], goldTitles: ['P', 'Q'], type: 'bridge' },
      { id: 'dev_1', question: 'What?', goldenAnswers: ['C'] },
    ],
  },
  {
    name: 'HotpotQA and 2WikiMultihopQA',
    text: JSON.stringify(
      [
        {
          _id: '5a8b57f2',
          answer: 'yes',
          question: 'Were they of one nationality?',
          supporting_facts: [
            ['Scott Derrickson', 0],
            ['Ed Wood', 0],
            ['Ed Wood', 2],
          ],
          context: [['Ed Wood', ['One sentence.']]],
          type: 'comparison',
          level: 'hard',
        },
        { _id: 'test', question: 'Without facts?', context: [] },
        { _id: '2wiki', question: 'Without an answer?', answer: '', supporting_facts: [], context: [] },
      ],
      null,
      1,
    ),
    source: /^HotpotQA or 2WikiMultihopQA, a JSON array$/,
    questions: [
      {
        id: '5a8b57f2',
        question: 'Were they of one nationality?',
        goldTitles: ['Scott Derrickson', 'Ed Wood'],
        goldenAnswers: ['yes'],
        type: 'comparison',
      },
      { id: 'test', question: 'Without facts?' },
      { id: '2wiki', question: 'Without an answer?' },
    ],
  },
  {
    name: 'HotpotQA, with the columns of Hugging Face',
    text: lines(
      {
        id: 'h1',
        question: 'Which?',
        answer: 'A',
        type: 'bridge',
        supporting_facts: { title: ['P', 'Q', 'P'], sent_id: [0, 1, 2] },
        context: { title: ['P', 'Q'], sentences: [['One.'], ['Two.']] },
      },
      {
        id: 'h2',
        question: 'In the test set?',
        answer: null,
        type: null,
        supporting_facts: { title: [], sent_id: [] },
        context: { title: ['P'], sentences: [['One.']] },
      },
    ),
    source: /^HotpotQA or 2WikiMultihopQA, JSON lines$/,
    questions: [
      { id: 'h1', question: 'Which?', goldTitles: ['P', 'Q'], goldenAnswers: ['A'], type: 'bridge' },
      { id: 'h2', question: 'In the test set?' },
    ],
  },
  {
    name: "HotpotQA's test set with the columns of Hugging Face, without facts",
    text: lines({ id: 'h', question: 'Which?', context: { title: ['P'], sentences: [['One.']] } }),
    source: /^HotpotQA or 2WikiMultihopQA, JSON lines$/,
    questions: [{ id: 'h', question: 'Which?' }],
  },
  {
    name: 'a set with lists of texts as contexts, and with several answers,',
    text: lines({ id: 'c', question: 'Which?', context: ['A passage.'], answers: ['A', 'B'] }),
    source: /^questions with answers, JSON lines$/,
    questions: [{ id: 'c', question: 'Which?', goldenAnswers: ['A', 'B'] }],
  },
  {
    name: 'a set with supporting facts and several answers',
    text: lines({ _id: 'c', question: 'Which?', supporting_facts: [['P', 0]], answers: ['A', 'B'] }),
    source: /^HotpotQA or 2WikiMultihopQA, JSON lines$/,
    questions: [{ id: 'c', question: 'Which?', goldTitles: ['P'], goldenAnswers: ['A', 'B'] }],
  },
  {
    name: 'MuSiQue',
    text: lines(
      {
        id: '2hop__13548_13529',
        paragraphs: [
          { idx: 0, title: 'A', paragraph_text: '…', is_supporting: true },
          { idx: 1, title: 'B', paragraph_text: '…', is_supporting: false },
        ],
        question: 'When?',
        answer: '1999',
        answer_aliases: ['in 1999'],
        answerable: true,
      },
      { id: 'x', paragraphs: [], question: 'No?', answer: 'z', answer_aliases: [], answerable: false },
    ),
    source: /^MuSiQue, JSON lines$/,
    questions: [
      {
        id: '2hop__13548_13529',
        question: 'When?',
        goldTitles: ['A'],
        goldenAnswers: ['1999', 'in 1999'],
        type: '2hop',
      },
      { id: 'x', question: 'No?' },
    ],
  },
  {
    name: 'KILT',
    text: lines({
      id: 7,
      input: 'Which?',
      output: [
        { answer: 'A', provenance: [{ wikipedia_id: '1', title: 'P' }] },
        { answer: 'A' },
        { provenance: [{ title: 'P' }, { title: 'Q' }] },
      ],
    }),
    source: /^KILT, JSON lines$/,
    questions: [{ id: '7', question: 'Which?', goldTitles: ['P', 'Q'], goldenAnswers: ['A'] }],
  },
  {
    name: "KILT's FEVER, whose classes are the answers,",
    text: lines(
      ...['SUPPORTS', 'REFUTES'].map((answer, i) => ({
        id: i,
        input: 'A claim.',
        output: [{ answer, provenance: [{ title: 'P' }] }],
      })),
    ),
    source: /^KILT, JSON lines$/,
    questions: ['SUPPORTS', 'REFUTES'].map((answer, i) => ({
      id: String(i),
      question: 'A claim.',
      goldTitles: ['P'],
      goldenAnswers: [answer],
    })),
  },
  {
    name: 'questions with answers and an id, whatever its name is,',
    text: lines(
      { _id: '5a8b', question: 'who', answer: 'A' },
      { question_id: 'x2', question: 'what', answer: ['B', ' '] },
      { id: 3, question: 'when', answers: null, answer: 'C' },
      { question: 'where', answer: 'D' },
      { qid: 'q5', question: 'why', answer: 'E' },
      { query_id: 6, question: 'how', golden_answers: null, answer: 'F' },
    ),
    source: /^questions with answers, JSON lines$/,
    questions: [
      { id: '5a8b', question: 'who', goldenAnswers: ['A'] },
      { id: 'x2', question: 'what', goldenAnswers: ['B'] },
      { id: '3', question: 'when', goldenAnswers: ['C'] },
      { id: '4', question: 'where', goldenAnswers: ['D'] },
      { id: 'q5', question: 'why', goldenAnswers: ['E'] },
      { id: '6', question: 'how', goldenAnswers: ['F'] },
    ],
  },
  {
    name: 'questions with question_id and judgements',
    text: lines({ question_id: 'x1', question: 'who', gold_ids: ['p0'] }),
    source: /^questions with ids, JSON lines$/,
    questions: [{ id: 'x1', question: 'who', goldIds: ['p0'] }],
  },
  {
    name: 'NQ-open',
    text: lines(
      { question: 'who won', answer: ['Röntgen', 'W. Röntgen', 'Röntgen'] },
      { question: 'and when', answer: [] },
    ),
    source: /^questions with answers, JSON lines$/,
    questions: [
      { id: '1', question: 'who won', goldenAnswers: ['Röntgen', 'W. Röntgen'] },
      { id: '2', question: 'and when' },
    ],
  },
  {
    name: 'TriviaQA',
    text: JSON.stringify(
      {
        Data: [
          { Answer: { Aliases: ['Sunset Blvd'], Value: 'Sunset Boulevard' }, Question: 'Which?', QuestionId: 'tc_1' },
        ],
        Domain: 'Web',
      },
      null,
      4,
    ),
    source: /^TriviaQA, the list "Data" of a JSON object$/,
    questions: [{ id: 'tc_1', question: 'Which?', goldenAnswers: ['Sunset Boulevard', 'Sunset Blvd'] }],
  },
  {
    name: 'TriviaQA, with the columns of Hugging Face',
    text: lines(
      { question_id: 'tc_1', question: 'Which?', answer: { value: 'V', aliases: ['A', 'V'] } },
      { question_id: 'tc_2', question: 'In the test set?', answer: { value: '<unk>', aliases: [] } },
    ),
    source: /^TriviaQA, JSON lines$/,
    questions: [
      { id: 'tc_1', question: 'Which?', goldenAnswers: ['V', 'A'] },
      { id: 'tc_2', question: 'In the test set?' },
    ],
  },
  {
    name: 'TriviaQA on one line',
    text: '{"Data":[{"Answer":{"Aliases":[],"Value":"V"},"Question":"Q?","QuestionId":"a"}]}',
    source: /^TriviaQA/,
    questions: [{ id: 'a', question: 'Q?', goldenAnswers: ['V'] }],
  },
  {
    name: 'PopQA',
    text: 'id\tsubj\tquestion\tpossible_answers\n42\tGeorge\t"What is George\'s ""job""?"\t"[""politician"", ""political leader""]"\n',
    source: /^questions with answers, tab-separated$/,
    questions: [{ id: '42', question: 'What is George\'s "job"?', goldenAnswers: ['politician', 'political leader'] }],
  },
  {
    name: 'Bamboogle',
    text: '\uFEFFQuestion,Answer\n"Who was president, then?",James Madison\r\nWhen?,"1,000"\n',
    source: /^questions with answers, comma-separated$/,
    questions: [
      { id: '1', question: 'Who was president, then?', goldenAnswers: ['James Madison'] },
      { id: '2', question: 'When?', goldenAnswers: ['1,000'] },
    ],
  },
  {
    name: "DPR's questions",
    text: `who sings\t['Ann', "Bob's"]\nwhat is 5" wide\t["x"]\n`,
    source: /^questions with answers, tab-separated$/,
    questions: [
      { id: '1', question: 'who sings', goldenAnswers: ['Ann', "Bob's"] },
      { id: '2', question: 'what is 5" wide', goldenAnswers: ['x'] },
    ],
  },
  {
    name: "DPR's training file",
    text: JSON.stringify([
      {
        question: 'big?',
        answers: ['yes', ''],
        positive_ctxs: [
          { title: 'P', text: '…', passage_id: '12' },
          { title: 'P', text: '…', passage_id: 13 },
        ],
        negative_ctxs: [],
        hard_negative_ctxs: [],
      },
      { _id: 'own', question: 'small?', answers: [], positive_ctxs: [] },
    ]),
    source: /^DPR, a JSON array$/,
    questions: [
      { id: '1', question: 'big?', goldIds: ['12', '13'], goldTitles: ['P'], goldenAnswers: ['yes'] },
      { id: 'own', question: 'small?' },
    ],
  },
  {
    name: 'topics of Anserini and MS MARCO',
    text: '1048585\twhat is "paula\n2\tsecond\n',
    source: /^questions with ids, tab-separated$/,
    questions: [
      { id: '1048585', question: 'what is "paula' },
      { id: '2', question: 'second' },
    ],
  },
  {
    name: 'topics with a header, and spaces around the ids,',
    text: 'qid\tquery\n1 \tfirst\r\n2\t second\n',
    source: /^questions with ids, tab-separated$/,
    questions: [
      { id: '1', question: 'first' },
      { id: '2', question: 'second' },
    ],
  },
  {
    name: 'TREC topics',
    text: '<top>\n<num> Number: 301\n<title> organized crime\n</top>\n',
    source: /^TREC topics$/,
    questions: [{ id: '301', question: 'organized crime' }],
  },
  {
    name: 'TREC topics with leading zeros and a title over several lines',
    text: '<top>\n<num> Number: 051\n<title> Topic: mergers of\n  banks with assets\n< 1 billion\n<desc> …\n</top>\n<top><num>C041<title>x</top>',
    source: /^TREC topics$/,
    questions: [
      { id: '51', question: 'mergers of banks with assets < 1 billion' },
      { id: 'C041', question: 'x' },
    ],
  },
];

for (const { name, text, source, questions } of FILES) {
  test(`${name} is recognised and read`, async (t) => {
    const file = join(await tempFolder(t), 'questions');
    await writeFile(file, text);
    const set = await readQuestionSet(file);
    assert.match(set.source, source);
    assert.deepEqual(set.questions, questions);
  });
}

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

const TOPIC = '<top>\n<num> 301\n<title> organized crime\n</top>\n';

const REFUSED: readonly { what: string; text: string; code: string; message: RegExp }[] = [
  {
    what: 'an entry of another format than the first',
    text: lines({ id: '1', question: 'q', golden_answers: ['a'] }, { question: 'q', answer: ['a'] }),
    code: 'CORPUS_BAD_LINE',
    message: /:2: the format is questions with answers, and that of the first entry is questions with ids/,
  },
  {
    what: 'an entry of HotpotQA among questions with ids, whose judgements would be lost',
    text: lines(
      { id: '1', question: 'q', gold_ids: ['p'] },
      { _id: '2', question: 'q', answer: 'a', supporting_facts: [['T', 0]] },
    ),
    code: 'CORPUS_BAD_LINE',
    message: /:2: the format is HotpotQA or 2WikiMultihopQA, and that of the first entry is questions with ids/,
  },
  {
    what: "an answer of TriviaQA's that is none",
    text: lines({ QuestionId: 'a', Question: 'q', Answer: 'V' }),
    code: 'CORPUS_FORMAT_UNKNOWN',
    message: /has the columns QuestionId, Question, Answer\. Expected those of /,
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
    message: /has the columns id, text\. Expected those of MuSiQue, /,
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

test("lists of strings as JSON writes them are read, and Python's quotes and escapes", () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'binary' })), (texts) => {
      assert.deepEqual(pythonStrings(JSON.stringify(texts)), texts);
    }),
  );
  assert.deepEqual(pythonStrings(String.raw`['a\'b', "c'd", 'Z\xfcrich', 'tab\t', '\U0001F600',]`), [
    "a'b",
    "c'd",
    'Zürich',
    'tab\t',
    '😀',
  ]);
  for (const text of ['', '[', "['a'", "['a' 'b']", "['a'] x", '[1]', "['\\", "['\\U99999999']"])
    assert.equal(pythonStrings(text), undefined, text);
});

const skip = withoutSharedData('flashrag_sample/nq_test.jsonl');
test('questions of FlashRAG, real ones, have their answers', { skip }, async () => {
  const { questions, source } = await readQuestionSet(sharedData('flashrag_sample/nq_test.jsonl'));
  assert.equal(questions.length, 17);
  assert.ok(questions.every(({ goldenAnswers }) => goldenAnswers !== undefined && goldenAnswers.length > 0));
  assert.match(source, /^questions with ids/);
});
