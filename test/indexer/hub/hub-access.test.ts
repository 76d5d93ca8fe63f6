import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HubServer } from '../../helpers/hub-server.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { assertWhole, CONTENT, start } from './downloads.ts';

test('gated and private repositories need a token, and the message says how to get access', async (t) => {
  for (const access of ['gated', 'private'] as const) {
    const { hub, folder, fetch } = await start(t, { ...CONTENT, [access]: true });
    const withToken = (token: string) => ({ settings: { endpoint: hub.endpoint, token, offline: false } });
    await assert.rejects(
      fetch(),
      access === 'gated'
        ? trawlError('HUB_ACCESS_DENIED', /is gated.*Accept its terms at .*org\/some-model.*HF_TOKEN/)
        : trawlError('HUB_NOT_FOUND', /for a private repository set HF_TOKEN/),
    );
    const refused = await fetch(withToken('wrong-secret')).then(
      () => undefined,
      (error: Error) => error,
    );
    trawlError('HUB_ACCESS_DENIED', /does not accept the token/)(refused);
    assert.doesNotMatch(refused!.message, /wrong-secret/);
    await fetch(withToken(hub.token));
    assertWhole(folder);
  }
});

test('the token is sent to the hub only, not to the target of a redirect or of a link to the next page', async (t) => {
  const { hub, folder, fetch } = await start(t);
  const settings = { endpoint: hub.endpoint, token: hub.token, offline: false };
  await fetch({ settings });
  assertWhole(folder);
  assert.ok(hub.requests.some(({ cdn }) => cdn));
  for (const { cdn, authorization } of hub.requests) {
    assert.equal(authorization, cdn ? undefined : `Bearer ${hub.token}`);
  }
  const elsewhere = await HubServer.start(CONTENT);
  t.after(() => elsewhere.close());
  hub.linkOrigin = elsewhere.endpoint;
  await fetch({ settings });
  assert.ok(elsewhere.requests.length > 0);
  assert.ok(elsewhere.requests.every(({ authorization }) => authorization === undefined));
});

test('more than 10 redirects and a redirect to another protocol are refused with a way out', async (t) => {
  const { hub, fetch } = await start(t);
  hub.apiRefusals.push(
    ...Array.from({ length: 12 }, () => ({
      status: 302,
      headers: { location: `${hub.endpoint}/api/models/org/some-model/revision/main` },
    })),
  );
  await assert.rejects(fetch(), trawlError('HUB_REPLY_INVALID', /more than 10 times\. Check HF_ENDPOINT/));
  hub.apiRefusals.splice(0, 12, { status: 302, headers: { location: 'file:///etc/passwd' } });
  await assert.rejects(
    fetch(),
    trawlError('HUB_REPLY_INVALID', /redirects to "file:.*; expected an address of https.*Check HF_ENDPOINT/),
  );
});
