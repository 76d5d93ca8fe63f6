import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { readRun } from '../../evaluation/run.ts';
import { packageRoot } from '../../src/base/package-root.ts';
import { answerMatcher, normalisedMatcher } from '../../src/search/answer-match.ts';
import { runTrawl, SAMPLE, SAMPLE_PASSAGES } from '../cli/run-trawl.ts';
import { PEERS } from '../helpers/peers.ts';
import { seededRandom } from '../helpers/seeded-random.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

interface AskedQuestion {
  readonly answers: readonly string[];
  /** Indexes of the passages that are asked about. */
  readonly passages: readonly number[];
}

/** Compares every question and passage; resolves to how many have an answer, and how many have none. */
async function assertAgreement(
  passages: readonly string[],
  questions: readonly AskedQuestion[],
  [script, matcher]: readonly [string, typeof answerMatcher] = ['dpr_answers.py', answerMatcher],
) {
  const expected = (await PEERS.run(script, { passages, questions })) as boolean[][];
  const counts = { has: 0, hasNot: 0 };
  for (const [i, { answers, passages: asked }] of questions.entries()) {
    const matches = matcher(answers);
    for (const [j, at] of asked.entries()) {
      const found = matches(passages[at]!);
      assert.equal(found, expected[i]![j], `${JSON.stringify(answers)} in ${JSON.stringify(passages[at])}`);
      counts[found ? 'has' : 'hasNot'] += 1;
    }
  }
  return counts;
}

const FLASHRAG = ['flashrag_answers.py', normalisedMatcher] as const;

/** An answer of which normalisation leaves nothing is in every passage for FlashRAG, and in none for Trawl. */
const withSomethingLeft = (questions: readonly AskedQuestion[]): AskedQuestion[] =>
  questions.map(({ answers, passages }) => ({
    answers: answers.filter((answer) => normalisedMatcher([answer])(answer)),
    passages,
  }));

const SQUAD = join(packageRoot, '..', 'shared', 'data', 'squad_v11_dev');
const skipSquad = existsSync(SQUAD) ? PEERS.missing() : `${SQUAD} does not exist`;

test('every question of SQuAD has its answers in the passages in which DPR and FlashRAG find them', {
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
  const texts = corpus.map(({ text }) => text);
  const normalised = await assertAgreement(texts, withSomethingLeft(questions), FLASHRAG);
  t.diagnostic(`normalised: ${normalised.has} passages with an answer, ${normalised.hasNot} without`);
  const { has, hasNot } = await assertAgreement(texts, questions);
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

test('answers in any script, with marks, signs and controls, are found where DPR and FlashRAG find them', {
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
  const asked = questions.flat();
  await assertAgreement(passages, withSomethingLeft(asked), FLASHRAG);
  const { has, hasNot } = await assertAgreement(passages, asked);
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

test('the answer hits that `trawl eval` counts are those of DPR’s function in the texts of the same passages, without titles', {
  skip: PEERS.missing(),
}, async (t) => {
  const cwd = await tempFolder(t);
  const linesOf = async <Line>(file: string): Promise<Line[]> =>
    (await readFile(file, 'utf8'))
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Line);
  const sample = await linesOf<{ id: string; title: string; text: string }>(SAMPLE_PASSAGES);
  const rows = sample.map(({ id, title, text }) => ({ id, title: `${title} (page)`, text }));
  const titles = new Map(rows.map(({ id, title }) => [id, title]));
  const asked = await linesOf<{ id: string; question: string; gold_ids: string[]; golden_answers: string[] }>(
    join(SAMPLE, 'questions.jsonl'),
  );
  // The answer of every second question is only in the title of its passage.
  const all = asked.map((question, i) =>
    i % 2 === 0 ? question : { ...question, golden_answers: [titles.get(question.gold_ids[0]!)!] },
  );
  const write = (name: string, lines: readonly object[]): Promise<void> =>
    writeFile(join(cwd, name), lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  await write('questions.jsonl', all);
  // Passages with a column of titles, and with the title in the first line.
  await write(
    'corpus.jsonl',
    rows.map(({ id, title, text }, i) => (i % 2 === 0 ? { id, title, text } : { id, contents: `"${title}"\n${text}` })),
  );
  const trawl = async (...args: string[]): Promise<void> => {
    const { code, stderr } = await runTrawl([...args, '--quiet'], { cwd });
    assert.equal(code, 0, stderr);
  };
  await trawl('index', 'corpus.jsonl', '--out', 'ix', '--model', 'token-average-256');
  const written = ['--run', 'run.txt', '--per-question', 'each.jsonl'];
  await trawl('eval', 'ix', '--queries', 'questions.jsonl', '--cutoffs', '1,3', ...written);
  const found = await readRun(join(cwd, 'run.txt'));
  const place = new Map(rows.map(({ id }, i) => [id, i]));
  const questions = all.map(({ id, golden_answers }) => ({
    answers: golden_answers,
    passages: found.get(id)!.map((passage) => place.get(passage.id)!),
  }));
  const hits = async (texts: readonly string[]): Promise<boolean[][]> =>
    (await PEERS.run('dpr_answers.py', { passages: texts, questions })) as boolean[][];
  const expected = await hits(rows.map(({ text }) => text));
  const lines = await linesOf<{ metrics: Record<string, number> }>(join(cwd, 'each.jsonl'));
  assert.deepEqual(
    lines.map(({ metrics }) => [metrics['answer_hit@1'], metrics['answer_hit@3']]),
    expected.map((passages) => [Number(passages[0]), Number(passages.includes(true))]),
  );
  assert.notDeepEqual(await hits(rows.map(({ title, text }) => `${title}\n${text}`)), expected, 'titles have answers');
});
