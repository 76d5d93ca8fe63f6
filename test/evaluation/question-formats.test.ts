import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { pythonStrings } from '../../evaluation/python-strings.ts';
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
