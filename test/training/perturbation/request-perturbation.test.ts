import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as pendingCallbacks } from 'node:timers/promises';
import { UnansweredRequests } from '../../../training/perturbation/request-perturbation.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { answers, perturbation, QUERIES, ranking, requested } from './perturbed-answers.ts';

test('a failed request searches nothing; when it is sent again it gets a new draw, and after an answer the old ones', async () => {
  const inner = ranking();
  const failing = perturbation({ fail: 0.5 }, { seed: 3 });
  const passes = async (query: string, caller?: string): Promise<boolean> => {
    try {
      await answers(inner, failing, [query], caller === undefined ? {} : { caller });
      return true;
    } catch (error) {
      return !trawlError('PERTURBED', /on purpose/)(error);
    }
  };
  const doomed: string[] = [];
  for (const query of QUERIES.slice(0, 40)) if (!(await passes(query))) doomed.push(query);
  assert.ok(doomed.length > 5 && doomed.length < 35, `${doomed.length} of 40`);
  assert.equal(inner.calls.length, 40 - doomed.length);
  const tries: number[] = [];
  for (const query of doomed) {
    let again = 1;
    while (!(await passes(query))) again++;
    tries.push(again);
  }
  assert.ok(Math.max(...tries) < 20 && tries.includes(1), tries.join());
  // The next epoch meets the same failures.
  for (const [i, query] of doomed.entries()) {
    let again = 0;
    while (!(await passes(query))) again++;
    assert.equal(again, tries[i]);
  }
  // Another trajectory with the same query is counted apart.
  const [first] = doomed;
  assert.equal(await passes(first!, 'one'), false);
  assert.equal(await passes(first!, 'two'), false);
});

test('the requests of a batch fail together, and a request whose later searches go deeper passes once', async () => {
  const failing = perturbation({ fail: 1 });
  await assert.rejects(answers(ranking(), failing, QUERIES), trawlError('PERTURBED'));
  const delaying = perturbation({ delay: 1 }, { delayMs: 1 });
  const retriever = requested(ranking(), delaying);
  const call = { queries: ['a', 'b'], k: 2 };
  const first = await retriever.retrieve(call);
  const deeper = await retriever.retrieve({ queries: ['b'], k: 8, continues: { call, positions: [1] } });
  for (const outcome of [...first.outcomes, ...deeper.outcomes]) {
    assert.ok(outcome.ok);
    assert.deepEqual(outcome.perturbed, { delayMs: 1 });
    // A delay changes no hit.
    assert.equal(outcome.certificate.exact, true);
  }
});

test('what is remembered of a request without an answer does not grow with its headers or its texts', async () => {
  const keys: string[] = [];
  const failing = perturbation({ fail: 1 });
  const { unanswered } = failing;
  const remember = unanswered.unanswered.bind(unanswered);
  unanswered.unanswered = (key) => {
    keys.push(key);
    remember(key);
  };
  for (const caller of ['', 'a'.repeat(16_000), `${'a'.repeat(16_000)}b`]) {
    await assert.rejects(answers(ranking(), failing, ['x'.repeat(5000)], { caller }), trawlError('PERTURBED'));
  }
  assert.equal(new Set(keys).size, 3);
  assert.ok(keys.every(({ length }) => length < 50));
});

test('a client that leaves while it is held back ends the wait, nothing is searched, and its next try gets a new draw', async () => {
  const inner = ranking();
  const delaying = perturbation({ delay: 0.5 }, { seed: 5, delayMs: 600_000 });
  let left = 0;
  for (const query of QUERIES.slice(0, 10)) {
    for (let answered = false; !answered; ) {
      const controller = new AbortController();
      const before = inner.calls.length;
      const asking = requested(inner, delaying)
        .retrieve({ queries: [query], k: 1, signal: controller.signal })
        .then(
          () => true,
          (error) => !trawlError('CANCELLED')(error),
        );
      // A search that is not held back begins at once.
      for (let i = 0; i < 5; i++) await pendingCallbacks();
      if (inner.calls.length === before) {
        left++;
        controller.abort();
      }
      answered = await asking;
      assert.equal(inner.calls.length, before + (answered ? 1 : 0));
    }
  }
  assert.ok(left > 2, `${left} requests were held back`);
});

test('requests without an answer are remembered up to a limit', () => {
  const requests = new UnansweredRequests();
  for (let i = 0; i <= 100_000; i++) requests.unanswered(`r${i}`);
  requests.unanswered('r5');
  assert.deepEqual([requests.count('r0'), requests.count('r5'), requests.count('r100000')], [0, 2, 1]);
  requests.answered('r5');
  assert.equal(requests.count('r5'), 0);
});
