import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as pendingCallbacks } from 'node:timers/promises';
import { TrawlError } from '../../../src/base/errors.ts';
import { documentFields } from '../../../src/index/passages/document-fields.ts';
import type { QueryAnswer, QueryOutcome } from '../../../src/search/calls/query-outcome.ts';
import { retrieveDeepening } from '../../../src/search/deepening.ts';
import { AnswerCache } from '../../../src/search/layers/answer-cache.ts';
import { passingRetriever } from '../../../src/search/layers/passing-retriever.ts';
import { SharedSearch } from '../../../src/search/layers/shared-search.ts';
import type { Retriever } from '../../../src/search/retriever.ts';
import { perturbingRetriever } from '../../../training/perturbation/perturbing-retriever.ts';
import { type GoldPassages, RequestPerturbation } from '../../../training/perturbation/request-perturbation.ts';
import { perturbationSettings } from '../../../training/perturbation/settings.ts';
import { FakeRetriever } from '../../helpers/fake-retriever.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import {
  type Amounts,
  answers,
  DOCUMENTS,
  goldIds,
  perturbation,
  QUERIES,
  type Rates,
  ranking,
  requested,
  rowsOf,
} from './perturbed-answers.ts';

test('gold passages are left out, the next of the ranking follow, and the answer is no longer exact', async () => {
  const inner = ranking();
  const [plain] = await answers(inner, perturbation({}), ['a query'], { k: 8 });
  const [gold, other] = [plain!.hits[1]!, plain!.hits[3]!].map(({ row }) => `p-${row}`);
  const [answer] = await answers(inner, perturbation({ 'drop-gold': 1 }, {}, goldIds(gold!, other!)), ['a query'], {
    k: 5,
  });
  const [r0, , r2, , r4, r5, r6] = rowsOf(plain!);
  assert.deepEqual(rowsOf(answer!), [r0, r2, r4, r5, r6]);
  assert.deepEqual(answer!.perturbed, { droppedGold: 2 });
  assert.equal(answer!.certificate.exact, false);
  assert.equal(plain!.certificate.exact, true);
  assert.equal(plain!.perturbed, undefined);
});

test('an answer without a gold passage, and one of a question that is not known, stay as they are', async () => {
  const inner = ranking();
  const [plain] = await answers(inner, perturbation({}), ['a query']);
  for (const gold of [goldIds('p-none'), { of: () => undefined }, null]) {
    const [answer] = await answers(inner, perturbation({ 'drop-gold': 1 }, {}, gold), ['a query']);
    assert.deepEqual(answer, plain);
  }
});

test('a list whose first passages are all gold is filled from deeper ranks; if the index ends, it is shorter', async () => {
  const most = { of: () => (document: string) => Number(documentFields(document).id!.slice(2)) % 20 !== 0 };
  const [deep] = await answers(ranking(), perturbation({ 'drop-gold': 1 }, {}, most), ['x'], { k: 3 });
  assert.equal(deep!.hits.length, 3);
  assert.ok(deep!.hits.every(({ row }) => row % 20 === 0));
  assert.ok(deep!.hits.every(({ score }, i) => i === 0 || score <= deep!.hits[i - 1]!.score));
  const few = new FakeRetriever();
  const [all] = await answers(few, perturbation({ 'drop-gold': 1 }, {}, goldIds('0')), ['x'], { k: 5 });
  assert.equal(all!.hits.length, 4);
});

test('if the deeper search fails, as in a replayed index, the list is shorter', async () => {
  const inner = ranking();
  const limited = new (class extends FakeRetriever {
    override async retrieve(call: Parameters<FakeRetriever['retrieve']>[0]) {
      if (call.k <= 3) return inner.retrieve(call);
      const { outcomes, timings } = await inner.retrieve(call);
      const error = new TrawlError('NOT_RECORDED', 'Not recorded.');
      return { timings, outcomes: outcomes.map(() => ({ ok: false as const, error })) };
    }
  })({ documents: DOCUMENTS });
  const [plain] = await answers(inner, perturbation({}), ['x'], { k: 3 });
  const gold = goldIds(`p-${plain!.hits[0]!.row}`);
  const [answer] = await answers(limited, perturbation({ 'drop-gold': 1 }, {}, gold), ['x'], { k: 3 });
  assert.deepEqual(rowsOf(answer!), rowsOf(plain!).slice(1));
  assert.deepEqual(answer!.perturbed, { droppedGold: 1 });
});

test('the passages are read to find gold ones even for a call without documents, whose hits stay without', async () => {
  const inner = ranking();
  const [plain] = await answers(inner, perturbation({}), ['x']);
  const gold = goldIds(`p-${plain!.hits[0]!.row}`);
  const retriever = requested(inner, perturbation({ 'drop-gold': 1 }, {}, gold));
  const { outcomes } = await retriever.retrieve({ queries: ['x'], k: 5, documents: false });
  const [answer] = outcomes as [QueryAnswer];
  assert.deepEqual(answer.perturbed, { droppedGold: 1 });
  assert.ok(answer.hits.every(({ document }) => document === ''));
});

test('what happens to a query depends on seed and texts, not on its batch, the order or the answers before', async () => {
  const inner = ranking();
  const rates = { 'drop-gold': 0.3, distractors: 0.3 };
  const gold = { of: () => (document: string) => Number(documentFields(document).id!.slice(2)) % 3 === 0 };
  const whole = await answers(inner, perturbation(rates, { seed: 7 }, gold), QUERIES);
  const again = perturbation(rates, { seed: 7 }, gold);
  const reversed = await answers(inner, again, [...QUERIES].reverse());
  assert.deepEqual([...reversed].reverse(), whole);
  for (const i of [0, 17, 399]) assert.deepEqual(await answers(inner, again, [QUERIES[i]!]), [whole[i]]);
  const other = await answers(inner, perturbation(rates, { seed: 8 }, gold), QUERIES);
  assert.notDeepEqual(
    other.map(({ perturbed }) => perturbed),
    whole.map(({ perturbed }) => perturbed),
  );
  // The question takes part.
  const asked = await answers(
    inner,
    again,
    QUERIES.map((query) => ({ question: 'Which?', query })),
  );
  const changed = (list: readonly QueryAnswer[]): string => list.map(({ perturbed }) => (perturbed ? 1 : 0)).join('');
  assert.notEqual(changed(asked), changed(whole));
  // It does so also where the template leaves it out of what is embedded.
  const { outcomes } = await requested(inner, again).retrieve({
    queries: QUERIES.map((query) => ({ question: 'Which?', query })),
    k: 5,
    template: 'query',
  });
  assert.equal(changed(outcomes as QueryAnswer[]), changed(asked));
});

test('the share of affected queries is the rate, and a higher rate affects the same queries and more', async () => {
  const affected = async (rate: number): Promise<string[]> => {
    const list = await answers(ranking(), perturbation({ distractors: rate }, { seed: 1 }), QUERIES);
    return QUERIES.filter((_, i) => list[i]!.perturbed !== undefined);
  };
  const [none, few, many, all] = [await affected(0), await affected(0.2), await affected(0.5), await affected(1)];
  assert.deepEqual([none.length, all.length], [0, QUERIES.length]);
  // Five standard deviations of 400 draws.
  assert.ok(Math.abs(few.length - 80) < 40, `${few.length} of 400`);
  assert.ok(Math.abs(many.length - 200) < 50, `${many.length} of 400`);
  assert.ok(few.every((query) => many.includes(query)));
});

test('each search of a request finds the question that the request names', async () => {
  const asked: (string | undefined)[] = [];
  const gold = { of: ({ question }: { question?: string }) => void asked.push(question) };
  const options = {
    perturbation: perturbation({ 'drop-gold': 1 }, {}, gold),
    caller: '',
    asked: (queries: number) =>
      Array.from({ length: queries }, (_, i) => ({ question: `Question ${i} of ${queries}` })),
    onPerturbed: () => undefined,
  };
  const retriever = perturbingRetriever(ranking(), new RequestPerturbation(options));
  let searches = 0;
  const needMore = async (): Promise<number[]> => (searches++ === 0 ? [1] : []);
  await retrieveDeepening(retriever, { queries: ['a', 'b'], k: 2 }, { maxK: 8, needMore });
  await retriever.retrieve({ queries: ['c'], k: 2, asked: [{ question: 'Of the dialect' }] });
  assert.deepEqual(asked, ['Question 0 of 2', 'Question 1 of 2', 'Question 1 of 2', 'Of the dialect']);
});

test('equal queries with different questions lose the gold passages of their own, in deeper searches too', async () => {
  const [plain] = await answers(ranking(), perturbation({}), ['x'], { k: 4 });
  const ids = rowsOf(plain!).map((row) => `p-${row}`);
  const gold: GoldPassages = {
    of:
      ({ questionId }) =>
      (document) =>
        documentFields(document).id === ids[Number(questionId)],
  };
  const options = {
    perturbation: perturbation({ 'drop-gold': 1 }, {}, gold),
    caller: '',
    asked: (queries: number) => Array.from({ length: queries }, (_, i) => ({ questionId: String(i) })),
    onPerturbed: () => undefined,
  };
  const without = (outcome: QueryOutcome): string[] => {
    assert.ok(outcome.ok);
    const found = rowsOf(outcome).map((row) => `p-${row}`);
    return ids.filter((id) => !found.includes(id));
  };
  const retriever = perturbingRetriever(ranking(), new RequestPerturbation(options));
  const { outcomes } = await retriever.retrieve({ queries: ['x', 'x', 'x'], k: 4 });
  assert.deepEqual(outcomes.map(without), [[ids[0]], [ids[1]], [ids[2]]]);
  let searches = 0;
  const deep = await retrieveDeepening(
    retriever,
    { queries: ['x', 'x', 'x'], k: 4, asked: [{}, { questionId: '3' }, {}] },
    { maxK: 16, needMore: async () => (searches++ === 0 ? [1, 2] : []) },
  );
  assert.deepEqual(deep.outcomes.map(without), [[ids[0]], [ids[3]], [ids[2]]]);
  assert.deepEqual(
    deep.outcomes.map((outcome) => outcome.ok && outcome.hits.length),
    [4, 16, 16],
  );
});

test('searches that a request has at a time are perturbed as each alone, each with its own questions', async () => {
  const gold: GoldPassages = {
    of:
      ({ questionId }) =>
      (document) =>
        Number(documentFields(document).id!.slice(2)) % 5 === Number(questionId),
  };
  const rates = { 'drop-gold': 1, distractors: 0.5, delay: 0.5, fail: 0.3 };
  const of = () => {
    const options = {
      perturbation: perturbation(rates, { seed: 11, delayMs: 1 }, gold),
      caller: '',
      asked: (queries: number) => Array.from({ length: queries }, () => ({ questionId: 'none' })),
      onPerturbed: () => undefined,
    };
    return perturbingRetriever(ranking(), new RequestPerturbation(options));
  };
  const search = async (retriever: Retriever, i: number): Promise<unknown> => {
    const call = { queries: [`a ${i}`, `b ${i}`], k: 4, asked: [{ questionId: `${i % 5}` }, { questionId: '4' }] };
    let searches = 0;
    const needMore = async (): Promise<number[]> => (searches++ === 0 ? [1] : []);
    try {
      const { outcomes } = await retrieveDeepening(retriever, call, { maxK: 16, needMore });
      return outcomes.map((outcome) => (outcome.ok ? [rowsOf(outcome), outcome.perturbed] : outcome.error.code));
    } catch (error) {
      return (error as TrawlError).code;
    }
  };
  const searches = Array.from({ length: 40 }, (_, i) => i);
  const alone: unknown[] = [];
  for (const i of searches) alone.push(await search(of(), i));
  const request = of();
  assert.deepEqual(await Promise.all(searches.map((i) => search(request, i))), alone);
  const failed = alone.filter((found) => found === 'PERTURBED').length;
  assert.ok(failed > 0 && failed < 40, `${failed} of 40 failed`);
});

test('a passage is looked at once per query, however often it is searched deeper, and other work runs in between', async () => {
  const looked = new Map<string, number>();
  const gold: GoldPassages = {
    of: () => (document) => {
      looked.set(document, (looked.get(document) ?? 0) + 1);
      // As long as the search for answers in a long passage.
      for (const end = performance.now() + 0.2; performance.now() < end; );
      return Number(documentFields(document).id!.slice(2)) % 20 !== 0;
    },
  };
  let turns = 0;
  let isOver = false;
  const others = (async () => {
    for (; !isOver; turns++) await pendingCallbacks();
  })();
  const of = perturbation({ 'drop-gold': 1 }, {}, gold);
  const [answer] = await answers(ranking(), of, ['x'], { k: 3 });
  const turnsOfOne = turns;
  isOver = true;
  await others;
  assert.equal(answer!.hits.length, 3);
  assert.ok(looked.size > 30, `${looked.size} passages were looked at`);
  assert.deepEqual([...new Set(looked.values())], [1]);
  assert.ok(turnsOfOne > 2, `other work ran ${turnsOfOne} times`);
});

test('a search for passages in place of gold ones stays within the limit of hits of a request', async () => {
  const inner = ranking();
  const most = { of: () => (document: string) => Number(documentFields(document).id!.slice(2)) % 20 !== 0 };
  const of = perturbation({ 'drop-gold': 1 }, {}, most);
  const [a, b] = await answers(inner, of, ['x', 'y'], { k: 3, maxHits: 20 });
  assert.deepEqual([...new Set(inner.calls.map(({ k }) => k))], [3, 10]);
  assert.ok(a!.hits.length < 3 && b!.hits.length < 3);
  // The hits that were asked for are searched in any case.
  await answers(inner, of, ['x', 'y'], { k: 30, maxHits: 20 });
  assert.equal(inner.calls.at(-1)!.k, 30);
});

test('the cache keeps unperturbed answers', async () => {
  const inner = ranking();
  const shared = new SharedSearch(inner, inner.info, { answerCache: new AnswerCache(1e7), singleFlight: true });
  const cached = passingRetriever(inner, (call) => call, { retrieve: (call) => shared.retrieve(call) });
  const [plain] = await answers(ranking(), perturbation({}), ['x']);
  const gold = goldIds(`p-${plain!.hits[0]!.row}`);
  const both = perturbation({ 'drop-gold': 1, distractors: 1 }, {}, gold);
  const [first] = await answers(cached, both, ['x']);
  const [second] = await answers(cached, both, ['x']);
  assert.deepEqual(rowsOf(second!), rowsOf(first!));
  assert.notDeepEqual(rowsOf(first!), rowsOf(plain!));
  const searched = inner.calls.length;
  const { outcomes } = await cached.retrieve({ queries: ['x'], k: 5 });
  assert.equal(inner.calls.length, searched, 'the answer comes from the cache');
  const [kept] = outcomes as [QueryAnswer];
  assert.deepEqual([rowsOf(kept), kept.perturbed, kept.certificate.exact], [rowsOf(plain!), undefined, true]);
});

test('settings out of range are refused', () => {
  const refused: readonly [Rates, Amounts, RegExp][] = [
    [{ fail: 1.01 }, {}, /the rate of fail is 1\.01; expected a number from 0 to 1/],
    [{ delay: Number.NaN }, {}, /the rate of delay is NaN/],
    [{}, { seed: -1 }, /the seed is -1/],
    [{}, { distractors: 0 }, /the number of distractors is 0/],
    [{}, { delayMs: 600_001 }, /the delay is 600001; expected whole milliseconds from 1 to 600000/],
  ];
  for (const [rates, amounts, message] of refused) {
    assert.throws(() => perturbationSettings(rates, amounts), trawlError('CONFIG_INVALID', message));
  }
});
