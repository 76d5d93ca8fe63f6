import assert from 'node:assert/strict';
import { test } from 'node:test';
import { answerRule } from '../../../training/mining/answer-rule.ts';
import { type ExclusionInput, excludeFalseNegatives } from '../../../training/mining/exclude-false-negatives.ts';
import { type Candidate, DROP_REASONS, type DropReason } from '../../../training/mining/mined-query.ts';
import { candidate, miningQuery, passage } from './mining-fixtures.ts';

const POSITIVE = passage(
  'p1',
  'The bridge was designed by John A. Roebling and opened to traffic on 24 May 1883 after fourteen years of work.',
  { title: 'Brooklyn Bridge' },
);
const SIBLING = passage(
  'p2',
  'Mühlhausen is a town in Thuringia where the engineer was born before he emigrated to the United States in 1831.',
  { title: 'Mühlhausen' },
);
const HARMLESS = candidate('n9', 'The Golden Gate Bridge spans the strait between San Francisco and Marin County.');

function reasonsOf(candidates: readonly Candidate[], input: Partial<ExclusionInput> = {}): (DropReason | 'kept')[] {
  const { kept, dropped } = excludeFalseNegatives({
    query: miningQuery(),
    positives: [POSITIVE],
    siblings: [SIBLING],
    positiveIds: new Set(['p1']),
    siblingIds: new Set(['p2']),
    skipped: [],
    candidates,
    answers: answerRule([]),
    nearDuplicate: 0.8,
    ...input,
  });
  assert.equal(kept.length + dropped.length, candidates.length);
  return candidates.map((one) => dropped.find(({ candidate: other }) => other === one)?.reason ?? 'kept');
}

/** A false negative for each rule, beside a passage that no rule drops. */
const PLANTED: readonly (readonly [
  reason: DropReason,
  why: string,
  candidate: Candidate,
  input?: Partial<ExclusionInput>,
])[] = [
  ['positive', 'the positive by its id', candidate('p1', 'another text')],
  ['sibling', 'a positive of another query for the question, by its id', candidate('p2', 'another text')],
  [
    'copy',
    'the positive under another id and title, with other quotes, spaces and case',
    candidate('n1', POSITIVE.text.toUpperCase().replaceAll(' ', '  '), { title: 'The Bridge' }),
  ],
  ['copy', "a sibling's positive under another id", candidate('n2', SIBLING.text.normalize('NFD'))],
  ['near_duplicate', 'the positive with another word', candidate('n3', POSITIVE.text.replace('fourteen', 'many'))],
  [
    'near_duplicate',
    'a passage that contains the positive',
    candidate('n4', `${'Much more text. '.repeat(9)}${POSITIVE.text}`),
  ],
  ['near_duplicate', "a sentence of a sibling's positive", candidate('n5', SIBLING.text.slice(0, 60))],
  ['query', 'the question as a passage', candidate('n6', 'WHO built the bridge?', { title: 'FAQ' })],
  [
    'answer',
    'a passage with a golden answer',
    candidate('n7', 'In 1872 washington roebling fell ill.'),
    { answers: answerRule(['Washington Roebling']) },
  ],
  [
    'repeated',
    'a copy of a passage before the range of ranks',
    candidate('n8', 'A chain ferry crosses the river.'),
    { skipped: [passage('n0', 'A chain ferry crosses the river.')] },
  ],
];

for (const [reason, why, planted, input] of PLANTED) {
  test(`${why} is no negative (${reason})`, () => {
    assert.deepEqual(reasonsOf([planted, HARMLESS], input), [reason, 'kept']);
  });
}

test('every rule has a planted false negative; the limits on scores have their own tests', () => {
  const planted = new Set(PLANTED.map(([reason]) => reason));
  assert.deepEqual(
    DROP_REASONS.filter((reason) => !planted.has(reason)),
    ['max_score', 'min_score', 'absolute_margin', 'relative_margin'],
  );
});

test('a passage with a golden answer is no negative, in the title neither', () => {
  const answers = answerRule(['Washington Roebling', 'yes']);
  const planted = [
    candidate('n1', 'In 1872 washington roebling fell ill.'),
    candidate('n2', 'He fell ill.', { title: 'Washington Roebling' }),
    candidate('n3', 'Yes, he did.'),
  ];
  assert.deepEqual(reasonsOf(planted, { answers }), ['answer', 'answer', 'kept']);
});

test("an agent's own query as a passage is no negative", () => {
  const query = miningQuery({ query: 'designer of the bridge' });
  assert.deepEqual(reasonsOf([candidate('n1', 'Designer of the bridge')], { query }), ['query']);
});

test('of equal or nearly equal candidates, the best stays', () => {
  const text = 'The Manhattan Bridge is a suspension bridge that crosses the East River and opened at the end of 1909.';
  const again = candidate('n2', text, { title: 'Again' });
  const longer = candidate('n3', `${text} It is long.`);
  assert.deepEqual(reasonsOf([candidate('n1', text), again, longer, HARMLESS]), [
    'kept',
    'repeated',
    'repeated',
    'kept',
  ]);
});

test('a copy or near-duplicate of a passage before the range of ranks is no negative', () => {
  const text = 'The Manhattan Bridge is a suspension bridge that crosses the East River and opened at the end of 1909.';
  const planted = [candidate('n2', text.toUpperCase()), candidate('n3', `${text} It is long.`), HARMLESS];
  assert.deepEqual(reasonsOf(planted, { skipped: [passage('n1', text)] }), ['repeated', 'repeated', 'kept']);
});

test('without a threshold, near-duplicates stay and copies do not', () => {
  const planted = [candidate('n1', POSITIVE.text.replace('fourteen', 'many')), candidate('n2', POSITIVE.text)];
  assert.deepEqual(reasonsOf(planted, { nearDuplicate: null }), ['kept', 'copy']);
});

test('the threshold is inclusive', () => {
  const words = 'a b c d e f g h i j'.split(' ');
  const positives = [passage('p1', words.join(' '))];
  const planted = [candidate('n1', words.map((word, i) => (i === 5 ? 'x' : word)).join(' '))];
  assert.deepEqual(reasonsOf(planted, { positives, nearDuplicate: 5 / 8 }), ['near_duplicate']);
  assert.deepEqual(reasonsOf(planted, { positives, nearDuplicate: 5 / 8 + 0.001 }), ['kept']);
});

test('a positive that the index has under another row of its id is no negative', () => {
  const again = passage('p1', 'An older version of the passage.', { row: 77 });
  const found = reasonsOf([candidate('77', 'Without an id of its own.', { row: 77 })], {
    positives: [POSITIVE, again],
  });
  assert.deepEqual(found, ['positive']);
});
