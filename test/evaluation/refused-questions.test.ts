import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { readQuestionSet } from '../../evaluation/question-set.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const lines = (...rows: readonly object[]): string => rows.map((row) => `${JSON.stringify(row)}\n`).join('');

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
