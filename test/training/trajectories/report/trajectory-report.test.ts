import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Question } from '../../../../evaluation/read-questions.ts';
import { reportHtml } from '../../../../training/trajectories/report/report-html.ts';
import { reportText } from '../../../../training/trajectories/report/report-text.ts';
import { type TrajectoryReport, trajectoryReport } from '../../../../training/trajectories/report/trajectory-report.ts';
import type { Search, Trajectory } from '../../../../training/trajectories/trajectory.ts';

interface MadeSearch {
  readonly query?: string;
  readonly shown?: readonly string[];
  readonly turn?: number;
  readonly truncated?: boolean;
}

function made(id: string, searches: readonly MadeSearch[], more: Partial<Trajectory> = {}): Trajectory {
  return {
    id,
    questionId: id,
    question: `Question ${id}?`,
    goldenAnswers: [],
    output: {},
    place: id,
    searches: searches.map(
      ({ query = `query ${Math.random()}`, shown = [], turn, truncated }, i): Search => ({
        query,
        searchedText: query,
        turn: turn ?? i + 1,
        truncated,
        shown: shown.map((passage) => ({ id: passage, contents: `text of ${passage}` })),
      }),
    ),
    ...more,
  };
}

async function reportOf(
  trajectories: readonly Trajectory[],
  questions?: readonly Question[],
): Promise<TrajectoryReport> {
  async function* each() {
    yield* trajectories;
  }
  return trajectoryReport(each(), questions);
}

function question(id: string, goldIds: readonly string[], more: Partial<Question> = {}): Question {
  return { id, question: `Question ${id}?`, goldIds, ...more };
}

test('gold passages count from the turn in which they were shown, and trajectories that ended keep theirs', async () => {
  const { all } = await reportOf(
    [
      made('a', [{ shown: ['1', '9'] }, { shown: ['2'] }, { shown: ['9'] }]),
      made('b', [{ shown: ['8'] }]),
      made('c', [{ shown: ['5'] }]),
      made('never', []),
    ],
    [question('a', ['1', '2']), question('b', ['3']), question('c', ['5', '6', '7', '8']), question('never', ['1'])],
  );
  assert.deepEqual(
    all.turns.map(({ turn, trajectories, goldAny, goldAll, goldRecall }) => [
      turn,
      trajectories,
      goldAny,
      goldAll,
      goldRecall,
    ]),
    [
      [1, 3, 2 / 4, 0, (1 / 2 + 1 / 4) / 4],
      [2, 1, 2 / 4, 1 / 4, (1 + 1 / 4) / 4],
      [3, 1, 2 / 4, 1 / 4, (1 + 1 / 4) / 4],
    ],
  );
  assert.deepEqual([all.trajectories, all.withoutSearch, all.judged], [4, 1, 4]);
  assert.equal(all.meanTurns, 5 / 4);
});

test('repeated queries, passages shown again and searches without a new passage are counted by turn', async () => {
  const { all } = await reportOf([
    made('a', [
      { query: 'Vienna  mayor', shown: ['1', '2'] },
      { query: 'vienna mayor ', shown: ['1', '2'] },
      { query: 'another', shown: ['2', '3'] },
      { query: 'nothing found', shown: [] },
    ]),
  ]);
  assert.deepEqual(
    all.turns.map(({ repeated, unchanged, shown, shownBefore }) => [repeated, unchanged, shown, shownBefore]),
    [
      [0, 0, 2, 0],
      [1, 1, 2, 2],
      [0, 0, 2, 1],
      [0, 1, 0, 0],
    ],
  );
  assert.deepEqual([all.queries, all.repeated, all.unchanged, all.shownBefore], [4, 1, 2, 3]);
});

test('several queries of a turn count in that turn, and queries of other trajectories are not repetitions', async () => {
  const { all } = await reportOf([
    made('a', [
      { query: 'x', shown: ['1'], turn: 1 },
      { query: 'x', shown: ['1'], turn: 1 },
    ]),
    made('b', [{ query: 'x', shown: ['1'] }]),
  ]);
  assert.equal(all.turns.length, 1);
  assert.deepEqual([all.turns[0]!.queries, all.turns[0]!.repeated, all.turns[0]!.unchanged], [3, 1, 1]);
});

test('an answer counts where a shown text has it; answers come from the questions, else from the trajectory', async () => {
  const { all } = await reportOf(
    [
      made('a', [{ shown: ['1'] }, { shown: ['2'] }], { goldenAnswers: ['of 1'] }),
      made('b', [{ shown: ['1'] }], { goldenAnswers: ['of 2'] }),
      made('c', [{ shown: ['1'] }]),
      made('d', [], { goldenAnswers: ['x'] }),
    ],
    [question('a', [], { goldenAnswers: ['of 2'] })],
  );
  assert.deepEqual(
    all.turns.map(({ answer }) => answer),
    [0, 1 / 3],
  );
  assert.equal(all.answerable, 3);
});

test('without texts, gold or a tokenizer the numbers are unknown, not zero', async () => {
  const search = {
    query: 'x',
    searchedText: 'x',
    turn: 1,
    truncated: undefined,
    shown: [{ id: '1', contents: undefined }],
  };
  const { all, unknownQuestions } = await reportOf([made('a', [], { searches: [search], goldenAnswers: ['x'] })]);
  assert.deepEqual(
    [all.goldAny, all.goldAll, all.goldRecall, all.answer, all.truncated, all.correct, all.answerable],
    [null, null, null, null, null, null, 0],
  );
  assert.equal(unknownQuestions, null);
});

test('truncated queries and right answers are counted where the file says it', async () => {
  const { all } = await reportOf([
    made('a', [{ truncated: true }, { truncated: false }], { output: { metric_score: { em: 1 } } }),
    made('b', [{ truncated: false }], { output: { metric_score: { em: 0 } } }),
  ]);
  assert.deepEqual([all.truncated, all.turns[0]!.truncated, all.correct], [1, 1, 0.5]);
});

test('types have their own numbers, and unknown questions are counted', async () => {
  const report = await reportOf(
    [
      made('a', [{ shown: ['1'] }]),
      made('b', [{ shown: ['1'] }]),
      made('c', []),
      made('other', [], { question: ' Question a? ' }),
    ],
    [question('a', ['1'], { type: 'comparison' }), question('b', ['2'], { type: 'bridge' })],
  );
  assert.deepEqual(
    report.types.map(({ type, trajectories, goldAll }) => [type, trajectories, goldAll]),
    [
      ['bridge', 1, 0],
      ['comparison', 2, 1 / 2],
    ],
  );
  assert.equal(report.unknownQuestions, 1);
});

test('more than fifty types become one', async () => {
  const ids = Array.from({ length: 60 }, (_, i) => `q${i}`);
  const { types } = await reportOf(
    ids.map((id) => made(id, [])),
    ids.map((id) => question(id, [], { type: `type of ${id}` })),
  );
  assert.equal(types.length, 51);
  assert.equal(types.find(({ type }) => type === 'other types')!.trajectories, 10);
});

test('turns after the 32nd are added to it', async () => {
  const { all } = await reportOf([
    made(
      'a',
      Array.from({ length: 40 }, () => ({ shown: ['1'] })),
    ),
  ]);
  assert.equal(all.turns.length, 32);
  assert.equal(all.turns[31]!.queries, 9);
});

test('of any trajectories, shares never fall from turn to turn, and the turns add up to the whole', async () => {
  const passage = fc.constantFrom('1', '2', '3', '4');
  const search = fc.record({ query: fc.constantFrom('x', 'y', 'z'), shown: fc.array(passage, { maxLength: 3 }) });
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.array(search, { maxLength: 4 }), fc.uniqueArray(passage)), { maxLength: 5 }),
      async (list) => {
        const { all } = await reportOf(
          list.map(([searches], i) => made(`${i}`, searches)),
          list.map(([, gold], i) => question(`${i}`, gold)),
        );
        const sum = (name: 'queries' | 'repeated' | 'unchanged' | 'shown' | 'shownBefore'): number =>
          all.turns.reduce((total, turn) => total + turn[name], 0);
        for (const name of ['queries', 'repeated', 'unchanged', 'shown', 'shownBefore'] as const) {
          assert.equal(sum(name), all[name]);
        }
        for (const name of ['goldAny', 'goldAll', 'goldRecall'] as const) {
          const shares = all.turns.map((turn) => turn[name] ?? 0);
          assert.deepEqual(
            shares,
            shares.toSorted((a, b) => a - b),
          );
          assert.ok(shares.every((share) => share <= 1 + 1e-12));
        }
        assert.ok(all.unchanged <= all.queries && all.shownBefore <= all.shown && all.repeated <= all.queries);
      },
    ),
  );
});

test('the page has the numbers of the table, loads nothing and escapes names', async () => {
  const report = await reportOf(
    [
      made('a', [
        { query: 'x', shown: ['1'], truncated: true },
        { query: 'x', shown: ['1'], truncated: false },
      ]),
    ],
    [question('a', ['1'], { type: '<img src=x onerror=alert(1)>' })],
  );
  const page = reportHtml(report, 'T&C <b>.json');
  const text = reportText(report);
  for (const number of ['100.0 %', '1 (100.0 %)', '0 (0.0 %)']) {
    assert.ok(page.includes(number), number);
    assert.ok(text.includes(number), number);
  }
  assert.match(page, /<title>T&amp;C &lt;b&gt;\.json<\/title>/);
  assert.match(page, /&lt;img src=x onerror=alert\(1\)&gt;/);
  assert.doesNotMatch(page, /<(?:script|link|img|iframe)|https?:|url\(|@import|onerror="/);
  assert.match(page, /prefers-color-scheme: dark/);
});

test('no trajectories give a report without turns', async () => {
  const report = await reportOf([], []);
  assert.deepEqual([report.all.trajectories, report.all.meanTurns, report.all.turns], [0, 0, []]);
  assert.match(reportHtml(report, 'none'), /No trajectory has a search/);
  assert.match(reportText(report), /^0 trajectories with 0 queries/);
});

test('a question of another data set with the same id gives no gold', async () => {
  const recorded = { question: undefined, dataset: 'nq' };
  const other = question('a', ['1'], { dataset: 'hotpotqa' });
  const { all, unknownQuestions } = await reportOf([made('a', [{ shown: ['1'] }], recorded)], [other]);
  assert.deepEqual([all.judged, unknownQuestions], [0, 1]);
});
