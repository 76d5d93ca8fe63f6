import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { goBack } from '../../../training/iteration/serve-iteration.ts';
import { ServedIndex } from '../../../training/iteration/served-index.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { FakeLoop, generation, killedBehindLink } from './fake-loop.ts';
import { fakeServer } from './fake-server.ts';

test('every server follows the link, and only then old iterations are removed', async (t) => {
  const loop = await FakeLoop.make(t);
  const fakes = [await fakeServer(t, loop), await fakeServer(t, loop)];
  const servers = fakes.map(({ server }) => server);
  await loop.publish('one', { servers, keep: 2 });
  await loop.publish('two', { servers, keep: 2 });
  assert.deepEqual(loop.folders, ['0001', '0002']);
  const { removed } = await loop.publish('three', { servers, keep: 2 });
  assert.deepEqual([removed, loop.folders], [[1], ['0002', '0003']]);
  for (const fake of fakes) assert.equal(fake.generation, generation(3));
  // A run that was killed after one server had changed only changes the other.
  loop.checkpoint('four');
  await loop.run('four', { until: 'measures' });
  fakes[0]!.generation = generation(4);
  const reloads = fakes.map((fake) => fake.reloads);
  assert.equal((await loop.run('four', { servers })).state, 'published');
  assert.deepEqual(
    fakes.map((fake) => fake.reloads),
    [reloads[0], reloads[1]! + 1],
  );
  // What a run left that was killed before it removed anything.
  mkdirSync(join(loop.folder.root, 'iterations', '0001'));
  assert.equal((await loop.run('four', { servers })).state, 'current');
  assert.ok(!loop.folders.includes('0001'));
});

test('if a server does not follow, all servers and the link stay as they were, and the run resumes there', async (t) => {
  const loop = await FakeLoop.make(t);
  const [good, bad] = [await fakeServer(t, loop), await fakeServer(t, loop)];
  const servers = [good.server, bad.server];
  loop.checkpoint('one');
  const start = loop.current;
  const fails = async (expected: RegExp): Promise<void> => {
    await assert.rejects(loop.run('one', { servers }), trawlError('RELOAD_FAILED', expected));
    assert.equal(loop.current, start);
    assert.deepEqual([good.generation, bad.generation], [generation(0), generation(0)]);
  };
  const follow = bad.onReload;
  bad.onReload = () => ({ status: 409, body: { error: { message: 'Index current could not be reloaded' } } });
  await fails(/refused the reload with status 409: Index current could not be reloaded/);
  // It opens the folder that it was started with, which is not the link.
  bad.onReload = () => ({ status: 200, body: {} });
  await fails(/answers with generation 0+ after the reload, not with 0+1: it does not open the link.*--server-folder/);
  bad.onReload = () => ({ status: 0, body: {} });
  await fails(/was lost during the reload .* answers with generation 0+\./);
  assert.equal(loop.steps.length, 3);
  // The reply was lost, but not the reload.
  bad.onReload = () => ({ ...follow(), status: 0 });
  assert.equal((await loop.run('one', { servers })).state, 'published');
  assert.equal(bad.generation, generation(1));
  // Going back has the same guarantee.
  bad.onReload = () => ({ status: 500, body: {} });
  const wayOut = /status 500.* Iteration 1 is served as before\. .*--back --to 0 --root \S+, without --server/;
  await assert.rejects(goBack(loop.folder, undefined, servers), trawlError('RELOAD_FAILED', wayOut));
  assert.deepEqual([loop.folder.current().number, good.generation], [1, generation(1)]);
});

test('a server that answers with something else than the link is refused before any work', async (t) => {
  const loop = await FakeLoop.make(t);
  const fake = await fakeServer(t, loop, { folder: '/elsewhere/current' });
  loop.checkpoint('one');
  fake.generation = 'f'.repeat(32);
  const other = trawlError('CONFIG_INVALID', /answers with generation f+, but \S+current points to iteration 0/);
  await assert.rejects(loop.run('one', { servers: [fake.server] }), other);
  const wrongName = new ServedIndex(`${fake.url}/indexes/none`);
  await assert.rejects(
    loop.run('one', { servers: [wrongName] }),
    trawlError('CONFIG_INVALID', /does not serve none\. It serves current\./),
  );
  const nobody = new ServedIndex('http://127.0.0.1:9');
  await assert.rejects(
    loop.run('one', { servers: [nobody] }),
    trawlError('CONFIG_INVALID', /cannot be asked for its indexes/),
  );
  assert.deepEqual(loop.steps, []);
  fake.generation = generation(0);
  assert.equal((await loop.run('one', { servers: [fake.server] })).state, 'published');
  assert.deepEqual(fake.bodies, ['{"folder":"/elsewhere/current"}']);
});

test('a run that was killed between the link and a server resumes with the server on the index before', async (t) => {
  const loop = await FakeLoop.make(t);
  const fake = await fakeServer(t, loop);
  await killedBehindLink(loop, 'one');
  assert.deepEqual([loop.folder.current().number, fake.generation], [1, generation(0)]);
  assert.equal((await loop.run('one', { servers: [fake.server] })).state, 'published');
  assert.equal(fake.generation, generation(1));
});

test('going back leaves a bad index also while a server is down, and says which server', async (t) => {
  const loop = await FakeLoop.make(t);
  const good = await fakeServer(t, loop);
  await loop.publish('one', { servers: [good.server] });
  const down = new ServedIndex('http://127.0.0.1:9');
  await assert.rejects(
    goBack(loop.folder, undefined, [down, good.server]),
    trawlError(
      'RELOAD_FAILED',
      /Iteration 0 is served now, but not by all servers: http:\/\/127\.0\.0\.1:9 cannot be asked.*--to 0/,
    ),
  );
  assert.deepEqual([loop.folder.current().number, good.generation], [0, generation(0)]);
});

test('a server that opens an index for too long, or while the run is stopped, does not hold the run', async (t) => {
  const loop = await FakeLoop.make(t);
  const fake = await fakeServer(t, loop, { openingMs: 1 });
  const follow = fake.onReload;
  loop.checkpoint('one');
  fake.onReload = () => {
    fake.stage = 'loading';
    return { status: 0, body: {} };
  };
  await assert.rejects(
    loop.run('one', { servers: [fake.server] }),
    trawlError('RELOAD_FAILED', /still opens the index after 0\.001 seconds\. Run the command again/),
  );
  assert.equal(loop.folder.current().number, 0);
  fake.stage = 'ready';
  const stop = new AbortController();
  fake.onReload = () => {
    fake.stage = 'loading';
    stop.abort();
    return { status: 0, body: {} };
  };
  const patient = new ServedIndex(fake.url);
  await assert.rejects(loop.run('one', { servers: [patient], signal: stop.signal }), trawlError('CANCELLED'));
  // As after a kill, the link leads on, and the same command completes it.
  assert.deepEqual([loop.folder.current().number, fake.generation], [1, generation(0)]);
  fake.onReload = follow;
  assert.equal((await loop.run('one', { servers: [patient] })).state, 'published');
  assert.equal(fake.generation, generation(1));
});

test('a key that may not reload is refused before any work', async (t) => {
  const loop = await FakeLoop.make(t);
  const fake = await fakeServer(t, loop);
  loop.checkpoint('one');
  fake.checkStatus = 403;
  const refused = trawlError(
    'CONFIG_INVALID',
    /would refuse a reload with status 403\. Give --key-file .* scope admin/,
  );
  await assert.rejects(loop.run('one', { servers: [fake.server] }), refused);
  assert.deepEqual([loop.steps, fake.reloads], [[], 0]);
  assert.throws(() => new ServedIndex('http://a:1,http://b:1'), trawlError('USAGE', /Repeat the option/));
});
