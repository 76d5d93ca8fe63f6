import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { goBack } from '../../../training/iteration/serve-iteration.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { FakeLoop, generation, killedBehindLink } from './fake-loop.ts';
import { slowServer } from './slow-server.ts';

test('a reload whose reply is cut, or given up by a proxy, is waited for, also if it has not begun yet', async (t) => {
  for (const how of ['cut', 504] as const) {
    for (const beginsAfter of [1, 2]) {
      const loop = await FakeLoop.make(t);
      const slow = await slowServer(t, loop, { beginsAfter, reply: (number) => (number === 1 ? how : 'whole') });
      loop.checkpoint('one');
      assert.equal((await loop.run('one', { servers: [slow.server] })).state, 'published');
      assert.deepEqual([slow.generation, loop.folder.current().number], [generation(1), 1]);
    }
  }
});

test('a reload that goes on after the run has given it up does not lead the server away from the link', async (t) => {
  const loop = await FakeLoop.make(t);
  // Three replies are cut before the first of the reloads has begun.
  const slow = await slowServer(t, loop, {
    beginsAfter: 4,
    openMs: 100,
    reply: (number) => (number <= 3 ? 'cut' : 'whole'),
  });
  const other = await slowServer(t, loop, { openMs: 1 });
  loop.checkpoint('one');
  await assert.rejects(loop.run('one', { servers: [other.server, slow.server] }), (error: Error) => {
    assert.ok(
      trawlError(
        'RELOAD_FAILED',
        /was lost during the reload .* answers with generation 0+\. Its log says why; the same command asks again\.$/,
      )(error),
    );
    return true;
  });
  await slow.idle();
  assert.deepEqual([slow.reloads, slow.generation, other.generation], [4, generation(0), generation(0)]);
  assert.equal(loop.folder.current().number, 0);
  assert.equal((await loop.run('one', { servers: [other.server, slow.server] })).state, 'published');
  assert.deepEqual([slow.generation, other.generation], [generation(1), generation(1)]);
});

test('going back waits for the reload of a killed run, and then reloads the server', async (t) => {
  const loop = await FakeLoop.make(t);
  const slow = await slowServer(t, loop, { openMs: 500 });
  await killedBehindLink(loop, 'one');
  const reloading = fetch(`${slow.url}/admin/indexes/current/reload`, { method: 'POST', body: '{}' });
  while (slow.reloads === 0) await sleep(5);
  await goBack(loop.folder, 0, [slow.server]);
  assert.equal((await reloading).status, 200);
  await slow.idle();
  assert.deepEqual([slow.generation, slow.reloads, loop.folder.current().number], [generation(0), 2, 0]);
});

test('a server that dies during the reload is named, with what the link points to', async (t) => {
  const loop = await FakeLoop.make(t);
  const slow = await slowServer(t, loop, {
    silentMs: 100,
    reply: () => {
      slow.die();
      return 'cut';
    },
  });
  loop.checkpoint('one');
  await assert.rejects(
    loop.run('one', { servers: [slow.server] }),
    trawlError(
      'RELOAD_FAILED',
      /was lost during the reload .* has not answered for 0\.1 seconds\. .*current points to iteration 0 again, but what a server answers with is not known: .*Reload or restart it/,
    ),
  );
  assert.equal(loop.folder.current().number, 0);
});
