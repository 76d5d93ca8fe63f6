import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import {
  AGENTIC_R_RULE,
  type ConstructCounts,
  type ConstructSettings,
  constructRows,
  seededSample,
  splitCandidates,
} from '../../../training/agentic-r/construct-rows.ts';
import { readKnownPassages } from '../../../training/agentic-r/exclusions.ts';
import type { JudgedCandidate } from '../../../training/agentic-r/judged-rounds.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { globalLine, judgedFiles, localLine, type MadeFiles, openFiles, twenty } from './judged-files.ts';

interface Row {
  readonly dataset: string;
  readonly query_id: string;
  readonly question: string;
  readonly round_index: number;
  readonly history_queries: readonly string[];
  readonly query_text: string;
  readonly passage_ids: readonly string[];
  readonly scores: readonly { readonly em: number; readonly local_utility: number }[];
}

async function construct(
  t: TestContext,
  { candidates, ...utilities }: Partial<MadeFiles> & Pick<MadeFiles, 'candidates'>,
  settings: Partial<ConstructSettings> = {},
): Promise<{ rows: Row[]; counts: ConstructCounts }> {
  const rows: Row[] = [];
  const counts = await constructRows(
    candidates,
    await openFiles(t, utilities),
    {
      ...AGENTIC_R_RULE,
      dataset: 'hotpotqa',
      seed: 0,
      excludeCorrect: false,
      excludeSiblings: false,
      fullHistory: false,
      ...settings,
    },
    {
      write: async (line) => {
        assert.ok(line.endsWith('\n'));
        rows.push(JSON.parse(line) as Row);
      },
    },
  );
  return { rows, counts };
}

test('a round gives a row: the positive first, then 15 of the others in their order, with their scores', async (t) => {
  const utilities = [...twenty([0, 90], [1, 75], [1, 40])].map(([em, local], i) =>
    i > 2 ? ([em, 30 - i] as const) : ([em, local] as const),
  );
  const files = await judgedFiles(t, [
    { id: 'train_5', firstRow: 100, utilities: twenty() },
    { id: 'train_5', round: 2, query: 'its mayor', firstRow: 200, utilities },
  ]);
  const { rows, counts } = await construct(t, files);
  assert.equal(rows.length, 1);
  const { passage_ids: ids, scores, ...row } = rows[0]!;
  assert.deepEqual(row, {
    dataset: 'hotpotqa',
    query_id: 'train_5',
    question: 'Question of train_5?',
    round_index: 2,
    history_queries: ['query 1'],
    query_text: 'its mayor',
  });
  assert.deepEqual(Object.keys(rows[0]!), [
    'dataset',
    'query_id',
    'question',
    'round_index',
    'history_queries',
    'query_text',
    'passage_ids',
    'scores',
  ]);
  assert.equal(ids.length, 16);
  assert.equal(ids[0], '201');
  assert.deepEqual(scores[0], { em: 1, local_utility: 0.75 });
  // The order of the negatives: the other correct one, the judge's favourite, then by falling utility.
  const order = ['202', '200', ...Array.from({ length: 17 }, (_, i) => String(203 + i))];
  assert.deepEqual(
    ids.slice(1),
    order.filter((id) => ids.includes(id)),
  );
  for (const [i, id] of ids.entries()) {
    const [em, local] = utilities[Number(id) - 200]!;
    assert.deepEqual(scores[i], { em, local_utility: local / 100 });
  }
  assert.deepEqual(counts.dropped, { 'not-correct': 1, 'below-threshold': 0, 'too-few-negatives': 0 });
  assert.deepEqual([counts.rounds, counts.rows], [1, 1]);
});

test('up to three positives give a row each with the same negatives; a fourth and fifth are in no row', async (t) => {
  for (const [positives, rowsExpected, unused] of [
    [1, 1, 0],
    [3, 3, 0],
    [4, 3, 1],
    [5, 3, 2],
  ] as const) {
    const first = Array.from({ length: positives }, () => [1, 80] as const);
    const { rows, counts } = await construct(t, await judgedFiles(t, [{ id: 'a', utilities: twenty(...first) }]));
    assert.equal(rows.length, rowsExpected);
    assert.deepEqual(
      rows.map(({ passage_ids: ids }) => ids[0]),
      ['0', '1', '2'].slice(0, rowsExpected),
    );
    assert.equal(new Set(rows.map(({ passage_ids: ids }) => ids.slice(1).join())).size, 1);
    assert.ok(rows[0]!.passage_ids.slice(1).every((id) => Number(id) >= positives));
    assert.equal(counts.unusedPositives, unused);
  }
});

test('five positives of 20 leave 15 negatives, six drop the round', async (t) => {
  const six = Array.from({ length: 6 }, () => [1, 80] as const);
  const { rows, counts } = await construct(t, await judgedFiles(t, [{ id: 'a', utilities: twenty(...six) }]));
  assert.deepEqual(rows, []);
  assert.equal(counts.dropped['too-few-negatives'], 1);
});

test('a threshold is inclusive, and other numbers of positives and passages are options', async (t) => {
  const files = await judgedFiles(t, [
    { id: 'passes', utilities: twenty([1, 60]) },
    { id: 'fails', utilities: twenty([1, 59]) },
  ]);
  const { rows, counts } = await construct(t, files);
  assert.deepEqual(
    rows.map(({ query_id: id }) => id),
    ['passes'],
  );
  assert.equal(counts.dropped['below-threshold'], 1);
  assert.equal((await construct(t, files, { threshold: 0.59 })).rows.length, 2);
  const two = await judgedFiles(t, [{ id: 'a', utilities: twenty([1, 80], [1, 80]) }]);
  assert.equal((await construct(t, two, { positives: 1 })).rows.length, 1);
  assert.equal((await construct(t, two, { groupSize: 19 })).rows[0]!.passage_ids.length, 19);
  assert.equal((await construct(t, two, { groupSize: 20 })).counts.dropped['too-few-negatives'], 1);
});

test('a correct candidate with a point less is a negative, and is excluded on request', async (t) => {
  const files = await judgedFiles(t, [{ id: 'a', utilities: twenty([1, 80], [1, 79], [1, 50]) }]);
  const all = await construct(t, files, { groupSize: 20 });
  assert.equal(all.counts.correctNegatives, 2);
  const { rows, counts } = await construct(t, files, { groupSize: 18, excludeCorrect: true });
  assert.ok(!rows[0]!.passage_ids.includes('1') && !rows[0]!.passage_ids.includes('2'));
  assert.deepEqual(counts.excluded, { correct: 2, duplicate: 0, sibling: 0 });
  assert.equal(counts.correctNegatives, 0);
});

test('duplicates of a positive are excluded on request: title, case, white space and quotation marks do not count', async (t) => {
  const files = await judgedFiles(t, [{ id: 'a', utilities: twenty([1, 80]) }]);
  const passages = join(await tempFolder(t), 'passages.jsonl');
  const texts = ['"Vienna"\nThe "Danube"  flows.', '"Wien"\nthe “Danube” FLOWS.', 'The Danube ﬂows.'];
  await writeFile(
    passages,
    Array.from(
      { length: 20 },
      (_, i) => `${JSON.stringify({ id: String(i), contents: texts[i] ?? `text ${i}` })}\n`,
    ).join(''),
  );
  const duplicatesBy = await readKnownPassages(passages);
  const { rows, counts } = await construct(t, files, { groupSize: 18, duplicatesBy });
  assert.deepEqual(counts.excluded, { correct: 0, duplicate: 2, sibling: 0 });
  assert.ok(!rows[0]!.passage_ids.includes('1') && !rows[0]!.passage_ids.includes('2'));
  assert.equal((await construct(t, files, { groupSize: 19, duplicatesBy })).counts.dropped['too-few-negatives'], 1);
});

/** A file of 20 passages, of which some have these contents. */
async function passagesWith(t: TestContext, contents: Readonly<Record<number, string | object>>): Promise<string> {
  const file = join(await tempFolder(t), 'passages.jsonl');
  const lines = Array.from({ length: 20 }, (_, i) => {
    const given = contents[i] ?? `text ${i}`;
    return `${JSON.stringify({ id: String(i), ...(typeof given === 'string' ? { contents: given } : given) })}\n`;
  });
  await writeFile(file, lines.join(''));
  return file;
}

test('a copy of a positive is excluded under any title: quoted, not quoted, in a column, or none', async (t) => {
  const files = await judgedFiles(t, [{ id: 'a', utilities: twenty([1, 80]) }]);
  for (const positive of ['Vienna\nThe Danube flows.', { title: 'Vienna', text: 'The Danube flows.' }]) {
    const passages = await passagesWith(t, {
      0: positive,
      1: 'Danube (river)\nThe Danube flows.',
      2: '"Wien"\nthe “Danube” flows.',
      3: { title: 'Wien', text: 'The Danube  flows.' },
      4: 'The Danube flows.',
      5: 'Vienna\nThe Danube flowed.',
    });
    const duplicatesBy = await readKnownPassages(passages);
    const { rows, counts } = await construct(t, files, { groupSize: 16, duplicatesBy });
    assert.deepEqual(counts.excluded, { correct: 0, duplicate: 4, sibling: 0 });
    assert.deepEqual(
      rows[0]!.passage_ids.slice(1).filter((id) => Number(id) < 5),
      [],
    );
  }
});

test("a copy of a sibling's positive is excluded, if copies and siblings are", async (t) => {
  const files = await judgedFiles(t, [
    { id: 'a', question: 'Where is it?', utilities: twenty([1, 80]) },
    { id: 'b', question: 'where is  it?', round: 2, utilities: [[0, 10], [1, 90], ...twenty().slice(2)] },
    { id: 'c', question: 'Who?', utilities: [[0, 0], [0, 0], [1, 70], ...twenty().slice(3)] },
  ]);
  // 3 is a copy of the positive of b, which is a sibling of a; 4 of that of c, which is none.
  const duplicatesBy = await readKnownPassages(
    await passagesWith(t, {
      1: 'B\nthe second hop',
      2: 'C\nthe third',
      3: 'Other\nThe second hop',
      4: 'Other\nThe third',
    }),
  );
  const negativesOf = async (settings: Partial<ConstructSettings>): Promise<readonly string[]> => {
    const { rows } = await construct(t, files, { groupSize: 17, ...settings });
    return rows.find(({ query_id: id }) => id === 'a')!.passage_ids.slice(1);
  };
  // All that are left: 20 without the positive, the sibling's and its copy.
  const left = await construct(t, files, { groupSize: 18, duplicatesBy, excludeSiblings: true });
  assert.deepEqual(
    left.rows.find(({ query_id: id }) => id === 'a')!.passage_ids.toSorted((x, y) => Number(x) - Number(y)),
    ['0', '2', ...Array.from({ length: 16 }, (_, i) => String(4 + i))],
  );
  // For b and c, 3 and 4 are copies of their own positives.
  assert.deepEqual(left.counts.excluded, { correct: 0, duplicate: 2, sibling: 3 });
  const seeds = Array.from({ length: 5 }, (_, seed) => seed);
  const drawn = async (settings: Partial<ConstructSettings>): Promise<boolean> =>
    (await Promise.all(seeds.map((seed) => negativesOf({ ...settings, seed })))).some((ids) => ids.includes('3'));
  assert.equal(await drawn({ excludeSiblings: true }), true, 'without copies it is a negative of some seeds');
  assert.equal(await drawn({ excludeSiblings: true, duplicatesBy }), false);
});

test('positives of another round or trajectory of the question are excluded on request', async (t) => {
  const files = await judgedFiles(t, [
    { id: 'a', question: 'Same?', utilities: twenty([1, 80]) },
    { id: 'a', question: 'Same?', round: 2, utilities: [[0, 10], [1, 90], ...twenty().slice(2)] },
    { id: 'b', question: 'Same?', utilities: [[0, 0], [0, 0], [1, 70], ...twenty().slice(3)] },
    { id: 'c', question: 'Another?', utilities: [[0, 0], [0, 0], [0, 0], [1, 70], ...twenty().slice(4)] },
  ]);
  const { rows, counts } = await construct(t, files, { groupSize: 18, excludeSiblings: true });
  assert.equal(counts.excluded.sibling, 6);
  for (const { question, passage_ids: ids } of rows.filter((row) => row.question === 'Same?')) {
    assert.deepEqual(
      ids.slice(1).filter((id) => ['0', '1', '2'].includes(id)),
      [],
      question,
    );
  }
  assert.equal(rows.length, 4);
  assert.equal((await construct(t, files)).counts.excluded.sibling, 0);
});

test('a fifth round has no global utilities and gives no row; with local utilities alone it does', async (t) => {
  const rounds = [1, 2, 3, 4, 5].map((round) => ({
    id: 'a',
    round,
    firstRow: 100 * round,
    utilities: twenty([1, 80]),
  }));
  const files = await judgedFiles(t, rounds, { global: rounds.slice(0, 4).map((round) => globalLine(round)) });
  const both = await construct(t, files);
  assert.deepEqual(
    both.rows.map(({ round_index: round }) => round),
    [1, 2, 3, 4],
  );
  assert.equal(both.counts.utilities.problems['no-global'], 1);
  assert.equal(both.counts.utilities.noGlobalByDesign, 1);
  const local = await construct(t, { candidates: files.candidates, local: files.local });
  assert.equal(local.rows.length, 5);
  assert.deepEqual(local.rows[0]!.scores[0], { em: 0, local_utility: 0.8 });
  assert.equal(local.rows[0]!.question, 'Question of a?', 'not the empty question of the original');
  const global = await construct(t, { candidates: files.candidates, global: files.global });
  assert.deepEqual(global.rows[0]!.scores[0], { em: 1, local_utility: 0 });
});

test('the history is that of step 3-2, or on request the full one', async (t) => {
  const rounds = [1, 2, 3].map((round) => ({ id: 'a', round, utilities: twenty([1, 80]) }));
  const files = await judgedFiles(t, rounds, {
    global: rounds.map((round) =>
      globalLine(round, round.round === 3 ? ['query 2'] : round.round === 2 ? ['query 1'] : []),
    ),
  });
  const theirs = await construct(t, files);
  assert.deepEqual(theirs.rows[2]!.history_queries, ['query 2']);
  assert.equal(theirs.counts.utilities.historyDiffers, 1);
  const full = await construct(t, files, { fullHistory: true });
  assert.deepEqual(full.rows[2]!.history_queries, ['query 1', 'query 2']);
});

test('rows depend on the seed and the round alone, not on the order of the files', async (t) => {
  const rounds = ['a', 'b', 'c'].map((id) => ({ id, utilities: twenty([1, 80]) }));
  const files = await judgedFiles(t, rounds);
  const reversed = await judgedFiles(t, rounds.toReversed(), {
    local: rounds.map(localLine),
    global: rounds.map((round) => globalLine(round)),
  });
  const byId = (rows: readonly Row[]): Row[] => rows.toSorted((a, b) => (a.query_id < b.query_id ? -1 : 1));
  const { rows } = await construct(t, files);
  assert.deepEqual(byId((await construct(t, reversed)).rows), byId(rows));
  assert.notDeepEqual((await construct(t, files, { seed: 1 })).rows, rows);
  assert.notDeepEqual((await construct(t, files, { dataset: 'triviaqa' })).rows[0]!.passage_ids, rows[0]!.passage_ids);
});

test('passage ids can be those of the corpus', async (t) => {
  const files = await judgedFiles(t, [{ id: 'a', utilities: twenty([1, 80]) }]);
  const passages = join(await tempFolder(t), 'passages.jsonl');
  const line = (i: number): string => JSON.stringify({ id: String(i), contents: `text ${i}`, corpus_id: `hv-${i}` });
  await writeFile(passages, Array.from({ length: 20 }, (_, i) => `${line(i)}\n`).join(''));
  const { rows } = await construct(t, files, { corpusIds: await readKnownPassages(passages) });
  assert.equal(rows[0]!.passage_ids[0], 'hv-0');
  await writeFile(passages, line(0));
  await assert.rejects(
    construct(t, files, { corpusIds: await readKnownPassages(passages) }),
    trawlError('CORPUS_BAD_LINE', /hotpotqa\.json, item 1: passage \d+ is not in the file of --passages/),
  );
  await writeFile(passages, '{"id": "hv-1", "contents": "text"}');
  await assert.rejects(
    readKnownPassages(passages),
    trawlError('CORPUS_BAD_LINE', /passages\.jsonl:1: "id" is "hv-1"; expected a row number/),
  );
});

test('utilities of another file are refused instead of giving no rows', async (t) => {
  const files = await judgedFiles(t, [{ id: 'a', utilities: twenty([1, 80]) }], {
    global: [globalLine({ id: 'train_9', utilities: twenty([1, 80]) })],
  });
  await assert.rejects(
    construct(t, files),
    trawlError('USAGE', /None of the 1 rounds of .*global\.jsonl is in .*hotpotqa\.json/),
  );
});

/** Candidates in the order of retrieval, from pairs of em and the judge's number; rows count from 0. */
function candidates(...pairs: readonly (readonly [number | undefined, number | undefined])[]): JudgedCandidate[] {
  return pairs.map(([em, local], row) => ({ row, em, local: local === undefined ? undefined : local / 100 }));
}

function rowsOf(list: readonly JudgedCandidate[]): number[] {
  return list.map(({ row }) => row);
}

function split(list: readonly JudgedCandidate[]): unknown {
  const found = splitCandidates(list, AGENTIC_R_RULE);
  return typeof found === 'string' ? found : [rowsOf(found.positives), rowsOf(found.negatives)];
}

test('correct candidates come first, then those with the higher local utility; ties keep the order of retrieval', () => {
  assert.deepEqual(split(candidates([0, 100], [1, 70], [1, 80], [0, 30], [1, 70], [0, 100])), [[2], [1, 4, 0, 5, 3]]);
});

test('a local utility of 0.60 passes, of 0.59 does not', () => {
  assert.deepEqual(split(candidates([0, 99], [1, 60])), [[1], [0]]);
  assert.equal(split(candidates([0, 99], [1, 59])), 'below-threshold');
});

test('a round without a correct candidate is dropped, whatever the judge says', () => {
  assert.equal(split(candidates([0, 100], [0, 90])), 'not-correct');
  assert.equal(split([]), 'not-correct');
});

test('all that equal the best in both numbers are positives, a point less is a negative', () => {
  assert.deepEqual(split(candidates([1, 80], [1, 79], [0, 80], [1, 80])), [
    [0, 3],
    [1, 2],
  ]);
});

test('with one utility alone, that one decides', () => {
  assert.deepEqual(split(candidates([undefined, 59], [undefined, 95], [undefined, 60])), [[1], [2, 0]]);
  assert.equal(split(candidates([undefined, 59])), 'below-threshold');
  assert.deepEqual(split(candidates([0, undefined], [1, undefined], [1, undefined])), [[1, 2], [0]]);
  assert.equal(split(candidates([0, undefined])), 'not-correct');
});

test('any candidates are split into positives that are equally good and negatives that are worse', () => {
  const pair = fc.tuple(fc.constantFrom(0, 1), fc.integer({ min: 0, max: 100 }));
  fc.assert(
    fc.property(fc.array(pair, { maxLength: 25 }), (pairs) => {
      const list = candidates(...pairs);
      const best = pairs.reduce((top, [em, local]) => Math.max(top, em * 1000 + local), -1);
      const found = splitCandidates(list, AGENTIC_R_RULE);
      if (typeof found === 'string') {
        assert.ok(best < 1060);
        return;
      }
      assert.ok(best >= 1060);
      const value = ({ em, local }: JudgedCandidate): number => em! * 1000 + Math.round(local! * 100);
      assert.ok(found.positives.every((candidate) => value(candidate) === best));
      assert.ok(found.negatives.every((candidate) => value(candidate) < best));
      assert.deepEqual(
        rowsOf([...found.positives, ...found.negatives]).sort((a, b) => a - b),
        list.map(({ row }) => row),
      );
    }),
  );
});

test('a draw has distinct items in their order and depends on seed and key alone', () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.integer()), fc.nat(), fc.string(), (items, seed, key) => {
      const count = seed % (items.length + 1);
      const drawn = seededSample(items, count, { seed, key });
      assert.equal(drawn.length, count);
      assert.deepEqual(
        drawn,
        items.filter((item) => drawn.includes(item)),
      );
      assert.deepEqual(seededSample(items, count, { seed, key }), drawn);
    }),
  );
});

test('over many keys every item is drawn equally often', () => {
  const items = Array.from({ length: 19 }, (_, i) => i);
  const times = items.map(() => 0);
  const draws = 4000;
  for (let i = 0; i < draws; i++) {
    for (const item of seededSample(items, 15, { seed: 7, key: `train_${i}\u00001` })) times[item]! += 1;
  }
  // The draws are the same in every run. The standard deviation is about 26.
  for (const [item, count] of times.entries())
    assert.ok(Math.abs(count - (draws * 15) / 19) < 120, `${item}: ${count}`);
});

test('another seed and another key give another draw', () => {
  const items = Array.from({ length: 1000 }, (_, i) => i);
  const draw = (seed: number, key: string): string => seededSample(items, 15, { seed, key }).join();
  assert.equal(new Set([draw(0, 'a'), draw(1, 'a'), draw(0, 'b')]).size, 3);
});
