import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { answerMatcher } from '../../evaluation/answer-match.ts';
import { packageRoot } from '../../src/package-root.ts';
import { PEERS } from '../helpers/peers.ts';
import { seededRandom } from '../helpers/seeded-random.ts';

interface AskedQuestion {
  readonly answers: readonly string[];
  /** Indexes of the passages that are asked about. */
  readonly passages: readonly number[];
}

/** Compares every question and passage; resolves to how many have an answer, and how many have none. */
async function assertAgreement(passages: readonly string[], questions: readonly AskedQuestion[]) {
  const expected = (await PEERS.run('dpr_answers.py', { passages, questions })) as boolean[][];
  const counts = { has: 0, hasNot: 0 };
  for (const [i, { answers, passages: asked }] of questions.entries()) {
    const matches = answerMatcher(answers);
    for (const [j, at] of asked.entries()) {
      const found = matches(passages[at]!);
      assert.equal(found, expected[i]![j], `${JSON.stringify(answers)} in ${JSON.stringify(passages[at])}`);
      counts[found ? 'has' : 'hasNot'] += 1;
    }
  }
  return counts;
}

const SQUAD = join(packageRoot, '..', 'shared', 'data', 'squad_v11_dev');
const skipSquad = existsSync(SQUAD) ? PEERS.missing() : `${SQUAD} does not exist`;

test('every question of SQuAD has its answers in the passages in which DPR finds them', {
  skip: skipSquad,
}, async (t) => {
  const lines = async <Line>(name: string): Promise<Line[]> =>
    (await readFile(join(SQUAD, name), 'utf8'))
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Line);
  const corpus = await lines<{ id: string; text: string }>('corpus.jsonl');
  const all = await lines<{ golden_answers: string[]; gold_ids: string[] }>('queries.jsonl');
  const rowOf = new Map(corpus.map(({ id }, row) => [id, row]));
  const random = seededRandom(19);
  const questions = all.map(({ golden_answers, gold_ids }) => {
    const gold = gold_ids.map((id) => rowOf.get(id)!);
    // Passages around are of the same article and often have the answer too.
    const near = gold.flatMap((row) => [row - 1, row + 1]).filter((row) => row >= 0 && row < corpus.length);
    const far = Array.from({ length: 2 }, () => Math.floor(random() * corpus.length));
    return { answers: golden_answers, passages: [...gold, ...near, ...far] };
  });
  assert.equal(questions.length, 10_570);
  const { has, hasNot } = await assertAgreement(
    corpus.map(({ text }) => text),
    questions,
  );
  t.diagnostic(`${has} passages with an answer, ${hasNot} without`);
  assert.ok(has > 10_000 && hasNot > 35_000, `${has}, ${hasNot}`);
});

/** Letters with and without marks, digits, marks alone, signs, spaces, controls, formats, and letters whose case changes their length. */
const PARTS = [
  ...[
    'a',
    'B',
    'é',
    'e\u0301',
    'É',
    'ß',
    'ẞ',
    'İ',
    'ı',
    'Σ',
    'ς',
    'ﬁ',
    'Å',
    'Å',
    '한',
    '東',
    '京',
    '८',
    '²',
    '½',
    'Ⅷ',
    '7',
  ],
  ...[
    '\u0301',
    '\u200d',
    '\u200b',
    '\u00ad',
    '\u0007',
    ' ',
    ' ',
    '\u00a0',
    '\u3000',
    '\n',
    '\t',
    '.',
    '-',
    "'",
    '’',
    '$',
    '€',
    '«',
  ],
  ...['👩', '👩\u200d🚀', '🇫🇷', '𝔸', '\ufeff', '_', '@', '#', 'U.S.', 'new york', 'ﷺ', '\u{10ffff}'],
];

test('answers in any script, with marks, signs and controls, are found where DPR finds them', {
  skip: PEERS.missing(),
}, async (t) => {
  const random = seededRandom(3);
  const text = (length: number): string =>
    Array.from({ length }, () => PARTS[Math.floor(random() * PARTS.length)]!).join('');
  const passages = Array.from({ length: 400 }, () => text(60));
  const questions = passages.map((passage, at) => {
    const start = Math.floor(random() * (passage.length - 4));
    const cut = passage.slice(start, start + 1 + Math.floor(random() * 4));
    const answers = [cut, cut.toUpperCase(), cut.toLowerCase(), cut.normalize('NFC'), text(2)];
    // A half of a surrogate pair is no text, and an answer without tokens is in every passage for DPR, and in none for Trawl.
    const asked = answers
      .map((answer) => [answer.replaceAll(/\p{Surrogate}/gu, '\ufffd')])
      .filter(([answer]) => /[\p{L}\p{N}\p{M}]/u.test(answer!));
    return asked.map((one) => ({ answers: one, passages: [at, (at + 1) % passages.length] }));
  });
  const { has, hasNot } = await assertAgreement(passages, questions.flat());
  t.diagnostic(`${has} passages with the answer, ${hasNot} without`);
  assert.ok(has > 300 && hasNot > 300, `${has}, ${hasNot}`);
});

test('an answer without tokens is in every passage for DPR, and in none for Trawl', {
  skip: PEERS.missing(),
}, async () => {
  const questions = [{ answers: [' \u00a0'], passages: [0, 1] }];
  assert.deepEqual(await PEERS.run('dpr_answers.py', { passages: ['a', ''], questions }), [[true, true]]);
  assert.ok(!answerMatcher([' \u00a0'])('a'));
});
