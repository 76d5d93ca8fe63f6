import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { evaluateRun } from '../../evaluation/evaluate-run.ts';
import type { Judgements } from '../../evaluation/judgements.ts';
import { readQrels } from '../../evaluation/read-qrels.ts';
import { judgementsOf, readQuestions } from '../../evaluation/read-questions.ts';
import type { RankedPassage, Run } from '../../evaluation/run.ts';
import { formatTrecRun } from '../../evaluation/trec-run.ts';
import { buildIndex } from '../../indexer/building/build-index.ts';
import { openEncoder } from '../../src/embedding/open-encoder.ts';
import { packageRoot } from '../../src/package-root.ts';
import { openRetriever } from '../../src/retrieval/opening/open-retriever.ts';
import { runPeer, withoutPeers } from '../helpers/peers.ts';
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
  ...['recall', 'ndcg_cut', 'success', 'map_cut'].map((family) => `${family}.${CUTOFFS.join(',')}`),
];

async function measuredByPeer(cases: readonly Case[]): Promise<Record<string, Record<string, number>>[]> {
  const input = cases.map(({ run, judgements }) => ({
    qrels: Array.from(judgements, ([query, grades]) =>
      Array.from(grades, ([id, grade]) => `${query} 0 ${id} ${grade}\n`).join(''),
    ).join(''),
    run: [...formatTrecRun(run)].join(''),
    measures: FAMILIES,
  }));
  return (await runPeer('trec_eval.py', input)) as Record<string, Record<string, number>>[];
}

/** Compares every metric of every query, and the means over all judged queries, also those without results. */
async function assertAgreement(cases: readonly Case[]): Promise<number> {
  const replies = await measuredByPeer(cases);
  let compared = 0;
  for (const [i, { run, judgements }] of cases.entries()) {
    const { means, perQuery, judged } = evaluateRun({
      queryIds: [...judgements.keys()],
      run,
      judgements,
      cutoffs: CUTOFFS,
    });
    for (const [metric, peerMetric] of MEASURES) {
      let sum = 0;
      for (const query of judgements.keys()) {
        const expected = replies[i]![query]?.[peerMetric] ?? 0;
        const found = perQuery.get(query)![metric]!;
        assert.ok(Math.abs(found - expected) < 1e-9, `run ${i}, query ${query}, ${metric}: ${found}, not ${expected}`);
        sum += expected;
        compared++;
      }
      assert.ok(Math.abs(means[metric]! - sum / judged) < 1e-9, `run ${i}, mean of ${metric}`);
    }
  }
  return compared;
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

const skip = withoutPeers();

test('metrics of random runs without ties equal those of pytrec_eval, query by query', { skip }, async (t) => {
  const compared = await assertAgreement(Array.from({ length: 30 }, (_, seed) => randomCase(seed)));
  t.diagnostic(`${compared} values are equal`);
  assert.ok(compared > 8000);
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
