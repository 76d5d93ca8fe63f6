import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Refresher, type RefresherOptions } from '../../../indexer/writable/refresher.ts';
import { eventually } from '../../server/build.ts';

/** A refresher whose refreshes end when the test says so. */
function controlled(intervalMs = -1, pauses: Pick<RefresherOptions, 'rest' | 'quietMs'> = {}) {
  const state = { written: 0, visible: 0, refreshes: 0, failures: [] as unknown[] };
  let end: (error?: Error) => void;
  const refresher = new Refresher({
    refresh() {
      state.refreshes++;
      const seen = state.written;
      return new Promise((resolve, reject) => {
        end = (error) => {
          if (error !== undefined) return reject(error);
          state.visible = seen;
          resolve();
        };
      });
    },
    isPending: () => state.visible < state.written,
    intervalMs: () => intervalMs,
    onFailure: (error) => state.failures.push(error),
    ...pauses,
  });
  return { refresher, state, end: (error?: Error) => end!(error) };
}

test('requests at the same time share a refresh that began after them', async () => {
  const { refresher, state, end } = controlled();
  await refresher.request();
  assert.equal(state.refreshes, 0, 'nothing was written');
  state.written = 1;
  const first = refresher.request();
  state.written = 2;
  // The running refresh may have read the documents already.
  const others = [refresher.request(), refresher.request(), refresher.request()];
  assert.equal(state.refreshes, 1);
  end();
  await first;
  await eventually(() => state.refreshes === 2);
  end();
  await Promise.all(others);
  assert.deepEqual([state.refreshes, state.visible], [2, 2]);
});

test('a failed refresh fails its requests, and the next one does the work', async () => {
  const { refresher, state, end } = controlled();
  state.written = 1;
  const first = refresher.request();
  const second = refresher.request();
  end(new Error('disk'));
  await assert.rejects(first, /disk/);
  await eventually(() => state.refreshes === 2);
  end();
  await second;
  assert.equal(state.visible, 1);
});

test('writes are refreshed after the interval, unless it is negative', async () => {
  const never = controlled(-1);
  never.state.written = 1;
  never.refresher.wrote();
  const soon = controlled(0);
  soon.state.written = 1;
  soon.refresher.wrote();
  soon.refresher.wrote();
  await eventually(() => soon.state.refreshes === 1);
  soon.end();
  await eventually(() => soon.state.visible === 1);
  assert.equal(never.state.refreshes, 0);
  assert.equal(soon.state.refreshes, 1);
});

for (const [when, pauses] of [
  ['the rest after the last refresh is over, though writes continue', { rest: 0, quietMs: 1_000_000 }],
  ['writes have ended, though the last refresh took long', { rest: 1_000_000, quietMs: 0 }],
] as const) {
  test(`a refresh follows when ${when}`, async () => {
    const { refresher, state, end } = controlled(0, pauses);
    state.written = 1;
    const first = refresher.request();
    await new Promise((resolve) => setTimeout(resolve, 5));
    end();
    await first;
    state.written = 2;
    refresher.wrote();
    await eventually(() => state.refreshes === 2);
    end();
    await eventually(() => state.visible === 2);
    await refresher.close();
  });
}

test('a refresh that nobody waits for reports its failure', async () => {
  const { refresher, state, end } = controlled(0);
  state.written = 1;
  refresher.wrote();
  await eventually(() => state.refreshes === 1);
  end(new Error('disk'));
  await eventually(() => state.failures.length === 1);
  await refresher.close();
});

test('after closing, requests are refused and nothing is scheduled', async () => {
  const { refresher, state } = controlled(0);
  state.written = 1;
  await refresher.close();
  refresher.soon();
  await assert.rejects(refresher.request(), { code: 'NOT_READY' });
  assert.equal(state.refreshes, 0);
});
