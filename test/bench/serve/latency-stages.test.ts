import assert from 'node:assert/strict';
import { test } from 'node:test';
import { latencyStages } from '../../../bench/serve/latency-stages.ts';
import { SERVER_STAGES } from '../../../bench/serve/load-plan.ts';

/** 100 requests of 1 to 100 ms: half of the time in embed, a quarter in search, a quarter outside of the server. */
const latenciesMs = Array.from({ length: 100 }, (_, i) => i + 1);
const stagesMs = latenciesMs.map((ms) =>
  SERVER_STAGES.map((name) => (name === 'embed' ? ms / 2 : name === 'search' ? ms / 4 : 0)),
);

test('the stages at a percentile add up to the latencies near it, and what no stage has is rest', () => {
  const stages = latencyStages([{ latenciesMs, stagesMs }])!;
  assert.deepEqual(stages.names, [...SERVER_STAGES, 'rest']);
  assert.deepEqual(
    stages.percentiles.map(({ percent }) => percent),
    [50, 90, 99],
  );
  for (const { percent, ms } of stages.percentiles) {
    const total = ms.reduce((sum, value) => sum + value, 0);
    assert.ok(Math.abs(total - percent) <= 1.5, `p${percent}: ${total}`);
    const embed = ms[stages.names.indexOf('embed')]!;
    assert.ok(Math.abs(embed / total - 0.5) < 1e-9);
    assert.ok(Math.abs(ms.at(-1)! / total - 0.25) < 1e-9);
  }
});

test('the order of the requests does not matter', () => {
  const reversed = { latenciesMs: latenciesMs.toReversed(), stagesMs: stagesMs.toReversed() };
  assert.deepEqual(latencyStages([reversed]), latencyStages([{ latenciesMs, stagesMs }]));
});

test('a server without stages, and no requests at all, give null', () => {
  assert.equal(latencyStages([{ latenciesMs: [1, 2], stagesMs: [] }]), null);
  assert.equal(latencyStages([]), null);
});
