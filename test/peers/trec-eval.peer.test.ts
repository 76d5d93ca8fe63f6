import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { evaluateRun } from '../../evaluation/evaluate-run.ts';
import { type Judgements, readQrels } from '../../evaluation/judgements.ts';
import { judgementsOf, readQuestions } from '../../evaluation/read-questions.ts';
import { formatTrecRun, type RankedPassage, type Run } from '../../evaluation/run.ts';
import { buildIndex } from '../../indexer/building/build-index.ts';
import { packageRoot } from '../../src/base/package-root.ts';
import { openEncoder } from '../../src/encoder/open-encoder.ts';
import { openRetriever } from '../../src/search/opening/open-retriever.ts';
import { MEASURE_PEERS, PEERS } from '../helpers/peers.ts';
import { seededRandom } from '../helpers/seeded-random.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const CUTOFFS = [1, 3, 5, 10, 20, 100];

/** Trawl's metrics and their names in pytrec_eval. */
const MEASURES = new Map([
  ['mrr', 'recip_rank'],
  ['map', 'map'],
  ['r_precision', 'Rprec'],
  ...CUTOFFS.flatMap((k): [string, string][] => [
    [`recall@${k}`, `recall_${k}`],
    [`precision@${k}`, `P_${k}`],
    [`ndcg@${k}`, `ndcg_cut_${k}`],
    [`hit@${k}`, `success_${k}`],
    [`map@${k}`, `map_cut_${k}`],
  ]),
]);

interface Case {
  readonly run: Run;
  readonly judgements: Judgements;
}

/** The measures for pytrec_eval: families with their cutoffs. */
const FAMILIES = [
  ...['recip_rank', 'map', 'Rprec'],
  ...['recall', 'P', 'ndcg_cut', 'success', 'map_cut'].map((family) => `${family}.${CUTOFFS.join(',')}`),
];

async function measuredByPeer(cases: readonly Case[]): Promise<Record<string, Record<string, number>>[]> {
  const input = cases.map(({ run, judgements }) => ({
    qrels: Array.from(judgements, ([query, grades]) =>
      Array.from(grades, ([id, grade]) => `${query} 0 ${id} ${grade}\n`).join(''),
    ).join(''),
    run: [...formatTrecRun(run)].join(''),
    measures: FAMILIES,
  }));
  return (await PEERS.run('trec_eval.py', input)) as Record<string, Record<string, number>>[];
}

/**
 * Compares every metric of every query, to the last bit.
 *
 * @param namesOf Trawl's metrics and the peer's names for them.
 */
function assertSameValues(
  cases: readonly Case[],
  replies: readonly Readonly<Record<string, Readonly<Record<string, number>>>>[],
  namesOf: ReadonlyMap<string, string>,
): number {
  let compared = 0;
  for (const [i, { run, judgements }] of cases.entries()) {
    const queryIds = [...judgements.keys()];
    const { means, perQuery, judged } = evaluateRun({ queryIds, run, judgements, cutoffs: CUTOFFS });
    for (const [metric, peerMetric] of namesOf) {
      let sum = 0;
      for (const query of queryIds) {
        const expected = replies[i]![query]?.[peerMetric] ?? 0;
        const found = perQuery.get(query)![metric]!;
        assert.equal(found, expected, `run ${i}, query ${query}, ${metric}`);
        sum += found;
        compared++;
      }
      assert.equal(means[metric], sum / judged, `run ${i}, mean of ${metric}`);
    }
  }
  return compared;
}

const assertAgreement = async (cases: readonly Case[]): Promise<number> =>
  assertSameValues(cases, await measuredByPeer(cases), MEASURES);

/** The same metrics in ir_measures. */
const IR_MEASURES = new Map([
  ['mrr', 'RR'],
  ['map', 'AP'],
  ['r_precision', 'Rprec'],
  ...CUTOFFS.flatMap((k): [string, string][] => [
    [`recall@${k}`, `R@${k}`],
    [`precision@${k}`, `P@${k}`],
    [`ndcg@${k}`, `nDCG@${k}`],
    [`hit@${k}`, `Success@${k}`],
    [`map@${k}`, `AP@${k}`],
    [`mrr@${k}`, `RR@${k}`],
  ]),
]);

async function measuredByIrMeasures(cases: readonly Case[]): Promise<Record<string, Record<string, number>>[]> {
  const rowsOf = <Value>(lists: ReadonlyMap<string, Iterable<readonly [string, Value]>>) =>
    [...lists].flatMap(([query, list]) => Array.from(list, ([id, value]) => [query, id, value]));
  return (await MEASURE_PEERS.run('ir_measures_run.py', {
    measures: [...IR_MEASURES.values()],
    cases: cases.map(({ run, judgements }) => ({
      qrels: rowsOf(judgements),
      run: rowsOf(new Map([...run].map(([query, list]) => [query, list.map(({ id, score }) => [id, score] as const)]))),
    })),
  })) as Record<string, Record<string, number>>[];
}

const sortedBy = ({ run, judgements }: Case, order: (a: RankedPassage, b: RankedPassage) => number): Case => ({
  run: new Map([...run].map(([query, list]) => [query, [...list].sort(order)])),
  judgements,
});

/** The order of trec_eval: by the score as a float of 32 bits, equal ones by id from the last to the first. */
const inTrecOrder = (one: Case): Case =>
  sortedBy(one, (a, b) => Math.fround(b.score) - Math.fround(a.score) || (a.id < b.id ? 1 : -1));

const inIdOrder = (one: Case): Case => sortedBy(one, (a, b) => b.score - a.score || (a.id < b.id ? -1 : 1));

/** The same run with whole scores, so that about two passages have the same. */
function withTies({ run, judgements }: Case): Case {
  const tied = new Map(
    [...run].map(([query, list]) => [query, list.map((one) => ({ ...one, score: Math.round(one.score) }))]),
  );
  return { run: tied, judgements };
}

/** A run without ties. Some queries find nothing, some nothing relevant. Grades are −1 to 3. */
function randomCase(seed: number): Case {
  const random = seededRandom(seed);
  const run = new Map<string, RankedPassage[]>();
  const judgements = new Map<string, ReadonlyMap<string, number>>();
  for (let q = 0; q < 20; q++) {
    const documents = Array.from({ length: 150 }, (_, i) => `d${i}`).sort(() => random() - 0.5);
    const found = documents.slice(0, Math.floor(random() * 130) * (random() < 0.1 ? 0 : 1));
    if (found.length > 0)
      run.set(
        `q${q}`,
        found.map((id, i) => ({ id, score: 100 - i / 2 - random() / 4 })),
      );
    const grades = new Map<string, number>();
    for (const id of documents) if (random() < 0.08) grades.set(id, Math.floor(random() * 5) - 1);
    // Like Trawl, pytrec_eval leaves out queries without judgements.
    if (grades.size > 0) judgements.set(`q${q}`, grades);
  }
  return { run, judgements };
}

const skip = PEERS.missing();

const CASES = Array.from({ length: 30 }, (_, seed) => randomCase(seed));

test('metrics of random runs without ties equal those of pytrec_eval, query by query', { skip }, async (t) => {
  const compared = await assertAgreement(CASES);
  t.diagnostic(`${compared} values are equal`);
  assert.ok(compared > 8000);
});

const skipMeasures = MEASURE_PEERS.missing();

test('metrics of random runs without ties equal those of ir_measures', { skip: skipMeasures }, async (t) => {
  const compared = assertSameValues(CASES, await measuredByIrMeasures(CASES), IR_MEASURES);
  t.diagnostic(`${compared} values are equal`);
  assert.ok(compared > 8000);
});

test('equal scores keep their order; put into trec_eval’s order they have the metrics of pytrec_eval', {
  skip,
}, async () => {
  const tied = CASES.map(withTies);
  const sorted = tied.map(inTrecOrder);
  assert.notDeepEqual(tied, sorted, 'the order of some equal scores is another');
  // The peers get the unsorted runs, and sort them.
  const replies = await measuredByPeer(tied);
  assertSameValues(sorted, replies, MEASURES);
  assert.throws(() => assertSameValues(tied, replies, MEASURES), /run 0, query q/);
});

test('of equal scores ir_measures has the order of trec_eval, and for RR@k that of MS MARCO’s script: by id from the first', {
  skip: skipMeasures,
}, async () => {
  const tied = CASES.map(withTies);
  const replies = await measuredByIrMeasures(tied);
  const isAtRank = ([metric]: readonly [string, string]): boolean => metric.startsWith('mrr@');
  const byTrec = new Map([...IR_MEASURES].filter((one) => !isAtRank(one)));
  const byMsMarco = new Map([...IR_MEASURES].filter(isAtRank));
  assertSameValues(tied.map(inTrecOrder), replies, byTrec);
  assertSameValues(tied.map(inIdOrder), replies, byMsMarco);
});

test('scores that differ only beyond 32 bits are equal for trec_eval, and not for Trawl', { skip }, async () => {
  const near: Case = {
    run: new Map([
      [
        'q',
        [
          { id: 'a', score: 0.8 + 1e-12 },
          { id: 'b', score: 0.8 },
        ],
      ],
    ]),
    judgements: new Map([['q', new Map([['a', 1]])]]),
  };
  const [reply] = await measuredByPeer([near]);
  assert.equal(reply!['q']!['recip_rank'], 0.5);
  const { run, judgements } = near;
  assert.equal(evaluateRun({ queryIds: ['q'], run, judgements, cutoffs: [1] }).means['mrr'], 1);
});

test('metrics of a search of the sample corpus equal those of pytrec_eval', { skip }, async (t) => {
  const sample = join(packageRoot, 'corpus', 'sample');
  const folder = join(await tempFolder(t), 'sample');
  const encoder = await openEncoder('token-average-256', { workers: 1 });
  t.after(() => encoder.close());
  await buildIndex({
    corpus: [join(sample, 'passages.jsonl')],
    corpusOptions: {},
    encoder,
    out: folder,
    overwrite: false,
    passageTemplate: '{contents}',
    uniqueIds: true,
    onProgress: () => undefined,
  });
  const retriever = await openRetriever(folder, { encoderThreads: 1 });
  t.after(() => retriever.close());
  const questions = await readQuestions(join(sample, 'questions.jsonl'));
  const { outcomes } = await retriever.retrieve({ queries: questions.map(({ question }) => question), k: 100 });
  const run = new Map<string, RankedPassage[]>();
  for (const [i, outcome] of outcomes.entries()) {
    assert.ok(outcome.ok);
    const found = outcome.hits.map(({ score, document }) => ({
      id: (JSON.parse(document) as { id: string }).id,
      score,
    }));
    assert.equal(new Set(found.map(({ score }) => score)).size, found.length, 'the sample has no ties');
    run.set(questions[i]!.id, found);
  }
  await assertAgreement([
    { run, judgements: await readQrels(join(sample, 'qrels.txt')) },
    { run, judgements: judgementsOf(questions) },
  ]);
});
