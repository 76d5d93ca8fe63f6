import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RowBitmap } from '../../../src/engine/row-bitmap.ts';
import { documentFields } from '../../../src/index/passages/document-fields.ts';
import type { QueryAnswer } from '../../../src/search/calls/query-outcome.ts';
import { draw, drawRanks } from '../../../training/perturbation/draw.ts';
import { FakeRetriever } from '../../helpers/fake-retriever.ts';
import {
  answers,
  DOCUMENTS,
  goldIds,
  PASSAGES,
  perturbation,
  QUERIES,
  ranking,
  requested,
  rowsOf,
} from './perturbed-answers.ts';

test('distractors take ranks among the hits that the client gets, scores fall, and nothing is there twice', async () => {
  const inner = ranking();
  const plain = await answers(inner, perturbation({}), QUERIES, { k: 10 });
  const mixed = await answers(inner, perturbation({ distractors: 1 }, { distractors: 2 }), QUERIES, {
    k: 10,
    shown: 4,
  });
  const ranks = new Set<number>();
  for (const [i, { hits, perturbed, certificate }] of mixed.entries()) {
    const places = hits.flatMap(({ distractor }, at) => (distractor ? [at + 1] : []));
    for (const rank of places) ranks.add(rank);
    assert.deepEqual(perturbed, { distractors: 2 });
    assert.equal(certificate.exact, false);
    assert.equal(places.length, 2);
    assert.equal(hits.length, 10);
    assert.equal(new Set(hits.map(({ row }) => row)).size, 10);
    assert.ok(hits.every(({ score }, at) => at === 0 || score <= hits[at - 1]!.score));
    assert.ok(hits.every(({ row, document }) => document === DOCUMENTS[row]));
    // The others keep their order.
    assert.deepEqual(
      hits.filter(({ distractor }) => !distractor).map(({ row }) => row),
      rowsOf(plain[i]!).slice(0, 8),
    );
  }
  assert.deepEqual([...ranks].sort(), [1, 2, 3, 4]);
  const drawn = new Set(mixed.flatMap(({ hits }) => hits.flatMap(({ distractor, row }) => (distractor ? [row] : []))));
  assert.ok(drawn.size > PASSAGES * 0.9, `only ${drawn.size} different passages were drawn in 800 draws of 200`);
});

test('an index with few passages gives as many distractors as it has others, and an empty list gets some too', async () => {
  const few = new FakeRetriever();
  const [answer] = await answers(few, perturbation({ distractors: 1 }, { distractors: 5 }), ['x'], { k: 3 });
  assert.deepEqual([answer!.hits.length, answer!.perturbed], [3, { distractors: 2 }]);
  const [none] = await answers(few, perturbation({ distractors: 1 }), ['x'], { k: 5 });
  assert.deepEqual([none!.hits.length, none!.perturbed], [5, undefined]);
  assert.equal(none!.certificate.exact, true);
  const empty = ranking({ outcome: () => ({ ...answer!, hits: [] }) });
  const [filled] = await answers(empty, perturbation({ distractors: 1 }), ['x'], { k: 3 });
  assert.deepEqual(
    filled!.hits.map(({ score, distractor }) => [score, distractor]),
    [[0, true]],
  );
});

test('the bitmap of a scope is made only if draws miss the scope, and only for the lists that lack passages', async () => {
  const selects: string[] = [];
  const inner = new (class extends FakeRetriever {
    override select(call: Parameters<FakeRetriever['select']>[0]) {
      selects.push(JSON.stringify(call));
      return super.select(call);
    }
  })({ documents: DOCUMENTS });
  const whole = await answers(inner, perturbation({ distractors: 1 }), QUERIES);
  assert.equal(selects.length, 0);
  // Passages that are found by row only in the first tenth, as with a narrow filter.
  const find = inner.find.bind(inner);
  inner.find = async (call) => {
    const { found, timings } = await find(call);
    return { timings, found: found.map((passages) => passages.filter(({ row }) => row < PASSAGES / 10)) };
  };
  inner.select = async () => {
    selects.push('narrow');
    const rows = new RowBitmap(PASSAGES);
    for (let row = 0; row < PASSAGES / 10; row++) rows.add(row);
    return rows;
  };
  const narrow = await answers(inner, perturbation({ distractors: 1 }), QUERIES);
  assert.deepEqual(selects, ['narrow']);
  const drawnOf = (answer: QueryAnswer): number => answer.hits.find(({ distractor }) => distractor)!.row;
  assert.ok(narrow.every((answer) => drawnOf(answer) < PASSAGES / 10));
  // A list does not depend on whether others needed the bitmap.
  for (const i of [3, 100, 250]) {
    const [alone] = await answers(inner, perturbation({ distractors: 1 }), [QUERIES[i]!]);
    assert.deepEqual(alone, narrow[i]);
  }
  assert.ok(whole.some((answer) => drawnOf(answer) >= PASSAGES / 10));
});

test('a gold passage is no distractor', async () => {
  const even = { of: () => (document: string) => Number(documentFields(document).id!.slice(2)) % 2 === 0 };
  const mixed = await answers(ranking(), perturbation({ distractors: 1 }, { distractors: 2 }, even), QUERIES, { k: 4 });
  const drawn = mixed.flatMap(({ hits }) => hits.filter(({ distractor }) => distractor));
  assert.ok(drawn.length > QUERIES.length);
  assert.ok(drawn.every(({ row }) => row % 2 === 1));
});

test('gold passages are dropped after reranking, and distractors are not reranked', async () => {
  const inner = ranking();
  const call = { queries: ['x'], k: 4, rerank: { depth: 50 } };
  const [plain] = (await inner.retrieve(call)).outcomes as [QueryAnswer];
  const gold = goldIds(`p-${plain.hits[0]!.row}`);
  const both = requested(inner, perturbation({ 'drop-gold': 1, distractors: 1 }, {}, gold));
  const [answer] = (await both.retrieve(call)).outcomes as [QueryAnswer];
  assert.deepEqual(answer.perturbed, { droppedGold: 1, distractors: 1 });
  assert.equal(answer.rerank?.ok, true);
  const kept = answer.hits.filter(({ distractor }) => !distractor);
  assert.deepEqual(
    kept.map(({ firstStage }) => firstStage?.rank),
    [2, 3, 4],
  );
  assert.ok(answer.hits.every(({ distractor, firstStage }) => distractor !== true || firstStage === undefined));
  assert.ok(inner.calls.every(({ rerank }) => rerank?.depth === 50));
});

test('draws lie in [0, 1), and ranks are different and ascending', () => {
  const drawn = QUERIES.map((query) => draw(1, 'x', query));
  assert.ok(drawn.every((value) => value >= 0 && value < 1));
  assert.equal(new Set(drawn).size, QUERIES.length);
  // Parts differ by more than their joined text.
  assert.notEqual(draw(1, 'a', 'bc'), draw(1, 'ab', 'c'));
  for (const query of QUERIES) {
    const ranks = drawRanks(3, 5, 1, query);
    assert.deepEqual([...new Set(ranks)].sort(), ranks);
    assert.ok(ranks.length === 3 && ranks[0]! >= 1 && ranks[2]! <= 5);
  }
  assert.deepEqual(drawRanks(9, 3, 1), [1, 2, 3]);
  assert.deepEqual(drawRanks(2, 0, 1), []);
});
